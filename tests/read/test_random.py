"""Damaged documents: each is read or refused; nothing crashes, hangs or raises anything else.

`TRIPLEWIRE_TEST_DOCUMENTS` sets how many (default 5,000); the same number gives the same documents.
"""

from __future__ import annotations

import os
import random
import tomllib
from collections import Counter

import pytest
from test_cases import CASES as READ_CASES
from test_hostile import CASES as HOSTILE_CASES

from amounts import usually
from triplewire.config import Settings
from triplewire.errors import Refusal
from triplewire.read import read_document, to_nquads

COUNT = int(os.environ.get("TRIPLEWIRE_TEST_DOCUMENTS") or usually(1_500, 5_000))
PIECES = [
    b"<",
    b">",
    b"&a;",
    b'"',
    b"\\",
    b"{",
    b"}",
    b"[",
    b"]",
    b"<<",
    b"\x00",
    b"\xff",
    b"]]>",
    b"<!--",
    b"\n",
    b"<item>",
]


def _documents() -> list[bytes]:
    texts = []
    for file in (*sorted(READ_CASES.glob("*.toml")), HOSTILE_CASES):
        texts += [case["text"].encode() for case in tomllib.loads(file.read_text("utf-8"))["case"] if case.get("text")]
    return texts


def _damaged(document: bytes, chance: random.Random, others: list[bytes]) -> bytes:
    for _ in range(chance.randint(1, 4)):
        at, length = chance.randrange(len(document) + 1), chance.randrange(1, 40)
        match chance.randrange(5):
            case 0:
                document = document[:at] + document[at + length :]
            case 1:
                document = document[:at] + chance.choice(PIECES) * chance.choice((1, 1, 300)) + document[at:]
            case 2:
                document = document[:at] + document[at : at + length] * 2 + document[at + length :]
            case 3:
                document = document[:at] + bytes([chance.randrange(256)]) + document[at + 1 :]
            case _:
                other = chance.choice(others)
                document = document[:at] + other[chance.randrange(len(other)) :]
    return document


@pytest.mark.slow
def test_damaged_documents() -> None:
    chance, documents, ends = random.Random(2004), _documents(), Counter[str]()
    settings = Settings(parse_seconds=120)
    for number in range(COUNT):
        data = _damaged(chance.choice(documents), chance, documents)
        split = chance.choice(("item", "document", "subject"))
        refusals: list[Refusal] = []
        found = read_document(data, f"http://d/{number}", split=split, settings=settings, on_refusal=refusals.append)
        reasons = [refusal.reason for refusal in refusals]
        written = "".join(map(to_nquads, found)).encode()
        assert sum(len(p.triples) for p in read_document(written, "written.nq")) == written.count(b"\n")
        assert not [reason for reason in reasons if "crashed" in reason or "takes more" in reason], data
        ends["read" if found else "refused" if reasons else "empty"] += 1
    assert min(ends["read"], ends["refused"]) > COUNT / 6
