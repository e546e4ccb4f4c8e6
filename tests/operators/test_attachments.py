"""Files that a publication names beside its own file reach operators.

They do by the command line, streams and Spark, and none does that lies elsewhere.
"""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable
from pathlib import Path

import pytest

from cli.runner import triplewire
from operators.pictures import drawn
from triplewire import Engine
from triplewire.errors import ReadError
from triplewire.model.attachments import MOST_BYTES
from triplewire.model.publication import Publication
from triplewire.read import read

NAMES = """
from triplewire.extend import Parameter

class Attached:
    name, parameters, version, isolated = "attached", (Parameter("name"), Parameter("size")), "1", ISOLATED

    def evaluate(self, publication, arguments):
        from triplewire import Literal
        return [(Literal(name), Literal(str(len(data)))) for name, data in publication.attachments.items()]

operators = (Attached(),)
"""
EVENT = """@prefix geo: <http://www.w3.org/2003/01/geo/wgs84_pos#> .
<urn:event> <urn:photo> <photo.png> ; <urn:plan> "plans/harbour.txt" ; geo:lat 57.1 ; geo:long -2.1 .
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with an event, and the picture and the text that it names."""
    monkeypatch.chdir(tmp_path)
    events = tmp_path / "events"
    (events / "plans").mkdir(parents=True)
    (events / "event.ttl").write_text(EVENT)
    import base64

    (events / "photo.png").write_bytes(base64.b64decode(drawn("wave png 64 48").partition(",")[2]))
    (events / "plans" / "harbour.txt").write_text("a plan")
    Path("attached.py").write_text(NAMES.replace("ISOLATED", "False"))
    return events


def sizes(publication: Publication) -> dict[str, int]:
    return {name: len(data) for name, data in publication.attachments.items()}


def test_of_a_file_and_of_nothing_else(folder: Path) -> None:
    (publication,) = read(folder / "event.ttl")
    wanted = {"photo.png": (folder / "photo.png").stat().st_size, "plans/harbour.txt": 6}
    assert sizes(publication) == wanted
    assert sizes(pickle.loads(pickle.dumps(publication))) == wanted
    with (folder / "event.ttl").open("rb") as stream:
        assert [each.attachments for each in read(stream)] == [{}]
    assert [each.attachments for each in read(EVENT.encode())] == [{}]


WRITTEN: dict[str, Callable[[Path], str]] = {
    "Turtle": lambda folder: EVENT,
    "N-Quads": lambda folder: f'<urn:event> <urn:photo> <file://{folder}/photo.png> <urn:g> .\n'
    '<urn:event> <urn:plan> "plans/harbour.txt" <urn:g> .\n',
    "RSS": lambda folder: "<rss version='2.0'><channel><title>t</title><link>http://e.example/</link><description/>"
    "<item><guid>urn:event</guid><title>plans/harbour.txt</title>"
    "<enclosure url='photo.png' type='image/png' length='1'/></item></channel></rss>",
}  # fmt: skip


@pytest.mark.parametrize("matcher", ["reference", "trie"])
@pytest.mark.parametrize("syntax", WRITTEN)
def test_operators_get_them(folder: Path, syntax: str, matcher: str) -> None:
    file = folder / "written"
    file.write_text(WRITTEN[syntax](folder))
    given = ("attached(?name, ?size)", "written", "--language", "predicates", "--operators", "../attached.py")
    os.chdir(folder)
    for more in ((), ("--operator-cache", "../cache"), ("--operator-cache", "../cache"), ("--entailment", "rdfs")):
        if more[:1] == ("--entailment",):
            Path("classes.ttl").write_text("<urn:a> <http://www.w3.org/2000/01/rdf-schema#subClassOf> <urn:b> .")
            more = (*more, "--taxonomy", "classes.ttl")
        done = triplewire("match", *given, "--matcher", matcher, "--format", "jsonl", *more)
        assert (done.code, done.err) == (0, "")
        (row,) = done.rows
        found = {b["name"]["value"]: int(b["size"]["value"]) for b in row["bindings"]}
        assert found == {"photo.png": Path("photo.png").stat().st_size, "plans/harbour.txt": 6}


def test_a_picture_and_a_position(folder: Path) -> None:
    """A folder is read whole: that pictures are no publications is no refusal."""
    query = "imageSize(?width, ?height), ?width > 60, locIn(57, -3, 58, -2)"
    done = triplewire("match", query, folder, "--language", "predicates", "--format", "jsonl")
    assert [row["bindings"][0]["width"]["value"] for row in done.rows] == ["64"]
    assert "photo.png: it is a picture, and no publication; operators read it" in done.err
    assert done.code == 1, "a text that is no publication is one"
    (folder / "plans" / "harbour.txt").unlink()
    assert triplewire("match", query, folder, "--language", "predicates", "--format", "jsonl").code == 0
    done = triplewire("explain", query, folder / "event.ttl", "--language", "predicates")
    assert "query matches" in done.out


