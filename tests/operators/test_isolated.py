"""Operators in processes of their own, which crash, hang, leak and lie. The processes are real."""

from __future__ import annotations

import copy
import gc
import sys
import time

import pytest

from triplewire import Engine, Publication
from triplewire.errors import ArgumentError, OperatorError, OperatorFault
from triplewire.extend import Argument, Parameter
from triplewire.ir.evaluation.state import World
from triplewire.ir.evaluation.unknown import CallKey
from triplewire.ir.taxonomy import Taxonomy
from triplewire.model.terms import Literal
from triplewire.operators.calling.budgets import Budget, share_budgets
from triplewire.operators.calling.caller import Caller, Guard
from triplewire.operators.files import OperatorFile, operators_of

FILE = """
import os, sys, time
from triplewire.extend import Parameter

HELD = []

def eat():
    while True:
        HELD.append(bytearray(1 << 24))

def leak():
    HELD.append(bytearray(100 << 20))
    return True

def flood():
    while True:
        yield ()

class Bad:
    parameters = (Parameter("x"),)
    isolated, timeout, memory = True, 30.0, 1 << 28
    def __init__(self, name, body):
        self.name, self.body = name, body
        if name == "hangs":
            self.timeout = 3.0
    def evaluate(self, publication, arguments):
        return self.body()

operators = (
    Bad("dies", lambda: os._exit(9)), Bad("killed", lambda: os.kill(os.getpid(), 9)),
    Bad("hangs", lambda: time.sleep(60)), Bad("eats", eat),
    Bad("lies", lambda: 3.5), Bad("raises", lambda: 1 / 0), Bad("exits", lambda: sys.exit(3)),
    Bad("fine", lambda: True), Bad("leaks", leak),
    Bad("floods", flood), Bad("writes", lambda: os.write(1, b"no answer" * 99) > 0),
)
"""
OF_TAXONOMIES = """
from triplewire.extend import Parameter

class IsClass:
    name = "isClass"
    parameters = (Parameter("name"),)
    other_forms = ((Parameter("name"), Parameter("distance", "m")),)
    isolated = True
    def __init__(self, classes=frozenset()):
        self.classes = classes
    def with_taxonomy(self, taxonomy):
        return IsClass(taxonomy.classes)
    def evaluate(self, publication, arguments):
        name, *distance = arguments
        return name.lexical in self.classes and [d.lexical for d in distance] in ([], ["2000"])

operators = (IsClass(),)
"""
SAID = {
    "dies": "exit 9",
    "killed": "signal 9",
    "hangs": "no answer within 3 s",
    "eats": "more memory than allowed",
    "lies": "its answer is wrong",
    "raises": "ZeroDivisionError",
    "exits": "SystemExit: 3",
    "floods": "its answer is wrong",
}
PUBLICATIONS = [Publication(f"urn:p{n}", ()) for n in range(4)]


class Dear:
    """Has a budget for all calls."""

    name = "dear"
    parameters = (Parameter("x"),)
    budget_per_hour = 100.0

    def evaluate(self, publication: Publication, arguments: tuple[Argument, ...]) -> bool:
        return True


def engine(*names: str) -> Engine:
    made = Engine(operators=operators_of([OperatorFile("faulty.py", FILE)]))
    for name in names:
        made.subscribe(f"{name}(1)", "predicates", id=name)
    return made


@pytest.mark.slow
def test_a_bad_operator_costs_its_own_pairs_only() -> None:
    result = engine(*SAID, "fine", "leaks", "writes").match(PUBLICATIONS)
    held = [(match.publication, match.subscription) for match in result]
    assert held == [(p.id, name) for p in PUBLICATIONS for name in ("fine", "leaks", "writes")]
    assert len(result.refusals) == len(PUBLICATIONS) * len(SAID), "every undecided pair is reported"
    for name, said in SAID.items():
        reasons = [refusal.reason for refusal in result.refusals if refusal.subject.endswith(name)]
        assert said in reasons[0]
        if name not in ("raises", "exits"):  # it gives answers, if no good ones
            assert ["suspended" in reason for reason in reasons] == [False] * 3 + [True]


def test_a_suspended_operator_is_tried_again() -> None:
    now = [0.0]
    guard = Guard(clock=lambda: now[0])
    for _ in range(3):
        guard.enter()
        guard.failed(OperatorFault("it hung"))
    with pytest.raises(OperatorError, match=r"suspended.*it hung"):
        guard.enter()
    now[0] = 61
    guard.enter()
    with pytest.raises(OperatorError, match="suspended"):
        guard.enter()  # one call tries it
    guard.answered()
    guard.enter()


def test_calls_that_were_under_way_do_not_lengthen_the_pause_of_a_suspended_operator() -> None:
    now = [0.0]
    guard = Guard(clock=lambda: now[0])
    for _ in range(10):
        guard.enter()
    for _ in range(10):
        guard.failed(OperatorFault("it hung"))
    now[0] = 61
    guard.enter()
    guard.failed(OperatorFault("it hung"))
    now[0] = 61 + 119
    with pytest.raises(OperatorError, match="suspended"):
        guard.enter()  # the call that tried it has failed: now the pause is twice as long
    now[0] = 61 + 121
    guard.enter()


