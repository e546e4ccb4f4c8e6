"""Writes results as tables and files. The rows of matches: `triplewire.cli.matches`.

A file is written under a temporary name and renamed when it is complete.
"""

from __future__ import annotations

import dataclasses
import enum
import json
import os
import re
import secrets
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stdout, suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING, TypeVar

import typer

from triplewire.cli.report import READER_IS_GONE, leave, of_output, one_line
from triplewire.errors import Refusal, WriteError
from triplewire.model.namespaces import shorten

if TYPE_CHECKING:
    from triplewire.model.match import Match
    from triplewire.model.publication import Publication
    from triplewire.sources.feed_states import FeedStatus

Form = TypeVar("Form", bound=enum.StrEnum)

_DESCRIPTOR = re.compile(r"/dev/(?:(stdin|stdout|stderr)|fd/(\d+))|/proc/self/fd/(\d+)")
_STANDARD = {"stdin": 0, "stdout": 1, "stderr": 2}
_NAME_BYTES = 200  # of the name of a file in that of a temporary one beside it: systems take 255 in all
_IRI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:\S")
_LEAST_COLUMN, _PADDING = 8, 2  # characters
_NAMED = frozenset(("title", "name", "label"))
SHOWN_BINDINGS, SHOWN_CHARACTERS = 3, 60  # of one match in a table; characters of one term


def bindings_short(match: Match) -> str:
    """The first bindings as text for a table, and how many more there are."""
    from triplewire.ir.show import show_term  # it takes 20 ms to load

    lines = [
        "  ".join(f"?{name} = {shortened(show_term(term))}" for name, term in binding.items())
        for binding in match.bindings[:SHOWN_BINDINGS]
    ]
    more = len(match.bindings) - SHOWN_BINDINGS
    if more > 0 or match.truncated:
        lines.append(f"... {max(more, 0):,} more" + (", and others that were cut" if match.truncated else ""))
    return "\n".join(lines)


def shortened(text: str) -> str:
    """The text on one line, cut where it is longer than a table shows. No IRI is cut."""
    text = one_line(text)
    if len(text) <= SHOWN_CHARACTERS or (text.startswith("<") and text.endswith(">")):
        return text
    return text[: SHOWN_CHARACTERS - 3] + "..."


def title(publication: Publication) -> str:
    """The title, name or label of a publication: that of the resource with its id, else the first one; "" for none."""
    from triplewire.model.terms import Literal, made_iri

    names = [
        (t.subject, t.object.lexical)
        for t in publication.triples
        if isinstance(t.object, Literal) and re.split(r"[/#]", t.predicate.value)[-1] in _NAMED
    ]
    own = [text for subject, text in names if subject == made_iri(publication.id)]
    return (own or [text for _, text in names] or [""])[0]


def feed_lines(feeds: Sequence[FeedStatus]) -> list[str]:
    """A line of counts, and two for each feed: when it was asked and is asked next (UTC), and why it waits."""
    if not feeds:
        return []
    counts = Counter(feed.state.split()[0] for feed in feeds)
    lines = [
        f"feeds         {len(feeds):,}: {', '.join(f'{count:,} {state}' for state, count in sorted(counts.items()))}"
    ]
    for feed in feeds:
        asked = f"asked {feed.last}" if feed.last else "not asked yet"
        following = f", next {feed.next}" if feed.next else ""
        lines.append(f"  {one_line(feed.address)}")
        lines.append(f"    {feed.state}, {asked}{following}" + (f": {one_line(feed.reason)}" if feed.reason else ""))
    return lines


def print_table(stream: IO[str], columns: Iterable[str], rows: Iterable[tuple[str, ...]], empty: str) -> None:
    """Write a table, as wide as the terminal, or `empty` where there are no rows. Without a terminal: plain text.

    No IRI is broken: where the columns are too narrow for that, each row is shown as lines."""
    # imported only where a table is shown: loading it takes a tenth of a second
    from rich import box
    from rich.cells import cell_len
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    # without control characters, and IRIs as prefixed names where the prefix is known
    lines = (([shorten(line) or one_line(line) for line in cell.split("\n")] for cell in row) for row in rows)
    cells = [list(map("\n".join, row)) for row in lines]
    if not cells:
        print(empty, file=stream)
        return
    # no terminal wraps the lines of a file
    console = Console(file=stream, width=None if stream.isatty() else 200)
    console.on_broken_pipe = lambda: leave(stream)  # type: ignore[method-assign]  # its own ends the process with 1
    table = Table(box=box.SIMPLE_HEAD, show_edge=False)
    longest = 0
    for number, column in enumerate(columns):
        words = [word for row in cells for word in row[number].split() if _IRI.search(word)]
        least = max(map(cell_len, words), default=0)
        longest += max(least, _LEAST_COLUMN) + _PADDING
        table.add_column(column, overflow="fold", min_width=least or None)
    for row in cells:
        table.add_row(*map(Text, row))
    if longest <= console.width:
        console.print(table)
        return
    for row in cells:  # a table would break IRIs: each row as lines of its own, which the terminal may wrap
        indented = [f"  {line}" for cell in row[1:] for line in cell.split("\n") if line]
        print(row[0], *indented, sep="\n", file=stream)


@contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """A temporary file beside `path`: renamed to it at the end of the block, removed where the block raises. A device
    or a pipe is itself what is written to; the process ends where the reader of a pipe closed it."""
    if _is_device(path):  # it cannot be replaced
        try:
            yield path
        except BrokenPipeError:
            raise SystemExit(READER_IS_GONE) from None
        return
    target = _real(path)
    name = os.fsdecode(os.fsencode(target.name)[:_NAME_BYTES])
    # not by the process's number alone: in containers many have the same, and one that was killed leaves its file
    part = target.with_name(f".{name}.{os.getpid()}-{secrets.token_hex(4)}.part")
    try:
        with named(path):
            part.touch(exist_ok=False)
        yield part
        with named(path):
            os.replace(part, target)
    finally:
        with suppress(OSError):  # where it could not be made, either
            part.unlink(missing_ok=True)


def _real(path: Path) -> Path:
    """The path that links lead to; of links in a circle, one of them (`Path.resolve` raises there)."""
    return Path(os.path.realpath(path))


def _is_device(path: Path) -> bool:
    """Is it a device, a pipe, or what this process has open, as /dev/stdout?"""
    return _descriptor(path) is not None or (path.exists() and not path.is_file())


def _descriptor(path: Path) -> int | None:
    """The number of the open file that a name such as /dev/stdout stands for. That file may be a plain one, to which
    the shell leads the output of several commands."""
    named = _DESCRIPTOR.fullmatch(str(path))
    if named is None:
        return None
    return _STANDARD[named[1]] if named[1] else int(named[2] or named[3])


@contextmanager
def named(path: Path | str) -> Iterator[None]:
    """An `OSError` in the block is one of an output of this name. Only this may be written to in the block."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        if error.errno is None:
            raise of_output(error) from None
        raise of_output(OSError(error.errno, error.strerror, str(path))) from None  # not named after a temporary file


@contextmanager
def seekable_file(path: Path) -> Iterator[Path | IO[bytes]]:
    """As `whole_file`, for formats that are not written from beginning to end: of a device or a pipe, a temporary file,
    whose content goes there at the end of the block."""
    with whole_file(path) as part:
        if not _is_device(path):
            yield part
            return
        number = _descriptor(path)
        with tempfile.TemporaryFile() as file:
            yield file
            file.seek(0)
            with named(path), open(part if number is None else os.dup(number), "wb") as out:
                shutil.copyfileobj(file, out)


@contextmanager
def text_output(path: Path | None) -> Iterator[IO[str]]:
    """A text stream to a file, or to standard output.

    In the block for standard output, what others print goes to standard error: operators of this process do. The
    process ends where the reader of standard output closed it.
    """
    if path is not None:
        number = _descriptor(path)
        with whole_file(path) as part:
            file = part if number is None else os.dup(number)
            out = open(file, "w", encoding="utf-8", errors="backslashreplace", newline="\n")  # noqa: SIM115  # below
            try:
                yield out
            finally:
                with named(path):
                    out.close()
        return
    stream = sys.stdout
    try:
        with redirect_stdout(sys.stderr):
            yield stream
        with named("standard output"):
            stream.flush()
    except BrokenPipeError:
        leave(stream)


def chosen_form(form: Form | None, file: Path | None, table: Form, other: Form) -> Form:
    """The form of the output: by default a table on a terminal, and the other one elsewhere. Raises `BadParameter` for
    a table in a file."""
    if file is not None and form is table:
        raise typer.BadParameter("a table is for the terminal; leave --format or --output out", param_hint="--format")
    return form or (table if file is None and sys.stdout.isatty() else other)


def check_writable(path: Path | None, suffixes: tuple[str, ...] = (), option: str = "--output") -> None:
    """Raises `WriteError` where the file cannot be written, and `BadParameter` where it is a folder, or its
    name ends in none of the suffixes."""
    if path is None:
        return
    if suffixes and path.suffix not in suffixes:
        raise typer.BadParameter(f"{path}: the name must end in {' or '.join(suffixes)}", param_hint=option)
    place = path if _is_device(path) else _real(path).parent  # as `whole_file` writes it
    if path.is_dir():
        raise typer.BadParameter(f"{path} is a folder, and a file is written", param_hint=option)
    if not os.access(place, os.W_OK):
        why = f"{place} may not be written to" if place.exists() else f"there is no folder {place}"
        raise WriteError(f"{path} cannot be written: {why}", source=option, remedy="name another place")


def check_apart(outputs: Mapping[str, Path | None], inputs: Iterable[Path] = ()) -> None:
    """Raises `BadParameter` where an output cannot be written, is one of the inputs, or the file of another: it would
    take the place of that. `outputs`: option -> what it names."""
    taken = {_real(file): "an input" for file in inputs if str(file) != "-"}
    for option, path in outputs.items():
        check_writable(path, option=option)
        if path is None or _is_device(path):
            continue
        if (other := taken.get(_real(path))) is not None:
            raise typer.BadParameter(f"{path} is {other} as well; name another file", param_hint=option)
        taken[_real(path)] = option


def write_json(stream: IO[str], *rows: object) -> None:
    """Write rows as JSON, each on a line."""
    stream.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


def write_refusal(stream: IO[str], refusal: Refusal) -> None:
    """Write a refusal as a JSON object on a line."""
    write_json(stream, dataclasses.asdict(refusal))
