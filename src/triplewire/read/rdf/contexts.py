"""Puts JSON-LD contexts, from a loader that the caller gives, into the document before it is parsed.

Nothing is fetched here. Without a loader, such a document is refused (`triplewire.read.guard.json_text`).
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, TypeAlias
from urllib.parse import urljoin

from triplewire.config import Settings
from triplewire.errors import ReadError
from triplewire.read.guard import check_json, json_terms
from triplewire.read.rdf.surrogates import refuse_in_json

Loader: TypeAlias = Callable[[str], bytes]
"""Returns the JSON-LD document at an address. It may raise any exception."""

MAX_CONTEXTS = 64  # loads for one document, contexts that contexts name included


def with_contexts(data: bytes, loader: Loader, base: str, settings: Settings) -> bytes:
    """The document with each context that it names by address replaced by what `loader` gives for it.

    An address in the document is resolved against `base`, one in a loaded context against that context's address.
    `@import` is merged as in JSON-LD 1.1, 5.1: the importing context wins. `@base` in a loaded context says nothing of
    the document (JSON-LD 1.1 API, 4.1.2, step 5.7). Contexts that name each other in a circle
    end at `MAX_CONTEXTS`. Raises `ReadError`.
    """
    data, value = check_json(data, "JSON-LD", settings)
    refuse_in_json(data, "JSON-LD")
    return json.dumps(_Loads(loader, settings, json_terms(value)).node(value, base), ensure_ascii=False).encode(
        "utf-8", "replace"
    )


def _without_base(context: Any) -> Any:
    """A loaded context, or the list of those that it consists of, without `@base`."""
    if isinstance(context, list):
        return list(map(_without_base, context))
    return {key: item for key, item in context.items() if key != "@base"} if isinstance(context, dict) else context


class _Loads:
    """The loads of one document. Recursion is bounded: `check_json` bounds depth, `MAX_CONTEXTS` the loads."""

    def __init__(self, loader: Loader, settings: Settings, literal: set[str]) -> None:
        self._literal = literal
        self._loader = loader
        self._settings = settings
        self._count = 0

    def node(self, value: Any, base: str) -> Any:
        if isinstance(value, list):
            return [self.node(item, base) for item in value]
        if not isinstance(value, dict) or "@value" in value:
            return value
        return {key: item if key in self._literal else self._member(key, item, base) for key, item in value.items()}

    def _member(self, key: str, item: Any, base: str) -> Any:
        return self.context(item, base) if key == "@context" else self.node(item, base)

    def context(self, value: Any, base: str) -> Any:
        if isinstance(value, list):
            flat: list[Any] = []
            for item in value:
                context = self.context(item, base)
                flat.extend(context if isinstance(context, list) else [context])
            return flat
        if isinstance(value, str):
            address = urljoin(base, value)
            return _without_base(self.context(self.load(address), address))
        if isinstance(value, dict):
            value = self.node(value, base)
            if isinstance(value.get("@import"), str):
                address = urljoin(base, value.pop("@import"))
                imported = self.context(self.load(address), address)
                if not isinstance(imported, dict):
                    raise ReadError(f"the imported context {address!r} is no object")
                return {**imported, **value}
        return value

    def load(self, address: str) -> Any:
        self._count += 1
        if self._count > MAX_CONTEXTS:
            raise ReadError(f"the document loads more than {MAX_CONTEXTS} contexts")
        try:
            data = self._loader(address)
        except Exception as error:  # whatever the caller's loader raises
            raise ReadError(f"the context {address!r} cannot be loaded: {error}") from error
        data, value = check_json(data, "JSON-LD context", self._settings)
        refuse_in_json(data, "JSON-LD context")
        if not isinstance(value, dict):
            raise ReadError(f"the context {address!r} is no JSON object")
        return value.get("@context", {})
