"""Hostile texts in GQL, MDV rules and predicates: deep, long and random ones are read or refused, never more."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from outcomes import context

from amounts import examples
from triplewire import plugins
from triplewire.config import Settings
from triplewire.errors import LanguageError, LimitError, TriplewireError
from triplewire.ir.nodes import Or
from triplewire.ir.show import show
from triplewire.languages import parse
from triplewire.languages.context import Parsed
from triplewire.languages.grammar.tokens import Token, Tokens

pytestmark = pytest.mark.slow

SIZE = 64 * 1024
LANGUAGES = ("gql", "mdv", "predicates")
TUPLE = "SELECT * WHERE (?a, p, ?b) SUCHTHAT "
RULE = "search A a register a where "
CALL = "mobPattern(?x), "


def compile_text(language: str, text: str) -> Parsed:
    """The parser alone, without the checks of registration."""
    parsed: Parsed = plugins.find("language", language)(text, context(language, ""))
    return parsed


# language, start, what is repeated, what stands in the middle, what closes each repetition
DEEP = {
    "conditions": ("gql", TUPLE, "(", "?b > 1", ")"),
    "negated conditions": ("gql", TUPLE, "NOT (", "?b > 1", ")"),
    "alternatives": ("gql", TUPLE, "(?b = 1 OR ?b = 2 AND ", "?b = 3", ")"),
    "groups of tuples": ("gql", "SELECT * WHERE ", "(", "(?a, p, ?b)", ")"),
    "groups with conditions": ("gql", "SELECT * WHERE ", "((?a, p, ?b) SUCHTHAT ?b = 1, ", "(?a, p, ?b)", ")"),
    "full text": ("gql", TUPLE + "?b FTCONTAINS ", "(", '"a"', ")"),
    "MDV conditions": ("mdv", RULE, "(", "a.p = 1", ")"),
    "negated MDV conditions": ("mdv", RULE, "not (a.q = 1 and ", "a.p = 1", ")"),
    "sums": ("predicates", CALL + "1 + ", "(", "?x + 1 > 3", ")"),
    "sums of sums": ("predicates", CALL + "?x > ", "1 - (", "2", ")"),
}


@pytest.mark.parametrize("name", DEEP)
def test_deep_texts_are_refused(name: str) -> None:
    language, start, opening, middle, closing = DEEP[name]
    count = (SIZE - 100) // len(opening + closing)
    for text in (start + opening * count + middle + closing * count, start + opening * count):
        with pytest.raises(LanguageError):
            compile_text(language, text)


@pytest.mark.parametrize("name", [name for name in DEEP if not name.startswith("sums")])
def test_moderately_deep_texts_are_read(name: str) -> None:
    language, start, opening, middle, closing = DEEP[name]
    assert show(compile_text(language, start + opening * 20 + middle + closing * 20).where)


# language, start, what is repeated, end
FLAT = {
    "tuples": ("gql", "SELECT * WHERE (?a, p, ?b)", ",(?a, p, ?b)", ""),
    "tuples in a group": ("gql", "SELECT * WHERE ((?a, p, ?b)", ",(?a, p, ?b)", ")"),
    "selected variables": ("gql", "SELECT ?a", " ?a", " WHERE (?a, p, ?b)"),
    "AND": ("gql", TUPLE + "?b = 1", " AND ?b = 1", ""),
    "OR": ("gql", TUPLE + "?b = 1", " OR ?b = 1", ""),
    "NOT": ("gql", TUPLE, "NOT ", "?b = 1"),
    "AND and groups": ("gql", TUPLE + "?b = 1", " AND (?b = 1)", ""),
    "one condition a tuple": ("gql", TUPLE + "?b = 1", " AND (?a, p, ?b) SUCHTHAT ?b = 1", ""),
    "a long label": ("gql", "SELECT * WHERE (?a, p, ", "word ", ")"),
    "a label of parentheses": ("gql", "SELECT * WHERE (?a, p, x", "()", ")"),
    "a long bare IRI": ("gql", "SELECT * WHERE (?a, p, http://example.org/", "a?b&", ")"),
    "prefixes": ("gql", "", "PREFIX a: <a:a>", "SELECT * WHERE (?a, p, ?b)"),
    "a long string": ("gql", 'SELECT * WHERE (?a, p, "', "\\u0041", '")'),
    "a long word": ("gql", "SELECT * WHERE (?a, p, ", "a-", ")"),
    "arguments": ("predicates", CALL + "locIn(", "a ", ")"),
    "calls": ("predicates", "locIn(a)", ",locIn(a)", ""),
    "parentheses around": ("predicates", "mobPattern(?x), " + "(" * 20_000 + "?x > 5", ")", ""),
    "signs": ("predicates", CALL + "?x > ", "-+", "5"),
    "classes": ("mdv", "search A a", ", A a", ""),
    "steps": ("mdv", RULE + "a", ".p", " = 1"),
    "and": ("mdv", RULE + "a.p = 1", " and a.p = 1", ""),
    "a comment": ("mdv", RULE + "a.p = 1 --", " comment", ""),
    "comments": ("mdv", RULE + "a.p = 1", " -- comment\n", ""),
}


@pytest.mark.parametrize("name", FLAT)
def test_a_text_twice_as_long_needs_twice_the_looks(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    language, start, repeated, end = FLAT[name]
    looks = 0
    peek = Tokens.peek

    def counted(self: Tokens, ahead: int = 0) -> Token:
        nonlocal looks
        looks += 1
        return peek(self, ahead)

    monkeypatch.setattr(Tokens, "peek", counted)
    needed = []
    for size in (SIZE // 2, SIZE):
        looks = 0
        text = start + repeated * ((size - len(start) - len(end)) // len(repeated)) + end
        assert is_read(language, text) or name in ("classes", "parentheses around", "a long word")
        needed.append(looks)
    assert needed[1] <= 2.1 * needed[0] + 100


REPEATED = [
    "'",
    '"',
    "<",
    "(",
    "[",
    "{",
    "?",
    "\\'a",
    "a:",
    "a-",
    "a.",
    "<a",
    ".5",
    "'''a",
    '"""',
    "° ",
    "5 km ",
    "1e5",
]


