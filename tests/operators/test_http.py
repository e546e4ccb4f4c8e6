"""Operators behind a real HTTP server: answers, faults, batches, budgets, addresses."""

from __future__ import annotations

import os
import signal
import time
import tomllib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from operators.service import Service, service
from triplewire import Engine, Publication
from triplewire.errors import OperatorError
from triplewire.model.terms import IRI, Literal, Triple
from triplewire.net.guard import is_public
from triplewire.operators import http as requests
from triplewire.operators.files import OperatorFile, operators_of

CASES = Path(__file__).parents[1] / "cases" / "operators"
SAID: dict[str, str] = tomllib.loads((CASES / "http_failures.toml").read_text())["said"]
ADDRESSES: dict[str, list[str]] = tomllib.loads((CASES / "addresses.toml").read_text())
TOPIC = "mentions(x)"


def publications(count: int) -> list[Publication]:
    return [Publication(f"urn:p{n}", (Triple(IRI("urn:s"), IRI("urn:p"), Literal(str(n))),)) for n in range(count)]


def engine(toml: str, *queries: str) -> Engine:
    made = Engine(operators=operators_of([OperatorFile("services.toml", toml)]))
    for query in queries or (TOPIC,):
        made.subscribe(query, "predicates")
    return made


def reasons(toml: str, count: int = 1) -> list[str]:
    """Why pairs are undecided; that they are no matches is looked at here."""
    result = engine(toml).match(publications(count))
    assert not list(result)
    return [str(refusal) for refusal in result.refusals]


def test_what_is_sent_and_answered() -> None:
    with service() as server:
        result = engine(server.toml("row")).match(publications(2))
        assert [match.publication for match in result] == ["urn:p0", "urn:p1"]
    assert sorted(server.asked, key=str)[0] == {
        "operator": "mentions",
        "publication": {"id": "urn:p0", "nquads": '<urn:s> <urn:p> "0" <urn:p0> .\n'},
        "calls": [{"arguments": [{"type": "literal", "value": "x"}]}],
    }


@pytest.mark.parametrize("path", SAID)
def test_a_fault_leaves_the_pair_undecided(path: str) -> None:
    with service() as server:
        (reason,) = reasons(server.toml(path))
    assert SAID[path] in reason
    assert "mentions" in reason


@pytest.mark.parametrize("path", ["twice", "one-and-a-half", "early-hints"])
def test_an_answer_that_comes_with_another_is_not_taken_for_it(path: str) -> None:
    with service() as server:
        assert len(list(engine(server.toml(path, concurrency=1)).match(publications(4)))) == 4
        assert len(server.asked) == 4


def test_suspended_after_three_that_broke() -> None:
    with service() as server:
        told = reasons(server.toml("500", concurrency=1), 10)
        assert len(server.asked) == 3
    assert len(told) == 10, "every undecided pair is reported"
    assert sum("suspended" in reason for reason in told) == 7


def test_a_refused_connection() -> None:
    with service() as server:
        toml = server.toml()
    (reason,) = reasons(toml)
    assert "connection failed" in reason


def test_a_spent_budget_is_told_of_each_pair() -> None:
    with service() as server:
        made = engine(server.toml(cost=2.0, budget_per_hour=10, concurrency=1))
        result = made.match(publications(8))
        assert len(list(result)) == 5
        assert ["budget" in refusal.reason for refusal in result.refusals] == [True] * 3
        assert len(server.asked) == 5
        counts = result.stats.operators
        assert (counts.calls, counts.failed, counts.withheld, counts.cost) == (5, 0, 3, 10.0)


def test_at_once_and_in_order() -> None:
    with service() as server:
        result = engine(server.toml("slow", concurrency=16)).match(publications(60))
        assert [match.publication for match in result] == [f"urn:p{n}" for n in range(60)]
        assert 8 <= server.most <= 16
        assert len(server.asked) == 60


def test_one_at_a_time() -> None:
    with service() as server:
        assert len(list(engine(server.toml("slow", concurrency=1)).match(publications(10)))) == 10
        assert server.most == 1


