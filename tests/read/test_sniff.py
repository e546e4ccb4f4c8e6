"""Which syntax is it? By content; the file name decides between twins only."""

from __future__ import annotations

import pytest

from triplewire.errors import ReadError
from triplewire.read.decoded import Syntax
from triplewire.read.sniff import HEAD, begins_as_lines, sniff

RDF = 'xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#"'
LINE = "<http://a> <http://p> <http://b> ."


@pytest.mark.parametrize(
    ("text", "name", "syntax"),
    [
        (LINE, "", Syntax.N_QUADS),
        (LINE, "x.rdf", Syntax.N_QUADS),
        (LINE, "x.ttl.gz", Syntax.TURTLE),
        (LINE, "x.trig", Syntax.TURTLE),
        ("<http://a> <http://p> <http://b> <http://g> .", "x.xml", Syntax.N_QUADS),
        ('_:a <http://p> "x. <b> \\" #"@en . # c', "", Syntax.N_QUADS),
        ("<a> <p> <b> .", "", Syntax.TURTLE),
        ("<a> <p> <b> .", "x.nt", Syntax.N_QUADS),
        ("@prefix a: <http://a/> .", "x.nt", Syntax.TURTLE),
        ("# c\nPREFIX a: <http://a/>", "", Syntax.TURTLE),
        ("<s>\n  <p> 1 .", "x.xml", Syntax.TURTLE),
        ("[] a <http://c> .", "x.json", Syntax.TURTLE),
        ("[ <http://p> 1 ] .", "", Syntax.TURTLE),
        ("{ <http://a> <http://p> 1 }", "", Syntax.TRIG),
        ("<http://g> { <http://a> <http://p> 1 }", "x.ttl", Syntax.TRIG),
        ("", "", Syntax.TURTLE),
        ("# c\n", "x.nq", Syntax.N_QUADS),
        ("\ufeff  {}", "", Syntax.JSON_LD),
        ("[]", "", Syntax.JSON_LD),
        ('[{"@id": "http://a"}]', "x.ttl", Syntax.JSON_LD),
        ('{"version": "https://jsonfeed.org/version/1", "items": []}', "", Syntax.JSON_FEED),
        ('{"version": "https:\\/\\/jsonfeed.org\\/version\\/1.1"}', "", Syntax.JSON_FEED),
        ("<!DOCTYPE html><script type=application/ld+json>{}</script>", "", Syntax.HTML),
        ("<html><script type=application/ld+json>{}</script>", "x.xhtml", Syntax.HTML),
        ("<html> <http://p> 'ld+json' .", "x.ttl", Syntax.TURTLE),
        (f"<x:xmpmeta xmlns:x='adobe:ns:meta/'><rdf:RDF {RDF}/></x:xmpmeta>", "x.xmp", Syntax.XMP),
        (f"<svg {RDF}><metadata/></svg>", "x.svg", Syntax.XMP),
        ('{"title": "t", "items": [{"id": 1}]}', "", Syntax.JSON_FEED),
        ('{"@context": {}, "items": [{"id": 1}]}', "", Syntax.JSON_LD),
        (f"<rdf:RDF {RDF}/>", "x.ttl", Syntax.RDF_XML),
        (f"<?xml version='1.0'?><!-- <rss> --><rdf:RDF {RDF}><x/></rdf:RDF>", "", Syntax.RDF_XML),
        (f'<!DOCTYPE x [<!ENTITY a "b">]>\n<x {RDF}/>', "", Syntax.RDF_XML),
        (f'<Doc xmlns="http://a/" {RDF}/>', "", Syntax.RDF_XML),
        (f'<rdf:RDF {RDF} xmlns="http://purl.org/rss/1.0/"><channel/></rdf:RDF>', "", Syntax.RSS_1),
        (f'<rdf:RDF {RDF} xmlns:r="http://purl.org/rss/1.0/"><r:channel/></rdf:RDF>', "", Syntax.RSS_1),
        (f'<rdf:RDF {RDF} xmlns:r="http://purl.org/rss/1.0/"><r:thing/></rdf:RDF>', "", Syntax.RDF_XML),
        (f'<rdf:RDF {RDF} xmlns="http://my.netscape.com/rdf/simple/0.9/"><channel/></rdf:RDF>', "", Syntax.FEED),
        (f'<rdf:RDF {RDF} xmlns="http://my.netscape.com/rdf/simple/0.9/"/>', "", Syntax.RDF_XML),
        (f'<rdf:RDF {RDF} xmlns="http://purl.org/rss/1.0/"><item/></rdf:RDF>', "", Syntax.RDF_XML),
        (f'<rdf:RDF {RDF} xmlns="http://purl.org/rss/1.0/"><!-- <channel/> --></rdf:RDF>', "", Syntax.RDF_XML),
        (
            f'<rdf:RDF {RDF} xmlns="http://purl.org/rss/1.0/"><a><![CDATA[<channel/>]]></a></rdf:RDF>',
            "",
            Syntax.RDF_XML,
        ),
        (f'<rdf:RDF {RDF} xmlns="http://purl.org/rss/1.0/"><!-- <channel/></rdf:RDF>', "", Syntax.RSS_1),
        (
            f'<e:Channel xmlns:e="http://e/" {RDF} rdf:about="http://e/x"><e:item>1</e:item></e:Channel>',
            "",
            Syntax.RDF_XML,
        ),
        (f'<feed xmlns="http://e/" {RDF}><p>1</p></feed>', "", Syntax.RDF_XML),
        (f'<feed xmlns="http://www.w3.org/2005/Atom/" {RDF}><entry/></feed>', "", Syntax.FEED),
        (f"<rss {RDF}><channel/></rss>", "", Syntax.FEED),
        (f'<rss xmlns="http://www.rssboard.org/rss-specification" {RDF}><channel/></rss>', "", Syntax.FEED),
        ("<rss> a <http://e/T> .", "x.ttl", Syntax.TURTLE),
        ('<page> <http://e/b> "<page>x</page>" .', "x.ttl.gz", Syntax.TURTLE),
        ("<feed> { <http://a> <http://p> 1 }", "x.trig", Syntax.TRIG),
        ("<rss><channel/></rss>\n", "x.ttl", Syntax.FEED),
        ("<rss><channel/></rss>", "x.rdf", Syntax.FEED),
        ('<a:feed xmlns:a="http://www.w3.org/2005/Atom"/>', "", Syntax.FEED),
        ("\n\n <?xml version='1.0'?><feed/>", "", Syntax.FEED),
        ("<rss><channel><item><title>never closed", "", Syntax.FEED),
    ],
)
def test_syntax(text: str, name: str, syntax: Syntax) -> None:
    assert sniff(text.encode(), name) is syntax
    if begins_as_lines(text.encode()[:HEAD], name):
        assert syntax is Syntax.N_QUADS
    if text.lstrip().startswith("<?xml"):
        assert sniff(text.encode("utf-16"), name) is syntax


