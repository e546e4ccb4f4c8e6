"""Wrong arguments of public calls: each is refused with what was expected, and leaves no trace in the engine."""

from __future__ import annotations

import datetime as dt
import io
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from triplewire import Engine, load_taxonomy, parse, read
from triplewire.config import Settings
from triplewire.errors import ArgumentError, ReadError, TriplewireError
from triplewire.model.publication import Publication
from triplewire.model.terms import IRI, XSD, BlankNode, Literal, Triple
from triplewire.pipeline import match_publications, publications, spark_session
from triplewire.pipeline.jobs import compile_filter
from triplewire.read import read_document

ANY: Any = None
QUERY = "SELECT ?o { ?s <urn:p> ?o }"
S, P, O = IRI("urn:s"), IRI("urn:p"), Literal("o")  # noqa: E741  # as in RDF
PUBLICATION = Publication("urn:x", (Triple(S, P, O),))


class Odd:
    """Is of no use anywhere, and its `repr` raises."""

    def __repr__(self) -> str:
        raise RuntimeError("no repr")


ODD: Any = Odd()
SEVEN: Any = 7

ENGINE_CALLS: dict[str, tuple[Callable[[Engine, Path], object], str]] = {
    "subscribe: id is a number": (
        lambda e, _: e.subscribe(QUERY, id=SEVEN),
        "subscribe(id=...): expected a text (str)",
    ),
    "subscribe: id is None": (lambda e, _: e.subscribe(QUERY, id=ANY), "got None"),
    "subscribe: no query": (lambda e, _: e.subscribe(ANY), "a query text or a Subscription, got None"),
    "subscribe: bytes": (lambda e, _: e.subscribe(b"ASK {}"), "got bytes"),  # type: ignore[arg-type]
    "subscribe: a path": (lambda e, t: e.subscribe(t / "q.rq"), "load_subscriptions(path) reads files"),  # type: ignore[arg-type]
    "subscribe: anything": (lambda e, _: e.subscribe(ODD), "got test_wrong_arguments.Odd"),
    "subscribe: language": (lambda e, _: e.subscribe(QUERY, SEVEN), "subscribe(language=...)"),
    "subscribe: an unknown language": (lambda e, _: e.subscribe(QUERY, "sql"), "no language named 'sql'"),
    "subscribe: prefixes are text": (lambda e, _: e.subscribe(QUERY, prefixes="x"), "a mapping of prefixes"),  # type: ignore[arg-type]
    "subscribe: a prefix is no text": (lambda e, _: e.subscribe(QUERY, prefixes={"x": SEVEN}), "got int 7"),
    "subscribe: base": (lambda e, _: e.subscribe(QUERY, base=SEVEN), "subscribe(base=...)"),
    "subscribe: its id": (lambda e, _: e.subscribe(replace(parse(QUERY), id=SEVEN)), "the subscription's id"),
    "subscribe: its text": (lambda e, _: e.subscribe(replace(parse(QUERY), text=ANY)), "the subscription's text"),
    "unsubscribe: a number": (lambda e, _: e.unsubscribe(SEVEN), "unsubscribe(id): expected the id"),
    "unsubscribe: a subscription": (lambda e, _: e.unsubscribe(e.subscriptions[0]), "a Subscription has it as .id"),  # type: ignore[arg-type]
    "get": (lambda e, _: e.get(SEVEN), "get(id)"),
    "load_subscriptions: no path": (lambda e, _: e.load_subscriptions(SEVEN), "a path or a table, or several"),
    "load_subscriptions: no paths": (lambda e, _: e.load_subscriptions([ANY]), "expected a path"),
    "load_subscriptions: NUL": (lambda e, _: e.load_subscriptions("a\0b"), "without NUL"),
    "load_subscriptions: ids": (lambda e, t: e.load_subscriptions(t, ids="abc"), "a single one is [id]"),
    "load_subscriptions: on_refusal": (lambda e, t: e.load_subscriptions(t, on_refusal=SEVEN), "expected a function"),
    "match: a path": (lambda e, _: e.match("feeds/"), "match(read(path)) or match_files(path)"),  # type: ignore[arg-type]
    "match: a Path": (lambda e, t: e.match(t), "match_files(path)"),  # type: ignore[arg-type]
    "match: None": (lambda e, _: e.match(ANY), "a publication, or an iterable of them, got None"),
    "match: a number": (lambda e, _: e.match(SEVEN), "got int 7"),
    "match: tuples": (lambda e, _: e.match([PUBLICATION, ("s", "p", "o")]), "as number 2"),  # type: ignore[list-item]
    "match: a mapping": (lambda e, _: e.match({"x": PUBLICATION}), "match(mapping.values())"),  # type: ignore[arg-type]
    "match: a table": (lambda e, _: e.match(pa.table({"id": ["a"]})), "publication"),
    "match_files: a number": (lambda e, _: e.match_files(SEVEN), "a path, the bytes of a document, or a stream"),
    "match_files: split": (lambda e, t: e.match_files(t, split="word"), "no split 'word'; known: item"),
    "match_files: on_refusal": (lambda e, t: e.match_files(t, on_refusal=SEVEN), "expected a function"),
    "match_batch: a list": (lambda e, _: e.match_batch([PUBLICATION]), "an Arrow RecordBatch or Table"),
    "match_batch: None": (lambda e, _: e.match_batch(None), "to_batch makes a batch of publications"),
    "match_batch: other columns": (lambda e, _: e.match_batch(pa.table({"x": [1]})), "has no column 'id'"),
    "match_batch: on_refusal": (lambda e, _: e.match_batch(pa.table({"x": [1]}), on_refusal=SEVEN), "a function"),
    "explain: a number": (lambda e, _: e.explain(SEVEN, PUBLICATION), "the id of a subscription (str), or a Match"),
    "explain: no publication": (lambda e, _: e.explain("a"), "expected a Publication, got None"),
    "explain: the id of one": (lambda e, _: e.explain("a", "urn:x"), "the publication itself, not its id"),  # type: ignore[arg-type]
    "explain: no such subscription": (lambda e, _: e.explain("b", PUBLICATION), "no subscription of this id"),
    "save: None": (lambda e, _: e.save(ANY), "save(path): expected a path"),
    "save: a number": (lambda e, _: e.save(SEVEN), "got int 7"),
    "save: NUL": (lambda e, _: e.save("a\0b"), "without NUL"),
    "load: None": (lambda e, _: e.load(ANY), "load(path): expected a path"),
    "load: matcher": (lambda e, t: e.load(t, matcher=SEVEN), "load(matcher=...)"),
    "load: settings": (lambda e, t: e.load(t, settings={}), "expected Settings, or None"),  # type: ignore[arg-type]
    "load: operators": (lambda e, t: e.load(t, operators=[1]), "a mapping of names to operators"),  # type: ignore[arg-type]
}


