"""`triplewire explain`: one explanation a publication, as text or JSON."""

from __future__ import annotations

from pathlib import Path

import pytest

from cli.runner import triplewire


def test_text(folder: Path) -> None:
    files = ["--subscriptions", "year.gql", "--publications", "a.ttl", "b.ttl"]
    done = triplewire("explain", "--subscription", "year", *files)
    assert (done.code, done.err) == (0, "")
    first, second = done.out.strip().split("\n\n")
    assert first.startswith(f"year matches {(folder / 'a.ttl').as_uri()}")
    assert second.startswith(f"year does not match {(folder / 'b.ttl').as_uri()}")
    assert "?y = 2001 is not > 2003" in second


def test_json_of_one_publication(folder: Path) -> None:
    files = ["--subscriptions", "rows.jsonl", "--publications", "many.nq"]
    done = triplewire("explain", "--subscription", "games", *files, "--publication", "urn:p:2", "--format", "json")
    (row,) = done.rows
    assert (row["publication"], row["subscription"], row["matched"]) == ("urn:p:2", "games", True)
    assert row["solution"]["t"] == {"type": "literal", "value": "games"}
    assert any("'games' is word 0" in line for part in row["parts"] for line in part.get("because", []))


UNKNOWN = {
    "subscription": (["--subscription", "nobody", "--publications", "a.ttl"], "no subscription 'nobody'"),
    "publication": (
        ["--subscription", "title", "--publications", "a.ttl", "--publication", "urn:x"],
        "no publication 'urn:x'",
    ),
}


@pytest.mark.parametrize(("arguments", "said"), UNKNOWN.values(), ids=UNKNOWN.keys())
def test_unknown(folder: Path, arguments: list[str], said: str) -> None:
    done = triplewire("explain", *arguments, "--subscriptions", "title.rq")
    assert (done.code, done.out) == (2, "")
    assert said in done.err


def test_a_refused_subscription(folder: Path) -> None:
    done = triplewire("explain", "--subscription", "wrong", "--subscriptions", "wrong.rq", "--publications", "a.ttl")
    assert done.code == 1
    assert "refused subscription wrong" in done.err


FAILS = """
class Fails:
    name = "fails"
    parameters = ()

    def evaluate(self, publication, arguments):
        raise ValueError("no answer")

operators = (Fails(),)
"""


def test_an_undecided_pair(folder: Path) -> None:
    """It is reported as `match` reports it, and the explanation is written as well."""
    (folder / "fails.py").write_text(FAILS)
    (folder / "asks.pred").write_text("fails()")
    files = ["--operators", "fails.py", "--subscriptions", "asks.pred", "--publications", "a.ttl", "b.ttl"]
    explained, matched = triplewire("explain", *files), triplewire("match", *files)
    assert explained.out.count("asks is undecided for") == 2
    assert (explained.code, matched.code) == (1, 1)
    assert explained.err == matched.err
    assert "the operator fails failed: ValueError: no answer" in explained.err.splitlines()[0]
