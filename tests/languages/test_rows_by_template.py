"""Rows with templates: what `read_rows` reads and refuses, and little of it parsed."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from shared_data import lines
from triplewire.config import Settings
from triplewire.errors import Refusal, TriplewireError
from triplewire.ir.subscription import Subscription
from triplewire.languages.sources import row_columns
from triplewire.languages.sources.files import Reader, read_batches, read_rows
from triplewire.languages.sources.row_columns import RowColumns
from triplewire.languages.sources.rows import Row
from triplewire.languages.templates import Templates

WORD = 'SELECT * {{ ?s <urn:p{}> ?o FILTER ftcontains(?o, "w{}") }}'
RULE = "search ex:Server s register s where s.ex:memory > {}"
PREFIXES = {"ex": "http://example.org/"}


def _file(path: Path, rows: Iterable[Any]) -> Path:
    path.write_text("".join((row if isinstance(row, str) else json.dumps(row)) + "\n" for row in rows), "utf-8")
    return path


def _row(id: str, query: str, language: str = "sparql", **more: object) -> dict[str, Any]:
    return {"id": id, "language": language, "query": query, **more}


class Loaded(NamedTuple):
    """A row, and whether a template says what it is."""

    row: Row
    subscription: Subscription
    has_template: bool
    is_plain: bool


def _by_template(paths: Iterable[Path], refuse: Callable[[Refusal], None]) -> Iterator[Loaded]:
    """The rows as they are loaded, a few at a time."""
    templates = Templates()
    for batch in read_batches(Reader(None, Settings(), {}, columnar=True), paths):
        rows = batch.rows
        assert isinstance(rows, RowColumns)
        forms = templates.find_all(rows.queries)
        forms = forms.without(forms.naming(rows.ids, batch.rules))
        number = 0
        for row in batch.rows:
            if isinstance(row, Refusal):
                refuse(row)
                continue
            if forms.has_form[number]:
                form, parameters = forms.form(number)
                stated = form.subscription(parameters, row.id, row.query, row.prefixes, row.base)
                yield Loaded(row, stated, True, True)
            else:
                try:
                    parsed = batch.parse(row)
                    yield Loaded(row, parsed.subscription, False, parsed.is_plain)
                except TriplewireError as error:
                    refuse(row.refusal(error))
            number += 1


@pytest.fixture(autouse=True)
def _all_as_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also of short files."""
    monkeypatch.setattr(row_columns, "FEW", 0)


def _both(*paths: Path) -> tuple[list[Loaded], list[Refusal]]:
    """What both ways read and refuse, having seen that it is the same."""
    refused: list[Refusal] = []
    refused_plain: list[Refusal] = []
    plain = [parsed.subscription for parsed in read_rows(paths, on_refusal=refused_plain.append)]
    parsed = list(_by_template(paths, refused.append))
    assert refused == refused_plain
    assert [one.row.id for one in parsed] == [one.id for one in plain]
    for one, wanted in zip(parsed, plain, strict=True):
        assert (one.subscription, one.subscription.warnings) == (wanted, wanted.warnings), one.row.query
    return parsed, refused


def test_most_rows_have_a_template(tmp_path: Path) -> None:
    path = _file(tmp_path / "a.jsonl", [_row(f"q{n}", WORD.format(n % 3, n)) for n in range(40)])
    parsed, refused = _both(path)
    assert not refused
    assert all(one.has_template for one in parsed)
    assert parsed[1].row.record == 2


def test_bad_rows_and_bad_queries_are_refused_in_their_places(tmp_path: Path) -> None:
    rows: list[Any] = [_row(f"q{n}", WORD.format(1, n)) for n in range(30)]
    rows[4] = "{"
    rows[5] = _row("q5", WORD.format(1, "two words"))
    rows[6] = _row("q6", WORD.format(1, "a*b"))
    rows[7] = _row("q7", "SELECT * { ?s <urn:p1> }")
    rows[8] = _row("q8", WORD.format(1, "x"), language="klingon")
    rows[9] = _row("", WORD.format(1, "x"))
    rows[10] = _row("q10", WORD.format(1, "x" * 70_000))
    rows[20] = _row("q3", WORD.format(1, "again"))  # read later
    rows[21] = _row("q22", WORD.format(1, "first"))  # read together
    rows[23] = _row("q7", WORD.format(1, "the first one was refused"))
    _, refused = _both(_file(tmp_path / "a.jsonl", rows))
    assert [refusal.subject for refusal in refused][1:] == [
        "q6",
        "q7",
        "q8",
        str(tmp_path / "a.jsonl"),
        "q10",
        "q3",
        "q22",
        "q7",
    ]


