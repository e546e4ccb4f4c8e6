"""Texts of calls with constants: what is made of them call by call, or by template, is what parsing in full gives."""

from __future__ import annotations

import json
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from triplewire import Engine, Publication
from triplewire.config import Settings
from triplewire.errors import Refusal, TriplewireError
from triplewire.ir.evaluation.unknown import CallKey
from triplewire.ir.nodes import And, Call
from triplewire.ir.normal_form import NormalForm, normal_form
from triplewire.languages import parse
from triplewire.languages.templates import Templates, call_lists
from triplewire.languages.templates.splitting import Queries
from triplewire.model.operator import Argument, Operator, Parameter
from triplewire.model.terms import IRI, Literal, Triple
from triplewire.operators import function_operator

MOST = Settings().max_branches


def _small_only(arguments: tuple[Argument, ...]) -> list[str]:
    (number,) = arguments
    if isinstance(number, Literal) and len(number.lexical) > 3:
        raise ValueError("the number is large")
    return ["the number is odd"] if isinstance(number, Literal) and number.lexical[-1:] in "13579" else []


def _is_even(_publication: Publication, arguments: tuple[Argument, ...]) -> bool:
    return all(isinstance(a, Literal) and a.lexical[-1:] in "02468" for a in arguments)


OPERATORS: Mapping[str, Operator] = {
    "holds": function_operator("holds", ["number"], _is_even),
    "near": function_operator("near", ["place", Parameter("distance", "m")], _is_even),
    "small": function_operator("small", ["number"], _is_even, _small_only),
    "now": function_operator("now", [], _is_even),
}
ARGUMENTS = st.sampled_from(
    ["1", "24", "007", "1234", "0", "9" * 40, "5 km", "5", "-5", "1.5", "Berlin", "2024-01-02", "Home Page", "1 2", "",
     " 8 ", '"a, b"', "?x", "<urn:x>", "ex:a", "(3)", "km", "1e3", "٣"]
)  # fmt: skip
NAMES = st.sampled_from(["holds", "holds", "near", "small", "now", "unknown", "op:holds", "holds "])
CALLS = st.builds(lambda name, given: f"{name}({', '.join(given)})", NAMES, st.lists(ARGUMENTS, max_size=2))
SIMPLE = st.builds("{}({})".format, st.sampled_from(["holds", "small"]), st.integers(0, 1500))
TEXTS = st.builds(
    lambda before, calls, between, after: before + between.join(calls) + after,
    st.sampled_from(["", "", "", " ", "{", "PREFIX ex: <urn:ex:> "]),
    st.lists(SIMPLE | CALLS, min_size=1, max_size=5),
    st.sampled_from([", ", ",", ",  ", " , ", "; "]),
    st.sampled_from(["", "", "", "}", ",", " x", "\n"]),
)


def _calls(templates: Templates, text: str, base: str = "") -> tuple[CallKey, ...] | None:
    return templates.find_all(Queries.of([text.encode()], [("predicates", base, ())])).calls.get(0)


@given(st.lists(TEXTS, min_size=1, max_size=4))
def test_a_list_of_calls_is_what_parsing_gives(texts: list[str]) -> None:
    templates = Templates(operators=OPERATORS)
    for text in texts * 2:
        known = _calls(templates, text)
        try:
            wanted = parse(text, "predicates", id="s", operators=OPERATORS)
        except TriplewireError:
            assert known is None, text
            continue
        if known is not None:
            calls = And(tuple([Call(call.operator, call.arguments) for call in known]))  # type: ignore[arg-type]
            assert (wanted.where, wanted.select, wanted.ask, wanted.warnings) == (calls, (), False, ()), text
            form = NormalForm((), exact=False, calls=True, asked=tuple(dict.fromkeys(known)))
            assert form == normal_form(wanted, most=MOST), text


def test_plain_lists_are_not_parsed_one_by_one() -> None:
    templates = Templates(operators=OPERATORS)
    for number in range(500):
        assert _calls(templates, f"holds({number}), near({number % 7}, {number}), holds(3)") is not None
    assert templates.parsed < 10


def test_a_list_deeper_than_the_limit_is_left_to_the_parser() -> None:
    shallow = Templates(Settings(max_query_depth=1), OPERATORS)
    assert _calls(shallow, ", ".join(f"holds({number})" for number in range(50))) is None


def test_what_is_known_of_calls_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of calls of operators that are not there, and of texts that each have a base of their own, as well."""
    monkeypatch.setattr(call_lists, "MOST_CALLS", 8)
    templates = Templates(None, OPERATORS)
    for number in range(50):
        assert _calls(templates, f"unknown{number}(3)") is None
        assert _calls(templates, "holds(3)", f"urn:base{number}") is not None
    assert max(map(len, (templates._call_lists._calls, templates._call_lists._plain))) <= 8


SPARQL = ("holds({a})", "small({a})", "holds({a}) && op:holds({b})", "holds({a}) && op:small({b}) && op:holds({a})")
ROWS = st.tuples(st.sampled_from(SPARQL), st.integers(0, 40), st.integers(0, 1200), st.integers(0, 2))


@given(st.lists(st.tuples(st.booleans(), ROWS, TEXTS), min_size=3, max_size=12))
def test_loading_is_subscribing(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[bool, tuple[str, int, int, int], str]]
) -> None:
    lines = []
    for number, (is_sparql, (calls, a, b, kind), text) in enumerate(rows):
        written = calls.format(a=f'"{a}"', b=f'"{b}"')
        query = f'SELECT * {{ ?e <urn:kind> "k{kind}" FILTER (op:{written}) }}'
        lines.append({"id": str(number), "language": "sparql" if is_sparql else "predicates",
                      "query": query if is_sparql else text})  # fmt: skip
    file = tmp_path_factory.mktemp("rows") / "rows.jsonl"
    file.write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
    loaded, alone = Engine(operators=OPERATORS), Engine(operators=OPERATORS)
    refused: list[Refusal] = []
    warned: list[tuple[str, str]] = []
    loaded.load_subscriptions(file, on_refusal=refused.append, on_warning=lambda *told: warned.append(told))
    wanted_refused, wanted_warned = [], []
    for line in lines:
        try:
            subscription = alone.subscribe(line["query"], line["language"], id=line["id"])
            wanted_warned += [(line["id"], warning) for warning in subscription.warnings]
        except TriplewireError:
            wanted_refused.append(line["id"])
    assert [refusal.subject for refusal in refused] == wanted_refused
    assert sorted(warned) == sorted(wanted_warned)
    publication = Publication("p", (Triple(IRI("urn:p"), IRI("urn:kind"), Literal("k1")),))
    answers = [[(m.subscription, m.bindings) for m in engine.match([publication])] for engine in (loaded, alone)]
    assert answers[0] == answers[1]
