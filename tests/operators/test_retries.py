"""Calls that fail for a passing reason are made again; budgets of operators.

The budgets are of operators in Python, also under wrong clocks and kills.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterable
from pathlib import Path

import pytest

from operators.service import service
from triplewire import Engine, Publication
from triplewire.errors import OperatorError
from triplewire.extend import Argument, Parameter
from triplewire.ir.taxonomy import Taxonomy
from triplewire.model.operator import Operator
from triplewire.operators.calling.budgets import Budget, share_budgets
from triplewire.operators.files import OperatorFile, operators_of

ABOUT = [Publication(f"urn:p{number}", ()) for number in range(8)]


def told(engine: Engine, publications: Iterable[Publication] = ABOUT[:1]) -> tuple[int, list[str]]:
    """How many matches there are, and why other pairs are refused."""
    result = engine.match(publications)
    return len(list(result)), [refusal.reason for refusal in result.refusals]


def of_file(name: str, text: str, call: str) -> Engine:
    engine = Engine(operators=operators_of([OperatorFile(name, text)]))
    engine.subscribe(call, "predicates")
    return engine


# --- services --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("busy", "wait", "settings"), [(1, "", {}), (2, "", {}), (1, "1", {}), (3, "", {"retries": 3})]
)
def test_a_busy_service_is_asked_again(busy: int, wait: str, settings: dict[str, object]) -> None:
    with service() as server:
        server.busy, server.retry_after = busy, wait
        assert told(of_file("s.toml", server.toml(**settings), "mentions(x)")) == (1, [])
        assert len(server.asked) == busy + 1


@pytest.mark.parametrize(
    ("wait", "settings", "asked"), [("", {"retries": 0}, 1), ("", {}, 3), ("31", {}, 1), ("9" * 400, {}, 1)]
)
def test_how_often_it_is_asked_is_bounded(wait: str, settings: dict[str, object], asked: int) -> None:
    with service() as server:
        server.busy, server.retry_after = 99, wait
        (matches, (reason,)) = told(of_file("s.toml", server.toml(**settings), "mentions(x)"))
        assert (matches, len(server.asked)) == (0, asked)
        assert "it answers 503" in reason


@pytest.mark.parametrize(("path", "asked"), [("500", 1), ("refuses", 1), ("wrong-type", 1), ("hangs-once", 2)])
def test_only_what_passes_is_asked_again(path: str, asked: int) -> None:
    with service() as server:
        matches, reasons = told(of_file("s.toml", server.toml(path), "mentions(x)"))
        assert (matches, len(reasons)) == (int(path == "hangs-once"), int(path != "hangs-once"))
        assert len(server.asked) == asked


def test_each_request_is_paid_for() -> None:
    with service() as server:
        server.busy = 99
        engine = of_file("s.toml", server.toml(budget_per_hour=2), "mentions(x)")
        (_, (reason,)) = told(engine)
        assert "it answers 503" in reason
        assert len(server.asked) == 2
        (_, (reason,)) = told(engine, ABOUT[1:2])
        assert "budget of 2 an hour is spent" in reason


# --- operators in Python ---------------------------------------------------------------------------------------------

FLAKY = """
import os, time
from triplewire.extend import Parameter