@pytest.mark.parametrize("piece", REPEATED)
@pytest.mark.parametrize("language", LANGUAGES)
def test_an_expression_that_looks_again_and_again_would_hang_here(language: str, piece: str) -> None:
    starts = {"gql": "SELECT * WHERE (?a, p, ", "mdv": RULE + "a.p = ", "predicates": CALL + "locIn("}
    with pytest.raises(LanguageError):
        compile_text(language, starts[language] + piece * ((SIZE - 100) // len(piece)) + ";?x")


def test_alternatives_multiply_up_to_a_limit() -> None:
    """Six times two branches are 64; the seventh is refused before anything is multiplied."""
    choice = "(a.p = 1 or a.q = 2)"
    where = compile_text("mdv", RULE + " and ".join([choice] * 6)).where
    assert isinstance(where, Or)
    assert len(where.branches) == 64
    for count in (7, 2_000):
        with pytest.raises(LimitError, match=r"more than 64 branches.*raise max_branches"):
            compile_text("mdv", RULE + " and ".join([choice] * count))
    negated = " or ".join(["(a.p = 1 and a.q = 2)"] * 7)
    with pytest.raises(LimitError, match="64 branches"):
        compile_text("mdv", f"{RULE} not ({negated})")


def test_rules_over_large_rules_are_refused_before_they_grow() -> None:
    prefixes = {"": "http://example.org/"}
    steps = " and ".join(f"a.p{number} = 1" for number in range(200))
    rules = {"Large": parse(RULE + steps, "mdv", id="Large", prefixes=prefixes)}
    text = "search " + ", ".join(f"Large a{number}" for number in range(4_000)) + " register a0"
    with pytest.raises(LimitError, match=r"more than 256 patterns.*raise max_patterns"):
        parse(text, "mdv", id="huge", prefixes=prefixes, rules=rules)


@pytest.mark.parametrize(
    ("language", "text"),
    [("gql", TUPLE + "(" * 20_000), ("mdv", RULE + "(" * 20_000), ("predicates", "language(?x), ?x > " + "(" * 20_000)],
)
def test_a_raised_depth_limit_ends_in_an_error_too(language: str, text: str) -> None:
    with pytest.raises(TriplewireError, match="nested too deeply"):
        parse(text, language, id="deep", settings=Settings(max_query_depth=1_000_000))


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_text_past_the_size_limit_is_refused(language: str) -> None:
    with pytest.raises(LanguageError, match=r"^1:1: the text is longer than 65536 bytes.*raise max_query_bytes"):
        compile_text(language, " " * (SIZE + 1))


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_lone_surrogate_is_refused(language: str) -> None:
    with pytest.raises(LanguageError, match="1:2: a lone surrogate is no character"):
        compile_text(language, " \ud800")


SOUP = """
SELECT * WHERE FROM SUCHTHAT AND OR NOT CALL ISA CONTAINS FTCONTAINS PREFIX ( ) ( ) , , . ? ?x ?y $z a b:c :d ex:e
<http://example.org/> <rel> "x" 'y' "5"^^xsd:int @en 5 -2.5e3 5km = != < <= > >= { } [0,2] ftNEAR ftAND search A a b
register where a.p a.p.q? and or not contains op:locIn( locIn( mobPattern(?x) distanceFrom(B,?d) ?d 5 km/h + - * / °C
urn:x http://x/y(z) Prof's -- #1 \\ " '
"""


def is_read(language: str, text: str) -> bool:
    """Is the text accepted, with a tree that can be shown, rather than refused in words? Anything else is raised."""
    try:
        where = compile_text(language, text).where
    except TriplewireError as error:
        assert error.what  # noqa: PT017  # refusing is allowed here, but not without a word
        return False
    return bool(show(where))


@settings(max_examples=examples(300), deadline=None)
@given(
    st.sampled_from(LANGUAGES),
    st.sampled_from(["", TUPLE, "WHERE (", RULE, CALL]),
    st.lists(st.sampled_from(SOUP.split()), max_size=14),
)
def test_soup_is_read_or_refused(language: str, start: str, words: list[str]) -> None:
    for separator in (" ", ""):
        is_read(language, start + separator.join(words))


@settings(max_examples=examples(300), deadline=None)
@given(st.sampled_from(LANGUAGES), st.sampled_from(["", TUPLE, "WHERE (?a, p, ", RULE, CALL]), st.text(max_size=20))
def test_any_text_is_read_or_refused(language: str, start: str, text: str) -> None:
    is_read(language, start + text)


def test_the_starts_of_soup_can_become_valid() -> None:
    assert is_read("gql", TUPLE + "?a > 5")
    assert is_read("mdv", RULE + "a.p = 5")
    assert is_read("predicates", CALL + "?x > 5")
