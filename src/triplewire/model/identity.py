"""The identity of a match in 16 bytes, by which ledgers, sinks and receivers know it again."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Sequence
from typing import TypeAlias

IDENTITY_BYTES = 16

TextColumn: TypeAlias = tuple[Sequence[str], Sequence[int]]
"""A column of texts: the distinct ones, and the number of that of each row."""

_SHORT = dict(zip('"\\\b\t\n\f\r', ('\\"', "\\\\", "\\b", "\\t", "\\n", "\\f", "\\r"), strict=True))
_UNSAFE = re.compile(r'[\x00-\x1f"\\]')


def match_identities(
    content: TextColumn, revision: TextColumn, publication: TextColumn, subscription: TextColumn
) -> Iterator[bytes]:
    """The identities of matches, row by row: the first 16 bytes of the SHA-256 of content, revision and the JSON text
    of [publication, subscription]. Ledgers on disk and receivers have them: never change it."""
    begun = [hashlib.sha256(text.encode()) for text in content[0]]
    revisions = [text.encode() for text in revision[0]]
    publications = [f'["{_escaped(text)}",'.encode() for text in publication[0]]
    subscriptions = [f'"{_escaped(text)}"]'.encode() for text in subscription[0]]
    for c, r, p, s in zip(content[1], revision[1], publication[1], subscription[1], strict=True):
        digest = begun[c].copy()
        digest.update(revisions[r] + publications[p] + subscriptions[s])
        yield digest.digest()[:IDENTITY_BYTES]


def match_identity(content: str, revision: str, publication: str, subscription: str) -> bytes:
    """The identity of one match: see `match_identities`."""
    columns = [((text,), (0,)) for text in (content, revision, publication, subscription)]
    return next(match_identities(*columns))


def _escaped(text: str) -> str:
    """The text as JSON has it between its quotes, other characters than these as they are."""
    return _UNSAFE.sub(lambda unsafe: _SHORT.get(unsafe[0]) or f"\\u{ord(unsafe[0]):04X}", text)