def test_a_fork_asks_although_its_parent_is_asking() -> None:
    """While the only request that may be under way waits for its answer, the process is forked by another thread."""
    with service() as server, ThreadPoolExecutor(1) as pool:
        operator = operators_of([OperatorFile("services.toml", server.toml("slow", concurrency=1))])["mentions"]
        asking = pool.submit(operator.evaluate, publications(1)[0], (Literal("x"),))
        while not server.asked:
            time.sleep(0.001)
        child = os.fork()
        if not child:
            signal.alarm(20)
            os._exit(0 if operator.evaluate(publications(2)[1], (Literal("x"),)) else 1)
        assert (os.waitpid(child, 0)[1], asking.result()) == (0, True)


def test_several_calls_in_one_request() -> None:
    from triplewire.ir.evaluation.evaluate import CallKey, World
    from triplewire.operators.calling.caller import Caller

    with service() as server:
        operators = operators_of([OperatorFile("services.toml", server.toml(batch=3))])
        keys = [CallKey("mentions", (Literal(str(n)),)) for n in range(7)]
        assert Caller(World(operators=operators)).outcomes(publications(1)[0], keys) == [True] * 7
    assert sorted(len(asked["calls"]) for asked in server.asked) == [1, 3, 3]


def test_texts_of_publications_are_kept_by_their_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(requests, "_MOST_TEXT", 1_000)
    for number in range(9):
        text = requests._nquads(Publication(f"urn:{number}", [(IRI("urn:s"), IRI("urn:p"), Literal("x" * 400))]))
        assert text.endswith(f" <urn:{number}> .\n")
        assert requests._texts.weight <= 1_000


def test_private_addresses_are_refused() -> None:
    with service() as server:
        (reason,) = reasons(server.toml(allow_private_addresses=False))
        assert "private address 127.0.0.1" in reason
        assert not server.asked


@pytest.mark.parametrize("address", ADDRESSES["refused"])
def test_refused_address(address: str) -> None:
    assert not is_public(address)


@pytest.mark.parametrize("address", ADDRESSES["allowed"])
def test_allowed_address(address: str) -> None:
    assert is_public(address)


@pytest.mark.parametrize(
    "change",
    [
        {"url": "ftp://e/"}, {"url": "http://a@e/"}, {"url": "http://e\\@f/"}, {"url": "http://e/ x"}, {"timeout": 0},
        {"ca_file": "/nowhere"}, {"ca_file": 1},
        {"concurrency": 0}, {"batch": True}, {"cost": -1}, {"parameters": "x"}, {"surprise": 1}, {"kind": "ftp"},
    ],
    ids=str,
)  # fmt: skip
def test_a_wrong_declaration_says_what_is_expected(change: dict[str, Any]) -> None:
    right = Service()
    right.base = "https://e.example"
    lines = dict(line.split(" = ", 1) for line in right.toml().splitlines()[1:])
    operators_of([OperatorFile("right.toml", right.toml())])
    import json

    lines |= {name: json.dumps(value) for name, value in change.items()}
    text = "[operators.mentions]\n" + "\n".join(f"{name} = {value}" for name, value in lines.items())
    with pytest.raises(OperatorError, match=rf"\[operators.mentions\].*{next(iter(change))}"):
        operators_of([OperatorFile("wrong.toml", text)])


@pytest.mark.parametrize(
    ("line", "wrong", "said"),
    [
        ("[operators.mentions]", '[operators."a b"]', r"has no name of letters, digits, _ and - \('a b'\)"),
        ('kind = "http"', 'kind = "http"\nretrys = 1', r"'retrys' is unknown; did you mean retries\? known: "),
        ('kind = "http"', 'kind = "http"\nbudget = 1', r"'budget' is unknown; did you mean budget_per_hour\?"),
        ('kind = "http"', 'kind = "http"\ncost = inf', r"\(mentions\) has cost = inf, which is not a number from 0"),
    ],
)
def test_names_and_costs_are_those_of_any_operator(line: str, wrong: str, said: str) -> None:
    right = Service()
    right.base = "https://e.example"
    with pytest.raises(OperatorError, match=said):
        operators_of([OperatorFile("wrong.toml", right.toml().replace(line, wrong))])
