"""What commands take: options that several share, alone and in groups, and files that are there and hold something.

What they name, as engines, subscriptions and publications: `triplewire.cli.inputs`.
"""

from __future__ import annotations

import dataclasses
import enum
import functools
import inspect
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, get_type_hints

import typer

from triplewire import plugins
from triplewire.cli.report import Report, exit_code_of, one_line, say
from triplewire.config import Settings
from triplewire.errors import ReadError, Refusal, TriplewireError
from triplewire.folders import entries_below, text_of_file
from triplewire.model.references import is_address
from triplewire.model.same import Same
from triplewire.plugins import DEFAULT_MATCHER

if TYPE_CHECKING:
    from triplewire.operators.files import OperatorFile

_OF_TABLE = re.compile(r"(?:jdbc|kafka|postgres|postgresql|mysql|sqlite):")
_NOTHING = "give --allow-empty where that is as it should be"


def file_argument(text: str | Path) -> Path:
    """The file that an argument names. Raises `BadParameter` for an address, which only a watch fetches, and for no
    name, which Python takes for the current folder."""
    if not str(text):
        raise typer.BadParameter("the name of a file is empty; give . for the current folder")
    if _OF_TABLE.match(str(text)) and not os.path.lexists(text):
        from triplewire.net.addresses import shown

        what = f"{shown(str(text))} names a table or a topic, which only triplewire pipeline reads"
        raise typer.BadParameter(
            f"{what}: jdbc:postgresql://HOST/DATABASE#TABLE, sqlite:FILE#TABLE, kafka://HOST/TOPIC"
        )
    if is_address(str(text)):
        from triplewire.net.addresses import shown  # with its parsers, a tenth of a second

        address = shown(str(text))
        what = f"{address} is an address, and nothing is fetched here"
        poll = "triplewire watch --sources FILE.feeds polls those of a list"
        raise typer.BadParameter(f"{what}; give a file, or pipe it: curl -sL {address} | triplewire ... -; {poll}")
    return Path(text)


def folder_argument(text: str | Path) -> Path:
    """The folder that an option names. Raises `BadParameter` for no name, which Python takes for the current folder."""
    if not str(text):
        raise typer.BadParameter("the name of a folder is empty; give . for the current folder")
    return Path(text)


def query_in(text: str) -> str:
    """The query that an argument is, or that the file holds which it names as @FILE. Raises `BadParameter` where the
    file is not there, and `ReadError` where it is no text."""
    if not text.startswith("@"):
        return text
    check_files([file := file_argument(text[1:])])
    try:
        return text_of_file(file)
    except UnicodeDecodeError as error:
        raise ReadError(f"it is no UTF-8 text: {error.reason}", source=str(file)) from None


def check_files(*groups: Iterable[Path]) -> None:
    """Raises `BadParameter` where a file does not exist, or standard input is given twice."""
    files = [file for group in groups for file in group]
    for file in files:
        if str(file) != "-" and not is_there(file):
            is_query = "{" in str(file)
            raise typer.BadParameter(f"{file} does not exist" + "; write the query into a file, query.rq" * is_query)
    if sum(str(file) == "-" for file in files) > 1:
        raise typer.BadParameter("standard input (-) can be given once only")


def is_there(file: Path) -> bool:
    """Is there such a file or folder? Also where nobody may look: then reading it says so."""
    try:
        return file.exists()
    except PermissionError:
        return True
    except OSError:  # no name of a file
        return False


def refuse_hollow(files: Iterable[Path], kind: str, refuse: Callable[[Refusal], None]) -> list[Path]:
    """The files, without folders that hold no file and files of no byte, which are refused. `kind`: see `Refusal`."""
    filled: list[Path] = []
    for file in files:
        if reason := _hollow(file):
            refuse(Refusal(kind, str(file), "", reason, _NOTHING))
        else:
            filled.append(file)
    return filled


