"""Subscriptions that are loaded from files are those that are registered one by one.

Refusals and warnings are the same, by one process or by two: of 8,400 generated texts, malformed ones among them, in
`make full` of 1,200,000.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from operator import itemgetter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from agreement.random_texts import VOCABULARY, texts
from amounts import usually
from triplewire import Engine, Refusal
from triplewire.errors import TriplewireError
from triplewire.languages.sources import row_columns

LANGUAGES = [language for language in VOCABULARY if language != "fulltext"]
CONSTANT = re.compile(r"(?<=\")\w+(?=\")|(?<=')\w+(?=')|(?<=urn:)\w+|(?<=[<>=] )[0-9]+")


def _alike(language: str, count: int, seed: int) -> Iterator[str]:
    """Valid texts with other constants."""
    chance = random.Random(f"{language} {seed}")
    for _ in range(count):
        text = chance.choice(VOCABULARY[language].valid)
        yield CONSTANT.sub(lambda old: str(chance.randrange(50)) if old[0].isdigit() else chance.choice("abcé"), text)


def _rows(language: str, count: int, seed: int) -> list[dict[str, Any]]:
    """Half of the texts are like others, so that they have templates; some have a prefix and a base."""
    chance, rows = random.Random(seed), list[dict[str, Any]]()
    for text in chain(texts(language, count // 2, seed), _alike(language, count // 2, seed)):
        more = {"prefixes": {"ex": "urn:ex:"}, "base": "http://base.example/"} if chance.random() < 0.1 else {}
        rows.append({"language": language, "query": text, **more})
    chance.shuffle(rows)
    return [{"id": f"{language} {number}", **row} for number, row in enumerate(rows)]


def _json_lines(rows: Iterable[dict[str, Any]], path: Path) -> Path:
    lines = [json.dumps(row, ensure_ascii=not is_storable(row["query"])) for row in rows]
    path.write_text("\n".join(lines), "utf-8")
    return path


def _parquet(rows: Iterable[dict[str, Any]], path: Path) -> Path:
    table = [{"prefixes": "", "base": None, **row} for row in rows]
    for row in table:
        row["prefixes"] = json.dumps(row["prefixes"]) if row["prefixes"] else ""
    pq.write_table(pa.Table.from_pylist(table), path, row_group_size=len(table) // 7 + 1)
    return path


def is_storable(text: str) -> bool:
    """Has the text no half of a surrogate pair?"""
    return not any(0xD800 <= ord(character) <= 0xDFFF for character in text)


FORMS: dict[str, tuple[Callable[[Iterable[dict[str, Any]], Path], Path], int]] = {
    "jsonl": (_json_lines, usually(400, 100_000)),
    "parquet": (_parquet, usually(400, 100_000)),
}


def _subscribed(engine: Engine, row: dict[str, Any], more: dict[str, Any]) -> tuple[tuple[str, ...], Any]:
    """Why a row is refused, else what is registered, with its warnings."""
    try:
        subscription = engine.subscribe(row["query"], row["language"], id=row["id"], **more)
        return subscription.warnings, subscription
    except TriplewireError as error:
        return (error.what, error.remedy), None


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("form", FORMS)
def test_loaded_or_registered_one_by_one(
    form: str, language: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(row_columns, "FEW", 0)
    write, count = FORMS[form]
    rows = [row for row in _rows(language, count, 5) if form == "jsonl" or is_storable(row["query"])]
    engine, one_by_one, singly = Engine(), Engine(matcher="reference"), Engine()
    singly.settle()  # texts that are registered one at a time have templates in the compiled tier
    refusals, warnings = list[Refusal](), list[tuple[str, str]]()
    engine.load_subscriptions(
        write(rows, tmp_path / f"rows.{form}"),
        on_refusal=refusals.append,
        on_warning=lambda id, warning: warnings.append((id, warning)),
    )
    refused, warned = list[tuple[str, str, str]](), list[tuple[str, str]]()
    for row in rows:
        more = {name: row[name] for name in ("prefixes", "base") if name in row}
        refusal, registered = _subscribed(one_by_one, row, more)
        assert _subscribed(singly, row, more) == (refusal, registered)
        if registered is None:
            refused.append((row["id"], *refusal))
        else:
            warned += [(registered.id, warning) for warning in registered.warnings]
    assert [(one.subject, one.reason, one.remedy) for one in refusals] == refused
    assert sorted(warnings, key=itemgetter(0)) == sorted(warned, key=itemgetter(0))  # those of each in their order
    columns = engine.subscriptions, singly.subscriptions, one_by_one.subscriptions
    for loaded, single, expected in zip(*columns, strict=True):
        assert (loaded, loaded.warnings) == (expected, expected.warnings)
        assert (single, single.warnings, single.revision) == (expected, expected.warnings, expected.revision)
    assert len(engine.subscriptions) > count // 4, "most texts are refused"
    assert refused, "no text is refused"


@pytest.mark.parametrize("form", FORMS)
def test_loaded_by_one_process_or_by_two(form: str, tmp_path: Path) -> None:
    """All languages in one file, in which some ids come again: in the same part, or in the other one."""
    write, count = FORMS[form]
    rows = [row for language in LANGUAGES for row in _rows(language, count, 6)]
    rows = [row for row in rows if form == "jsonl" or is_storable(row["query"])]
    random.Random(6).shuffle(rows)
    half, near, far = len(rows) // 2, rows[:9], rows[-9:]
    file = write([*rows[:half], *near, *far, *rows[half:]], tmp_path / f"rows.{form}")
    one, two = (_loaded(file, workers) for workers in (1, 2))
    assert one == two
    assert sum("an earlier row" in refusal.reason for refusal in one[0]) == len(near) + len(far)
    assert len(one[2]) > len(rows) // 4


def _loaded(file: Path, workers: int) -> tuple[list[Refusal], list[tuple[str, str]], list[object]]:
    """Refusals, warnings and subscriptions."""
    engine, refusals, warnings = Engine(), list[Refusal](), list[tuple[str, str]]()
    engine.load_subscriptions(
        file,
        on_refusal=refusals.append,
        on_warning=lambda id, warning: warnings.append((id, warning)),
        workers=workers,
    )
    return refusals, warnings, [(one, one.warnings, one.revision) for one in engine.subscriptions]
