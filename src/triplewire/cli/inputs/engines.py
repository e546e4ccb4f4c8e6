"""Engines, subscriptions and publications as a command line asks for them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from triplewire.cli.arguments import Reading, checked_order, operators_from, settings_from_environment, wrong_usage
from triplewire.cli.report import Report, say

if TYPE_CHECKING:
    from triplewire.engine import Engine
    from triplewire.model.publication import Publication
    from triplewire.read.rdf.contexts import Loader


def found_matcher(name: str, option: str = "--matcher") -> object:
    """The matcher of this name; one that is not there is wrong usage of the option."""
    from triplewire import plugins  # --help does without the engine

    with wrong_usage(option):
        matcher: object = plugins.find("matcher", name)
    return matcher


def new_engine(
    taxonomy: Sequence[Path],
    matcher: str,
    entailment: str = "none",
    operators: Sequence[Path] = (),
    order: str = "greedy",
    cache: Path | None = None,
) -> Engine:
    """An engine without subscriptions, with the limits of the environment; `operators` are files of them."""
    # --help does without the engine and the parsers behind these
    from triplewire.engine import Engine
    from triplewire.operators.calling.cache import OutcomeCache
    from triplewire.operators.files import operators_of
    from triplewire.read.taxonomy import load_taxonomy

    found_matcher(matcher)
    checked_order(order)
    settings = settings_from_environment()
    classes = load_taxonomy(taxonomy, settings) if taxonomy else None
    called = operators_of(operators_from(operators)) if operators else None
    return Engine(
        taxonomy=classes,
        matcher=matcher,
        operators=called,
        settings=settings,
        entailment=entailment,
        operator_order=order,
        operator_cache=None if cache is None else OutcomeCache(cache, settings.operator_cache_bytes, say),
    )


def load(engine: Engine, files: Iterable[Path], report: Report, *, only: str = "") -> int:
    """Register the subscriptions of the files, or the one of id `only`; what is refused is reported. Returns how many
    there are."""
    loaded = 0
    with report.progress("subscriptions") as advance:

        def progress(count: int) -> None:
            nonlocal loaded
            advance(count - loaded)
            loaded = count

        return engine.load_subscriptions(
            map(str, files),
            on_refusal=report.refuse,
            on_warning=lambda id_, warning: report.warn(id_, [warning]),
            progress=progress,
            ids=[only] if only else None,
        )


def read_publications(
    files: Iterable[Path], reading: Reading, report: Report, *, loader: Loader, streaming: bool
) -> Iterator[Publication]:
    """The publications of the files; what is refused is reported. `streaming`: see `Report.progress`."""
    # --help does without the parsers behind this
    from triplewire.read import read

    publications = read(
        *map(str, files),
        split=reading.split.value,
        as_written=reading.as_written,
        settings=settings_from_environment(),
        on_refusal=report.refuse,
        loader=loader,
    )
    with report.progress("publications", streaming=streaming) as advance:
        for publication in publications:
            advance(1)
            yield publication
