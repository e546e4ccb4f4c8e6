"""Options that several commands share, and options that take several values: `--subscriptions a b c`."""

from __future__ import annotations

import enum
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from triplewire.cli.report import one_line
from triplewire.config import Settings
from triplewire.errors import TriplewireError

if TYPE_CHECKING:
    from triplewire.operators.files import OperatorFile

SPREADING = ("--subscriptions", "--publications", "--operators")


def repeat_options(arguments: Iterable[str]) -> list[str]:
    """The arguments with an option that takes several files repeated before each of them, as Typer needs it."""
    out: list[str] = []
    option, values, literal = "", 0, False
    for argument in arguments:
        if literal or argument == "--":
            literal = True
        elif argument.startswith("-") and argument != "-":
            name = argument.partition("=")[0]
            option, values = (name, int("=" in argument)) if name in SPREADING else ("", 0)
        elif option:
            if values:
                out.append(option)
            values += 1
        out.append(argument)
    return out


class Entailment(enum.StrEnum):
    """The entailment regime: `triplewire.ir.entailment`."""

    NONE = "none"
    RDFS = "rdfs"


class Split(enum.StrEnum):
    """Which part of a document becomes one publication."""

    ITEM = "item"
    DOCUMENT = "document"
    SUBJECT = "subject"


SubscriptionFiles = Annotated[
    list[Path],
    typer.Option(
        "--subscriptions",
        metavar="FILE...",
        help="Queries: .gql .rq .mdv .pred (one each), .jsonl .parquet (many), or folders of them.",
    ),
]
PublicationFiles = Annotated[
    list[Path],
    typer.Option(
        "--publications", metavar="FILE...", help="RDF documents and feeds, or folders of them; - is standard input."
    ),
]
TaxonomyFile = Annotated[
    Path | None,
    typer.Option("--taxonomy", metavar="FILE", help="The class hierarchy: RDFS, OWL, SKOS, or two columns."),
]
OperatorFiles = Annotated[
    list[Path] | None,
    typer.Option(
        "--operators",
        metavar="FILE.py...",
        help="Operators of your own: Python files with an attribute `operators`. They are run.",
    ),
]
EntailmentOption = Annotated[
    Entailment, typer.Option(help="rdfs: properties and classes also mean those below them, by the taxonomy file.")
]
SplitOption = Annotated[
    Split,
    typer.Option("--split", help="What becomes one publication: a feed's item, the whole document, or each subject."),
]


def settings_from_environment() -> Settings:
    """The limits. Raises `BadParameter` where a variable of the environment has a wrong value."""
    try:
        return Settings.from_environment()
    except TriplewireError as error:
        raise typer.BadParameter(str(error)) from error


def operators_from(files: Iterable[Path]) -> tuple[OperatorFile, ...]:
    """The files of operators, read and tried; one that does not give operators is wrong usage."""
    # --help does without the operators
    from triplewire.operators.files import operators_of, read_operator_files

    try:
        read = read_operator_files(files)
        operators_of(read)
    except TriplewireError as error:
        raise typer.BadParameter(one_line(str(error)), param_hint="--operators") from error
    return read


def check_files(*groups: Iterable[Path]) -> None:
    """Raises `BadParameter` where a file does not exist, or standard input is given twice."""
    files = [file for group in groups for file in group]
    for file in files:
        if str(file) != "-" and not file.exists():
            raise typer.BadParameter(f"{file} does not exist")
    if sum(str(file) == "-" for file in files) > 1:
        raise typer.BadParameter("standard input (-) can be given once only")
