"""JSON-LD contexts that are at hand: those of schema.org and ActivityStreams, and those that the user names.

Nothing is fetched. The files lie in `known_contexts`, with their sources.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

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
    """Gives the contexts of addresses: files that the user named, else bundled ones.

    Raises `LookupError` for other addresses, and `OSError` for a file that cannot be read.
    """

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
