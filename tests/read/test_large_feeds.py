"""Large feeds are read in time that is linear in their size, whatever their shape: `tests/cases/feeds/large.toml`.

The time is that of the processor. 300 kB take half a second, mostly, and five at the most; a quadratic reader takes
minutes. The limit leaves room for a processor that is shared.
"""

from __future__ import annotations

import time
import tomllib
from pathlib import Path
from typing import Any

import pytest

from amounts import usually
from triplewire.config import Settings
from triplewire.errors import ReadError
from triplewire.read.process.frames import Request
from triplewire.read.process.worker import decode
from triplewire.read.sniff import sniff

SHAPES = tomllib.loads((Path(__file__).resolve().parents[1] / "cases/feeds/large.toml").read_text("utf-8"))["shape"]
SIZE, SECONDS = usually(150_000, 300_000), usually(15, 30)


@pytest.mark.slow
@pytest.mark.parametrize("shape", [pytest.param(shape, id=shape["name"]) for shape in SHAPES])
def test_in_time(shape: dict[str, Any]) -> None:
    data = (shape["head"] + shape["part"] * (SIZE // len(shape["part"])) + shape["tail"]).encode()
    begun = time.process_time()
    decoded = decode(Request(data, sniff(data), "http://feed.example/", settings=Settings()))
    assert time.process_time() - begun < SECONDS
    assert decoded.publications
    assert all(problem.is_warning for problem in decoded.problems)


@pytest.mark.parametrize(
    ("head", "part", "tail"),
    [
        ("<rss version='2.0'><channel><title>{}</title>", "<item><guid>u:i</guid></item>", "</channel></rss>"),
        ('{{"version": "https://jsonfeed.org/version/1.1", "title": "{}", "items": [', '{"id": "i"},', '{"id": "j"}]}'),
    ],
    ids=["RSS 2.0", "JSON Feed"],
)
def test_what_all_items_repeat_is_bounded(head: str, part: str, tail: str) -> None:
    """A title of 10,000 characters in each of a few items, and in too many."""
    for items in (10, 20):
        data = (head.format("t" * 10_000) + part * items + tail).encode()
        request = Request(data, sniff(data), "http://feed.example/", settings=Settings(max_document_bytes=20_000))
        if items < 8 * 2:
            assert len(decode(request).publications) >= items
        else:
            with pytest.raises(ReadError, match="repeat what they share"):
                decode(request)