def _hollow(file: Path | str) -> str:
    """Why nothing can be in a file or folder; empty where something may be."""
    if os.path.isdir(file):
        return "" if any(True for _ in entries_below(Path(file))) else "the folder holds no file"
    if not os.path.isfile(file) or os.path.getsize(file):
        return ""
    with suppress(OSError), open(file, "rb") as stream:  # files of /proc have a size of 0, whatever they hold
        return "" if stream.read(1) else "the file is empty"
    return ""  # to read it says what is wrong


def warn_of_no_subscription(files: Iterable[Path | str], registered: int, report: Report) -> None:
    """Warn of files and folders without a subscription, where that may be intended: a stream and an index may begin
    without any. `registered`: how many there are in all of them. What is no file, as a table, is named only."""
    files = list(files)
    hollow = {str(file): reason for file in files if (reason := _hollow(file))}
    if not (registered or hollow or report.refused):
        hollow[", ".join(map(str, files))] = "there is no subscription in it"
    for name, reason in hollow.items():
        report.refuse(Refusal("warning", name, "", reason))


def refusal_of_nothing(files: Iterable[Path], kind: str, missing: str) -> Refusal:
    """The refusal of all these files, in which there is no `missing`."""
    names = ", ".join("standard input" if str(file) == "-" else str(file) for file in files)
    return Refusal(kind, names, "", f"nothing in it says anything: there is no {missing}", _NOTHING)


def refuse_nothing(files: Iterable[Path], triples: int, report: Report) -> None:
    """Refuse all of the publications, where nothing was read of them, and nobody has said why."""
    if not triples and not report.refused:
        report.refuse(refusal_of_nothing(files, "publication", "triple"))


# --- options ---------------------------------------------------------------------------------------------------------


_KEYWORD = inspect.Parameter.KEYWORD_ONLY


def grouped(command: Callable[..., None]) -> Callable[..., None]:
    """The command as Typer takes it: each argument of a dataclass is replaced by the fields of that class, which may be
    such groups of options again."""
    hints = get_type_hints(command, include_extras=True)
    parameters: list[inspect.Parameter] = []
    for name, parameter in inspect.signature(command).parameters.items():
        is_group, kind = dataclasses.is_dataclass(hints[name]), hints[name]
        parameters += _options_of(kind) if is_group else [parameter.replace(annotation=kind, kind=_KEYWORD)]

    @functools.wraps(command)
    def called(**values: Any) -> None:
        command(**_grouped(hints, values))

    called.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]  # what Typer looks at
    return called


def _options_of(group: Any) -> Iterator[inspect.Parameter]:
    hints = get_type_hints(group, include_extras=True)
    for field in dataclasses.fields(group):
        if dataclasses.is_dataclass(kind := hints[field.name]):
            yield from _options_of(kind)
        else:
            yield inspect.Parameter(field.name, _KEYWORD, default=field.default, annotation=kind)


def _grouped(kinds: Mapping[str, Any], values: dict[str, Any]) -> dict[str, Any]:
    """The values of options by these names, groups of them as their classes."""
    return {
        name: kind(**_grouped(get_type_hints(kind), values))
        if isinstance(kind, type) and dataclasses.is_dataclass(kind)
        else values[name]
        for name, kind in kinds.items()
        if name != "return"
    }


@contextmanager
def wrong_usage(option: str = "") -> Iterator[None]:
    """A `TriplewireError` in the block is wrong usage: of this option, where one is named. What is locked, damaged,
    cannot be written or does not answer has an exit code of its own."""
    try:
        yield
    except TriplewireError as error:
        if exit_code_of(error) != 2 and not isinstance(error, ReadError):
            raise
        raise typer.BadParameter(one_line(str(error)), param_hint=option or None) from error


class Entailment(enum.StrEnum):
    """The entailment regime: `triplewire.ir.entailment`."""

    NONE = "none"
    RDFS = "rdfs"


class Split(enum.StrEnum):
    """Which part of a document becomes one publication."""

    ITEM = "item"
    DOCUMENT = "document"
    SUBJECT = "subject"