@pytest.fixture
def engine(matcher: str) -> Engine:
    """An engine with a subscription that matches `PUBLICATION`."""
    made = Engine(matcher=matcher)
    made.subscribe(QUERY, id="a")
    return made


@pytest.mark.parametrize(("call", "part"), ENGINE_CALLS.values(), ids=ENGINE_CALLS.keys())
def test_a_refused_call_leaves_no_trace(
    engine: Engine, call: Callable[[Engine, Path], object], part: str, tmp_path: Path
) -> None:
    before = tuple(engine.subscriptions)
    with pytest.raises(TriplewireError) as caught:
        call(engine, tmp_path)
    assert part in str(caught.value)
    assert "attribute" not in str(caught.value)
    assert tuple(engine.subscriptions) == before
    assert [match.subscription for match in engine.match(PUBLICATION)] == ["a"]
    engine.save(tmp_path / "saved", index=False)
    again = Engine.load(tmp_path / "saved")
    assert tuple(again.subscriptions) == before
    assert [match.subscription for match in again.match(PUBLICATION)] == ["a"]
    assert engine.subscribe(QUERY).id == "s1", "the refused call took a number"


class Near:
    """No operator: it lacks what it is asked."""

    name = "near"
    parameters = ()


CALLS: dict[str, tuple[Callable[[], object], str]] = {
    "Engine: taxonomy": (lambda: Engine(taxonomy=SEVEN), "load_taxonomy(path) makes a Taxonomy"),
    "Engine: matcher": (lambda: Engine(matcher=SEVEN), "Engine(matcher=...)"),
    "Engine: operators are a list": (lambda: Engine(operators=[Near()]), "a mapping of names to operators"),  # type: ignore[arg-type]
    "Engine: an operator is a class": (lambda: Engine(operators={"near": Near}), "is the class Near"),  # type: ignore[dict-item]
    "Engine: an operator lacks evaluate": (lambda: Engine(operators={"near": Near()}), "has no method evaluate"),  # type: ignore[dict-item]
    "Engine: an operator's name": (lambda: Engine(operators={7: Near()}), "got int 7"),  # type: ignore[dict-item]
    "Engine: settings": (lambda: Engine(settings={"max_bindings": 5}), "expected Settings, or None"),  # type: ignore[arg-type]
    "Engine: entailment": (lambda: Engine(entailment=SEVEN), "no entailment 7"),
    "parse: None": (lambda: parse(ANY), "parse(text): expected a text"),
    "parse: bytes": (lambda: parse(b"ASK {}"), "got bytes"),  # type: ignore[arg-type]
    "parse: language": (lambda: parse(QUERY, SEVEN), "parse(language)"),
    "parse: id": (lambda: parse(QUERY, id=SEVEN), "parse(id=...)"),
    "parse: prefixes": (lambda: parse(QUERY, prefixes=["x"]), "a mapping of prefixes"),  # type: ignore[arg-type]
    "parse: settings": (lambda: parse(QUERY, settings=SEVEN), "expected Settings"),
    "parse: operators": (lambda: parse(QUERY, operators=SEVEN), "a mapping of names to operators"),
    "parse: rules": (lambda: parse(QUERY, rules=SEVEN), "a mapping of ids to subscriptions"),
    "read: None": (lambda: read(ANY), "a path, the bytes of a document, or a stream, got None"),
    "read: a list": (lambda: read(["a.ttl"]), "read(*sources)"),  # type: ignore[arg-type]
    "read: a text": (lambda: read('<urn:s> <urn:p> "o" .'), "read(io.StringIO(text)) reads a text"),
    "read: a publication": (lambda: read(PUBLICATION), "got triplewire.model.publication.Publication"),  # type: ignore[arg-type]
    "read: split": (lambda: read("a.ttl", split=SEVEN), "no split 7"),
    "read: base": (lambda: read("a.ttl", base=SEVEN), "read(base=...)"),
    "read: settings": (lambda: read("a.ttl", settings=SEVEN), "read(settings=...)"),
    "read: on_refusal": (lambda: read("a.ttl", on_refusal=SEVEN), "read(on_refusal=...)"),
    "read: loader": (lambda: read("a.ttl", loader=SEVEN), "read(loader=...)"),
    "read: a stream of nothing known": (lambda: list(read(Numbers())), "a stream whose read() gives bytes or text"),  # type: ignore[arg-type]
    "read_document: text": (lambda: read_document("<a>", ""), "the bytes of a document"),  # type: ignore[arg-type]
    "read_document: source": (lambda: read_document(b"", SEVEN), "read_document(source)"),
    "load_taxonomy": (lambda: load_taxonomy(SEVEN), "load_taxonomy(path)"),
    "IRI": (lambda: IRI(SEVEN), "IRI(value): expected a text (str), got int 7"),
    "IRI of an IRI": (lambda: IRI(S), "got triplewire.model.terms.IRI"),  # type: ignore[arg-type]
    "BlankNode": (lambda: BlankNode(ANY), "BlankNode(label)"),
    "Literal: a number": (lambda: Literal(SEVEN), "Literal(str(5), datatype)"),
    "Literal: datatype": (lambda: Literal("5", IRI(XSD + "int")), "an IRI has its text as .value"),  # type: ignore[arg-type]
    "Literal: language": (lambda: Literal("5", language=ANY), "Literal(language=...)"),
    "Literal: both": (lambda: Literal("5", XSD + "int", "fr"), "a language or a datatype, not both"),
    "Literal.tagged": (lambda: Literal.tagged("5", SEVEN), "Literal(language=...)"),
    "Triple: texts": (lambda: Triple("s", "p", "o"), "Triple(subject): expected a term"),  # type: ignore[arg-type]
    "Triple: predicate": (lambda: Triple(S, BlankNode("b"), O), "Triple(predicate): expected a term (IRI)"),  # type: ignore[arg-type]
    "Triple: object": (lambda: Triple(S, P, SEVEN), "Triple(object)"),
    "Triple: a literal as subject": (lambda: Triple(O, P, O), "Triple(subject)"),  # type: ignore[arg-type]
    "Publication: id": (lambda: Publication(SEVEN, ()), "Publication(id)"),
    "Publication: empty id": (
        lambda: Publication("", ()),
        "Publication(id): expected a text of at least one character",
    ),
    "Publication: None": (lambda: Publication("x", ANY), "an iterable of triples, got None"),
    "Publication: text": (lambda: Publication("x", "<a> <b> <c> ."), "an iterable of triples, got str"),  # type: ignore[arg-type]
    "Publication: texts": (lambda: Publication("x", (("s", "p", "o"),)), "Triple(subject)"),  # type: ignore[arg-type]
    "Publication: a pair": (lambda: Publication("x", ((S, P),)), "number 1 is a tuple of three terms"),  # type: ignore[arg-type]
    "Publication: source": (lambda: Publication("x", (), source=Path("a")), "Publication(source=...)"),  # type: ignore[arg-type]
    "Publication: published": (lambda: Publication("x", (), published=dt.date(2020, 1, 1)), "datetime.datetime"),  # type: ignore[arg-type]
    "Publication: published in the year 0": (
        lambda: Publication("x", (), published=dt.datetime(1, 1, 1, tzinfo=dt.timezone(dt.timedelta(hours=1)))),
        "of the years 1 to 9999",
    ),
    "Publication: attachments": (lambda: Publication("x", (), attachments=b"x"), "a mapping of names to bytes"),  # type: ignore[arg-type]
    "match_publications: no frame": (lambda: match_publications("x", "y"), "a data frame of Spark, got str"),  # type: ignore[arg-type]
    "match_publications: other columns": (
        lambda: match_publications(Frame(), "y"),
        "no column id and no column triples",
    ),  # type: ignore[arg-type]
    "match_publications: subscriptions": (lambda: compile_filter(SEVEN), "or an Engine, got int 7"),
    "match_publications: subscription": (lambda: compile_filter([SEVEN]), "got int 7"),
    "match_publications: taxonomy": (lambda: compile_filter("y", taxonomy=SEVEN), "(taxonomy=...): expected a path"),
    "match_publications: operators": (lambda: compile_filter("y", operators="a.py"), "read_operator_files"),  # type: ignore[arg-type]
    "match_publications: settings": (lambda: compile_filter("y", settings=SEVEN), "expected Settings"),
    "match_publications: on_refusal": (lambda: compile_filter("y", on_refusal=SEVEN), "expected a function"),
    "publications: no session": (lambda: publications("feeds/", ANY), "spark_session() starts one"),  # type: ignore[arg-type]
    "publications: path": (lambda: publications(Session(), SEVEN), "publications(path)"),  # type: ignore[arg-type]
    "publications: split": (lambda: publications(Session(), "x", split="word"), "item or document or subject"),  # type: ignore[arg-type]
    "spark_session: name": (lambda: spark_session(SEVEN), "spark_session(name)"),
    "spark_session: config": (lambda: spark_session(config=SEVEN), "a mapping of Spark's settings"),
    "Settings: zero": (lambda: Settings(max_bindings=0), "an integer from 1 to"),
    "Settings: below zero": (lambda: Settings(max_bindings=-5), "give a large number"),
    "Settings: text": (lambda: Settings(max_bindings="10"), "10 without quotes"),  # type: ignore[arg-type]
    "Settings: True": (lambda: Settings(max_bindings=True), "got bool True"),
    "Settings: a float": (lambda: Settings(max_steps=1e6), "got float 1000000.0"),  # type: ignore[arg-type]
    "Settings: None": (lambda: Settings(parse_seconds=ANY), "give a large number"),
    "Settings: too large": (lambda: Settings(parse_seconds=10**10), "an integer from 1 to 1000000000"),
    "Settings: replaced": (lambda: replace(Settings(), max_triples=0), "Settings(max_triples=...)"),
}