@pytest.mark.parametrize("name", ["", "x.nq", "x.NQ.gz", "x.nt", "x.ttl", "x.trig.gz", "x.xml"])
@pytest.mark.parametrize("lines", [1, 300, 20_000])
@pytest.mark.parametrize("start", ["", "# c\n\n ", "_:a <http://p> 1 .\n", "PREFIX a: <http://a/>\n"])
def test_how_it_begins_tells_lines(start: str, lines: int, name: str) -> None:
    data = (start + f"{LINE}\n" * lines).encode()
    found = begins_as_lines(data[:HEAD], name)
    assert found == (sniff(data, name) is Syntax.N_QUADS and not start.startswith("PREFIX"))
    assert not begins_as_lines(b"\xef\xbb\xbf" + data[:HEAD], name)  # a mark has to be taken away


def test_xml_may_end_far_behind() -> None:
    data = b"<a:s> <a:p> <a:o> .\n" * 20_000
    assert sniff(data) is Syntax.N_QUADS
    with pytest.raises(ReadError):
        sniff(data + b"</a:s>")
    assert not begins_as_lines(data[:HEAD])


@pytest.mark.parametrize("text", ["\x00\x01", "<html><p>x</p></html>", "<note/>", "<opml/>", "a,b\n1,2"])
def test_unknown(text: str) -> None:
    with pytest.raises(ReadError):
        sniff(text.encode(), "x.ttl")


def test_files_that_are_no_text() -> None:
    assert sniff(b"%PDF-1.7", "x.ttl") is Syntax.PDF
    packet = f"<rdf:RDF {RDF}/>".encode()
    for start in (b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff", b"GIF89a", b"II*\0", b"RIFF\x08\0\0\0WEBP"):
        assert sniff(start + packet) is Syntax.XMP
        with pytest.raises(ReadError):
            sniff(start + b"no packet")
