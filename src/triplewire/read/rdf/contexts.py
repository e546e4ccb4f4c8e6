"""Puts JSON-LD contexts, from a loader that the caller gives, into the document before it is parsed.

Nothing is fetched here. Those of schema.org and ActivityStreams are bundled; another one needs a loader, or its
document is refused (`triplewire.read.guard.texts`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeAlias
from urllib.parse import urljoin

from triplewire.config import Settings
from triplewire.errors import ReadError
from triplewire.read.guard import check_json, json_terms
from triplewire.read.rdf.split import refuse_in_json

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
    whole = _Loads(loader, settings, json_terms(value)).node(value, base)
    return json.dumps(whole, ensure_ascii=False).encode("utf-8", "replace")


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
        return {
            key: item if key in self._literal else (self.context if key == "@context" else self.node)(item, base)
            for key, item in value.items()
        }

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


# --- Contexts that are at hand: bundled ones, and those that the user names ------------------------------------------

FOLDER = Path(__file__).with_name("known_contexts")
_SCHEMA, _ACTIVITIES = "schema.org.json", "activitystreams.json"
BUNDLED: Mapping[str, str] = {
    "schema.org": _SCHEMA,
    "schema.org/docs/jsonldcontext.json": _SCHEMA,
    "schema.org/docs/jsonldcontext.jsonld": _SCHEMA,
    "schema.org/version/latest/schemaorg-current-http.jsonld": _SCHEMA,
    "w3.org/ns/activitystreams": _ACTIVITIES,
    "w3.org/ns/activitystreams.jsonld": _ACTIVITIES,
}
"""The files by address, without its scheme, `www.` and a final slash."""

_VARIED = re.compile(r"https?://(?:www\.)?(.*?)[/#]?", re.DOTALL)
_NAMED = re.compile(
    (
        r'"https?:\\?/\\?/(?:www\.)?(?:'
        + "|".join(re.escape(address).replace("/", r"\\?/") for address in BUNDLED)
        + r')(?:\\?/|\#)?"'
    ).encode()
)


class ContextLoader:
    """Gives the contexts of addresses: files that the user named, else bundled ones. Raises `LookupError` for other
    addresses, and `OSError` for a file that cannot be read."""

    def __init__(self, files: Mapping[str, Path] | None = None) -> None:
        self._files = files or {}

    def __call__(self, address: str) -> bytes:
        """The JSON-LD document at an address."""
        file = self._files.get(address)
        match = _VARIED.fullmatch(address)
        if file is None and match is not None and match[1] in BUNDLED:
            file = FOLDER / BUNDLED[match[1]]
        if file is None:
            raise LookupError(f"nothing is fetched; name a file that holds it (--context {address}=FILE)")
        return file.read_bytes()

    def is_asked(self, data: bytes) -> bool:
        """May a JSON-LD document name a context that is at hand?"""
        return bool(self._files) or _NAMED.search(data) is not None


BUNDLED_ONLY = ContextLoader()
