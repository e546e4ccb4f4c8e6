"""A process of an isolated operator, from outside: started, asked, ended in time. `worker` is what runs in it."""

from __future__ import annotations

import json
import os
import pickle
import signal
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from triplewire.child_process import LENGTH, end, exchange, next_frame, started
from triplewire.config import Settings
from triplewire.errors import OperatorFault, PassingFault
from triplewire.model.terms import IRI, XSD_STRING, BlankNode, Literal, Term, term_to_json

START_SECONDS = 60.0  # to import what the operator needs
MOST_BYTES = 64 << 20  # of an answer
MOST_ROWS = Settings().max_steps  # of an answer; where the engine allows fewer, it looks itself


_groups: dict[int, int] = {}  # of the operators that run: process group -> the process that started it
_is_over = False  # does this program end?


def end_all() -> None:
    """Kill all processes of operators, and what they started, and start none any more: this program ends. Takes no
    lock, so that a signal handler may call it."""
    global _is_over
    _is_over = True
    for group, parent in list(_groups.items()):
        if parent == os.getpid():
            with suppress(OSError):
                os.killpg(group, signal.SIGKILL)


class Process:
    """A process that has opened an operator. One thread asks it at a time. Raises `OperatorFault` where it
    cannot be opened."""

    def __init__(self, origin: tuple[str, ...], memory: int) -> None:
        if _is_over:
            raise OperatorFault("this program ends")
        # a group of its own: what the operator starts ends with it
        self._process = started(
            "triplewire.operators.calling.worker", memory, environment={"OPENBLAS_NUM_THREADS": "1"}, own_group=True
        )
        self.parent = _groups[self._process.pid] = os.getpid()
        self.answers = 0
        try:
            ready = self._exchange(origin, START_SECONDS)
        except EOFError:
            raise OperatorFault(f"its process ended before it was open ({self.end()})") from None
        if "ready" not in ready:
            self.end()
            raise OperatorFault(str(ready.get("broke")))

    def ask(self, call: Any, seconds: float) -> dict[str, Any]:
        """The answer to a call. Raises `OperatorFault` where there is none in time, `EOFError` at its end."""
        answer = self._exchange(call, seconds)
        self.answers += 1
        return answer

    def _exchange(self, value: Any, seconds: float) -> dict[str, Any]:
        body, frames = pickle.dumps(value), list[bytes]()

        def take(came: bytearray) -> bool:
            if (frame := next_frame(came, MOST_BYTES)) is not None:
                frames.append(frame)
            return bool(frames)

        try:
            exchange(self._process, (LENGTH.pack(len(body)) + body,), seconds, take)
            answer = json.loads(frames[0])
        except TimeoutError:
            self.end()
            raise PassingFault(f"no answer within {seconds:g} s (timeout)") from None
        except (ValueError, RecursionError):
            answer = None
        except KeyboardInterrupt:
            self.end()
            raise
        if not isinstance(answer, dict):
            self.end()
            raise OperatorFault("its process wrote what is no answer")
        return answer

    def end(self) -> str:
        """Kill it and what it started. Returns how it had ended, where it had."""
        _groups.pop(self._process.pid, None)
        return end(self._process, own_group=True)


# --- terms -----------------------------------------------------------------------------------------------------------
# Terms and verdicts from JSON, as in the SPARQL 1.1 Query Results JSON Format, section 3.2.2, and verdicts to it.


def from_json(value: Any) -> Term:
    """The term that was written so. Raises `ValueError` where it is none."""
    kind = value.get("type") if isinstance(value, dict) else None
    texts: list[Any] = [value.get(name, "") for name in ("value", "xml:lang", "datatype")] if kind else [None]
    if not all(isinstance(text, str) for text in texts):
        raise ValueError(f"no term of SPARQL JSON results: {value!r:.100}")
    text, language, datatype = texts
    if kind == "uri":
        return IRI(text)
    if kind == "bnode":
        return BlankNode(text)
    if kind in ("literal", "typed-literal"):
        return Literal.tagged(text, language) if language else Literal(text, datatype or XSD_STRING)
    raise ValueError(f"no term of SPARQL JSON results: {value!r:.100}")


def verdict_to_json(verdict: bool | Sequence[Sequence[Term]]) -> bool | list[list[dict[str, str]]]:
    """A truth, or rows of terms."""
    return verdict if isinstance(verdict, bool) else [[term_to_json(term) for term in row] for row in verdict]


def verdict_from_json(value: Any) -> bool | list[tuple[Term, ...]]:
    """A truth, or rows of terms. Raises `ValueError` where it is neither."""
    if isinstance(value, bool):
        return value
    if not isinstance(value, list) or not all(isinstance(row, list) for row in value):
        raise ValueError(f"it gives {value!r:.60}, and should give true, false, or a list of rows of terms")
    return [tuple([from_json(term) for term in row]) for row in value]
