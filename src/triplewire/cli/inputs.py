"""Engines, subscriptions and publications as a command line asks for them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from triplewire.cli.arguments import (
    AllowEmptyOption,
    ContextFiles,
    Meaning,
    OperatorCalls,
    Reading,
    check_files,
    checked_order,
    file_argument,
    files_option,
    is_there,
    operators_from,
    refusal_of_nothing,
    refuse_hollow,
    settings_from_environment,
    wrong_usage,
)
from triplewire.cli.report import Report, say
from triplewire.errors import Refusal, TriplewireError

if TYPE_CHECKING:
    from triplewire.cli.saved_index import Said
    from triplewire.engine import Engine
    from triplewire.engine.loading import LoadedCount
    from triplewire.model.publication import Publication
    from triplewire.read.rdf.contexts import Loader


def found_matcher(name: str, option: str = "--matcher") -> object:
    """The matcher of this name; one that is not there is wrong usage of the option."""
    from triplewire import plugins  # --help does without the engine

    with wrong_usage(option):
        matcher: object = plugins.find("matcher", name)
    return matcher


def engine_of(meaning: Meaning, calls: OperatorCalls, matcher: str) -> Engine:
    """An engine without subscriptions, with the limits of the environment. Raises `BadParameter` where there is no such
    matcher."""
    from triplewire.engine import Engine
    from triplewire.operators.calling.cache import OutcomeCache
    from triplewire.operators.files import operators_of
    from triplewire.read.taxonomy import load_taxonomy

    settings = settings_from_environment()
    found_matcher(matcher)
    order, cache = checked_order(calls.operator_order), calls.operator_cache
    named = operators_from(meaning.operators, meaning.replace_operators) if meaning.operators else ()
    return Engine(
        taxonomy=load_taxonomy(meaning.taxonomy, settings) if meaning.taxonomy else None,
        matcher=matcher,
        operators=operators_of(named) if named else None,
        settings=settings,
        entailment=meaning.entailment,
        operator_order=order,
        operator_cache=None if cache is None else OutcomeCache(cache, settings.operator_cache_bytes, say),
    )


def load(
    engine: Engine,
    files: Iterable[Path],
    report: Report,
    *,
    only: str = "",
    said: Said | None = None,
    replace: bool = False,
    workers: int | None = None,
) -> LoadedCount:
    """Register the subscriptions of the files, or the one of id `only`; what is refused is reported, or goes to `said`.
    With `replace`, they take the place of those that are there. `workers`: see `Engine.load_subscriptions`. Returns how
    many there are."""
    from triplewire.languages.sources.files import count_rows

    paths = list(map(str, files))
    with report.progress("subscriptions", lambda: 0 if only else count_rows(paths)) as advance:
        return engine.load_subscriptions(
            paths,
            on_refusal=(said or report).refuse,
            on_warning=(said or report).warn,
            progress=lambda count: advance(count, 0),
            ids=[only] if only else None,
            replace=replace,
            workers=workers,
        )


def read_publications(
    files: Iterable[Path], reading: Reading, report: Report, *, loader: Loader, streaming: bool
) -> Iterator[Publication]:
    """The publications of the files; what is refused is reported. `streaming`: see `Report.progress`."""
    from triplewire.read.documents import bytes_of, documents, publications_of

    paths, settings, count, size = list(map(str, files)), settings_from_environment(), 0, 0
    how: dict[str, Any] = {"split": reading.split.value, "settings": settings, "on_refusal": report.refuse}
    with report.progress("publications", lambda: bytes_of(paths), in_bytes=True, streaming=streaming) as advance:
        for document in documents(*paths, **how):
            for publication in publications_of(document, as_written=reading.as_written, loader=loader, **how):
                advance(count := count + 1, size)
                yield publication
            advance(count, size := size + len(document.data))


# --- match and explain -----------------------------------------------------------------------------------------------


QUERY_ID = "query"
"""The id of the query that stands on the command line."""


@dataclass(frozen=True, kw_only=True)
class Inputs:
    """What the user named. The methods say what that means."""

    words: Annotated[
        list[str] | None,
        typer.Argument(metavar="QUERY|FILE", show_default=False, help="A query, then publications."),
    ] = None
    query: Annotated[str | None, typer.Option(metavar="TEXT", help="A query; its id is `query`.")] = None
    language: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            show_default="recognised",
            help="Of the query: sparql, gql, rdql, mdv, predicates or keywords.",
        ),
    ] = None
    subscriptions: Annotated[
        list[Path] | None,
        files_option(
            "--subscriptions",
            help="Queries: .gql .rq .rdql .mdv .pred .kw (one each), .jsonl .parquet (many), folders; - is JSON Lines.",
        ),
    ] = None
    publications: Annotated[
        list[Path] | None,
        files_option("--publications", help="RDF documents and feeds, or folders of them; - is standard input."),
    ] = None
    meaning: Meaning
    calls: OperatorCalls
    reading: Reading
    context: ContextFiles = None
    allow_empty: AllowEmptyOption = False

    def sorted_out(self) -> ResolvedInputs:
        """What is a query, and what a file. Raises `BadParameter` where that is not clear, or a file is not there."""
        words, query, subscriptions = list(self.words or ()), self.query or "", list(self.subscriptions or ())
        self._check_words(words)
        if self.query is not None and not query.strip():
            raise typer.BadParameter("the query is empty", param_hint="--query")
        if words and not query and not subscriptions:
            first = words.pop(0)
            if first != "-" and not any(map(str.isspace, first)) and is_there(file_argument(first)):
                subscriptions = [Path(first)]
            else:
                query = first
                from triplewire.languages.sources.files import SUFFIXES  # --help does without the parsers

                if Path(query).suffix in SUFFIXES and not any(map(str.isspace, query)):
                    raise typer.BadParameter(f"there is no file {query}")
                if self.language is None and re.fullmatch(r"[\w./-]+", query):
                    what = f"there is no file {query}; to look for the word, write '\"{query}\"'"
                    raise typer.BadParameter(what)
        if not query and not subscriptions:
            what = "give a query: triplewire match 'SELECT ...' FILE..., --query or --subscriptions"
            raise typer.BadParameter(f"{what}{self._taken()}")
        if self.language is not None and not query:
            what = "there is no query on the command line whose language this is; subscriptions state theirs"
            raise typer.BadParameter(what, param_hint="--language")
        if self.language is not None:
            from triplewire import plugins  # --help does without it

            with wrong_usage("--language"):
                plugins.find("language", plugins.registered("language", self.language))
        publications = [*(self.publications or ()), *map(file_argument, words)]
        if not publications and subscriptions and not self.subscriptions:
            what = f"{subscriptions[0]} is taken for subscriptions, as it is alone"
            raise typer.BadParameter(f"{what}: give a query before it, or publications behind it")
        if not publications:
            what = "give publications: files or folders behind the query, - for a pipe, or --publications"
            raise typer.BadParameter(f"{what}{self._taken()}")
        check_files(subscriptions, publications, self.meaning.taxonomy or ())
        return ResolvedInputs(self, query, subscriptions, publications)

    def _taken(self) -> str:
        """Which option has taken which values, as the end of a message."""
        options = {
            "--subscriptions": self.subscriptions,
            "--publications": self.publications,
            "--operators": self.meaning.operators,
            "--taxonomy": self.meaning.taxonomy,
        }
        taken = [f"{option} has {' '.join(map(str, values))}" for option, values in options.items() if values]
        return f" ({', '.join(taken)}; an option takes one value, and may be repeated)" if taken else ""

    def _check_words(self, words: list[str]) -> None:
        """Raises `BadParameter` for a file of a query or of operators where it does not belong: the shell has made
        several names of one, or the user has, behind an option that takes one."""
        from triplewire.languages.sources.files import LANGUAGES  # --help does without the parsers

        suffixes = {
            "--subscriptions": (self.subscriptions, LANGUAGES),
            "--operators": (self.meaning.operators, {".py"}),
        }
        for option, (values, kinds) in suffixes.items():
            if odd := next(
                (word for word in words if values and Path(word).suffix in kinds and is_there(Path(word))), ""
            ):
                what = f"{odd} stands where publications are expected{self._taken()}"
                raise typer.BadParameter(f"{what}: write {option} {odd}, or name a folder", param_hint=option)


@dataclass(frozen=True)
class ResolvedInputs:
    """A query, files of subscriptions, and files of publications, all of which are there."""

    inputs: Inputs
    query: str
    subscriptions: list[Path]
    publications: list[Path]
    loader: Loader = field(init=False)

    def __post_init__(self) -> None:
        from triplewire.read.rdf.contexts import ContextLoader

        object.__setattr__(self, "loader", ContextLoader(dict(self.inputs.context or ())))

    def engine(self, matcher: str) -> Engine:
        """An engine without subscriptions, as `engine_of` makes it."""
        return engine_of(self.inputs.meaning, self.inputs.calls, matcher)

    def filled(self, report: Report) -> list[Path]:
        """The publications, without those files that hold nothing, which are refused unless the user allows them."""
        files = self.publications
        return files if self.inputs.allow_empty else refuse_hollow(files, "publication", report.refuse)

    def indexed(self, matcher: str, report: Report, cache: Path | None, workers: int | None = None) -> Engine:
        """An engine with the query and the subscriptions of the files; those of large files by the index that an
        earlier command has left in the folder `cache`. `workers`: see `Engine.load_subscriptions`."""
        files = self.subscriptions
        if cache is None or self.query or Path("-") in files:
            return self._subscribed(matcher, report, workers)
        from triplewire.cli import saved_index

        if not saved_index.are_large(files):
            return self._subscribed(matcher, report, workers)
        from importlib.metadata import version

        from triplewire.engine import Engine
        from triplewire.operators.families.library import data_of_operators

        meaning, calls = self.inputs.meaning, self.inputs.calls
        engine = self.engine(matcher)  # its taxonomy and operators were read, and refused where they are wrong

        def opened(place: Path) -> Engine:
            operators, order = engine.operators, calls.operator_order
            return Engine.load(place, operators=operators, operator_order=order, operator_cache=calls.operator_cache)

        versions = sorted((name, getattr(operator, "version", "")) for name, operator in engine.operators.items())
        others = settings_from_environment(), version("triplewire"), self.inputs.allow_empty, versions
        rest = [*(meaning.taxonomy or ()), *(meaning.operators or ()), *data_of_operators()]
        named = saved_index.digest(rest, matcher, meaning.entailment, repr(others))
        loaded = partial(self._loaded, report, workers)
        return saved_index.load_with(cache, named, files, report, new=lambda: engine, opened=opened, loaded=loaded)

    def _loaded(self, report: Report, workers: int | None, engine: Engine, said: Said, replace: bool) -> LoadedCount:
        """Register the subscriptions of the files."""
        filled = self._filled_subscriptions(said.refuse)
        count = load(engine, filled, report, said=said, replace=replace, workers=workers)
        if not (len(engine) or report.refused or self.inputs.allow_empty):
            said.refuse(refusal_of_nothing(self.subscriptions, "subscription", "subscription"))
        return count

    def _subscribed(self, matcher: str, report: Report, workers: int | None) -> Engine:
        engine = self.engine(matcher)
        self.subscribe(engine, report, workers=workers)
        return engine

    def _filled_subscriptions(self, refuse: Callable[[Refusal], None]) -> list[Path]:
        files = self.subscriptions
        return files if self.inputs.allow_empty else refuse_hollow(files, "subscription", refuse)

    def subscribe(self, engine: Engine, report: Report, *, only: str = "", workers: int | None = None) -> None:
        """Register the query and the subscriptions of the files, or the one of id `only`. What is refused is
        reported."""
        if self.query and only in ("", QUERY_ID):
            from triplewire.languages import recognised

            try:
                registered = engine.subscribe(self.query, self.inputs.language or recognised(self.query), id=QUERY_ID)
                for warning in registered.warnings:
                    report.warn(QUERY_ID, warning)
            except TriplewireError as error:
                report.refuse(Refusal.of("subscription", QUERY_ID, error))
        if self.subscriptions:
            filled = self._filled_subscriptions(report.refuse)
            count = load(engine, filled, report, only=only, workers=workers)
            if not (count or report.refused or only or self.inputs.allow_empty):
                report.refuse(refusal_of_nothing(self.subscriptions, "subscription", "subscription"))
