"""The terms of a match's bindings, and those of the graph made of them, have at most `max_binding_bytes`.

The counts are worked out here from the terms of each case, so that they do not depend on the code that cuts.
"""

from __future__ import annotations

import json

import pytest

from engine.samples import iri
from triplewire import Engine, Literal, Publication, Settings, Triple
from triplewire.engine import MatchResult, result
from triplewire.engine.result import Part
from triplewire.model.terms import LANG_STRING, Term

S, P, Q = iri("s"), iri("p"), iri("q")
VALUES: list[Term] = [
    Literal("é" * 40),  # 80 bytes
    Literal("b" * 30, LANG_STRING, "en"),  # 30, and 3 of "@en"
    Literal("12", "http://www.w3.org/2001/XMLSchema#integer"),  # 2, and 40 of the datatype
    iri("long" * 20),
]
PAIRS = f"SELECT ?x ?y {{ <{S.value}> <{P.value}> ?x . <{S.value}> <{P.value}> ?y }}"
UNBOUND = f"SELECT ?x ?y {{ <{S.value}> <{P.value}> ?x OPTIONAL {{ ?x <{Q.value}> ?y }} }}"
COPIES = 5  # of each query: they have their rows in common


def publication(id_: str = "large") -> Publication:
    return Publication(id_, tuple(Triple(S, P, value) for value in VALUES))


def engine(matcher: str, most_bytes: int, *queries: str, most: int = 1_000) -> Engine:
    made = Engine(matcher=matcher, settings=Settings(max_binding_bytes=most_bytes, max_bindings=most))
    for number, query in enumerate(queries):
        for copy in range(COPIES):
            made.subscribe(query, id=f"{number} {copy}")
    return made


def size(term: Term) -> int:
    """By hand: the text, and what follows it."""
    if not isinstance(term, Literal):
        return len(str(term)) - 2  # in angle brackets
    after = f"@{term.language}" if term.language else "" if term.datatype.endswith("#string") else term.datatype
    return len(term.lexical.encode()) + len(after)


def test_the_first_bindings_are_kept_that_fit(matcher: str) -> None:
    (whole, *_) = engine("reference", 1 << 20, PAIRS).match(publication())
    assert len(whole.bindings) == len(VALUES) ** 2
    sizes = [sum(map(size, binding.values())) for binding in whole.bindings]
    for most_bytes in (1, sizes[0] - 1, sizes[0], sizes[0] + sizes[1], sum(sizes) - 1, sum(sizes)):
        kept = [sum(sizes[: place + 1]) <= most_bytes for place in range(len(sizes))].count(True)
        matched = engine(matcher, most_bytes, PAIRS, UNBOUND).match(publication())
        listed = [match for match in matched if match.subscription.startswith("0")]
        assert [match.bindings for match in listed] == [whole.bindings[:kept]] * COPIES
        assert {match.truncated for match in listed} == {kept < len(sizes)}
        assert matched.truncated == sum(match.truncated for match in matched)
        rows = [row for row in matched.to_arrow().to_pylist() if row["subscription"].startswith("0")]
        assert [json.loads(row["bindings"]) for row in rows] == [match.to_json()["bindings"] for match in listed]
        assert [row["truncated"] for row in rows] == [match.truncated for match in listed]


@pytest.mark.parametrize("most", [2, 7])
def test_both_limits_hold(matcher: str, most: int) -> None:
    """What `max_bindings` keeps is cut further, whatever a matcher keeps."""
    whole = engine(matcher, 1 << 20, PAIRS, UNBOUND, most=most).match(publication())
    for most_bytes in (100, 250, 1_000):
        matched = engine(matcher, most_bytes, PAIRS, UNBOUND, most=most).match(publication())
        for match, uncut in zip(matched, whole, strict=True):
            assert match.bindings == uncut.bindings[: len(match.bindings)]
            spent = sum(size(term) for binding in match.bindings for term in binding.values())
            assert spent <= most_bytes
            if len(match.bindings) < len(uncut.bindings):
                assert match.truncated
                assert spent + sum(map(size, uncut.bindings[len(match.bindings)].values())) > most_bytes


def test_a_graph_is_cut_as_well(matcher: str) -> None:
    """Its triples have more bytes than the bindings, which are whole."""
    construct = f"CONSTRUCT {{ ?x <{Q.value}> ?x . <{S.value}> <{Q.value}> ?x }} {{ <{S.value}> <{P.value}> ?x }}"
    (whole, *_) = engine("reference", 1 << 20, construct).match(publication())
    assert whole.construct is not None
    sizes = [sum(map(size, triple)) for triple in whole.construct]
    most_bytes = sum(sizes[:3])
    for ask_for_texts in (False, True):
        matched = engine(matcher, most_bytes, construct).match(publication())
        graphs = matched.to_arrow()["construct"].to_pylist() if ask_for_texts else []
        assert [len(graph.splitlines()) for graph in graphs] == [3] * len(graphs)
        assert matched.truncated == len(graphs)
        for match in matched:
            assert match.construct == whole.construct[:3]
            assert match.truncated
            assert match.bindings == whole.bindings
        assert matched.truncated == COPIES


def test_texts_are_made_of_no_more_than_so_many_bytes_at_a_time(matcher: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """However few there are at a time, the rows are the same."""
    construct = f"CONSTRUCT {{ <{S.value}> <{Q.value}> ?x }} {{ <{S.value}> <{P.value}> ?x }}"
    made = engine(matcher, 1 << 20, PAIRS, PAIRS.replace("?x", "?z"), construct, UNBOUND)
    publications = [publication(f"p{number}") for number in range(6)]

    def texts(matched: MatchResult) -> list[int]:
        return [len(text) for part in matched.parts for text in part.texts()]

    def rows(matched: MatchResult) -> list[dict[str, object]]:
        return matched.to_arrow().drop_columns(["matched_at"]).to_pylist()

    wanted = rows(made.match(publications))
    assert len(texts(made.match(publications))) == 1
    for most_bytes in (1, 10_000):
        monkeypatch.setattr(result, "_BYTES", most_bytes)
        monkeypatch.setattr("triplewire.verify.rows._FEW_BYTES", 0)
        matched = made.match(publications)
        assert rows(matched) == wanted
        portions = texts(matched)
        assert sum(portions) == len(matched)
        if most_bytes == 1:
            assert set(portions) == {1}
        else:
            assert 1 < len(portions) < len(matched)
            for part in matched.parts:
                check_portions(part, portions, most_bytes)


def check_portions(part: Part, portions: list[int], most_bytes: int) -> None:
    """Each has no more than so many bytes, counted by the texts of its distinct rows."""
    for texts, count in zip(part.texts(), portions, strict=True):
        assert len(texts) == count
        assert count == 1 or len(texts.bindings.text) < 4 * most_bytes  # as JSON, with names
