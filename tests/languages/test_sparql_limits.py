"""Hostile SPARQL texts: deep, long and random ones are read or refused, never more than that.

The trees that come out must be shallow, since later stages walk them recursively.
"""

from __future__ import annotations

import pytest
from case_files import read_cases
from hypothesis import given, settings
from hypothesis import strategies as st

from amounts import examples
from shared_data import ROOT
from triplewire.config import Settings
from triplewire.errors import LanguageError, LimitError, TriplewireError
from triplewire.ir.nodes import AllOf, And, AnyOf, Filter, Not, Or
from triplewire.ir.show import show
from triplewire.languages.context import Context, Parsed
from triplewire.languages.sparql import parse

pytestmark = pytest.mark.slow

SIZE = 64 * 1024
CONTEXT = Context()

# start, what is repeated, what stands in the middle, what closes each repetition, end
DEEP = {
    "parentheses": ("ASK { ?s ?p ?o FILTER(", "(", "1", ")", ")}"),
    "groups": ("ASK {", "{", "", "}", "}"),
    "blank nodes": ("ASK { ?s ?p ", "[ ?p ", "1", "]", "}"),
    "collections": ("ASK { ?s ?p ", "(", "1", ")", "}"),
    "EXISTS": ("ASK { ?s ?p ?o ", "FILTER EXISTS {", "", "}", "}"),
    "NOT EXISTS": ("ASK { ?s ?p ?o ", "FILTER NOT EXISTS {", "", "}", "}"),
    "EXISTS in a condition": ("ASK { ?s ?p ?o ", "FILTER(1 || EXISTS {", "", "})", "}"),
    "EXISTS in parentheses": ("ASK { ?s ?p ?o ", "FILTER(EXISTS {", "", "})", "}"),
    "OPTIONAL": ("ASK { ?s ?p ?o ", "OPTIONAL {", "", "}", "}"),
    "MINUS": ("ASK { ?s ?p ?o ", "MINUS {", "", "}", "}"),
    "UNION of UNIONs": ("ASK {", "{ ?s ?p ?o } UNION {", "", "}", "}"),
    "IF": ("ASK { ?s ?p ?o FILTER(", "IF(1,2,", "3", ")", ")}"),
    "functions": ("ASK { ?s ?p ?o FILTER(", "STR(", "1", ")", ")}"),
    "IN": ("ASK { ?s ?p ?o FILTER(1", " IN (1", "", ")", ")}"),
    "all precedences": ("ASK { ?s ?p ?o FILTER(", "!(1||1&&1=1+1*-(", "1", "))", ")}"),
    "paths": ("ASK { ?s ", "(a|", "a", ")", " ?o }"),
    "inverse paths": ("ASK { ?s ", "^(", "a", ")", " ?o }"),
    "sums": ("ASK { ?s ?p ?o FILTER(1", "+1", "", "", ")}"),
    "products": ("ASK { ?s ?p ?o FILTER(1", "*1", "", "", ")}"),
    "full text": ("ASK { ?s ?p ?o FILTER ftcontains(?o, ", "(", '"a"', ")", ")}"),
    "full-text negations": ("ASK { ?s ?p ?o FILTER ftcontains(?o, ", 'ftNOT ("a" ftAND ', '"b"', ")", ")}"),
}


def deep(name: str, count: int) -> str:
    """A text with `count` repetitions."""
    start, opening, middle, closing, end = DEEP[name]
    return start + opening * count + middle + closing * count + end


@pytest.mark.parametrize("name", DEEP)
def test_deep_texts_are_refused(name: str) -> None:
    start, opening, _, closing, _ = DEEP[name]
    count = (SIZE - 100) // len(opening + closing)
    for text in (deep(name, count), start + opening * count):
        with pytest.raises(LanguageError, match=r"64 levels|found end of text"):
            parse(text, CONTEXT)


