"""The table of `docs/feeds.md`, row by row: what each syntax says becomes the same triples in all of them.

The rows are data: `tests/cases/feeds/table.toml`. They and the table must name the same. The texts that are dates:
`tests/cases/feeds/instants.toml`.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

from triplewire.model.publication import Publication
from triplewire.read import read_document
from triplewire.read.feeds.refine import date_time, parse_instant

ROOT = Path(__file__).resolve().parents[2]
ROWS = tomllib.loads((ROOT / "tests/cases/feeds/table.toml").read_text("utf-8"))["row"]
INSTANTS = tomllib.loads((ROOT / "tests/cases/feeds/instants.toml").read_text("utf-8"))["instants"]
SYNTAXES = ("rss", "rss1", "atom", "json")  # as the columns of the table
PREFIXES = {
    "rdf": "http://www.w3.org/1999/02/22-rdf-syntax-ns#",
    "rdfs": "http://www.w3.org/2000/01/rdf-schema#",
    "xsd": "http://www.w3.org/2001/XMLSchema#",
    "rss": "http://purl.org/rss/1.0/",
    "content": "http://purl.org/rss/1.0/modules/content/",
    "slash": "http://purl.org/rss/1.0/modules/slash/",
    "dc": "http://purl.org/dc/elements/1.1/",
    "dcterms": "http://purl.org/dc/terms/",
    "foaf": "http://xmlns.com/foaf/0.1/",
    "skos": "http://www.w3.org/2004/02/skos/core#",
    "enc": "http://purl.oclc.org/net/rss_2.0/enc#",
    "geo": "http://www.w3.org/2003/01/geo/wgs84_pos#",
    "georss": "http://www.georss.org/georss/",
    "gsp": "http://www.opengis.net/ont/geosparql#",
    "atom": "http://www.w3.org/2005/Atom",
    "x": "http://terms.example/",
}
_DECLARED = " ".join(f'xmlns:{prefix}="{iri}"' for prefix, iri in PREFIXES.items())
_FEEDS = {
    "rss": f"<rss version='2.0' {_DECLARED}><channel>CHANNEL<item><guid isPermaLink='false'>urn:item</guid>ITEM</item>"
    "</channel></rss>",
    "rss1": f"<rdf:RDF {_DECLARED} xmlns='http://purl.org/rss/1.0/'><channel rdf:about='http://feed.example/'>CHANNEL"
    "</channel><item rdf:about='urn:item'>ITEM</item></rdf:RDF>",
    "atom": f"<feed {_DECLARED} xmlns='http://www.w3.org/2005/Atom'><id>http://feed.example/</id>CHANNEL<entry>"
    "<id>urn:item</id>ITEM</entry></feed>",
    "json": '{"version": "https://jsonfeed.org/version/1.1", "feed_url": "http://feed.example/" CHANNEL,'
    ' "items": [{"id": "urn:item" ITEM}]}',
}


def _cases() -> list[Any]:
    return [
        pytest.param(row, syntax, id=f"{row['name']}: {syntax}")
        for row in ROWS
        for syntax in SYNTAXES
        if row.get(syntax)
    ]


def _read(row: dict[str, Any], syntax: str, *, as_written: bool = False) -> Publication:
    said = (", " if syntax == "json" else "") + row[syntax]
    is_channel = row.get("channel", False)
    text = _FEEDS[syntax].replace("CHANNEL", said if is_channel else "").replace("ITEM", "" if is_channel else said)
    (publication,) = read_document(text.encode(), "http://feed.example/", as_written=as_written)
    assert publication.notes == ()
    return publication


def _wanted(row: dict[str, Any], said: str) -> Publication:
    prefixes = "".join(f"@prefix {prefix}: <{iri}> .\n" for prefix, iri in PREFIXES.items())
    subject = "<http://feed.example/>" if row.get("channel") else "<urn:item>"
    turtle = f"<urn:item> a rss:item ; dcterms:isPartOf <http://feed.example/> .\n{subject} {said} ."
    (publication,) = read_document((prefixes + turtle).encode(), "http://feed.example/")
    return publication


@pytest.mark.parametrize(("row", "syntax"), _cases())
def test_row(row: dict[str, Any], syntax: str) -> None:
    becomes = " ; ".join(filter(None, [row.get("also", {}).get(syntax), row["becomes"]]))
    publication, wanted = _read(row, syntax), _wanted(row, becomes)
    assert publication.graph_hash == wanted.graph_hash, "\n".join(map(str, publication.triples))


@pytest.mark.parametrize(("row", "syntax"), [case for case in _cases() if "plain" in case.values[0]])
def test_row_as_written(row: dict[str, Any], syntax: str) -> None:
    assert _read(row, syntax, as_written=True).graph_hash == _wanted(row, row["plain"]).graph_hash


def test_the_table_has_these_rows() -> None:
    """Same names, same order, the same syntaxes, and all properties of `becomes` in the last column."""
    lines = (ROOT / "docs/feeds.md").read_text("utf-8").splitlines()
    table = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("| ")]
    head, *rows = [cells for cells in table if len(cells) == len(SYNTAXES) + 2]
    assert head == ["what", "RSS 0.9x, 2.0", "RSS 1.0", "Atom", "JSON Feed", "becomes"]
    assert [cells[0] for cells in rows] == [row["name"] for row in ROWS]
    for cells, row in zip(rows, ROWS, strict=True):
        assert [cell != "" for cell in cells[1:5]] == [syntax in row for syntax in SYNTAXES], row["name"]
        properties = re.findall(r"(?<![\w<\"/^])([a-z]+:[A-Za-z]+)(?=\s)", row["becomes"])
        missing = [name for name in properties if name not in cells[5] and not name.startswith("x:")]
        assert not missing, f"{row['name']}: the table does not name {missing}"


@pytest.mark.parametrize("text", INSTANTS)
def test_instant(text: str) -> None:
    instant = parse_instant(text)
    assert ("" if instant is None else date_time(instant)) == INSTANTS[text]
