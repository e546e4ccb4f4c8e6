"""Bodies of requests, made from the description of the doors."""

from __future__ import annotations

from typing import Any

VALUES = {
    "query": "SELECT ?s { ?s ?p ?o }", "language": "sparql", "publication": "<urn:a> <urn:b> <urn:c> .",
    "seconds": 3_600, "title": "of ann", "state": "paused", "content_type": "text/turtle",
}  # fmt: skip
"""What is sent where a door takes a field of this name."""


def body(schema: Any, whole: Any, id: str) -> Any:
    """The least that a door takes, with the id of a subscription where it wants one."""
    if "$ref" in schema:
        return body(whole["components"]["schemas"][schema["$ref"].rpartition("/")[2]], whole, id)
    for choice in ("anyOf", "oneOf", "allOf"):
        if choice in schema:
            return body(schema[choice][0], whole, id)
    if "properties" in schema:
        needed = schema.get("required", [])
        return {
            name: id if name == "subscription" else VALUES.get(name) or body(each, whole, id)
            for name, each in schema["properties"].items()
            if name in needed or name in ("seconds", "title")
        }
    kinds = {"integer": 1, "number": 1, "boolean": False, "array": [], "object": {}}
    return kinds.get(schema.get("type"), "x")


def properties(schema: Any, whole: Any) -> dict[str, Any]:
    """The fields of a body."""
    if "$ref" in schema:
        return properties(whole["components"]["schemas"][schema["$ref"].rpartition("/")[2]], whole)
    for choice in ("anyOf", "oneOf", "allOf"):
        if choice in schema:
            return properties(schema[choice][0], whole)
    return dict(schema.get("properties", {}))
