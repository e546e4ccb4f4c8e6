"""How results are written: tables, and files. The rows of matches: `triplewire.cli.matches`.

A file is written aside and renamed when it is complete: nobody ever sees half of one.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import typer

from triplewire.cli.report import leave, one_line
from triplewire.ir.show import show_term
from triplewire.model.match import Binding, Match, bindings_to_json

SHOWN_BINDINGS, SHOWN_CHARACTERS = 3, 60  # of one match in a table; characters of one term


def bindings_json(match: Match) -> str:
    """All bindings as JSON text."""
    return json.dumps(bindings_to_json(match.bindings), ensure_ascii=False)


def bindings_short(match: Match) -> str:
    """The first bindings, for people."""
    lines = [_short(binding) for binding in match.bindings[:SHOWN_BINDINGS]]
    more = len(match.bindings) - SHOWN_BINDINGS
    if more > 0 or match.truncated:
        lines.append(f"... {max(more, 0):,} more" + (", and others that were cut" if match.truncated else ""))
    return "\n".join(lines)


def _short(binding: Binding) -> str:
    terms = ((name, one_line(show_term(term))) for name, term in binding.items())
    cut = (
        (name, text if len(text) <= SHOWN_CHARACTERS else text[: SHOWN_CHARACTERS - 3] + "...") for name, text in terms
    )
    return "  ".join(f"?{name} = {text}" for name, text in cut)


def print_table(columns: Iterable[str], rows: Iterable[tuple[str, ...]], empty: str) -> None:
    """A table on standard output, as wide as the terminal; plain text where that is none."""
    # only tables need it, and it costs a tenth of a second to load
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, show_edge=False)
    for column in columns:
        table.add_column(column, overflow="fold")
    for row in rows:
        table.add_row(*(Text("\n".join(map(one_line, cell.split("\n")))) for cell in row))
    # where nobody looks, as wide as needed
    console = Console(width=None if sys.stdout.isatty() else 200)
    if table.row_count:
        console.print(table)
    else:
        print(empty)


@contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """A new file beside `path`, which takes its place when the block ends well and vanishes when it does not."""
    if path.exists() and not path.is_file():  # a device or a pipe cannot be replaced
        yield path
        return
    target = path.resolve()
    aside = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        aside.touch(exist_ok=False)
        yield aside
        os.replace(aside, target)
    finally:
        aside.unlink(missing_ok=True)


@contextmanager
def text_output(path: Path | None) -> Iterator[IO[str]]:
    """A text stream to a file, or to standard output, whose reader may go away."""
    if path is not None:
        with (
            whole_file(path) as aside,
            open(aside, "w", encoding="utf-8", errors="backslashreplace", newline="\n") as out,
        ):
            yield out
        return
    try:
        yield sys.stdout
        sys.stdout.flush()
    except BrokenPipeError:
        leave(sys.stdout)


def check_writable(path: Path | None, suffixes: tuple[str, ...] = (), option: str = "--output") -> None:
    """Wrong usage when a file of this name cannot be written here."""
    if path is None:
        return
    if suffixes and path.suffix not in suffixes:
        raise typer.BadParameter(f"{path}: the name must end in {' or '.join(suffixes)}", param_hint=option)
    place = path if path.exists() and not path.is_file() else path.resolve().parent  # as `whole_file` writes it
    if path.is_dir() or not os.access(place, os.W_OK):
        raise typer.BadParameter(f"{path} cannot be written", param_hint=option)