ELSEWHERE = {
    "above": "<../secret.txt>",
    "above as a literal": '"../secret.txt"',
    "by its whole name": "<file://{outside}>",
    "by its whole name as a literal": '"{outside}"',
    "with dots that are encoded": "<%2e%2e/secret.txt>",
    "hidden": "<.hidden.txt>",
    "in a hidden folder": '".git/config.txt"',
    "another machine": "<file://other.example{folder}/photo.png>",
    "the network": "<http://localhost/photo.png>",
    "a folder": "<plans>",
    "a pipe": "<pipe.txt>",
    "absent": "<absent.png>",
    "itself": "<event.ttl>, <>, <#it>",
    "a NUL": "<photo.png%00>",
}


@pytest.mark.parametrize("name", ELSEWHERE.values(), ids=ELSEWHERE)
def test_what_lies_elsewhere_is_not_attached(folder: Path, name: str) -> None:
    outside = folder.parent / "secret.txt"
    for file in (outside, folder / ".hidden.txt"):
        file.write_text("secret")
    (folder / ".git").mkdir()
    (folder / ".git" / "config.txt").write_text("secret")
    os.mkfifo(folder / "pipe.txt")
    (folder / "event.ttl").write_text(f"<urn:e> <urn:p> {name.format(outside=outside, folder=folder)} .")
    (publication,) = read(folder / "event.ttl")
    assert sizes(publication) == {}


def links_out(folder: Path) -> None:
    (folder.parent / "secret.png").write_text("secret")
    (folder / "photo.png").symlink_to("../secret.png")


def links_through_a_folder(folder: Path) -> None:
    (folder.parent / "others").mkdir()
    (folder.parent / "others" / "a.png").write_text("secret")
    (folder / "photo.png").symlink_to("sub/a.png")
    (folder / "sub").symlink_to("../others")


def is_large(folder: Path) -> None:
    with (folder / "photo.png").open("wb") as stream:
        stream.truncate(MOST_BYTES + 1)


def is_larger_than_all(folder: Path) -> None:
    with (folder / "photo.png").open("wb") as stream:
        stream.truncate(1 << 40)


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (links_out, "'photo.png' is a link that leads out of the folder; copy the file there"),
        (links_through_a_folder, "'photo.png' is a link that leads out of the folder"),
        (is_large, "'photo.png' has more than 16,777,216 bytes"),
        (is_larger_than_all, "at most 100 with 67,108,864 are read"),
    ],
)
def test_what_cannot_be_read_costs_the_calls_that_ask(folder: Path, spoil: Callable[[Path], None], said: str) -> None:
    (folder / "photo.png").unlink()
    spoil(folder)
    (publication,) = read(folder / "event.ttl")
    with pytest.raises(ReadError, match=r"event\.ttl"):
        sizes(publication)
    queries = {"all": "attached(?name, ?size)", "other": "locIn(57, -3, 58, -2)"}
    for name, query in queries.items():
        Path(f"{name}.pred").write_text(query)
    for isolated in (False, True):
        Path("attached.py").write_text(NAMES.replace("ISOLATED", str(isolated)))
        done = triplewire(
            "match", "--subscriptions", "all.pred", "--subscriptions", "other.pred", "events/event.ttl",
            "--operators", "attached.py", "--operator-cache", "cache", "--format", "jsonl",
        )  # fmt: skip
        assert (done.code, [row["subscription"] for row in done.rows]) == (1, ["other"])
        assert "the operator attached failed: " in done.err
        assert said in done.err


def test_a_link_within_the_folder_is_followed(folder: Path) -> None:
    (folder / "photo.png").rename(folder / "plans" / "kept.png")
    (folder / "photo.png").symlink_to("plans/kept.png")
    (publication,) = read(folder / "event.ttl")
    assert "photo.png" in sizes(publication)


def test_nothing_is_looked_for_before_somebody_asks(folder: Path) -> None:
    engine = Engine()
    engine.subscribe("SELECT * { ?e <urn:photo> ?photo }", id="one")
    (folder / "photo.png").unlink()
    publications = list(read(folder / "event.ttl"))
    (folder / "photo.png").write_bytes(b"later")
    assert len(list(engine.match(publications))) == 1
    assert sizes(publications[0])["photo.png"] == 5