class Sleeper:
    """Takes too long for "hang", and refuses all else."""

    name = "sleeper"
    parameters = (Parameter("x"),)
    timeout = 0.05

    def evaluate(self, publication: Publication, arguments: tuple[Argument, ...]) -> bool:
        if arguments[0] == Literal("hang"):
            time.sleep(0.5)
        raise ValueError("refused")


def test_hangs_of_an_operator_in_this_process_count_in_a_row() -> None:
    """Between two hangs it has refused a call, and so it is there."""
    caller = Caller(World(operators={"sleeper": Sleeper()}))
    keys = [CallKey("sleeper", (Literal(text),)) for text in ("hang", "x", "hang", "x", "hang", "hang", "hang", "x")]
    said = [str(caller.outcomes(PUBLICATIONS[0], [key])[0]) for key in keys]
    assert [("no answer within" in text, "suspended" in text) for text in said] == [
        (key.arguments == (Literal("hang"),), False) for key in keys[:-1]
    ] + [(True, True)]


@pytest.mark.parametrize("is_shared", [False, True])
def test_a_budget_is_of_any_hour(is_shared: bool, tmp_path) -> None:  # type: ignore[no-untyped-def]
    now = [0.0]
    share_budgets(tmp_path if is_shared else None)
    try:
        one, other = (Budget("x", 3, clock=lambda: now[0]) for _ in range(2))
        one.spend(2)
        with pytest.raises(OperatorError, match="budget"):
            (other if is_shared else one).spend(2)
        now[0] = 3_601
        one.spend(3)
    finally:
        share_budgets(None)


def test_a_damaged_budget_is_told(tmp_path) -> None:  # type: ignore[no-untyped-def]
    share_budgets(tmp_path)
    try:
        budget = Budget("damaged", 10.0)
        budget.spend(1.0)
        (file,) = tmp_path.glob("*.json")
        file.write_text('{"294')
        with pytest.raises(OperatorError, match=rf"{file.name} is damaged; remove it"):
            budget.spend(1.0)
    finally:
        share_budgets(None)


def test_calls_whose_budget_cannot_be_written_are_not_made(tmp_path) -> None:  # type: ignore[no-untyped-def]
    (tmp_path / "file").touch()
    made = Engine(operators={"dear": Dear()})
    made.subscribe("dear(1)", "predicates", id="dear")
    share_budgets(tmp_path / "file")
    try:
        result = made.match(PUBLICATIONS)
    finally:
        share_budgets(None)
    assert list(result) == []
    reason = "what its budget has paid is unknown: [Errno 17] File exists"
    assert [reason in refusal.reason for refusal in result.refusals] == [True] * len(PUBLICATIONS)
    assert len(list(made.match(PUBLICATIONS))) == len(PUBLICATIONS)


def test_a_copy_that_fails_tells_nothing_but_its_error(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[object] = []
    monkeypatch.setattr(sys, "unraisablehook", told.append)
    with pytest.raises(TypeError):
        copy.deepcopy(engine("fine"))
    gc.collect()
    assert not told


class Local:
    name, parameters, isolated = "local", (Parameter("x"),), True
    evaluate = staticmethod(lambda publication, arguments: True)

    def __reduce__(self) -> str:
        raise TypeError("it holds a lock")


def test_what_cannot_travel_is_refused() -> None:
    with pytest.raises(ArgumentError, match="cannot travel"):
        Engine(operators={"local": Local()})


@pytest.mark.parametrize(
    "trait", ["version = 3", "cost = -1", "timeout = 0", "concurrency = 0", "isolated = 1", "memory = 5"]
)
def test_wrong_traits_are_refused(trait: str) -> None:
    text = FILE.replace('parameters = (Parameter("x"),)', f'parameters = (Parameter("x"),)\n    {trait}', 1)
    text = text.replace("isolated, timeout, memory = True, 30.0, 1 << 28", "")
    with pytest.raises(OperatorError, match=trait.split()[0]):
        operators_of([OperatorFile("wrong.py", text)])


@pytest.mark.parametrize(("query", "holds"), [("isClass(a)", True), ("isClass(b)", True), ("isClass(c)", False),
                                              ("isClass(a, 2 km)", True), ("isClass(a, 1 km)", False)])  # fmt: skip
def test_an_isolated_operator_of_a_file_takes_its_other_forms_and_the_taxonomy(query: str, holds: bool) -> None:
    made = Engine(
        operators=operators_of([OperatorFile("classes.py", OF_TAXONOMIES)]), taxonomy=Taxonomy.build([("a", "b")])
    )
    made.subscribe(query, "predicates", id="asked")
    result = made.match(PUBLICATIONS[:1])
    assert (len(list(result)), result.refusals) == (holds, [])
