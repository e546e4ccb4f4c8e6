"""The command line: `triplewire read`, `match`, `explain`, `check`, `operators` and others. One file a command.

Data goes to standard output; messages, progress and what operators print to standard error. Exit codes, the same in all
commands: 0 done; 1 done, but some input was refused (a warning, as for an ill-formed feed, does not count); 2 wrong
usage; 69 a service, a driver, Java or Spark is not there; 70 a fault of the program; 73 an output cannot be written; 74
an input cannot be read; 75 another process has it, try again; 130 interrupted, by Ctrl-C, SIGTERM or SIGHUP; 141 the
reader of the output went away.

`commands` puts the commands together, `arguments` has the options that they share, `report` the messages, `output` the
forms of the results. What is slow to load (the engine, Arrow, the parsers, Spark) is imported where it is used, so that
--help does without.
"""

from __future__ import annotations

import io
import os
import signal
import sys
from contextlib import suppress
from threading import Timer
from types import FrameType
from typing import IO, NamedTuple

__all__ = ["TRIPLEWIRE", "Program", "main", "run"]


class Program(NamedTuple):
    """A command line: the name that its messages give it, and where its Typer application is ("module:attribute")."""

    name: str
    app: str


TRIPLEWIRE = Program("triplewire", "triplewire.cli.commands:app")

_SOON = 0.02  # seconds, after which a finalizer has ended
_SIGNALS = (signal.SIGINT, signal.SIGTERM, *([signal.SIGHUP] if hasattr(signal, "SIGHUP") else []))


def main(program: Program = TRIPLEWIRE) -> None:
    """The console script: run the command line of this process and exit."""
    for number in _SIGNALS:  # all as Ctrl-C: no temporary file is left behind
        if signal.getsignal(number) in (signal.SIG_DFL, signal.default_int_handler):
            signal.signal(number, _interrupt)
    sys.unraisablehook = _raise_again
    sys.stdout, sys.stderr = _buffered(sys.stdout), _buffered(sys.stderr)
    with suppress(OSError, ValueError, AttributeError):  # where it is closed, or is no file
        os.set_blocking(sys.stdin.fileno(), True)  # of a pipe that does not wait, a pause looks like the end
    code = run(sys.argv[1:], program)
    for number in _SIGNALS:  # all is written: what is left may end at once
        if signal.getsignal(number) in (_interrupt, signal.default_int_handler):
            signal.signal(number, lambda *_: os._exit(code))
    sys.exit(code)


def _interrupt(number: int, frame: FrameType | None) -> None:
    """Interrupt the command, and what waits for operators in processes of their own."""
    processes = sys.modules.get("triplewire.operators.calling.process")
    if processes is not None:
        processes.end_all()
    signal.default_int_handler(number, frame)


def _raise_again(ignored: sys.UnraisableHookArgs) -> None:
    """Interrupt the process soon where a finalizer, in which Python raises nothing, was interrupted instead of it."""
    if issubclass(ignored.exc_type, KeyboardInterrupt):
        Timer(_SOON, os.kill, (os.getpid(), signal.SIGINT)).start()
    else:
        sys.__unraisablehook__(ignored)


def run(arguments: list[str], program: Program = TRIPLEWIRE) -> int:
    """Run one command line; returns its exit code. Never raises, never shows a traceback."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:  # the caller closed it: what goes there is for nobody
            setattr(sys, name, open(os.devnull, "w" if number else "r"))  # noqa: SIM115  # until the end
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):  # what a test puts in its place may not have it
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")
    try:
        code = _run(arguments, program)
        sys.stdout.flush()
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        from triplewire.cli.report import READER_IS_GONE, to_nowhere

        to_nowhere(sys.stdout)
        return READER_IS_GONE
    except OSError as error:
        from triplewire.cli.report import of_output

        error.filename = error.filename or "standard output"
        return _failed(of_output(error))
    return code


def _comes_of_interrupt(error: BaseException | None) -> bool:
    """Was it an interrupt that something else was made of, as Python does where a class was being defined?"""
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__cause__ or error.__context__
    return error is not None


def _buffered(stream: IO[str]) -> IO[str]:
    """The stream with a buffer, until the process ends. PYTHONUNBUFFERED leaves that out, and a text that the system
    takes a part of is cut."""
    raw = getattr(stream, "buffer", None)
    if not isinstance(raw, io.RawIOBase):
        return stream
    return io.TextIOWrapper(io.BufferedWriter(raw), line_buffering=stream is sys.stderr or stream.isatty())


def _failed(error: OSError) -> int:
    """Say what the system has refused, as on a full disk; returns the exit code."""
    from triplewire.cli.report import exit_code_of, one_line, say, to_nowhere

    to_nowhere(sys.stdout)
    note = ""
    try:
        os.getcwd()
    except FileNotFoundError:  # which errors of the system do not name
        note = " (the current folder was removed)"
    code = exit_code_of(error)
    place = f"{os.fsdecode(error.filename)} cannot be {'written' if code == 73 else 'read'}: " if error.filename else ""
    say(f"triplewire: {one_line(place + (error.strerror or str(error)))}{note}")
    return code


def _run(arguments: list[str], program: Program) -> int:
    if arguments == ["--version"]:  # without the parser of options, which takes a quarter of a second to load
        from importlib.metadata import version  # it takes 20 ms

        print(f"triplewire {version('triplewire')}")
        return 0
    from triplewire.cli.report import exit_code_of, messages_are_lost, one_line, say
    from triplewire.errors import TriplewireError
    from triplewire.plugins import attribute

    try:
        attribute(program.app)(arguments, prog_name=program.name)
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 0
        return 73 if code in (0, 1) and messages_are_lost() else code
    except TriplewireError as error:
        say(f"{program.name}: {one_line(str(error))}")
        return exit_code_of(error)
    except OSError as error:
        return _failed(error)
    except Exception as error:  # the last resort: a fault of ours must not look like an answer
        if _comes_of_interrupt(error):
            raise KeyboardInterrupt from error
        say(f"{program.name}: internal error, please report it: {type(error).__name__}: {one_line(str(error))}")
        if os.environ.get("TRIPLEWIRE_TRACEBACK"):
            raise
        return 70
    return 0
