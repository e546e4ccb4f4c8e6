"""Operators that run in processes of their own, behind the same protocol: `Isolated`."""

from __future__ import annotations

import atexit
import os
import pickle
import threading
import weakref
from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any

from triplewire.errors import OperatorError, OperatorFault, PassingError
from triplewire.forks import forget_in_children, new_lock
from triplewire.model.operator import Argument, Operator, Parameter, Verdict, nothing_to_say, traits_of
from triplewire.model.publication import Publication
from triplewire.operators.calling.budgets import budget_of
from triplewire.operators.calling.caller import Guard
from triplewire.operators.calling.process import MOST_ROWS, Process, verdict_from_json
from triplewire.operators.calling.retries import with_retries

SECONDS = 5.0  # of a call, where the operator states no other time


class Isolated:
    """An operator whose calls run in processes with limits of time and memory, at most `concurrency` of them.

    A crash, a hang, a leak or a wrong answer costs its call. A process that has answered before may have been ended
    from outside, or have leaked: then a new one is asked once more. `origin` says where the process gets it from; by
    default, it gets a copy.
    """

    keeps_time = True

    def __init__(self, operator: Operator, origin: tuple[str, ...] = ()) -> None:
        traits = traits_of(operator)
        self.inner = operator
        self.name = operator.name
        self.parameters: tuple[Parameter, ...] = operator.parameters
        self.other_forms: tuple[tuple[Parameter, ...], ...] = getattr(operator, "other_forms", ())
        self.version, self.cost, self.concurrency = traits.version, traits.cost, traits.concurrency
        self.timeout = traits.timeout or SECONDS
        self.isolated, self.memory = True, traits.memory
        self.guard = Guard(budget_of(operator), traits.cost)
        self._retries = traits.retries
        self._origin = origin
        self._lock = new_lock()
        self._idle: list[Process] = []
        self._places = threading.BoundedSemaphore(traits.concurrency)
        _ALL.add(self)
        forget_in_children(self)

    def check_constants(self, arguments: tuple[Argument, ...]) -> Iterable[str]:
        """What the operator has to say about constants."""
        said: Iterable[str] = getattr(self.inner, "check_constants", nothing_to_say)(arguments)
        return said

    def evaluate(self, publication: Publication, arguments: tuple[Argument, ...]) -> Verdict:
        """See `Operator`. Raises `OperatorError`."""
        with self._places:
            self.guard.enter()
            make = partial(self._evaluated, publication, arguments)
            try:
                verdict = with_retries(make, self.guard.enter, self._retries, self.timeout)
            except OperatorError as error:
                self.guard.failed(error)
                raise
            self.guard.answered()
            return verdict

    def _evaluated(self, publication: Publication, arguments: tuple[Argument, ...]) -> Verdict:
        p = publication
        call = (p.id, p.triples, p.source, p.published, dict(p.attachments)), arguments, MOST_ROWS, self.timeout
        answer: dict[str, Any] = {}
        for process in (self._idle_one(), None):
            worker = process or self._opened()
            used = worker.answers > 0
            try:
                answer = worker.ask(call, self.timeout)
            except EOFError:
                ending = worker.end()
                if not used:
                    raise OperatorFault(f"its process ended ({ending})") from None
                continue
            if not answer.get("leave"):
                with self._lock:
                    self._idle.append(worker)
                break
            worker.end()
            if not used:
                break
        if "verdict" in answer:
            try:
                return verdict_from_json(answer["verdict"])
            except ValueError as error:
                raise OperatorFault(f"its answer is wrong: {error}") from None
        if "failed" in answer:
            said = str(answer["failed"])
            raise (PassingError(said) if answer.get("passing") else OperatorError(said))
        raise OperatorFault(str(answer.get("broke", "its process wrote what is no answer")))

    def _idle_one(self) -> Process | None:
        """A process that waits for calls."""
        with self._lock:
            while self._idle:
                process = self._idle.pop()
                if process.parent == os.getpid():  # that of a parent is not for a fork of it
                    return process
        return None

    def _opened(self) -> Process:
        try:
            self._origin = self._origin or _copy_of(self.inner)
            return Process(self._origin, self.memory)
        except (OSError, ValueError) as error:
            raise OperatorFault(f"its process cannot be started: {error}") from None

    def of(self, operator: Operator) -> Isolated:
        """Another operator of the same kind, as this one over another taxonomy, in processes of its own. The classes
        of one that comes from a file are found there."""
        file = self._origin[:4] if self._origin[:1] == ("file",) else ()
        return Isolated(operator, (*file, _copy_of(operator)[1]) if file else ())

    def close(self) -> None:
        """End the processes; the next call starts another."""
        while (process := self._idle_one()) is not None:
            process.end()

    def forget(self) -> None:
        """In the child of a fork: the processes belong to the parent."""
        self._places = threading.BoundedSemaphore(self.concurrency)
        self._idle = []

    def __del__(self) -> None:
        if "_lock" in vars(self):  # else it was never made: a copy that failed
            self.close()


_ALL: weakref.WeakSet[Isolated] = weakref.WeakSet()


def isolated(operators: Mapping[str, Operator]) -> Mapping[str, Operator]:
    """The operators, with those that ask for it in processes of their own. Raises `ValueError` where one of them
    cannot travel there."""
    chosen = {
        name: Isolated(operator, _copy_of(operator))
        for name, operator in operators.items()
        if getattr(operator, "isolated", False) and not isinstance(operator, Isolated)
    }
    return {**operators, **chosen} if chosen else operators


def _copy_of(operator: Operator) -> tuple[str, str]:
    try:
        return "object", pickle.dumps(operator).hex()
    except (pickle.PicklingError, TypeError, AttributeError) as error:
        what = f"the operator {operator.name!r} is isolated, but cannot travel to another process: {error}"
        raise ValueError(what) from None


@atexit.register
def _close() -> None:
    for operator in list(_ALL):
        operator.close()