@pytest.mark.parametrize("name", DEEP)
def test_the_deepest_text_allowed_can_be_walked(name: str) -> None:
    """At the limit, the printer, which recurses as evaluation does, still works."""
    count = max(count for count in range(70) if is_read(deep(name, count)))
    parsed = parse(deep(name, count), CONTEXT)
    assert count >= 8
    assert show(parsed.where)
    assert depth(parsed) <= 4 * CONTEXT.settings.max_query_depth


def is_read(text: str) -> bool:
    """Is the text not refused for its depth?"""
    try:
        parse(text, CONTEXT)
    except LanguageError as error:
        return "64 levels" not in error.what
    return True


@pytest.mark.parametrize("name", ["EXISTS", "NOT EXISTS", "EXISTS in a condition", "EXISTS in parentheses", "OPTIONAL"])
def test_nested_groups_count_as_groups(name: str) -> None:
    """A group is a level, the parentheses around it are one more; nothing counts twice."""
    levels = 2 if "FILTER(" in DEEP[name][1] else 1
    assert parse(deep(name, 63 // levels), CONTEXT)
    with pytest.raises(LanguageError, match="nested more than 64 levels deep"):
        parse(deep(name, 64 // levels), CONTEXT)


FLAT = {
    "||": ("ASK { ?s ?p ?o FILTER(?o", "||?o", ")}"),
    "&&": ("ASK { ?s ?p ?o FILTER(?o", "&&?o", ")}"),
    "!": ("ASK { ?s ?p ?o FILTER(", "!", "?o)}"),
    "UNION": ("ASK { {?s ?p ?o}", " UNION {?s ?p ?o}", "}"),
    "triples": ("ASK {", "?s ?p ?o.", "}"),
    "semicolons": ("ASK { ?s ?p ?o", ";", "}"),
    "objects": ("ASK { ?s ?p ?o", ",?o", "}"),
    "filters": ("ASK { ?s ?p ?o ", "FILTER(?o)", "}"),
    "rows": ("ASK { ?s ?p ?o VALUES ?o {", "1 ", "}}"),
    "collection": ("ASK { ?s ?p (", "1 ", ")}"),
    "choices": ("ASK { ?s ?p ?o FILTER(?o IN (1", ",1", "))}"),
    "sequence": ("ASK { ?s a", "/a", " ?o }"),
    "alternative": ("ASK { ?s a", "|a", " ?o }"),
    "property set": ("ASK { ?s !(a", "|a", ") ?o }"),
    "prefixes": ("", "PREFIX a:<a>", "ASK { ?s ?p ?o }"),
    "ftAND": ('ASK { ?s ?p ?o FILTER ftcontains(?o,"a"', ' ftAND "a"', ")}"),
    "ftOR": ('ASK { ?s ?p ?o FILTER ftcontains(?o,"a"', ' ftOR "a"', ")}"),
    "ftNOT": ("ASK { ?s ?p ?o FILTER ftcontains(?o,", "ftNOT ", '"a")}'),
    "ftNEAR": ('ASK { ?s ?p ?o FILTER ftcontains(?o,"a"', ' ftNEAR[0,1] "a"', ")}"),
    "phrase": ('ASK { ?s ?p ?o FILTER ftcontains(?o,"a', " a", '")}'),
}


@pytest.mark.parametrize("name", FLAT)
def test_long_flat_texts_give_shallow_trees(name: str) -> None:
    start, repeated, end = FLAT[name]
    text = start + repeated * ((SIZE - len(start) - len(end)) // len(repeated)) + end
    assert depth(parse(text, CONTEXT)) <= 6


def depth(parsed: Parsed) -> int:
    """The longest way down from the root, in nodes."""
    level: list[object] = [parsed.where]
    count = 0
    while level:
        count += 1
        below: list[object] = []
        for node in level:
            for name in getattr(node, "__match_args__", ()):
                value = getattr(node, name)
                below.extend(value if isinstance(value, tuple) else (value,))
        level = [node for node in below if hasattr(node, "__match_args__")]
    return count


def test_paths_before_many_objects_are_refused_before_they_are_written_out() -> None:
    with pytest.raises(LimitError, match=r"^1:\d+: the paths make too many triple patterns.*max_patterns"):
        parse("ASK { ?s a" + "|a" * 15_000 + " ?o" + ",?o" * 10_000 + " }", CONTEXT)


def test_a_raised_depth_limit_ends_in_an_error_too() -> None:
    text = "ASK { ?s ?p ?o FILTER" + "(" * 20_000 + "1" + ")" * 20_000 + "}"
    with pytest.raises(LimitError, match="nested too deeply"):
        parse(text, Context(settings=Settings(max_query_depth=1_000_000)))


def test_a_text_past_the_size_limit_is_refused() -> None:
    text = "ASK { ?s ?p ?o } #" + "\\u0041" * 11_000  # longer as written than as resolved
    with pytest.raises(LanguageError, match=r"^1:1: the text is longer than 65536 bytes"):
        parse(text, CONTEXT)


def test_a_long_regular_expression_is_refused_where_it_stands() -> None:
    with pytest.raises(LimitError, match=r"^1:33: a regular expression of more than 1024 bytes; raise max_regex_bytes"):
        parse('ASK { ?s ?p ?o FILTER regex(?o, "' + "a" * 1_025 + '") }', CONTEXT)


def test_chains_are_flat() -> None:
    where = parse("ASK { ?s ?p ?o FILTER(1 || 2 || 3) FILTER(1 && 2 && 3) {} UNION {} UNION {} }", CONTEXT).where
    assert isinstance(where, And)
    kinds = [part.condition if isinstance(part, Filter) else part for part in where.parts[1:]]
    assert [(type(kind), len(children(kind))) for kind in kinds] == [(AnyOf, 3), (AllOf, 3), (Or, 3)]


def children(node: object) -> tuple[object, ...]:
    first = getattr(node, "__match_args__", ("",))[0]
    return tuple(getattr(node, first))


def test_not_exists_is_a_not() -> None:
    where = parse("ASK { ?s ?p ?o FILTER NOT EXISTS { ?o ?p ?s } }", CONTEXT).where
    assert isinstance(where, And)
    assert isinstance(where.parts[1], Not)


# --- random texts ----------------------------------------------------------------------------------------------------

FILES = [path.name for path in (ROOT / "tests" / "cases" / "sparql").glob("*.txt")]
TEXTS = sorted(case.text for name in FILES for case in read_cases(f"sparql/{name}"))
WORDS = sorted(
    {word for text in TEXTS for word in text.split()} | set("{}()[].,;|/^*+?!=<>-&'\"\\@:_$#%~`\n\t\0é\u00b7😀")
)


def only_triplewire_errors(text: str) -> None:
    """The text is read, or refused with a position."""
    refusal = None
    try:
        show(parse(text, CONTEXT).where)
    except TriplewireError as error:
        refusal = error
    assert refusal is None or (refusal.line >= 1 and refusal.column >= 1)


@settings(max_examples=examples(2_500), deadline=None, database=None)
@given(st.lists(st.sampled_from(WORDS), max_size=40), st.sampled_from(["", " "]))
def test_random_words(words: list[str], between: str) -> None:
    only_triplewire_errors(between.join(words))


@settings(max_examples=examples(2_500), deadline=None, database=None)
@given(st.sampled_from(TEXTS), st.data())
def test_damaged_texts(text: str, data: st.DataObject) -> None:
    for _ in range(data.draw(st.integers(1, 3))):
        start = data.draw(st.integers(0, len(text)))
        end = data.draw(st.integers(start, min(len(text), start + 12)))
        text = text[:start] + data.draw(st.sampled_from(WORDS) | st.text(max_size=4) | st.just("")) + text[end:]
    only_triplewire_errors(text)


@settings(max_examples=examples(1_000), deadline=None, database=None)
@given(st.text(max_size=60))
def test_random_characters(text: str) -> None:
    only_triplewire_errors(text)
