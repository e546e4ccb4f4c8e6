"""Subscription files: every kind, gzipped or not, whole or damaged; rules that name rules; and nothing held in memory.

The exact texts of refusals: `tests/test_malformed.py`.
"""

from __future__ import annotations

import gzip
import io
import json
import os
import sys
from collections.abc import Iterator
from itertools import permutations
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from amounts import examples
from triplewire.config import Settings
from triplewire.errors import Refusal
from triplewire.ir.show import show
from triplewire.ir.subscription import Subscription
from triplewire.languages.sources.files import read_rows

QUERIES = {
    "gql": "SELECT ?x WHERE (?x, dc:title, ?y)",
    "sparql": "SELECT ?x { ?x dc:title ?y }",
    "mdv": "search rss:item x register x where x.dc:title contains 'y'",
    "predicates": "language(?x)",
}
SUFFIXES = {"gql": ("gql",), "sparql": ("rq", "sparql"), "mdv": ("mdv",), "predicates": ("pred",)}


def read(*paths: Path | str, settings: Settings | None = None) -> tuple[list[Subscription], list[Refusal]]:
    """The subscriptions and the refusals of files."""
    refusals: list[Refusal] = []
    return [parsed.subscription for parsed in read_rows(paths, settings=settings, on_refusal=refusals.append)], refusals


def rows(*some: dict[str, object]) -> bytes:
    """JSON Lines."""
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in some).encode()


def row(id: str, language: str = "gql", **more: object) -> dict[str, object]:
    """A row with a query that is right."""
    return {"id": id, "language": language, "query": QUERIES[language], **more}


@pytest.mark.parametrize("packed", [False, True], ids=["plain", "gzip"])
@pytest.mark.parametrize(("language", "suffix"), [(name, one) for name, some in SUFFIXES.items() for one in some])
def test_a_file_with_one_query(language: str, suffix: str, packed: bool, tmp_path: Path) -> None:
    data = b"\xef\xbb\xbf" + QUERIES[language].encode() + b"\r\n"
    file = tmp_path / f"some.name.{suffix}{'.gz' if packed else ''}"
    file.write_bytes(gzip.compress(data) if packed else data)
    (found,), refusals = read(file)
    assert (found.id, found.language, found.select, refusals) == ("some.name", language, ("x",), [])


@pytest.mark.parametrize("name", ["many.jsonl", "many.jsonl.gz", "packed-without-saying-so.jsonl"])
def test_json_lines(name: str, tmp_path: Path) -> None:
    data = b"\xef\xbb\xbf" + rows(*(row(language, language) for language in QUERIES)).replace(b"\n", b"\r\n\r\n")
    (tmp_path / name).write_bytes(data if name == "many.jsonl" else gzip.compress(data))
    found, refusals = read(tmp_path / name)
    assert [subscription.id for subscription in found] == ["gql", "sparql", "predicates", "mdv"], "rules come last"
    assert not refusals


def test_prefixes_and_base_of_a_row(tmp_path: Path) -> None:
    query = "SELECT ?x WHERE (?x, a:b, Some label), (?x, c, <d>)"
    given = {"prefixes": {"a": "http://a.example/", "": "http://b.example/"}, "base": "http://c.example/"}
    (tmp_path / "s.jsonl").write_bytes(rows({"id": "s", "language": "gql", "query": query, **given}))
    (found,), _ = read(tmp_path)
    assert show(found.where) == (
        "{?x <http://a.example/b> 'Some label'(<http://c.example/Some%20label>) . "
        "?x <http://b.example/c> <http://c.example/d>}"
    )
    assert (dict(found.prefixes), found.base) == (given["prefixes"], given["base"])


PREFIXES = {"a": "http://a.example/"}
FORMS = {
    "a map": pa.array([list(PREFIXES.items()), None], pa.map_(pa.string(), pa.string())),
    "a struct": pa.array([PREFIXES, None]),
    "JSON text": pa.array([json.dumps(PREFIXES), ""]),
}


@pytest.mark.parametrize("packed", [False, True], ids=["plain", "gzip"])
@pytest.mark.parametrize("form", FORMS)
def test_parquet(form: str, packed: bool, tmp_path: Path) -> None:
    columns = {
        "more": [1, 2],
        "query": ["SELECT ?x WHERE (?x, a:b, ?y)", "SELECT ?x WHERE (?x, dc:title, ?y)"],
        "id": ["first", "second"],
        "language": pa.array(["gql", "gql"]).dictionary_encode(),
        "prefixes": FORMS[form],
        "base": ["http://c.example/", None],
    }
    table = pa.table(columns)
    file = tmp_path / "s.parquet"
    pq.write_table(table, file)
    if packed:
        file = tmp_path / "t.parquet.gz"
        file.write_bytes(gzip.compress((tmp_path / "s.parquet").read_bytes()))
    found, refusals = read(file)
    assert [(s.id, dict(s.prefixes), s.base) for s in found] == [
        ("first", PREFIXES, "http://c.example/"),
        ("second", {}, ""),
    ]
    assert not refusals