def test_prefixes_and_base_are_part_of_a_template(tmp_path: Path) -> None:
    query = "SELECT * {{ ?s ex:p <{}> FILTER(?s != <urn:{}>) }}"
    rows = []
    for n in range(24):
        more: dict[str, Any] = {"prefixes": {"ex": f"urn:{n % 2}:"}, "base": ["", "http://a.example/"][n // 2 % 2]}
        rows.append(_row(f"q{n}", query.format("rel" if n % 3 else "urn:abs", n), **more))
    parsed, refused = _both(_file(tmp_path / "a.jsonl", rows))
    assert not refused
    assert sum(one.has_template for one in parsed) >= 12


def test_folders_gzip_parquet_and_single_queries(tmp_path: Path) -> None:
    _file(tmp_path / "a.jsonl", [_row(f"a{n}", WORD.format(1, n)) for n in range(9)])
    packed = "".join(json.dumps(_row(f"b{n}", WORD.format(1, n))) + "\n" for n in range(9))
    (tmp_path / "b.jsonl.gz").write_bytes(gzip.compress(packed.encode()))
    columns = {
        "id": [f"c{n}" for n in range(9)],
        "language": ["sparql"] * 9,
        "query": [WORD.format(1, n) for n in range(9)],
    }
    pq.write_table(pa.table(columns), tmp_path / "c.parquet")
    (tmp_path / "d.rq").write_text(WORD.format(1, 2), "utf-8")
    (tmp_path / "e.jsonl.gz").write_bytes(gzip.compress(packed.encode())[:-9])  # damaged, and its ids are taken
    (tmp_path / "f.what").write_text("?", "utf-8")
    (tmp_path / "g.mdv").write_text("search foaf:Person p register p", "utf-8")
    parsed, refused = _both(tmp_path)
    assert (len(parsed), len(refused)) == (29, 11)


def test_rules_come_last_and_may_name_others(tmp_path: Path) -> None:
    rows = [_row("over", "search r3 s register s where s.ex:memory > 9000", "mdv", prefixes=PREFIXES)]
    rows += [_row(f"r{n}", RULE.format(n), "mdv", prefixes=PREFIXES) for n in range(20)]
    rows += [_row("gone", "search nothing-such s register s where s.x", "mdv", prefixes=PREFIXES)]
    rows += [_row("over gone", "search gone s register s", "mdv", prefixes=PREFIXES)]
    rows += [_row("q", WORD.format(1, 1))]
    parsed, refused = _both(_file(tmp_path / "a.jsonl", rows))
    by_id = {one.row.id: one for one in parsed}
    assert [refusal.subject for refusal in refused] == ["gone", "over gone"]
    assert parsed[0].row.id == "q"
    assert sum(one.has_template for one in parsed) >= 18
    assert [id for id, one in by_id.items() if not one.is_plain] == ["over"]


def test_a_rule_whose_class_is_a_rule_has_no_template(tmp_path: Path) -> None:
    """The class is written as an IRI or a prefixed name, and still is the id of another rule."""
    rows = [_row("ex:Server", "search ex:Machine s register s", "mdv", prefixes=PREFIXES)]
    rows += [_row(f"r{n}", RULE.format(n), "mdv", prefixes=PREFIXES) for n in range(9)]
    parsed, _ = _both(_file(tmp_path / "a.jsonl", rows))
    assert [one.row.id for one in parsed if not one.is_plain] == [f"r{n}" for n in range(9)]


def test_a_rule_may_have_its_own_class_as_its_id(tmp_path: Path) -> None:
    rows = [_row("ex:Server", RULE.format(1), "mdv", prefixes=PREFIXES)]
    parsed, _ = _both(_file(tmp_path / "a.jsonl", rows))
    assert parsed[0].is_plain


# --- the shared data ---------------------------------------------------------------------------------------------


def _rtf(count: int) -> Iterator[dict[str, Any]]:
    for line in islice(lines("10-workloads/rtf-queries-100k-ft050.jsonl.gz"), count):
        id, _, tuples = json.loads(line)
        body, filters = [], []
        for item in tuples:
            body.append(" ".join(item[:3]) + " .")
            if len(item) == 4:
                words = " ftAND ".join(f'"{word}"' for word in item[3])
                filters.append(f"FILTER ftcontains({item[2]}, {words})")
        yield _row(f"q{id}", "SELECT * WHERE { " + " ".join(body + filters) + " }")


@pytest.mark.slow
def test_queries_of_the_shared_data(tmp_path: Path) -> None:
    parsed, refused = _both(_file(tmp_path / "a.jsonl", _rtf(4_000)))
    assert not refused
    assert sum(not one.has_template for one in parsed) < 800


@pytest.mark.slow
def test_rules_of_the_shared_data(tmp_path: Path) -> None:
    rows = islice(lines("10-workloads/mdv-rules-40k.jsonl.gz"), 0, 40_000, 20)
    texts = (
        _row(f"r{n}", "PREFIX nmo: <http://nomisma.org/ontology#>\n" + json.loads(row)[2], "mdv")
        for n, row in enumerate(rows)
    )
    parsed, refused = _both(_file(tmp_path / "a.jsonl", texts))
    assert not refused
    assert sum(not one.has_template for one in parsed) < 100


@pytest.mark.slow
def test_graph_subscriptions_of_the_shared_data(tmp_path: Path) -> None:
    """Hardly two of them have a common template; their tuples have."""
    rows = islice(lines("10-workloads/graph-subscriptions-100k.jsonl.gz"), 0, 40_000, 40)
    texts = []
    for row in rows:
        id, _, edges, constraints = json.loads(row)
        left, parts = list(constraints), []
        for edge in edges:
            mine = [c for c in left if c[0] in (edge[0], edge[2])]
            left = [c for c in left if c not in mine]
            text = f"({', '.join(edge)})"
            written = " AND ".join(f"{v} ISA {op} {x}" if kind == "isa" else f"{v} {op} {x}" for v, op, x, kind in mine)
            parts.append(f"({text} SUCHTHAT ({written}))" if mine else text)
        texts.append(_row(f"g{id}", "SELECT * WHERE " + " AND ".join(parts), "gql"))
    parsed, refused = _both(_file(tmp_path / "a.jsonl", texts))
    assert not refused
    assert sum(not one.has_template for one in parsed) < 250
