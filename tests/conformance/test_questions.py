"""The same questions to one month's feed in three syntaxes, and to an independent reading of it by ElementTree.

The questions are data: `tests/cases/questions/arxiv.toml`.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from shared_data import members
from triplewire import Engine, Publication
from triplewire.read import read_document

TABLE = tomllib.loads((Path(__file__).resolve().parents[1] / "cases/questions/arxiv.toml").read_text("utf-8"))
SYNTAXES = ("rss10.rdf", "rss20.xml", "atom.xml")
ATOM = "{http://www.w3.org/2005/Atom}"
Record = dict[str, list[str]]

pytestmark = pytest.mark.xdist_group("arxiv")


def _words(text: str) -> list[str]:
    return re.findall(r"[^\W_]+", text.casefold())


def _has_phrase(text: str, phrase: str) -> bool:
    return f" {' '.join(_words(phrase))} " in f" {' '.join(_words(text))} "


def _has_near(text: str, wanted: str) -> bool:
    first, second, most = wanted.split()
    words = _words(text)
    return any(word == first and second in words[at + 1 : at + 2 + int(most)] for at, word in enumerate(words))


TESTS: dict[str, Callable[[str, str], bool]] = {
    "word": lambda text, word: word in _words(text),
    "prefix": lambda text, start: any(word.startswith(start) for word in _words(text)),
    "phrase": _has_phrase,
    "within": _has_near,
    "contains": lambda text, part: part in text,
    "equals": lambda text, other: text == other,
    "from": lambda text, other: text >= other,
    "before": lambda text, other: text < other,
}


def _holds(record: Record, condition: list[str]) -> bool:
    field, test, value = condition
    denied = test.startswith("not ")
    return any(TESTS[test.removeprefix("not ")](text, value) for text in record[field]) != denied


@lru_cache(maxsize=1)
def _feeds() -> dict[str, dict[str, bytes]]:
    """The feeds of the months that are asked about: syntax -> month -> bytes."""
    feeds: dict[str, dict[str, bytes]] = {syntax: {} for syntax in SYNTAXES}
    for name, data in members("04-feeds/arxiv-derived-feeds.tar.gz"):
        month, _, syntax = name.rpartition("/")[2].partition(".")
        if month in TABLE["months"]:
            feeds[syntax][month] = data
    return feeds


@lru_cache(maxsize=1)
def _records() -> dict[str, Record]:
    """The items by id, read from the Atom feeds by ElementTree."""
    records = {}
    for data in _feeds()["atom.xml"].values():
        for entry in ElementTree.fromstring(data).iter(f"{ATOM}entry"):
            texts = lambda path: [element.text or "" for element in entry.findall(path)]  # noqa: B023, E731  # used here
            records[texts(f"{ATOM}id")[0]] = {
                "title": texts(f"{ATOM}title"),
                "text": texts(f"{ATOM}summary"),
                "author": texts(f"{ATOM}author/{ATOM}name"),
                "category": [element.get("term", "") for element in entry.findall(f"{ATOM}category")],
                "day": texts(f"{ATOM}published"),
                "link": [element.get("href", "") for element in entry.findall(f"{ATOM}link")],
            }
    return records


@lru_cache(maxsize=len(SYNTAXES))
def _publications(syntax: str) -> list[Publication]:
    return [p for month, data in _feeds()[syntax].items() for p in read_document(data, f"http://feeds.example/{month}")]


def _answer(question: dict[str, Any]) -> set[str]:
    """The ids of the records for which all of `check` holds, and one of `any` where there is one."""
    return {
        identifier
        for identifier, record in _records().items()
        if all(_holds(record, condition) for condition in question["check"])
        and any(_holds(record, condition) for condition in question.get("any", question["check"]))
    }


@pytest.mark.parametrize("matcher", ["trie", "reference"])
@pytest.mark.parametrize("syntax", SYNTAXES)
def test_questions(syntax: str, matcher: str) -> None:
    engine = Engine(matcher=matcher)
    for question in TABLE["question"]:
        engine.subscribe(question["query"], question.get("language", "sparql"), id=question["id"])
    answers: dict[str, list[str]] = {question["id"]: [] for question in TABLE["question"]}
    for match in engine.match(_publications(syntax)):
        assert [list(binding.values()) for binding in match.bindings], "a question binds the item"
        answers[match.subscription].append(match.publication)
    wrong = {
        question["id"]: (len(_answer(question)), len(answers[question["id"]]))
        for question in TABLE["question"]
        if sorted(_answer(question)) != sorted(answers[question["id"]])
    }
    assert not wrong, f"(wanted, told): {wrong}"


def test_the_questions_ask_something() -> None:
    """Fourteen, each with an answer that is neither empty nor everything, but for the one that says so."""
    assert len(TABLE["question"]) == 14
    for question in TABLE["question"]:
        count = len(_answer(question))
        assert count == 0 if question.get("none") else 0 < count < len(_records()), question["id"]
