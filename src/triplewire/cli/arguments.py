"""Options that several commands share, and options that take several values: `--subscriptions a b c`."""

from __future__ import annotations

import enum
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from triplewire.cli.inputs.files import file_argument, folder_argument
from triplewire.cli.report import one_line, say
from triplewire.config import Settings
from triplewire.errors import SparkError, TriplewireError

if TYPE_CHECKING:
    from triplewire.operators.files import OperatorFile

SPREADING = ("--subscriptions", "--publications", "--operators", "--taxonomy")


@contextmanager
def wrong_usage(option: str = "") -> Iterator[None]:
    """A `TriplewireError` in the block is wrong usage: of this option, where one is named. That Spark fails is none."""
    try:
        yield
    except SparkError:
        raise
    except TriplewireError as error:
        raise typer.BadParameter(one_line(str(error)), param_hint=option or None) from error


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


class ContextFile(NamedTuple):
    """A file with the JSON-LD context of an address."""

    address: str
    file: Path


def context_argument(text: str) -> ContextFile:
    """`URL=FILE`. Raises `BadParameter` where there is no such file."""
    for match in re.finditer("=", text):
        address, file = text[: match.start()], Path(text[match.end() :])
        if address and file.is_file():
            return ContextFile(address, file)
    raise typer.BadParameter(f"{text!r} is not URL=FILE with a file that is there")


def files_option(*names: str, help: str) -> Any:
    """An option that takes files and folders."""
    return typer.Option(*names, metavar="FILE...", parser=file_argument, help=help)


def folder_option(*names: str, help: str) -> Any:
    """An option that takes a folder."""
    return typer.Option(*names, metavar="DIR", parser=folder_argument, help=help)


SubscriptionFiles = Annotated[
    list[Path] | None,
    files_option(
        "--subscriptions", help="Queries: .gql .rq .mdv .pred (one each), .jsonl .parquet (many), or folders of them."
    ),
]
TaxonomyFiles = Annotated[
    list[Path] | None,
    files_option("--taxonomy", help="The class hierarchy: RDFS, OWL, SKOS, or two columns; files, or folders of them."),
]
ContextFiles = Annotated[
    list[ContextFile] | None,
    typer.Option(
        "--context",
        metavar="URL=FILE",
        parser=context_argument,
        help="The JSON-LD context of an address; may be repeated. Those of schema.org and ActivityStreams are there.",
    ),
]
OperatorFiles = Annotated[
    list[Path] | None,
    files_option(
        "--operators",
        help="Operators of your own: Python files with an attribute `operators`, which are run; TOML files.",
    ),
]
OperatorOrder = Annotated[
    str,
    typer.Option(
        "--operator-order", metavar="NAME", help="In which order operators are called; the answers are the same."
    ),
]

OperatorCache = Annotated[
    Path | None,
    folder_option("--operator-cache", help="Keep outcomes of operators that state a version, from run to run."),
]
MatcherOption = Annotated[str, typer.Option(metavar="NAME", help="How pairs are found; the answers are the same.")]
EntailmentOption = Annotated[
    Entailment, typer.Option(help="rdfs: properties and classes also mean those below them, by the taxonomy file.")
]
SplitOption = Annotated[
    Split,
    typer.Option("--split", help="What becomes one publication: a feed's item, the whole document, or each subject."),
]
AllowEmptyOption = Annotated[
    bool, typer.Option("--allow-empty", help="Inputs that hold nothing are as they should be.")
]
AsWrittenOption = Annotated[
    bool, typer.Option("--as-written", help="Leave the texts of feeds as they are: no types, dates as they stand.")
]


@dataclass(frozen=True)
class Operating:
    """Which operators there are, and how they are called; a group of options."""

    operators: OperatorFiles = None
    operator_order: OperatorOrder = "greedy"


@dataclass(frozen=True)
class OperatingWithCache(Operating):
    """The same, and where their outcomes are kept."""

    operator_cache: OperatorCache = None


@dataclass(frozen=True)
class Reading:
    """How documents are read; a group of options (`triplewire.cli.inputs.groups`)."""

    split: SplitOption = Split.ITEM
    as_written: AsWrittenOption = False


def settings_from_environment() -> Settings:
    """The limits. Raises `BadParameter` where a variable of the environment has a wrong value; an unknown one is told
    of on standard error."""
    with wrong_usage():
        return Settings.from_environment(on_warning=lambda text: say(one_line(f"warning: {text}")))


def checked_order(name: str) -> str:
    """The name of an order of operators; another one is wrong usage."""
    from triplewire.operators.order import check_order

    with wrong_usage("--operator-order"):
        check_order(name)
    return name


def operators_from(files: Iterable[Path]) -> tuple[OperatorFile, ...]:
    """The files of operators, read and tried; one that does not give operators is wrong usage."""
    # --help does without the operators
    from triplewire.operators.files import operators_of, read_operator_files

    with wrong_usage("--operators"):
        read = read_operator_files(files)
        operators_of(read)
    return read
