"""The process of an isolated operator: `python -m triplewire.operators.calling.worker BYTES`. `isolated` starts it.

It reads frames on standard input: first where the operator comes from, then calls. They are pickles, as they come from
the process that started this one. It writes frames of JSON on standard output: nothing that an operator makes is ever
unpickled. Whatever else the operator writes there goes nowhere.
"""

from __future__ import annotations

import contextlib
import json
import os
import pickle
import signal
import sys
from typing import Any, BinaryIO

from triplewire.child_process import LENGTH
from triplewire.errors import OperatorFault, text_of_raised
from triplewire.model.operator import Operator, rows_of
from triplewire.model.publication import Publication
from triplewire.operators.calling.process import MOST_BYTES, verdict_to_json
from triplewire.operators.calling.retries import is_passing

_SAID = 500  # characters of what was raised


def _read(stream: BinaryIO) -> Any:
    """The next frame; None at the end."""
    head = stream.read(LENGTH.size)
    return pickle.loads(stream.read(*LENGTH.unpack(head))) if len(head) == LENGTH.size else None


def _write(stream: BinaryIO, value: Any) -> None:
    body = json.dumps(value).encode("ascii")
    if len(body) > MOST_BYTES:
        body = json.dumps({"broke": f"its answer has more than {MOST_BYTES} bytes"}).encode("ascii")
    stream.write(LENGTH.pack(len(body)) + body)
    stream.flush()


def opened(origin: tuple[str, ...]) -> Operator:
    """The operator: of a file (`path`, its text, the operator's name), as it was pickled, or both: as it was pickled,
    with the classes of the file."""
    kind, *rest = origin
    if kind == "file":
        from triplewire.operators.files import OperatorFile, operators_in

        path, text, name, *rest = rest
        of_file = operators_in(OperatorFile(path, text))
        if not rest:
            return next(operator for operator in of_file if operator.name == name)
    operator: Operator = pickle.loads(bytes.fromhex(rest[0]))
    return operator


def _answer(operator: Operator, call: tuple[Any, ...]) -> dict[str, Any]:
    """The answer to a call, or why there is none; `leave`: this process should not be asked again."""
    (id_, triples, source, published, attachments), arguments, limit, seconds = call
    signal.alarm(int(seconds) + 5)  # the parent ends it before, as long as there is one
    try:
        publication = Publication(id_, triples, source, published, attachments)
        verdict = operator.evaluate(publication, arguments)
        try:
            return {"verdict": verdict_to_json(rows_of(verdict, arguments, limit))}
        except OperatorFault as error:
            return {"broke": error.what}
    except MemoryError:
        return {"broke": "it takes more memory than allowed", "leave": True}
    except BaseException as error:  # no Ctrl-C comes here (`main`)
        return {"failed": text_of_raised(error)[:_SAID], "passing": is_passing(error)}
    finally:
        signal.alarm(0)


def serve(calls: BinaryIO, answers: BinaryIO) -> None:
    """Answer calls until there are no more."""
    try:
        operator = opened(_read(calls))
    except Exception as error:
        _write(answers, {"broke": f"it cannot be opened: {text_of_raised(error)[:_SAID]}"})
        return
    _write(answers, {"ready": True})
    while (call := _read(calls)) is not None:
        answer = _answer(operator, call)
        try:
            _write(answers, answer)
        except MemoryError:
            answer = {"broke": "its answer takes more memory than allowed", "leave": True}
            _write(answers, answer)
        if answer.get("leave"):
            return


def main() -> None:
    """Limit the address space to the bytes in the first argument, redirect other output, and serve."""
    limit = int(sys.argv[1])
    with contextlib.suppress(ImportError, ValueError, OSError):  # not every system has such limits
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    calls, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    nowhere = os.open(os.devnull, os.O_RDWR)
    os.dup2(nowhere, 0)
    os.dup2(nowhere, 1)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides when it ends
    serve(calls, answers)
    os._exit(0)  # whatever threads the operator has


if __name__ == "__main__":
    main()
