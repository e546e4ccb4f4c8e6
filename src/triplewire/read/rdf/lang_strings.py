"""Values of JSON-LD that are typed rdf:langString and have a language.

RDF says the two as one (RDF 1.1 Concepts, 3.3), JSON-LD refuses or loses the language. One that has no language is
refused where it becomes a term (`triplewire.read.rdf.parse`).
"""

from __future__ import annotations

import json
from typing import Any

from triplewire.model.terms import LANG_STRING, RDF
from triplewire.read.guard.texts import objects_in


def with_languages(data: bytes, value: Any) -> bytes:
    """The document without the type of such values, and of terms whose values are such; `value` is what it says."""
    if b"langString" not in data:
        return data
    names = {LANG_STRING} | {f"{prefix}:langString" for prefix in _prefixes(value)}
    changed = _changed(value, "", names)
    return data if changed == value else json.dumps(changed, ensure_ascii=False).encode("utf-8", "replace")


def _prefixes(value: Any) -> set[str]:
    """The prefixes that some context declares for RDF's namespace."""
    return {
        key
        for node in objects_in(value)
        for key, item in node.items()
        if RDF in (item, isinstance(item, dict) and item.get("@id"))
    }


def _changed(node: Any, language: str, names: set[str], *, is_context: bool = False) -> Any:
    """The node with its languages. `language` is the one by default around it. `check_json` bounds the recursion."""
    if isinstance(node, list):
        return [_changed(item, language, names, is_context=is_context) for item in node]
    if not isinstance(node, dict):
        return node
    contexts = [node] if is_context else node.get("@context", ())
    for context in contexts if isinstance(contexts, list) else [contexts]:
        if isinstance(context, dict):
            language = str(context.get("@language", language) or "")
        elif context is None:
            language = ""
    inner = {
        key: _changed(item, language, names, is_context=is_context or key == "@context") for key, item in node.items()
    }
    is_named = isinstance(node.get("@type"), str) and node["@type"] in names
    language = str(node.get("@language", language) or "")
    if is_named and language and (is_context or "@value" in node):
        del inner["@type"]
        inner["@language"] = language
    return inner
