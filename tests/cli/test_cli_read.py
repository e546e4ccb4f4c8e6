"""`triplewire read`: publications as named graphs or a table, good ones even beside bad ones."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from cli.runner import triplewire
from triplewire import read


def test_nquads(folder: Path) -> None:
    done = triplewire("read", "b.ttl", "many.nq.gz")
    assert (done.code, done.err) == (0, "")
    graphs = {line.rsplit(" ", 2)[1] for line in done.out.splitlines()}
    assert graphs == {f"<{(folder / 'b.ttl').as_uri()}>", "<urn:p:0>", "<urn:p:1>", "<urn:p:2>"}
    Path("again.nq").write_text(done.out, "utf-8")
    assert {(p.id, frozenset(p.triples)) for p in read("again.nq")} == {
        (p.id, frozenset(p.triples)) for p in read("b.ttl", "many.nq")
    }


def test_blank_nodes_of_two_publications_stay_two(folder: Path) -> None:
    Path("one.ttl").write_text('_:x <urn:p> "1" , _:p3.x .')
    Path("two.ttl").write_text('_:x <urn:p> "2" .')
    done = triplewire("read", "one.ttl", "two.ttl")
    assert [line.split(" <file:")[0] for line in done.out.splitlines()] == [
        '_:x <urn:p> "1"',
        "_:x <urn:p> _:p1.p3.x",
        '_:p2.x <urn:p> "2"',
    ]
    again = read(done.out.encode())
    assert [len({t.subject for t in publication.triples}) for publication in again] == [1, 1]


def test_the_rest_is_read(folder: Path) -> None:
    done = triplewire("read", "broken.ttl", "many.nq", "--format", "nquads")
    assert done.code == 1
    assert len(done.out.splitlines()) == 3
    (line,) = done.err.splitlines()
    assert line.startswith("refused publication broken.ttl:1:")


def test_standard_input(folder: Path) -> None:
    done = triplewire("read", "-", stdin=(folder / "many.nq").read_bytes())
    assert (done.code, done.out) == (0, (folder / "many.nq").read_text())


def test_table(folder: Path) -> None:
    done = triplewire("read", "many.nq", "--format", "table")
    assert done.code == 0
    assert [line.split()[0] for line in done.out.splitlines()[2:]] == ["urn:p:0", "urn:p:1", "urn:p:2"]


@pytest.mark.parametrize(("split", "graphs"), [("document", 1), ("subject", 2)])
def test_split(folder: Path, split: str, graphs: int) -> None:
    Path("two.ttl").write_text("<urn:a> <urn:p> 1 . <urn:b> <urn:p> 2 .")
    done = triplewire("read", "two.ttl", "--split", split)
    assert len({line.split()[-2] for line in done.out.splitlines()}) == graphs


def test_output(folder: Path) -> None:
    done = triplewire("read", "many.nq", "--output", "out.nq")
    assert (done.code, done.out) == (0, "")
    assert Path("out.nq").read_text() == (folder / "many.nq").read_text()


@pytest.mark.skipif(not Path("/dev/stdout").exists(), reason="there is no /dev/stdout here")
def test_output_to_a_pipe(folder: Path) -> None:
    code = "from triplewire.cli import main; main()"
    command = [sys.executable, "-c", code, "read", "many.nq", "--output", "/dev/stdout"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder)
    assert (done.returncode, done.stdout) == (0, triplewire("read", "many.nq").out)


ILL_FORMED = """
<?xml version="1.0"?><rss version="2.0" xmlns:x="http://x.example/"><channel><title>c</title>
<item><guid>http://a.example/1</guid><title>one</title><x:priceEUR>3</x:priceEUR></item>
<item><guid>http://a.example/2</guid><dc:date>2024-05-01</dc:date></item></channel></rss>"""


def test_an_ill_formed_feed_is_read_and_told(folder: Path) -> None:
    Path("ill.rss").write_text(ILL_FORMED)
    done = triplewire("read", "ill.rss")
    assert done.code == 0, "nothing was left out"
    assert '<http://x.example/priceEUR> "3"' in done.out
    reason = "XML or text declaration not at start of entity"
    assert done.err == f"warning ill.rss:2:1: ill-formed XML, read as far as it can be: {reason}\n"


def test_a_feed_that_is_cut_off(folder: Path) -> None:
    Path("cut.rss").write_text(ILL_FORMED.strip()[:-60])
    done = triplewire("read", "cut.rss")
    assert done.code == 1
    assert "<http://a.example/1>" in done.out
    assert "<http://a.example/2>" not in done.out
    assert "refused publication cut.rss:3: the feed ends within this item" in done.err


def test_texts_of_feeds_as_written(folder: Path) -> None:
    Path("ill.rss").write_text(ILL_FORMED)
    date = "<http://purl.org/dc/elements/1.1/date>"
    assert f'{date} "2024-05-01T00:00:00Z"^^' in triplewire("read", "ill.rss").out
    assert f'{date} "2024-05-01" ' in triplewire("read", "ill.rss", "--as-written").out
    query = 'SELECT ?d WHERE { ?i dc:date ?d FILTER (?d > "2024-01-01T00:00:00Z"^^xsd:dateTime) }'
    Path("since.rq").write_text(query)
    asked = ("match", "--subscriptions", "since.rq", "--publications", "ill.rss", "--matcher", "reference")
    assert [len(triplewire(*asked, *more).rows) for more in ((), ("--as-written",))] == [1, 0]
