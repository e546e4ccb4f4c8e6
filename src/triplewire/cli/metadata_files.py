"""Files that metadata commands take: documents, events, rules; and the store or provider that they are for."""

from __future__ import annotations

import gzip
import json
import sys
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated, Any, NamedTuple
from urllib.parse import quote

import typer

from triplewire.cli.arguments import check_files, file_argument, settings_from_environment
from triplewire.cli.client import token_in
from triplewire.cli.report import Report
from triplewire.errors import ArgumentError, BusyError, ReadError, Refusal, StoreError
from triplewire.folders import entries_of
from triplewire.model.terms import IRI

if TYPE_CHECKING:
    from triplewire.languages.sources.rows import Row
    from triplewire.metadata.backbone import Writing
    from triplewire.metadata.messages import Change, Put, RuleText
    from triplewire.metadata.provider import Provider
    from triplewire.metadata.remote import RemoteProvider
    from triplewire.metadata.repository import Repository

StoreOption = Annotated[
    str,
    typer.Option("--store", metavar="URL", help="sqlite:///FILE, postgresql://... or spark:DIR."),
]
ProviderOption = Annotated[str, typer.Option("--provider", metavar="ADDRESS", help="A provider: http://HOST:PORT.")]
TokenFile = Annotated[
    Path | None,
    typer.Option("--token-file", metavar="FILE", help="The file of the provider's token; default: TRIPLEWIRE_TOKEN."),
]
BatchOption = Annotated[int, typer.Option("--batch", metavar="N", min=1, help="Documents of one transaction.")]
Paths = Annotated[
    list[Path], typer.Argument(metavar="PATH...", parser=file_argument, help="Files, and folders of them.")
]
RuleFiles = Annotated[
    list[Path], typer.Argument(metavar="RULES...", parser=file_argument, help="Rules: .mdv, one each; .jsonl; folders.")
]
_EVENT = '{"seq": 1, "op": "add", "path": "doc.rdf", "content": "..."}'


@dataclass(frozen=True)
class Where:
    """The store of a provider, or a provider that runs; a group of options."""

    store: StoreOption = ""
    provider: ProviderOption = ""
    token_file: TokenFile = None

    def opened(self, running: ExitStack, *, made: bool = True) -> Writing | RemoteProvider:
        """What documents are written to, and read from; a store that is not there is made, if it may be."""
        self.check()
        if self.provider:
            return running.enter_context(remote(self.provider, self.token_file))
        from triplewire.metadata.backbone import Writing

        return Writing(running.enter_context(provider_of(self.store, made=made)))

    def check(self) -> None:
        """Raises `BadParameter` unless one of the two is given."""
        if bool(self.store) == bool(self.provider):
            raise typer.BadParameter("give --store URL, or --provider ADDRESS", param_hint="--store")


def _say_nothing(text: str) -> None:
    """What is said of SQLite concerns those who serve, not each command."""


def provider_of(
    store: str, *, base: str = "", alone: bool = True, made: bool = True, warn: Callable[[str], None] = _say_nothing
) -> Provider:
    """The provider of a store, which is made where there is none, if it may be."""
    from triplewire.metadata.provider import Provider

    with _remedies("a provider", "triplewire metadata init", "write to it: --provider ADDRESS"):
        return Provider.open(checked(store, "spark:"), base, alone=alone, made=made, warn=warn)


def repository_of(
    store: str, name: str = "", *, alone: bool = True, made: bool = True, warn: Callable[[str], None] = _say_nothing
) -> Repository:
    """The repository of a store, which is made where there is none, if it may be."""
    from triplewire.metadata.repository import Repository

    with _remedies("a repository", "triplewire repository follow", "end the `follow` that has it"):
        return Repository.open(checked(store), name, alone=alone, made=made, warn=warn)


@contextmanager
def _remedies(what: str, maker: str, instead: str) -> Iterator[None]:
    """What to do where there is no such store, or another process has it."""
    try:
        yield
    except BusyError as error:
        error.remedy = f"{instead}; or use PostgreSQL, which several processes may serve"
        raise
    except StoreError as error:
        error.remedy = error.remedy or f"give the store of {what}; `{maker}` makes one"
        raise


def checked(store: str, *more: str) -> str:
    """The URL of a store, if it is one: of SQLite, PostgreSQL, or what begins as one of `more`."""
    what = "sqlite:///FILE" + (", postgresql://... or spark:DIR" if more else " or postgresql://...")
    if not store:
        raise typer.BadParameter(f"give the store: {what}", param_hint="--store")
    if not store.startswith(("sqlite:///", "postgresql://", *more)):
        raise typer.BadParameter(f"{store} is no store: {what}", param_hint="--store")
    return store


def remote(address: str, token_file: Path | None, option: str = "--provider") -> RemoteProvider:
    """A provider at the address that an option gives, with the token of a file or the environment."""
    from triplewire.metadata.remote import RemoteProvider

    try:
        return RemoteProvider(address, token_in(token_file))
    except ArgumentError as error:
        raise typer.BadParameter(error.what, param_hint=option) from None


def named(base: str, path: str) -> str:
    """The IRI of a document: an IRI as it is, and the name of a file behind the base. Raises `ArgumentError` where
    the IRI is none."""
    if path.startswith(("http://", "https://", "urn:", base)):
        return IRI(path).value
    return base + quote(path, safe="/~:@!$&'()*+,;=")


