"""A folder with a few publications and subscriptions of all languages, good and bad."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

FILES = {
    "a.ttl": '<http://e.org/a> <http://e.org/title> "Olympic games in Rio" ; <http://e.org/year> 2016 .',
    "b.ttl": '<http://e.org/b> <http://e.org/title> "Winter" ; <http://e.org/year> 2001 ; a <http://e.org/Snow> .',
    "many.nq": "".join(
        f'<http://e.org/{n}> <http://e.org/title> "{t}" <urn:p:{n}> .\n' for n, t in enumerate(("x", "y", "games"))
    ),
    "broken.ttl": "<http://e.org/a> <http://e.org/b> ",
    "title.rq": "SELECT ?t WHERE { ?s <http://e.org/title> ?t }",
    "year.gql": "SELECT ?y WHERE ((?s, <http://e.org/year>, ?y) SUCHTHAT (?y > 2003))",
    "snow.mdv": "search <http://e.org/Snow> s register s where s.<http://e.org/year> < 2003",
    "here.pred": "locIn(0, 0, 10, 10)",
    "wrong.rq": "SELECT ?t WHERE { ?s <http://e.org/title> }",
    "classes.tsv": "http://e.org/Snow\thttp://e.org/Weather\n",
}
ROWS = [
    {"id": "games", "language": "sparql", "query": 'SELECT ?t { ?s ?p ?t FILTER ftcontains(?t, "games") }'},
    {"id": "group", "language": "sparql", "query": "SELECT (COUNT(?s) AS ?n) { ?s ?p ?o }"},
    {"id": "ask", "language": "sparql", "query": "ASK { ?s <http://e.org/year> ?y }"},
    {
        "id": "weather",
        "language": "gql",
        "query": "SELECT ?s WHERE ((?s, *, *) SUCHTHAT (?s ISA <= <http://e.org/Weather>))",
    },
]


@pytest.fixture
def without_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    """Processes that the test starts load no kernels, which takes longer than what they do: for tests of streams,
    signals and exit codes."""
    monkeypatch.setenv("TRIPLEWIRE_TIER", "interpreted")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder, which is the current one as well."""
    for name, text in FILES.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    lines = "".join(json.dumps(row) + "\n" for row in ROWS)
    (tmp_path / "rows.jsonl").write_text(lines, encoding="utf-8")
    (tmp_path / "rows.jsonl.gz").write_bytes(gzip.compress(lines.encode()))
    (tmp_path / "many.nq.gz").write_bytes(gzip.compress((tmp_path / "many.nq").read_bytes()))
    monkeypatch.chdir(tmp_path)
    return tmp_path