class Numbers:
    """A stream of numbers."""

    def read(self, size: int) -> int:
        return size


class Frame:
    """Looks like a data frame of Spark with other columns."""

    columns = ("a", "b")

    def mapInArrow(self) -> None:  # Spark's name
        """Nothing."""


class Session:
    """Looks like a session of Spark."""

    readStream = None  # Spark's name


@pytest.mark.parametrize(("call", "part"), CALLS.values(), ids=CALLS.keys())
def test_a_wrong_argument_is_refused(call: Callable[[], object], part: str) -> None:
    with pytest.raises(TriplewireError) as caught:
        call()
    assert part in str(caught.value)
    assert "attribute" not in str(caught.value)
    if isinstance(caught.value, ArgumentError):
        assert isinstance(caught.value, TypeError)
        assert isinstance(caught.value, ValueError)


# --- what works instead ----------------------------------------------------------------------------------------------


def test_a_taxonomy_may_be_a_path(tmp_path: Path) -> None:
    file = tmp_path / "classes.tsv"
    file.write_text("<urn:Gull>\t<urn:Bird>\n")
    for path in (file, str(file)):
        engine = Engine(taxonomy=path)
        engine.subscribe("SELECT ?x WHERE (?x, <urn:p>, ?c) SUCHTHAT (?c ISA <= <urn:Bird>)", "gql", id="birds")
        assert len(engine.match(Publication("x", ((S, P, IRI("urn:Gull")),)))) == 1


