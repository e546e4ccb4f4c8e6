"""Writes results as tables and files. The rows of matches: `triplewire.cli.matches`.

A file is written under a temporary name and renamed when it is complete.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import typer

from triplewire.cli.report import leave, one_line
from triplewire.ir.show import show_term
from triplewire.model.match import Binding, Match

SHOWN_BINDINGS, SHOWN_CHARACTERS = 3, 60  # of one match in a table; characters of one term


def bindings_short(match: Match) -> str:
    """The first bindings as text for a table, and how many more there are."""
    lines = [_short(binding) for binding in match.bindings[:SHOWN_BINDINGS]]
    more = len(match.bindings) - SHOWN_BINDINGS
    if more > 0 or match.truncated:
        lines.append(f"... {max(more, 0):,} more" + (", and others that were cut" if match.truncated else ""))
    return "\n".join(lines)


def _short(binding: Binding) -> str:
    """A binding on one line, with long terms shortened."""
    terms = ((name, one_line(show_term(term))) for name, term in binding.items())
    shortened = (
        (name, text if len(text) <= SHOWN_CHARACTERS else text[: SHOWN_CHARACTERS - 3] + "...") for name, text in terms
    )
    return "  ".join(f"?{name} = {text}" for name, text in shortened)


def print_table(columns: Iterable[str], rows: Iterable[tuple[str, ...]], empty: str) -> None:
    """Print a table, as wide as the terminal, or `empty` where there are no rows. Without a terminal: plain text."""
    # imported only where a table is shown: loading it takes a tenth of a second
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, show_edge=False)
    for column in columns:
        table.add_column(column, overflow="fold")
    for row in rows:
        table.add_row(*(Text("\n".join(map(one_line, cell.split("\n")))) for cell in row))
    # no terminal wraps the lines of a file
    console = Console(width=None if sys.stdout.isatty() else 200)
    if table.row_count:
        console.print(table)
    else:
        print(empty)


@contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """A temporary file beside `path`: renamed to it at the end of the block, removed where the block raises."""
    if path.exists() and not path.is_file():  # a device or a pipe cannot be replaced
        yield path
        return
    target = path.resolve()
    part = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        part.touch(exist_ok=False)
        yield part
        os.replace(part, target)
    finally:
        part.unlink(missing_ok=True)


@contextmanager
def text_output(path: Path | None) -> Iterator[IO[str]]:
    """A text stream to a file, or to standard output.

    The process ends where the reader of standard output closed it.
    """
    if path is not None:
        with (
            whole_file(path) as part,
            open(part, "w", encoding="utf-8", errors="backslashreplace", newline="\n") as out,
        ):
            yield out
        return
    try:
        yield sys.stdout
        sys.stdout.flush()
    except BrokenPipeError:
        leave(sys.stdout)


def check_writable(path: Path | None, suffixes: tuple[str, ...] = (), option: str = "--output") -> None:
    """Raises `BadParameter` where the file cannot be written, or its name ends in none of the suffixes."""
    if path is None:
        return
    if suffixes and path.suffix not in suffixes:
        raise typer.BadParameter(f"{path}: the name must end in {' or '.join(suffixes)}", param_hint=option)
    place = path if path.exists() and not path.is_file() else path.resolve().parent  # as `whole_file` writes it
    if path.is_dir() or not os.access(place, os.W_OK):
        raise typer.BadParameter(f"{path} cannot be written", param_hint=option)
