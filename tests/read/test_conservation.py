"""Items in = items out + refusals, over damaged feeds of all syntaxes.

`TRIPLEWIRE_TEST_FEEDS` sets how many (default 5,000; once in a while 100,000); the same number gives the same feeds.
"""

from __future__ import annotations

import json
import os
import random
import re
from collections import Counter

import pytest

from amounts import usually
from triplewire.errors import Refusal
from triplewire.read import read_document
from triplewire.read.decoded import Syntax
from triplewire.read.feeds.vocabulary import ITEM
from triplewire.read.sniff import sniff

COUNT = int(os.environ.get("TRIPLEWIRE_TEST_FEEDS") or usually(1_500, 5_000))
NOISE = (
    "&", "&amp", "<", ">", "<<", "</", "<b", "</b>", '"', "'", "&nbsp;", "&#0;", "\x00", "\x0b", "]]>", "<!--", "-->",
    "<![CDATA[", "<?", "?>", "<!", "</title>", "</channel>", "</rss>", "</item>", "</entry>", "<x:y>", "<a b=c d>",
    "<p><br>", "\n<?xml version='1.0'?>",
)  # fmt: skip
RSS = (
    '<?xml version="1.0"?>\n<rss version="2.0" xmlns:dc="http://purl.org/dc/elements/1.1/"><channel>'
    "<title>News of the day</title><link>http://a.example/</link>",
    "<item><title>Title {n} &amp; more</title><guid>http://a.example/{n}</guid>"
    "<description>&lt;p>Text <![CDATA[<b>bold</b>]]></description><dc:date>2024-05-0{n}</dc:date>"
    '<enclosure url="http://a.example/{n}.mp3" length="1"/></item>\n',
    "</channel></rss>",
)
RSS_1 = (
    '<rdf:RDF xmlns="http://purl.org/rss/1.0/" xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#">'
    '<channel rdf:about="http://a.example/"><title>News</title></channel>\n',
    '<item rdf:about="http://a.example/{n}"><title>Title {n}</title><link>http://a.example/{n}</link></item>\n',
    "</rdf:RDF>",
)
ATOM = (
    '<feed xmlns="http://www.w3.org/2005/Atom"><title>News</title><!-- made by hand --><id>http://a.example/</id>\n',
    '<entry><id>http://a.example/{n}</id><title type="html">Title {n}</title><link href="http://a.example/{n}"/>'
    '<content type="xhtml"><div xmlns="http://www.w3.org/1999/xhtml"><p>Text</p></div></content></entry>\n',
    "</feed>",
)
FEEDS = (Syntax.FEED, Syntax.RSS_1)
_START = r"<(?:item|entry)(?=[\s/<>\x00]|\Z)"
_STARTS = re.compile(_START)
_SKIPPED = re.compile(rf"<!--.*?-->|<!\[CDATA\[.*?\]\]>|<\?.*?\?>|(?P<item>{_START})", re.DOTALL)


def _feed(chance: random.Random, count: int) -> str:
    head, item, tail = chance.choice((RSS, RSS_1, ATOM))
    return head + "".join(item.replace("{n}", str(n)) for n in range(1, count + 1)) + tail


def _damaged(text: str, chance: random.Random) -> str:
    for _ in range(chance.randint(1, 3)):
        at = chance.randrange(len(text) + 1)
        match chance.randrange(5):
            case 0:
                text = text[:at]  # cut off
            case 1:
                text = text[:at] + text[at + chance.randrange(1, 30) :]
            case 2:
                text = text[:at] + text[at : at + chance.randrange(1, 200)] + text[at:]
            case _:
                text = text[:at] + chance.choice(NOISE) + text[at:]
    return text


def _items_in(text: str) -> int:
    """How many items begin in a feed, outside of comments and CDATA: counted without a parser.

    An item may come out that is not counted: where a comment or CDATA seems to begin in the value of an attribute.
    """
    return sum(match["item"] is not None for match in _SKIPPED.finditer(text))


def _told(text: str, number: int) -> tuple[int, list[Refusal]]:
    told: list[Refusal] = []
    publications = read_document(text.encode(), f"http://feed.example/{number}", on_refusal=told.append)
    assert len({publication.id for publication in publications}) == len(publications)
    items = [p for p in publications if any(t.object == ITEM for t in p.triples)]
    return len(items), [row for row in told if not row.is_warning]


@pytest.mark.slow
def test_damaged_xml_feeds() -> None:
    chance, ends = random.Random(2000), Counter[str]()
    for number in range(COUNT):
        text = _damaged(_feed(chance, chance.randint(1, 4)), chance)
        items_in = _items_in(text)
        items_out, refusals = _told(text, number)
        cut = sum("ends within this item" in refusal.reason for refusal in refusals)
        whole = [refusal for refusal in refusals if refusal.subject == f"http://feed.example/{number}"]
        if items_out == 0 and refusals and not cut:
            ends["the whole feed is refused"] += 1
            assert whole, text
        elif items_out == 0 and not refusals and sniff(text.encode()) not in FEEDS:
            ends["it is RDF of some other kind, or empty"] += 1
        else:
            assert items_in <= items_out + cut <= len(_STARTS.findall(text)), text
            ends["the counts are equal"] += items_in == items_out + cut
            ends["cut" if cut else "all"] += 1
    assert ends["all"] > COUNT / 2
    assert ends["the counts are equal"] > 0.9 * (ends["all"] + ends["cut"])
    assert ends["cut"] > COUNT / 20
    assert ends["it is RDF of some other kind, or empty"] < COUNT / 50
    assert ends["the whole feed is refused"] < COUNT / 5, "mostly those that are cut off before the first item"


@pytest.mark.slow
def test_damaged_json_feeds() -> None:
    chance = random.Random(2017)
    others: tuple[object, ...] = (None, "text", 7, [], ["a"], True)
    for number in range(COUNT // 10):
        items = [
            {"id": str(n), "title": "t"} if chance.random() < 0.7 else chance.choice(others)
            for n in range(chance.randint(0, 6))
        ]
        feed = {"version": "https://jsonfeed.org/version/1.1", "title": "t", "items": items}
        items_out, refusals = _told(json.dumps(feed), number)
        assert items_out + len(refusals) == len(items)