def test_plain_tuples_of_terms_become_triples() -> None:
    plain: Any = [(S, P, O)]
    assert Publication("urn:x", plain) == PUBLICATION
    assert Publication("urn:x", iter(plain)) == PUBLICATION
    assert hash(Publication("urn:x", plain).triples) == hash(PUBLICATION.triples)


LATIN = '<?xml version="1.0" encoding="ISO-8859-1"?><rss version="2.0"><channel><title>c</title><item><title>Åre – 東京</title></item></channel></rss>'  # noqa: E501


@pytest.mark.parametrize("text", [LATIN, LATIN.replace("ISO-8859-1", "UTF-16"), LATIN.replace("ISO-8859-1", "utf-8")])
def test_text_streams_are_read_as_the_text_that_they_have(text: str, tmp_path: Path) -> None:
    """A declaration of another encoding speaks of bytes, and there are none."""
    (item,) = read(io.StringIO(text))
    assert any(triple.object == Literal("Åre – 東京") for triple in item.triples)
    file = tmp_path / "feed.xml"
    file.write_text(text.replace(text.split('"')[3], "UTF-8"), encoding="utf-8")
    with file.open(encoding="ascii", errors="replace") as stream:  # its bytes count, not what was made of them
        (read_again,) = read(stream)
    assert read_again.triples == next(iter(read(file))).triples


def test_bytes_like_sources() -> None:
    data = b'<urn:s> <urn:p> "o" .'
    for source in (data, bytearray(data), memoryview(data), io.BytesIO(data), io.StringIO(data.decode())):
        assert [publication.triples for publication in read(source)] == [PUBLICATION.triples]


def test_a_text_of_half_characters_is_refused() -> None:
    with pytest.raises(ReadError):
        list(read(io.StringIO('<urn:s> <urn:p> "\ud800" .')))


def test_the_engine_as_a_collection(engine: Engine) -> None:
    assert len(engine) == 1
    assert "a" in engine
    assert "b" not in engine
    assert 7 not in engine
    assert engine.get("a") == engine.subscriptions[0]
    assert engine.get("b") is None
    assert Engine(), "an empty engine is an engine"
    assert repr(engine).endswith(": 1 subscription>")
