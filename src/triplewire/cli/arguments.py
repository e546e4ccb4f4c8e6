"""Options that several commands share, and the spelling `--subscriptions a b c`."""

from __future__ import annotations

import enum
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

import typer

from triplewire.config import Settings
from triplewire.errors import TriplewireError

SPREADING = ("--subscriptions", "--publications")


def spread(arguments: Iterable[str]) -> list[str]:
    """Repeat an option that takes several files before each of them: the parser below knows one value an option."""
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
    """What follows from a publication: `triplewire.ir.entailment`."""

    NONE = "none"
    RDFS = "rdfs"


class Split(enum.StrEnum):
    """What of a document becomes one publication."""

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
        "--publications",
        metavar="FILE...",
        help="RDF documents and feeds, or folders of them; - is standard input.",
    ),
]
TaxonomyFile = Annotated[
    Path | None,
    typer.Option(
        "--taxonomy",
        metavar="FILE",
        help="The class hierarchy: RDFS, OWL, SKOS, or two columns.",
    ),
]
EntailmentOption = Annotated[
    Entailment,
    typer.Option(help="rdfs: properties and classes also mean those below them, by the taxonomy file."),
]
SplitOption = Annotated[
    Split,
    typer.Option("--split", help="What becomes one publication: a feed's item, the whole document, or each subject."),
]


def settings_from_environment() -> Settings:
    """The limits; a wrong variable is wrong usage."""
    try:
        return Settings.from_environment()
    except TriplewireError as error:
        raise typer.BadParameter(str(error)) from error


def check_files(*groups: Iterable[Path]) -> None:
    """A file that is not there, and standard input given twice, are wrong usage."""
    files = [file for group in groups for file in group]
    for file in files:
        if str(file) != "-" and not file.exists():
            raise typer.BadParameter(f"{file} does not exist")
    if sum(str(file) == "-" for file in files) > 1:
        raise typer.BadParameter("standard input (-) can be given once only")
