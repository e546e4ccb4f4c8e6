"""The description of all doors (OpenAPI 3.1): FastAPI's, with who may use which, and what a refusal looks like."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from fastapi.routing import APIRoute

from triplewire.service.access import Policy, doors

_ABOUT = "Subscribe once, be told at once. Tokens: `triplewire token create`."
_TEXT = {"type": "string"}
_PROBLEM = {
    "title": "Problem",
    "description": "Why a request was refused (RFC 9457), and what to do.",
    "type": "object",
    "required": ["type", "status", "title"],
    "properties": {
        "type": _TEXT,
        "status": {"type": "integer"},
        "title": _TEXT,
        "remedy": _TEXT,
        **{name: {"type": "integer", "minimum": 1} for name in ("line", "column", "record")},
        "errors": {"type": "array", "items": {"type": "object"}},
    },
}
_REFUSED = {
    "description": "Refused",
    "content": {"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}},
}
_BEARER = {"type": "http", "scheme": "bearer", "description": "An API token, or the ticket of a subscription."}
_OPEN = (Policy.ANYBODY, Policy.KEY)
_MAY_BE_OPEN = (Policy.PUBLISHER, Policy.WATCHER)

RAW_BODY: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "description": "RDF in any syntax, a feed, or multipart/related: a document and its attachments.",
        "content": {"*/*": {"schema": {"type": "string", "format": "binary"}}},
    }
}
"""What a door takes that reads the body as it is (`openapi_extra` of its route)."""


def install(app: FastAPI) -> None:
    """Have the application describe itself so."""

    def described() -> dict[str, Any]:
        if app.openapi_schema is None:
            app.openapi_schema = _described(app)
        return app.openapi_schema

    app.openapi = described  # type: ignore[method-assign]  # as FastAPI's documentation has it


def _described(app: FastAPI) -> dict[str, Any]:
    said = get_openapi(title=app.title, version=app.version, description=_ABOUT, routes=app.routes)
    schemas = said.setdefault("components", {}).setdefault("schemas", {})
    for name in ("HTTPValidationError", "ValidationError"):
        schemas.pop(name, None)
    schemas["Problem"] = _PROBLEM
    said["components"]["securitySchemes"] = {"token": _BEARER}
    for door in doors(app.routes):
        if not isinstance(door, APIRoute) or not door.include_in_schema:
            continue
        policy = door.endpoint.__dict__["policy"]
        for method in door.methods or ():
            operation = said["paths"].get(door.path_format, {}).get(method.lower())
            if operation is None:
                continue
            operation["responses"].pop("422", None)
            operation["responses"]["default"] = _REFUSED
            if policy not in _OPEN:
                operation["security"] = [{"token": []}, *([{}] if policy in _MAY_BE_OPEN else [])]
    return said
