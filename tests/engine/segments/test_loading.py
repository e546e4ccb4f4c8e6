"""Subscriptions loaded from files are those registered one by one, with the same warnings and refusals."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from engine.samples import EX, item
from triplewire import Engine, Refusal, Taxonomy
from triplewire.engine.compiler import Compiler
from triplewire.engine.segments import loading
from triplewire.engine.segments.texts import TextWriter
from triplewire.errors import SubscriptionError
from triplewire.languages.sources.tables import line_of

TAXONOMY = Taxonomy.build([(EX + "A", EX + "B")])
ROWS: list[dict[str, str]] = [
    *(
        {"id": f"w{n}", "language": "sparql", "query": f'SELECT ?t {{ ?s rss:title ?t FILTER ftcontains(?t, "w{n}") }}'}
        for n in range(30)
    ),
    *(
        {"id": f"c{n}", "language": "gql", "query": f"SELECT ?a WHERE ((?a, *, ?c) SUCHTHAT (?c ISA <= <{EX}{name}>))"}
        for n, name in enumerate("ABZABZAB")
    ),
    {"id": "made", "language": "sparql", "query": f"CONSTRUCT {{ ?s <{EX}x> ?t }} WHERE {{ ?s rss:title ?t }}"},
    {"id": "of T", "language": "mdv", "query": f"search T t register t where t.<{EX}year> < 9"},
    {"id": "T", "language": "mdv", "query": f"search <{EX}T> t register t where t.<{EX}year> > 3"},
    {"id": "wrong", "language": "sparql", "query": "SELECT"},
    {"id": "w3", "language": "sparql", "query": "ASK { ?s ?p ?o }"},
]
ORDER = [*(f"w{n}" for n in range(30)), *(f"c{n}" for n in range(8)), "made", "of T", "T"]  # rules come last


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "rows.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in ROWS), "utf-8")
    return path


def test_as_one_by_one(matcher: str, file: Path, tmp_path: Path) -> None:
    engine, reference = Engine(matcher=matcher, taxonomy=TAXONOMY), Engine(taxonomy=TAXONOMY)
    refusals, warnings, seen = list[Refusal](), list[tuple[str, str]](), list[int]()
    count = engine.load_subscriptions(
        file,
        on_refusal=refusals.append,
        on_warning=lambda id_, text: warnings.append((id_, text)),
        progress=seen.append,
    )
    assert (count, seen[-1]) == (41, 41)
    assert [one.id for one in engine.subscriptions] == ORDER
    assert [refusal.subject for refusal in refusals] == ["wrong", "w3"]
    assert sorted({id_ for id_, _ in warnings}) == ["c2", "c5"]
    assert all("Z" in text for _, text in warnings)
    by_id = {row["id"]: row for row in reversed(ROWS)}
    for id_ in [*ORDER[:-2], "T", "of T"]:
        reference.subscribe(by_id[id_]["query"], by_id[id_]["language"], id=id_)
    expected = {one.id: one for one in reference.subscriptions}
    for one in engine.subscriptions:
        assert one == expected[one.id]
        assert one.warnings == expected[one.id].warnings
    for title in ("w3", "w3 w4", "none"):
        assert list(engine.match(item("p", title))) == list(reference.match(item("p", title)))
    engine.save(tmp_path / "saved")
    assert Engine.load(tmp_path / "saved").subscriptions == engine.subscriptions


def test_the_files_of_a_folder_are_expected(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    expected: list[int] = []
    monkeypatch.setattr(loading, "TextWriter", lambda size: expected.append(size) or TextWriter(size))
    for path in (file, file.parent):
        Engine().load_subscriptions(path, on_refusal=lambda refusal: None)
    assert set(expected) == {file.stat().st_size}


def test_ids_that_are_taken(matcher: str, file: Path) -> None:
    engine = Engine(matcher=matcher, taxonomy=TAXONOMY)
    engine.subscribe("ASK { ?s ?p ?o }", id="w7")
    engine.subscribe("ASK { ?s ?p ?o }", id="w8")
    engine.unsubscribe("w8")
    refusals: list[Refusal] = []
    assert engine.load_subscriptions([file], on_refusal=refusals.append) == 40
    assert sorted(refusal.subject for refusal in refusals) == ["w3", "w7", "wrong"]
    assert [one.ask for one in engine.subscriptions if one.id in ("w7", "w8")] == [True, False]
    assert "w7" in [match.subscription for match in engine.match(item("p", "nothing"))]
    (taken,) = [refusal for refusal in refusals if refusal.subject == "w7"]
    assert str(taken).startswith(f"refused subscription w7 {file} (record 8): the id is taken; choose another")


def test_ids_that_are_taken_are_not_warned_of(matcher: str, file: Path) -> None:
    engine = Engine(matcher=matcher, taxonomy=TAXONOMY)
    engine.load_subscriptions(file, on_refusal=lambda refusal: None)
    refusals, warned = list[Refusal](), list[str]()
    for id_ in ("c2", "w1"):  # the first one has a warning
        engine.unsubscribe(id_)
        engine.subscribe("ASK { ?s ?p ?o }", id=id_)
    engine.unsubscribe("c5")
    warn = lambda id_, _: warned.append(id_)  # noqa: E731
    assert engine.load_subscriptions(file, on_refusal=refusals.append, on_warning=warn) == 1
    records = {row["id"]: number for number, row in reversed([*enumerate(ROWS, 1)])}
    assert {refusal.subject: refusal.where for refusal in refusals if "choose" in refusal.remedy} == {
        id_: f"{file} (record {records[id_]})" for id_ in ORDER if id_ != "c5"
    }
    assert warned == ["c5"]


def test_only_some(matcher: str, file: Path) -> None:
    engine = Engine(matcher=matcher)
    assert engine.load_subscriptions(file, ids=["w5", "T", "nobody"], on_refusal=lambda refusal: None) == 2
    assert [one.id for one in engine.subscriptions] == ["w5", "T"]


def test_rules_name_those_registered_before(matcher: str, tmp_path: Path) -> None:
    """In full, by a template, by the text of another rule; and not one of a file whose id is taken."""
    rows = [("ofT", "T"), ("ofOfT", "ofT"), ("ofU", f"<{EX}U>"), ("of T, too", "T"), ("T", f"<{EX}U>")]
    texts = [(id_, f"search {name} t register t where t.<{EX}year> < 9") for id_, name in rows]
    lines = (json.dumps({"id": id_, "language": "mdv", "query": query}) for id_, query in texts)
    (tmp_path / "rules.jsonl").write_text("\n".join(lines))
    loaded, one_by_one = Engine(matcher=matcher), Engine(matcher=matcher)
    for engine in (loaded, one_by_one):
        engine.subscribe(f"search <{EX}T> t register t where t.<{EX}year> > 3", "mdv", id="T")
        engine.subscribe("ASK { ?s ?p ?o }", id="no rule")
    refusals: list[Refusal] = []
    assert loaded.load_subscriptions(tmp_path / "rules.jsonl", on_refusal=refusals.append) == 4
    assert [refusal.subject for refusal in refusals] == ["T"]
    for id_, query in texts[:-1]:
        one_by_one.subscribe(query, "mdv", id=id_)
    assert loaded.subscriptions == one_by_one.subscriptions
    loaded.save(tmp_path / "saved")
    assert Engine.load(tmp_path / "saved").subscriptions == one_by_one.subscriptions


def test_few_registered_subscriptions_are_compiled_for_new_rules(file: Path, tmp_path: Path) -> None:
    """That named rule alone, and not all that are there, to see which of them are rules."""
    engine, compiled = Engine(), list[str]()
    engine.load_subscriptions(file, on_refusal=lambda refusal: None)
    rows = ({"id": f"n{n}", "language": "mdv", "query": "search T t register t"} for n in range(9))
    (tmp_path / "more.jsonl").write_text("\n".join(map(json.dumps, rows)))
    with pytest.MonkeyPatch.context() as patch:
        compile_ = Compiler.compiled
        patch.setattr(
            Compiler, "compiled", lambda self, row, *a, **b: compiled.append(row["id"]) or compile_(self, row, *a, **b)
        )
        assert engine.load_subscriptions(tmp_path / "more.jsonl") == 9
    assert compiled == ["T"]


@pytest.mark.parametrize("query", ["plain", 'a "b" \\ \n\t\r\x00\x1f\x7f / é \u2028 \U0001f600', "\ud800"])
@pytest.mark.parametrize("prefixes", [{}, {"b": "urn:b", "a": "urn:é"}])
def test_the_text_that_is_kept_is_a_line_of_a_file(query: str, prefixes: dict[str, str]) -> None:
    row = {"id": f"id {query}", "language": "sparql", "query": query, "prefixes": prefixes, "base": ""}
    line = line_of(row)
    assert line == (json.dumps(row, ensure_ascii=False) + "\n").encode("utf-8", "surrogatepass")
    assert json.loads(line.decode("utf-8", "surrogatepass")) == row


@pytest.mark.parametrize("before", [0, 7, 38])
@pytest.mark.parametrize("wrong", ["SELECT", "locIn(0, 0, 1, 1", "language('a-b-c-')", "the id is taken"])
def test_the_first_refusal_is_raised_and_what_came_before_it_stays(
    matcher: str, before: int, wrong: str, tmp_path: Path
) -> None:
    """Whether the row is refused when it is read or when it is registered, by the caller or where nobody is told."""

    def stop(refusal: Refusal) -> None:
        raise KeyError(refusal.subject)

    language = "predicates" if "(" in wrong else "sparql"
    rows = [*ROWS[:before], {"id": "wrong", "language": language, "query": wrong}, *ROWS[before:38]]
    (tmp_path / "rows.jsonl").write_text("\n".join(map(json.dumps, rows)))
    for on_refusal, expected in ((None, SubscriptionError), (stop, KeyError)):
        engine = Engine(matcher=matcher)
        if "taken" in wrong:
            engine.subscribe("ASK { ?s ?p ?o }", id="wrong")
        with pytest.raises(expected, match=r"wrong|rows\.jsonl"):
            engine.load_subscriptions(tmp_path / "rows.jsonl", on_refusal=on_refusal)
        ids = [one.id for one in engine.subscriptions if one.id != "wrong"]
        assert ids[:before] == ORDER[:before]
        matching = {match.subscription for match in engine.match(item("p", "w1 w9"))}
        assert matching - {"wrong"} == {"w1", "w9"}.intersection(ids)


@pytest.mark.parametrize("receiver", ["on_warning", "progress"])
def test_what_a_receiver_raises_leaves_what_came_before(matcher: str, receiver: str, tmp_path: Path) -> None:
    def stop(*_: object) -> None:
        raise KeyError(receiver)

    never = "SELECT ?v { ?s <urn:p> ?v FILTER(?v > 5 && ?v < 3) }"
    rows = [*ROWS[:7], {"id": "warned", "language": "sparql", "query": never}, *ROWS[7:38]]
    (tmp_path / "rows.jsonl").write_text("\n".join(map(json.dumps, rows)))
    engine = Engine(matcher=matcher)
    with pytest.raises(KeyError, match=receiver):
        engine.load_subscriptions(tmp_path / "rows.jsonl", **{receiver: stop})  # type: ignore[arg-type]  # one of two
    assert [one.id for one in engine.subscriptions][:7] == ORDER[:7]


@pytest.mark.parametrize(
    ("form", "reason"),
    [
        ("SELECT * {{ ?s rss:title ?t . ?s <urn:p{0}> ?o FILTER(?t > {0}) }}", "never"),
        ("SELECT * {{ ?s <http://purl.org/rss/1.0/title> ?t . ?s <urn:p{0}> ?o FILTER(?t > {0}) }}", "never"),
        ("SELECT * {{ ?s <urn:p{0}> ?o . ?o <urn:q> ?t FILTER(?s > {0}) }}", "never"),
        ("SELECT * {{ ?s <urn:p{0}> ?o FILTER(?o > {0}) FILTER(?o < 0) }}", "never"),
        ("SELECT * {{ ?s <urn:p{0}> ?o FILTER(?o > {0}) FILTER(?s != <urn:s>) }}", ""),
        ("SELECT * {{ ?s <urn:p{0}> ?o . ?o <urn:q> ?t FILTER(?t > {0}) }}", ""),
    ],
)
def test_warnings_of_what_two_parts_say_together(form: str, reason: str, tmp_path: Path) -> None:
    engine, warned = Engine(), list[tuple[str, str]]()
    lines = (json.dumps({"id": f"q{n}", "language": "sparql", "query": form.format(n)}) for n in range(1, 9))
    (tmp_path / "rows.jsonl").write_text("\n".join(lines))
    engine.load_subscriptions(tmp_path / "rows.jsonl", on_warning=lambda id_, text: warned.append((id_, text)))
    assert [id_ for id_, _ in warned] == ([one.id for one in engine.subscriptions] if reason else [])
    assert all(reason in text for _, text in warned)
    assert warned == [(one.id, text) for one in engine.subscriptions for text in one.warnings]