def test_wrong_rows_of_parquet_are_refused_one_by_one(tmp_path: Path) -> None:
    broken = pa.Array.from_buffers(
        pa.string(), 4, [None, pa.array([0, 1, 2, 3, 4], pa.int32()).buffers()[1], pa.py_buffer(b"a\xffcd")]
    )
    table = pa.table({"id": broken, "language": ["gql", "gql", None, "gql"], "query": [QUERIES["gql"]] * 3 + ["WHERE"]})
    pq.write_table(table, tmp_path / "s.parquet")
    found, refusals = read(tmp_path)
    assert [subscription.id for subscription in found] == ["a"]
    place = str(tmp_path / "s.parquet")
    assert [(r.subject, r.where.removeprefix(place), r.reason.partition(";")[0]) for r in refusals] == [
        (place, " (record 2)", "the row is no UTF-8"),
        ("c", " (record 3)", "the field 'language' is missing"),
        ("d", " (record 4), query 1:6", "found end of text, expected a tuple (subject, predicate, object) or CALL"),
    ]


def test_parquet_without_a_column(tmp_path: Path) -> None:
    pq.write_table(pa.table({"id": ["a"], "query": ["b"]}), tmp_path / "s.parquet")
    _, (refusal,) = read(tmp_path)
    assert "it has no column 'language'" in str(refusal)


