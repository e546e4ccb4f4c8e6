"""The SPARQL texts of the W3C suites: what is right is read, what is wrong is refused.

Right texts that a standing query cannot hold are listed in `sparql_refusals.tsv` with the construct that is refused,
each exactly once. What the queries answer: `test_w3c_sparql_evaluation`. Beyond the suites' own texts, texts with a
few tokens changed are read by us and by pyoxigraph; where the two disagree, one of `EXPLAINED` must hold.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pyoxigraph
import pytest

from shared_data import members
from triplewire.errors import TriplewireError, UnsupportedQuery
from triplewire.languages.context import Context
from triplewire.languages.sparql import parse
from triplewire.languages.sparql.terms import QueryTokens
from triplewire.model.namespaces import PREDECLARED

ARCHIVES = ("sparql10-a", "sparql11-a")
BASE = "http://example.org/base/"
CONTEXT = Context(base=BASE)
CHANGED = 2_500  # texts compared with pyoxigraph


class Case(NamedTuple):
    """One test of a suite."""

    name: str
    positive: bool
    text: str


@cache
def cases() -> tuple[Case, ...]:
    found = []
    for archive in ARCHIVES:
        files = dict(members(f"05-w3c-suites/{archive}.tar.gz"))
        index = next(name for name in files if name.endswith("index.json"))
        for test in json.loads(files[index]):
            text = files[index.removesuffix("index.json") + test["query"]].decode("utf-8")
            found.append(Case(f"{test['suite']}/{test['dir']}/{test['test']}", "Negative" not in test["type"], text))
    return tuple(found)


def refused(text: str) -> TriplewireError | None:
    """The error that the text gives, if any."""
    try:
        parse(text, CONTEXT)
    except TriplewireError as error:
        return error
    return None


def test_negative_texts_are_refused() -> None:
    negative = [case for case in cases() if not case.positive]
    assert [case.name for case in negative if refused(case.text) is None] == []
    assert len(negative) == 75


def test_positive_texts_are_read_or_refused_by_name() -> None:
    listed = dict(
        line.split("\t")
        for line in Path(__file__).with_name("sparql_refusals.tsv").read_text("utf-8").splitlines()
        if not line.startswith("#")
    )
    positive = [case for case in cases() if case.positive]
    errors = {case.name: error for case in positive if (error := refused(case.text)) is not None}
    assert {name: str(error) for name, error in errors.items() if not isinstance(error, UnsupportedQuery)} == {}
    assert {name: construct(error) for name, error in errors.items()} == listed
    assert len(positive) == 492


def construct(error: TriplewireError) -> str:
    """What an `UnsupportedQuery` names."""
    return error.what.removesuffix(" is not supported in a standing query")


def test_refusals_point_at_their_construct() -> None:
    """A refusal points at the construct that it names."""
    checked = 0
    for case in cases():
        error = refused(case.text) if case.positive else None
        keyword = re.match(r"(?:the (?:aggregate|function) )?([A-Z_]+)\b", construct(error)) if error else None
        if error and keyword:
            line = case.text.splitlines()[error.line - 1]
            assert line[error.column - 1 :].upper().startswith(keyword[1]), case.name
            checked += 1
    assert checked > 80


# --- changed texts, beside pyoxigraph --------------------------------------------------------------------------------


def test_changed_texts_like_pyoxigraph() -> None:
    store = pyoxigraph.Store()
    written = [words for case in cases() if (words := tokens_of(case.text))]
    pool = sorted({word for words in written for word in words})
    chance = random.Random(11)
    agreed = 0
    for _ in range(CHANGED):
        text = " ".join(changed(chance.choice(written), pool, chance))
        text = re.sub(r"\b(CONCAT|COALESCE) ", r"\1", text, flags=re.IGNORECASE)  # pyoxigraph wants no space there
        if "SERVICE" in text.upper():  # would ask the network
            continue
        error = refused(text)
        if isinstance(error, UnsupportedQuery):
            continue
        theirs = accepted_by(store, text)
        if theirs == (error is None):
            agreed += 1
        else:
            assert any(holds(text, error) for holds in EXPLAINED), f"{text}\nours: {error}\nread by theirs: {theirs}"
    assert agreed > 0.8 * CHANGED


def tokens_of(text: str) -> list[str]:
    try:
        tokens = QueryTokens(text, CONTEXT)
    except TriplewireError:
        return []
    words = []
    while (token := tokens.next()).text:
        words.append(token.text)
    return words


def changed(words: list[str], pool: list[str], chance: random.Random) -> list[str]:
    words = list(words)
    for _ in range(chance.choice((1, 1, 2))):
        at = chance.randrange(len(words))
        match chance.randrange(4):
            case 0 if len(words) > 1:
                del words[at]
            case 1:
                words.insert(at, chance.choice(pool))
            case 2:
                words[at] = chance.choice(pool)
            case _:
                words.insert(at, words[chance.randrange(len(words))])
    return words


def accepted_by(store: pyoxigraph.Store, text: str) -> bool:
    try:
        store.query(text, base_iri=BASE, prefixes=dict(PREDECLARED))
    except SyntaxError:
        return False
    except (RuntimeError, ValueError, OSError):  # read, but cannot be answered
        return True
    return True


def _has_wildcard(text: str, error: TriplewireError | None) -> bool:
    """Our `*` in a triple."""
    return error is None and re.search(r"(?<!SELECT) \*", text, re.IGNORECASE) is not None


def _selects_twice(text: str, error: TriplewireError | None) -> bool:
    """A variable that is selected twice is one column."""
    clause = re.match(r".*?SELECT(.*?)[{]", text, re.IGNORECASE | re.DOTALL)
    names = re.findall(r"[?$](\w+)", clause[1]) if clause else []
    return error is None and len(set(names)) < len(names)


def _mixed_case_boolean(text: str, error: TriplewireError | None) -> bool:
    """Keywords are read in any case (SPARQL 1.1, 19.8, note 1)."""
    return error is None and re.search(r"\b(?!true\b|false\b)(?i:true|false)\b", text) is not None


def _detached_sign(text: str, error: TriplewireError | None) -> bool:
    """A sign and a number with space between are two tokens (productions 149 to 154)."""
    return error is not None and error.what.startswith(("found '+'", "found '-'"))


def _longest_token(text: str, error: TriplewireError | None) -> bool:
    """`<?a&&?b>` is an IRI, as the longest token counts (19.8, note 4)."""
    return error is not None and error.what.startswith("found '<")


def _cast_arity(text: str, error: TriplewireError | None) -> bool:
    """A cast without its argument is refused when read, not when evaluated."""
    return error is not None and " takes 1 argument, not " in error.what


EXPLAINED: list[Callable[[str, TriplewireError | None], bool]] = [
    _has_wildcard,
    _selects_twice,
    _mixed_case_boolean,
    _detached_sign,
    _longest_token,
    _cast_arity,
]


@pytest.mark.parametrize("holds", EXPLAINED, ids=lambda function: function.__name__.strip("_"))
def test_explanations_do_not_explain_everything(holds: Callable[[str, TriplewireError | None], bool]) -> None:
    assert not holds("SELECT * { ?s ?p ?o }", None)
    assert not holds("SELECT * { ?s ?p }", refused("SELECT * { ?s ?p }"))
