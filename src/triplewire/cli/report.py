"""Writes messages to standard error: refusals, warnings, progress. Results: `triplewire.cli.output`."""

from __future__ import annotations

import errno
import os
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import IO, TYPE_CHECKING, NoReturn

import typer

from triplewire.errors import (
    BusyError,
    ReadError,
    Refusal,
    StoreError,
    TaxonomyError,
    TriplewireError,
    UnavailableError,
    WriteError,
)

if TYPE_CHECKING:
    from rich.progress import Progress


READER_IS_GONE = 141  # the exit code where the reader of the output closed it
MOST_KINDS = 50  # of warnings that are told; `check` tells all

_CODES: dict[type[TriplewireError], int] = {  # as sysexits.h has them; the first that fits
    BusyError: 75,
    WriteError: 73,
    StoreError: 74,
    ReadError: 74,
    TaxonomyError: 74,
    UnavailableError: 69,
}
_OF_OUTPUT = "when an output was written"
_FULL = errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029]")
_lost: list[str] = []  # messages that could not be written; behind the first, standard error leads to nowhere


def of_output(error: OSError) -> OSError:
    """The error, marked as one of an output that cannot be written."""
    error.add_note(_OF_OUTPUT)
    return error


def exit_code_of(error: TriplewireError | OSError) -> int:
    """The exit code of a command that ends with this error: 69 where a service, a driver, Java or Spark is not there,
    73 where something cannot be written, 74 where it cannot be read, 75 where it is locked, 2 for all else."""
    if isinstance(error, OSError):
        return 73 if _OF_OUTPUT in getattr(error, "__notes__", ()) or error.errno in _FULL else 74
    return next((code for kind, code in _CODES.items() if isinstance(error, kind)), 2)


def one_line(text: str) -> str:
    """The text on one line, with control characters escaped, so that input cannot send commands to the terminal."""
    return _CONTROL.sub(lambda m: f"\\x{ord(m[0]):02x}", " ".join(re.split(r"[\r\n\t]+", text)))


def say(text: str) -> None:
    """Write a line to standard error. Where that cannot be written, as on a full disk, the work goes on without it
    (`messages_are_lost`)."""
    try:
        print(text, file=sys.stderr, flush=True)
    except BrokenPipeError:
        leave(sys.stderr)
    except OSError:
        to_nowhere(sys.stderr)
        _lost.append(text)


def messages_are_lost() -> bool:
    """Was there a message that could not be written?"""
    return bool(_lost)


def leave(stream: IO[str]) -> NoReturn:
    """End the process, because the reader of this stream has closed it."""
    to_nowhere(stream)
    raise SystemExit(READER_IS_GONE) from None


def to_nowhere(stream: IO[str]) -> None:
    """Redirect a stream whose reader is gone to the null device, so that flushing it at exit does not fail."""
    with suppress(OSError):  # a stream that is no file has no such end
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def counted(count: int, singular: str, plural: str = "") -> str:
    """The number with its noun, as "1 match" or "2,000 matches"."""
    return f"{count:,} {singular if count == 1 else plural or singular + 's'}"


class Report:
    """Writes refusals and warnings, above the progress bar if there is one, and counts refusals.

    Each input that is refused is named. Pairs that are refused for one reason, and warnings of one text, are told once
    and counted: `finish` says how many more there were, and how many warnings were of further texts than `MOST_KINDS`.
    `record` gets every refusal.
    """

    def __init__(self, record: Callable[[Refusal], None] | None = None) -> None:
        self.refused = 0
        self._record = record
        self._repeated: dict[str, int] = {}
        self._kinds = 0  # of warnings that were told
        self._untold = 0  # warnings of other kinds
        self._progress: Progress | None = None

    def end(self) -> None:
        """End a command: with exit code 1 where anything was refused."""
        self.finish()
        if self.refused:
            raise typer.Exit(self.exit_code)

    @property
    def exit_code(self) -> int:
        """1 when anything was refused."""
        return 1 if self.refused else 0

    def refuse(self, *refusals: Refusal) -> None:
        """Write a line about each refused input; a warning, of an input that was read all the same, does not count."""
        for refusal in refusals:
            self.refused += not refusal.is_warning
            if self._record is not None:
                self._record(refusal)
            if refusal.kind != "pair" or self._is_new(f"refused pairs: {refusal.reason}"):
                self.say(one_line(str(refusal)))

    def _is_new(self, cause: str) -> bool:
        """Is it told for the first time?"""
        count = self._repeated[cause] = self._repeated.get(cause, -1) + 1
        return not count

    def finish(self) -> None:
        """Say how often what was told once came again."""
        for cause, count in self._repeated.items():
            if count:
                self.say(one_line(f"... and {count:,} more of this kind: {cause}"))
        if self._untold:
            self.say(f"... and {counted(self._untold, 'warning')} of other kinds: triplewire check shows all")
        self._repeated.clear()
        self._kinds = self._untold = 0

    def warn(self, subscription: str, warning: str) -> None:
        """Write a line for a warning about a subscription."""
        if self._kinds == MOST_KINDS and warning not in self._repeated:
            self._untold += 1
        elif self._is_new(warning):
            self._kinds += 1
            self.say(one_line(f"warning subscription {subscription}: {warning}"))

    def say(self, text: str) -> None:
        """Write a line to standard error."""
        if self._progress is None:
            say(text)
        else:
            self._progress.console.print(text, markup=False, highlight=False, soft_wrap=True)

    @contextmanager
    def progress(
        self, what: str, total: Callable[[], int], *, in_bytes: bool = False, streaming: bool = False
    ) -> Iterator[Callable[[int, int], None]]:
        """A function to call with the number of items until now, and of bytes, for a running count on standard error if
        that is a terminal. `total` says how many items there are, or, `in_bytes`, how many bytes; 0 where that is not
        known. `streaming`: results go to a terminal meanwhile, so no count is shown."""
        if streaming or not sys.stderr.isatty():
            yield lambda items, size: None
            return
        # imported only where a bar is shown: loading it takes a tenth of a second
        from rich.console import Console
        from rich.progress import BarColumn, DownloadColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

        most = total()
        of = f"of {most:,} " if most and not in_bytes else ""
        count = TextColumn("{task.fields[items]:,} " + of + what)
        bar = (BarColumn(), *((DownloadColumn(),) if in_bytes else ())) if most else ()
        columns = (SpinnerColumn(), count, *bar, TimeElapsedColumn())
        with Progress(*columns, console=Console(stderr=True), transient=True) as self._progress:
            task, update = self._progress.add_task(what, total=most or None, items=0), self._progress.update
            try:
                yield lambda items, size: update(task, completed=size if in_bytes else items, items=items)
            finally:
                self._progress = None