class Flaky:
    name, parameters, retries = "flaky", (Parameter("kind"),), 2
    SETTINGS

    def evaluate(self, publication, arguments):
        calls = os.open("COUNTED", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        os.write(calls, b".")
        kind, first = arguments[0].lexical, os.fstat(calls).st_size == 1
        os.close(calls)
        if kind == "hangs" and first:
            time.sleep(30)
        if kind == "busy" and first:
            raise RuntimeError("busy")
        if kind == "down":
            raise ConnectionError("it is down")
        if kind == "refuses":
            raise ValueError("no such thing")
        return True

operators = (Flaky(),)
"""


@pytest.mark.parametrize("settings", ["", "concurrency = 2", pytest.param("isolated = True", marks=pytest.mark.slow)])
@pytest.mark.parametrize(("kind", "calls"), [("busy", 2), ("down", 3), ("refuses", 1), ("hangs", 2)])
def test_an_operator_in_python_is_called_again(settings: str, kind: str, calls: int, tmp_path: Path) -> None:
    counted = tmp_path / "counted"
    limit = "timeout = 3.0" if kind == "hangs" else ""
    text = FLAKY.replace("COUNTED", str(counted)).replace("SETTINGS", f"{limit}\n    {settings}")
    matches, reasons = told(of_file("flaky.py", text, f"flaky({kind})"))
    assert counted.stat().st_size == calls
    said = {"down": "it is down", "refuses": "no such thing"}.get(kind)
    assert (matches, len(reasons)) == ((0, 1) if said else (1, 0))
    assert said is None or said in reasons[0]


class Paid:
    """Costs 2 of 10 an hour."""

    name, parameters, cost, budget_per_hour = "paid", (Parameter("x"),), 2.0, 10

    def __init__(self) -> None:
        self.calls = 0

    def evaluate(self, publication: Publication, arguments: tuple[Argument, ...]) -> bool:
        """See `Operator`."""
        self.calls += 1
        return True

    def with_taxonomy(self, taxonomy: Taxonomy) -> Operator:
        """The same; see `AsksTaxonomy`."""
        other = Paid()
        other.calls = self.calls
        return other


@pytest.mark.parametrize("matcher", ["reference", "trie"])
def test_a_budget_holds_in_python(matcher: str) -> None:
    engine = Engine(operators={"paid": Paid()}, matcher=matcher)
    engine.subscribe("paid(1)", "predicates")
    matches, reasons = told(engine, ABOUT)
    assert matches == 5
    assert [reason.endswith("its budget of 10 an hour is spent") for reason in reasons] == [True] * 3
    engine.taxonomy = Taxonomy.build([("urn:a", "urn:b")])
    assert told(engine)[0] == 0, "it is the same operator, over another taxonomy"
    with_other = Engine(operators={"paid": Paid()}, matcher=matcher)
    with_other.subscribe("paid(1)", "predicates")
    assert told(with_other)[0] == 1, "another operator has a budget of its own"


def test_engines_that_share_an_operator_share_its_budget() -> None:
    paid, matches = Paid(), 0
    for publication in ABOUT:
        engine = Engine(operators={"paid": paid})
        engine.subscribe("paid(1)", "predicates")
        matches += told(engine, [publication])[0]
    assert matches == 5


@pytest.mark.slow
def test_a_budget_holds_for_isolated_operators() -> None:
    text = FLAKY.replace("SETTINGS", "isolated, budget_per_hour = True, 3").replace("COUNTED", "/dev/null")
    matches, reasons = told(of_file("flaky.py", text, "flaky(fine)"), ABOUT)
    assert (matches, len(reasons)) == (3, 5)


# --- clocks and kills ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("is_shared", [False, True])
def test_a_clock_that_was_ahead_is_not_believed(is_shared: bool, tmp_path: Path) -> None:
    now = [1.8e9]
    share_budgets(tmp_path if is_shared else None)
    try:
        budget = Budget("x", 3, clock=lambda: now[0])
        now[0] += 366 * 86_400
        budget.spend(3)
        now[0] -= 366 * 86_400
        budget.spend(3)
        with pytest.raises(OperatorError, match="is spent"):
            budget.spend(1)
        now[0] -= 600  # set back a little: what was paid counts
        with pytest.raises(OperatorError, match="is spent"):
            budget.spend(1)
    finally:
        share_budgets(None)


KILLED = """
import json, os, signal, sys
from triplewire.operators.calling.budgets import Budget, share_budgets
share_budgets(sys.argv[1])
Budget("x", 3).spend(2)
PLACE = lambda *_, **__: os.kill(os.getpid(), signal.SIGKILL)
Budget("x", 3).spend(1)
"""


@pytest.mark.parametrize("place", ["json.dumps", "os.rename", "os.replace", "__import__('pathlib').Path.write_text"])
def test_a_kill_while_it_is_written_forgets_nothing(place: str, tmp_path: Path) -> None:
    code = KILLED.replace("PLACE", place)
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path)], timeout=300, check=False)
    assert done.returncode in ((0, -9) if place == "os.rename" else (-9,))
    share_budgets(tmp_path)
    try:
        with pytest.raises(OperatorError, match="is spent"):
            Budget("x", 3).spend(2)
    finally:
        share_budgets(None)


@pytest.mark.parametrize("text", ["", "[]", '{"1": NaN}', '{"1": -5}', '{"1": "x"}'])
def test_what_is_no_budget_is_not_taken_for_none_spent(text: str, tmp_path: Path) -> None:
    share_budgets(tmp_path)
    try:
        Budget("x", 3).spend(1)
        (file,) = tmp_path.glob("*.json")
        file.write_text(text.replace('"1"', f'"{int(time.time() // 60)}"'))
        with pytest.raises(OperatorError, match="is damaged; remove it"):
            Budget("x", 3).spend(1)
    finally:
        share_budgets(None)