class Format(enum.StrEnum):
    """The forms of rows on standard output."""

    TABLE = "table"
    JSONL = "jsonl"


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


def choice_option(kind: type[enum.StrEnum], *names: str, help: str) -> Any:
    """An option that takes one of the values of a class."""
    values = [str(value) for value in kind]

    def chosen(text: str) -> enum.StrEnum:
        if text not in values:
            raise typer.BadParameter(f"{text!r} is none of {', '.join(values)}")
        return kind(text)

    metavar = f"[{'|'.join(values)}]"
    return typer.Option(*names, metavar=metavar, parser=chosen, autocompletion=lambda: values, help=help)


def files_option(*names: str, help: str) -> Any:
    """An option that takes files and folders."""
    return typer.Option(*names, metavar="FILE", parser=file_argument, help=f"{help} May be repeated.")


def folder_option(*names: str, help: str) -> Any:
    """An option that takes a folder."""
    return typer.Option(*names, metavar="DIR", parser=folder_argument, help=help)


QUERIES = "Queries: .gql .rq .rdql .mdv .pred .kw (one each), .jsonl .parquet (many), or folders of them."
SubscriptionFiles = Annotated[list[Path] | None, files_option("--subscriptions", help=QUERIES)]
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
ReplaceOperators = Annotated[
    bool,
    typer.Option("--replace-operators", help="Operators of --operators may take the names of installed ones."),
]
OperatorOrder = Annotated[
    str,
    typer.Option(
        "--operator-order", metavar="NAME", help="In which order operators are called; the answers are the same."
    ),
]

MatcherOption = Annotated[
    str,
    typer.Option(
        metavar="NAME",
        help="How pairs are found; the answers are the same.",
        autocompletion=lambda: plugins.names("matcher"),
    ),
]
EntailmentOption = Annotated[
    Entailment,
    choice_option(
        Entailment,
        "--entailment",
        help="rdfs: properties and classes also mean those below them, by the taxonomy file.",
    ),
]
SameOption = Annotated[
    Same | None,
    choice_option(
        Same,
        "--same",
        help="Tell a match once: by its item as it is (a stream's default), the item's id, its bindings.",
    ),
]
FormatOption = Annotated[
    Format | None, choice_option(Format, "--format", help="Default: a table on a terminal, JSON Lines elsewhere.")
]
AllowEmptyOption = Annotated[
    bool, typer.Option("--allow-empty", help="Inputs that hold nothing are as they should be.")
]


@dataclass(frozen=True)
class Meaning:
    """What subscriptions mean beside what they say; a group of options."""

    taxonomy: TaxonomyFiles = None
    operators: OperatorFiles = None
    replace_operators: ReplaceOperators = False
    entailment: EntailmentOption = Entailment.NONE


@dataclass(frozen=True)
class Compiling(Meaning):
    """The same, and how they are matched."""

    matcher: MatcherOption = DEFAULT_MATCHER


@dataclass(frozen=True)
class OperatorCalls:
    """How operators are called; a group of options."""

    operator_order: OperatorOrder = "greedy"
    operator_cache: Annotated[
        Path | None, folder_option(help="Keep outcomes of operators that state a version, from run to run.")
    ] = None


@dataclass(frozen=True)
class Reading:
    """How documents are read; a group of options."""

    split: Annotated[
        Split,
        choice_option(
            Split, "--split", help="What becomes one publication: a feed's item, the whole document, or each subject."
        ),
    ] = Split.ITEM
    as_written: Annotated[
        bool, typer.Option("--as-written", help="Leave the texts of feeds as they are: no types, dates as they stand.")
    ] = False


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


def operators_from(files: Iterable[Path] | None, replace: bool = False) -> tuple[OperatorFile, ...]:
    """The files of operators, read and tried; one that does not give operators is wrong usage. `replace`: they may take
    the names of installed ones."""
    from triplewire.operators.files import operators_of, read_operator_files

    with wrong_usage("--operators"):
        read = read_operator_files(files or (), replace=replace)
        operators_of(read)
    return read