def test_a_folder_is_read_by_path_without_hidden_files(tmp_path: Path) -> None:
    for name in ("b/z.gql", "b/a.gql", "a.gql.gz", "c.gql", ".hidden/d.gql", "b/.e.gql"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        data = QUERIES["gql"].encode()
        (tmp_path / name).write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    (tmp_path / "b" / "a.gql").rename(tmp_path / "b" / "y.gql")
    found, refusals = read(tmp_path)
    assert [subscription.id for subscription in found] == ["a", "y", "z", "c"]
    assert not refusals


@pytest.mark.parametrize("packed", [False, True], ids=["plain", "gzip"])
def test_standard_input(packed: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    data = rows(row("one"), row("two", "mdv"), {"id": "three"})
    stream = io.TextIOWrapper(io.BytesIO(gzip.compress(data) if packed else data))
    monkeypatch.setattr(sys, "stdin", stream)
    found, (refusal,) = read("-")
    assert [subscription.id for subscription in found] == ["one", "two"]
    assert (refusal.subject, refusal.where) == ("three", "standard input (record 3)")
    assert not stream.buffer.closed


# what stands in a line, and the reason that is given
WRONG = {
    b'{"id" 5}': "no JSON: Expecting ':' delimiter at character 7",
    b'{"id": "\xff"}': "byte 9 of the line is no UTF-8",
    b"[" * 100_000: "no JSON that can be read: nested too deeply",
    b'{"id": ' + b"1" * 5_000 + b"}": "no JSON that can be read: Exceeds the limit",
    b'{"id": }': "no JSON: Expecting value at character 8",
    rows(row("a")).strip() + b"{}": "no JSON: Extra data at character ",
    b"null": "the row is no object",
    b'{"id": "a", "language": "gql", "query": null}': "the field 'query' is missing",
    b'{"id": 5, "language": "gql", "query": "q"}': "the field 'id' is no text",
    b'{"id": "", "language": "gql", "query": "q"}': "the id is empty",
    b'{"id": "\\ud800", "language": "gql", "query": "q"}': "the id holds a lone surrogate",
    b'{"id": "a", "language": "gql", "query": "\\ud800"}': "a lone surrogate is no character",
    rows(row("a", prefixes=[])).strip() + b" ": "",
    rows(row("a")).strip() + b"\r": "",
    b"\t" + rows(row("a")).strip() + b" \r": "",
    rows(row("b", prefixes=["a"])): "the field 'prefixes' is no map from names to IRIs",
    rows(row("c", prefixes={"a b": "http://a.example/"})): "in the field 'prefixes': 'a b' is no prefix",
    rows(row("d", prefixes={"a": 5})): "in the field 'prefixes': the value of 'a' is no IRI",
    rows(row("e", prefixes={"a": "no iri"})): "in the field 'prefixes': the value of 'a' is no IRI",
    rows(row("f", base="relative")): "the field 'base' is no absolute IRI",
    rows(row("g", base=5)): "the field 'base' is no absolute IRI",
    rows(row("h", language="gql") | {"language": "xpath"}): "there is no language named 'xpath'",
    b'"' + b"x" * 2_000_000 + b'"': "the line is longer than 1,572,864 bytes",
}


@pytest.mark.parametrize("line", WRONG, ids=lambda line: repr(line[:40]))
def test_a_wrong_line_is_refused_and_the_next_is_read(line: bytes, tmp_path: Path) -> None:
    (tmp_path / "s.jsonl").write_bytes(rows(row("first")) + line.strip(b"\n") + b"\n" + rows(row("last")))
    found, refusals = read(tmp_path)
    ids = [subscription.id for subscription in found]
    if not WRONG[line]:
        assert len(ids) == 3
        return
    assert ids == ["first", "last"]
    (refusal,) = refusals
    assert refusal.kind == "subscription"
    assert refusal.where.startswith(f"{tmp_path / 's.jsonl'} (record 2)")
    assert refusal.reason.startswith(WRONG[line])


@pytest.mark.parametrize("name", ["s.jsonl.gz", "s.rq.gz", "s.parquet.gz"])
@pytest.mark.parametrize("damage", ["cut", "changed"])
def test_a_damaged_gzip_is_refused(name: str, damage: str, tmp_path: Path) -> None:
    data = bytearray(gzip.compress(rows(*(row(f"id {number}") for number in range(500)))))
    (tmp_path / name).write_bytes(data[: len(data) // 2] if damage == "cut" else data[:-8] + b"\0" * 8)
    _, refusals = read(tmp_path)
    assert refusals[-1].reason.startswith("damaged gzip"), refusals[-1]
    assert all(refusal.where.startswith(str(tmp_path / name)) for refusal in refusals)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["s.jsonl.gz", "s.parquet.gz", "s.gql.gz"])
def test_a_gzip_bomb_stays_small(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(gzip.compress(b"\n" * 5_000_000))
    found, (refusal,) = read(tmp_path, settings=Settings(max_input_bytes=1_000_000))
    assert not found
    assert "more than 1,000,000 bytes" in str(refusal) or "longer than 65536 bytes" in str(refusal)


def test_what_is_not_there_and_what_is_no_text(tmp_path: Path) -> None:
    (tmp_path / "bad.gql").write_bytes(b"SELECT \xff")
    no_id = tmp_path / os.fsdecode(b"\xff.gql")
    no_id.write_text(QUERIES["gql"])
    _, refusals = read(tmp_path / "absent.gql", tmp_path / "bad.gql", no_id)
    assert [str(refusal).replace(str(tmp_path), "FOLDER") for refusal in refusals] == [
        "refused subscription absent FOLDER/absent.gql: it cannot be read: No such file or directory",
        "refused subscription bad FOLDER/bad.gql: byte 8 is no UTF-8; save it as UTF-8",
        "refused subscription FOLDER/\udcff.gql: its name, which would be the id, is no UTF-8; rename it",
    ]


# --- rules that name rules

CHAIN = {
    "C": "search B c register c where c.c = 1",
    "A": "search Server a register a where a.a = 1",
    "B": "search A b register b where b.b = 1",
    "D": "search C c, A a register c where c = a",
}


def rules(
    texts: dict[str, str], tmp_path: Path, settings: Settings | None = None
) -> tuple[dict[str, str], dict[str, str]]:
    """What becomes of rules, in their order: the trees of those that are read, the reasons of the others."""
    file = tmp_path / "rules.jsonl"
    file.write_bytes(rows(*({"id": id, "language": "mdv", "query": text} for id, text in texts.items())))
    found, refusals = read(file, settings=settings)
    return {s.id: show(s.where) for s in found}, {refusal.subject: refusal.reason for refusal in refusals}


def test_rules_name_each_other_in_any_order(tmp_path: Path) -> None:
    wanted, refused = rules(CHAIN, tmp_path)
    assert list(wanted) == list(CHAIN)
    assert not refused
    assert [wanted["D"].count(f"rss:{letter} ") for letter in "abc"] == [2, 1, 1]
    assert wanted["D"].count("rdf:type rss:Server") == 1
    for order in permutations(CHAIN):
        found, refused = rules({id: CHAIN[id] for id in order}, tmp_path)
        assert list(found) == list(order)
        assert {id: len(tree) for id, tree in found.items()} == {id: len(tree) for id, tree in wanted.items()}
        assert found == wanted
        assert not refused


@pytest.mark.slow
@pytest.mark.parametrize("step", [1, -1], ids=["forwards", "backwards"])
def test_a_long_chain_of_rules(step: int, tmp_path: Path) -> None:
    """However long and in whichever order; past the limit on patterns they are refused, and only these."""
    texts = {"R0": "search Server x register x"}
    texts |= {f"R{number}": f"search R{number - 1} x register x where x.p{number} = 1" for number in range(1, 100)}
    limit = Settings(max_patterns=80, max_query_depth=10)
    found, refused = rules(dict(list(texts.items())[::step]), tmp_path, limit)
    assert sorted(found) == sorted(f"R{number}" for number in range(80))
    assert set(found) | set(refused) == set(texts)
    assert "80" in refused["R80"]
    assert refused["R81"].startswith("it names the rule 'R80', which is refused")


def test_rules_in_a_circle_and_those_that_name_them(tmp_path: Path) -> None:
    texts = {"X": "search A x register x", "A": "search B a register a", "B": "search C b, D d register b"}
    texts |= {"C": "search A c register c", "D": "search D d register d", "E": "search D e register e"}
    found, refused = rules(texts, tmp_path)
    assert list(found) == ["D", "E"], "D names itself, which is the class D"
    assert set(refused) == {"X", "A", "B", "C"}
    assert all(reason == "rules name each other in a circle: A, B, C, A" for reason in refused.values())


def test_a_rule_over_a_refused_rule_is_refused(tmp_path: Path) -> None:
    found, refused = rules({"A": "search B a register a", "B": "search C b", "C": "search D c register c"}, tmp_path)
    assert list(found) == ["C"]
    assert refused["B"] == "found end of text, expected 'REGISTER'"
    assert refused["A"] == f"it names the rule 'B', which is refused: {refused['B']}"


# --- streaming


class CountedReads(io.RawIOBase):
    """Rows without end; counts the bytes that were taken."""

    def __init__(self) -> None:
        self.taken = 0
        self._rows = (rows(row(f"id {number}")) for number in iter(int, 1) for number in range(1_000_000))
        self._rest = b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]  # any writable buffer will do
        while len(self._rest) < len(buffer):
            self._rest += next(self._rows)
        buffer[:] = self._rest[: len(buffer)]
        self._rest = self._rest[len(buffer) :]
        self.taken += len(buffer)
        return len(buffer)


def test_rows_are_read_as_they_are_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = CountedReads()
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BufferedReader(stream)))
    found = read_rows(["-"], on_refusal=pytest.fail)
    assert [next(found).row.id for _ in range(3)] == ["id 0", "id 1", "id 2"]
    assert stream.taken < 100_000


def test_an_error_of_the_caller_is_not_taken_for_one_of_the_file(tmp_path: Path) -> None:
    (tmp_path / "s.jsonl").write_bytes(b"{\n" + rows(row("a")))

    def full(refusal: Refusal) -> None:
        raise OSError("no space left")

    with pytest.raises(OSError, match="no space left"):
        list(read_rows([tmp_path], on_refusal=full))


@pytest.mark.slow
@settings(max_examples=examples(150), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.sampled_from([".jsonl", ".parquet", ".gql", ".mdv", ".jsonl.gz", ".parquet.gz"]),
    st.one_of(
        st.binary(max_size=200),
        st.binary(max_size=200).map(gzip.compress),
        st.recursive(
            st.none() | st.text(max_size=5) | st.floats() | st.sampled_from(["gql", "mdv", *QUERIES.values()]),
            lambda inner: (
                st.lists(inner, max_size=4)
                | st.dictionaries(st.sampled_from(["id", "language", "query", "prefixes", "base"]), inner)
            ),
        ).map(lambda value: json.dumps(value).encode()),
    ),
)
def test_any_bytes_are_read_or_refused(tmp_path: Path, suffix: str, data: bytes) -> None:
    file = tmp_path / f"s{suffix}"
    file.write_bytes(data)
    found, refusals = read(file)
    assert all(isinstance(subscription, Subscription) for subscription in found)
    assert all(refusal.reason and str(file) in refusal.where for refusal in refusals)


def test_iterators_and_single_files_of_the_same_id(tmp_path: Path) -> None:
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "same.gql").write_text(QUERIES["gql"], encoding="utf-8")
    refusals: list[Refusal] = []
    paths: Iterator[Path] = iter([tmp_path / "b", tmp_path / "a"])
    found = [parsed.subscription for parsed in read_rows(paths, on_refusal=refusals.append)]
    assert [subscription.id for subscription in found] == ["same"]
    assert [(refusal.subject, refusal.where) for refusal in refusals] == [("same", str(tmp_path / "a" / "same.gql"))]
