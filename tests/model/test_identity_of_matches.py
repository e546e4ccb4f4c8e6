"""The identity of a match in 16 bytes: it is in ledgers on disk and at receivers, so it never changes."""

from __future__ import annotations

import hashlib
import json

import pytest

from triplewire.model.match import match_identities, match_identity

TEXTS = ["", "urn:a", "größe 'quoted'", 'a "b" \\ c', "line\nnext\ttab", "\x00\x1f\x7f/\u2028", "\b\f\r", "😀"]


def test_it_is_a_digest_of_four_texts() -> None:
    wanted = hashlib.sha256(b'cr["urn:p","s"]').digest()[:16]
    assert match_identity("c", "r", "urn:p", "s") == wanted


@pytest.mark.parametrize("text", TEXTS, ids=ascii)
def test_ids_are_written_as_json_has_them(text: str) -> None:
    ids = json.dumps([text, text], ensure_ascii=False, separators=(",", ":"))
    for code in range(32):
        ids = ids.replace(f"\\u{code:04x}", f"\\u{code:04X}")  # with capital digits
    assert match_identity("c", "r", text, text) == hashlib.sha256(f"cr{ids}".encode()).digest()[:16]


def test_columns_give_what_rows_give() -> None:
    numbers = [(n * 5) % len(TEXTS) for n in range(20)]
    columns = [(TEXTS, [(number + shift) % len(TEXTS) for number in numbers]) for shift in range(4)]
    rows = [match_identity(*(texts[places[n]] for texts, places in columns)) for n in range(len(numbers))]
    assert list(match_identities(*columns)) == rows
    assert len(set(rows)) == len(TEXTS)