def documents(paths: Iterable[Path], base: str, refuse: Callable[[Refusal], None]) -> Iterator[Put]:
    """The documents of files, named by the file or its way below the folder that is given. What cannot be read is
    refused."""
    from triplewire.metadata.messages import Put
    from triplewire.read.documents import file_bytes

    paths = list(paths)
    check_files(paths)
    most = settings_from_environment().max_input_bytes
    for path in paths:
        for file, reason in entries_of(path):
            name = file.relative_to(path).as_posix() if file != path else path.name
            try:
                if reason:
                    raise ReadError(reason)
                yield Put(named(base, name), file_bytes(file, most))
            except OSError as error:
                refuse(Refusal("publication", str(file), "", f"the file cannot be read: {error.strerror}"))
            except (ReadError, ArgumentError) as error:
                refuse(Refusal("publication", str(file), "", error.what, error.remedy))


class Event(NamedTuple):
    """An event of a list: its number there, and what it does."""

    seq: int
    change: Change


def events(file: Path, base: str, after: int, refuse: Callable[[Refusal], None]) -> Iterator[Event]:
    """The events of a list behind a number. A line that is none is refused, and passed over."""
    from triplewire.metadata.messages import Put, Withdraw

    check_files([file])
    last = after
    with _opened(file) as lines:
        for record, line in enumerate(lines, 1):
            try:
                value = json.loads(line)
                seq, operation = value["seq"], value["op"]
                if type(seq) is not int or seq < 1:
                    raise ValueError(f"seq is {seq!r:.40}, and no number from 1")
                if operation not in ("add", "update", "delete"):
                    raise ValueError(f"there is no op {operation!r:.40}")
                iri = named(base, _text_at("path", value))
                change = Withdraw(iri) if operation == "delete" else Put(iri, _text_at("content", value).encode())
                if after < seq <= last:
                    raise ValueError(f"seq {seq} comes behind {last}")
            except (ValueError, KeyError, TypeError, RecursionError) as error:
                what = f"{error.args[0]!r} is missing" if isinstance(error, KeyError) else str(error)
                where = f"{file} (record {record})"
                refuse(Refusal("publication", str(file), where, f"it is no event: {what}", f"an event: {_EVENT}"))
                continue
            if seq > after:
                last = seq
                yield Event(seq, change)


def _text_at(name: str, event: dict[str, Any]) -> str:
    """A member of an event. Raises `ValueError` where it is no text, and `KeyError` where it is missing."""
    text = event[name]
    if not isinstance(text, str):
        raise ValueError(f"{name} is {text!r:.40}, and no text")
    return text


@contextmanager
def _opened(file: Path) -> Iterator[Iterable[bytes]]:
    """The lines of a file, gzipped or not. Raises `ReadError` where it is damaged."""
    if str(file) == "-":
        yield sys.stdin.buffer
        return
    with file.open("rb") as stream:
        is_zipped = stream.read(2) == b"\x1f\x8b"
    try:
        with gzip.open(file) if is_zipped else file.open("rb") as lines:
            yield lines
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise ReadError(f"damaged gzip: {error}", source=str(file)) from None


class Rules:
    """Rules of files, as they are read, and where each stands."""

    def __init__(self, report: Report) -> None:
        self._report = report
        self._rows: dict[str, Row] = {}

    def read(self, files: Iterable[Path]) -> Iterator[RuleText]:
        """The rules of files; what is none is refused."""
        from triplewire.languages.sources.files import Reader
        from triplewire.metadata.messages import RuleText

        files = list(files)
        check_files(files)
        with Reader(None, settings_from_environment(), {}) as reader:
            for row in reader.rows(files):
                if isinstance(row, Refusal):
                    self._report.refuse(row)
                elif row.language != "mdv" or row.id in self._rows:
                    what = "its id was met before" if row.id in self._rows else f"it is in {row.language}"
                    self._report.refuse(Refusal("subscription", row.id, row.source, f"{what}", "an MDV rule, once"))
                else:
                    self._rows[row.id] = row
                    yield RuleText(row.id, row.query, dict(row.prefixes), row.base)

    def refuse(self, refusal: Refusal) -> None:
        """Report what is wrong with a rule, with the file that it stands in."""
        row = self._rows.get(refusal.subject)
        if row is not None:
            place = refusal.where.removeprefix(refusal.subject).strip(":")
            where = f"{row.source} (record {row.record})" if row.record else row.source
            joined = f"{where}, query {place}" if row.record and place else f"{where}:{place}" if place else where
            refusal = replace(refusal, where=joined)
        self._report.refuse(refusal)


def told(rows: Iterable[dict[str, Any]], stream: IO[str], *, as_lines: bool, of_many: bool = False) -> None:
    """Write rules with their resources: a JSON object a line, or a table. `of_many`: they begin with their
    repository."""
    if as_lines:
        stream.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
        return
    from triplewire.cli import output

    shown = [(*list(row.values())[:-1], "\n".join(row["resources"])) for row in rows]
    output.print_table(stream, (*["repository"] * of_many, "rule", "resources"), shown, "no rules")
