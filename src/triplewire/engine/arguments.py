"""What callers hand to the engine, checked before anything is changed: texts, operators, publications, Arrow tables."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from triplewire import argument_checks
from triplewire.argument_checks import expect, expect_callable, expect_path, expect_text, refuse
from triplewire.config import Settings
from triplewire.errors import ArgumentError
from triplewire.ir.evaluation.evaluate import World
from triplewire.ir.subscription import Subscription
from triplewire.ir.taxonomy import EMPTY, Taxonomy
from triplewire.languages.sources.tables import SubscriptionTexts
from triplewire.model.operator import Operator
from triplewire.model.publication import Publication
from triplewire.operators import built_in_operators, with_taxonomy
from triplewire.operators.calling.isolated import isolated
from triplewire.operators.files import fault_of
from triplewire.operators.order import GREEDY, check_order

if TYPE_CHECKING:
    import pyarrow as pa

    from triplewire.engine.part_loading import LoadTask
    from triplewire.operators.files import OperatorFile

_READ = "match(read(path)) or match_files(path) take files"
_PREFIXES = "a mapping of prefixes to namespace IRIs (texts)"


def world_of(
    where: str, taxonomy: object, operators: Any, settings: Any, order: str = GREEDY, cache: Any = None
) -> World:
    """What subscriptions are evaluated with: those given, or the defaults. The taxonomy may be the path of its file.

    Raises `ArgumentError` where one of them is something else, and what `load_taxonomy` raises.
    """
    check_settings(where, settings)
    check_operators(where, operators)
    expect_text(f"{where}(operator_order=...)", order)
    check_order(order)
    limits = settings or Settings()
    classes = taxonomy_of(f"{where}(taxonomy=...)", taxonomy, limits)
    called = called_operators(where, built_in_operators() if operators is None else operators, classes)
    recall = None
    if cache is not None:
        from triplewire.operators.calling.cache import OperatorCallCache, OutcomeCache

        if not isinstance(cache, OutcomeCache):
            expect_path(f"{where}(operator_cache=...)", cache)
            cache = OutcomeCache(cache, limits.operator_cache_bytes)
        recall = OperatorCallCache(cache, called, classes)
    return World(classes, called, limits, order, recall)


def called_operators(where: str, operators: Mapping[str, Operator], taxonomy: Taxonomy) -> Mapping[str, Operator]:
    """The operators as they are called: over this taxonomy, and some in processes of their own."""
    try:
        return isolated(with_taxonomy(operators, taxonomy))
    except ValueError as error:
        raise ArgumentError(str(error), source=f"{where}(operators=...)", remedy="define it in a module") from None


def taxonomy_of(where: str, taxonomy: Any, settings: Settings) -> Taxonomy:
    """A taxonomy, or that of a file; an empty one for None. Raises `ArgumentError` for anything else, and what
    `load_taxonomy` raises."""
    if taxonomy is None:
        return EMPTY
    if isinstance(taxonomy, Taxonomy):
        return taxonomy
    expect_path(where, taxonomy, "load_taxonomy(path) makes a Taxonomy of a file")
    from triplewire.read.taxonomy import load_taxonomy  # most programs have none, or have read it already

    return load_taxonomy(taxonomy, settings)


def check_settings(where: str, settings: object) -> None:
    """Raises `ArgumentError` where these are no settings, nor None."""
    if settings is not None:
        expect(f"{where}(settings=...)", settings, Settings, "Settings, or None", "such as Settings(max_bindings=5)")


def check_operators(where: str, operators: object) -> None:
    """Raises `ArgumentError` where this is neither None nor a mapping of names to operators."""
    if operators is None:
        return
    where = f"{where}(operators=...)"
    example = 'for example {"near": Near()}, with an object as in triplewire.extend.Operator'
    if not isinstance(operators, Mapping):
        raise refuse(where, "a mapping of names to operators", operators, example)
    for name, operator in operators.items():
        expect_text(where, name, example)
        if fault := fault_of(operator):
            raise ArgumentError(f"the operator {name!r} {fault}", source=where, remedy=example)


def check_query(query: str | Subscription, language: object, id: str, prefixes: object, base: object) -> str:
    """The id, of the query where none is given. Raises `ArgumentError` where one of the arguments of `Engine.subscribe`
    has a wrong type."""
    parsed = query if isinstance(query, Subscription) else None
    if parsed is None:
        is_path = isinstance(query, os.PathLike)
        remedy = "load_subscriptions(path) reads files" if is_path else "parse makes a Subscription"
        expect("subscribe(query)", query, str, "a query text or a Subscription", remedy)
    for name, value in (("language", language), ("id", id), ("base", base)):
        expect_text(f"subscribe({name}=...)", value)
    argument_checks.expect_texts("subscribe(prefixes=...)", prefixes, _PREFIXES)
    if parsed is not None:
        for name in ("id", "language", "text", "base"):
            expect_text(f"subscribe: the subscription's {name}", getattr(parsed, name))
        return argument_checks.plain_text(id or parsed.id)
    return argument_checks.plain_text(id)


def check_id(where: str, id: str) -> str:
    """The id. Raises `ArgumentError` where this is no id of a subscription."""
    expect(where, id, str, "the id of a subscription (str)", "a Subscription has it as .id")
    return argument_checks.plain_text(id)


def subscription_files(
    paths: object, on_refusal: object, on_warning: object, progress: object, ids: object
) -> list[str | os.PathLike[str] | SubscriptionTexts]:
    """The paths and tables, of one or of many. Raises `ArgumentError` where an argument of `load_subscriptions` is
    wrong."""
    name = "load_subscriptions"
    for argument, function in (("on_refusal", on_refusal), ("on_warning", on_warning), ("progress", progress)):
        expect_callable(f"{name}({argument}=...)", function)
    if ids is not None:
        if isinstance(ids, str | bytes) or not isinstance(ids, Iterable):
            raise refuse(f"{name}(ids=...)", "several ids", ids, "a single one is [id]")
        for id in ids:
            expect_text(f"{name}(ids=...)", id)
    if isinstance(paths, bytes) or not isinstance(paths, str | os.PathLike | SubscriptionTexts | Iterable):
        raise refuse(f"{name}(paths)", "a path or a table, or several", paths)
    listed = [paths] if isinstance(paths, str | os.PathLike | SubscriptionTexts) else list(paths)
    for path in listed:
        if not isinstance(path, SubscriptionTexts):
            expect_path(f"{name}(paths)", path)
    return listed


class Workers(NamedTuple):
    """Who loads the parts of subscription files: the process that asks has the first of the `shares`; `run` has tasks
    done by `part_loading.load_part`, and gives what waits for them and raises where one fails. They see `folder` (None:
    that of temporary files). `operators`: the files that give the engine its own; None for one that may have the
    built-in ones only."""

    shares: Sequence[float]
    run: Callable[[Sequence[LoadTask]], AbstractContextManager[Callable[[], None]]]
    folder: str | None = None
    operators: tuple[OperatorFile, ...] | None = None


def check_workers(where: str, workers: object) -> None:
    """Raises `ArgumentError` where it is no number of processes, nor `Workers` or None."""
    if not isinstance(workers, Workers | None) and (type(workers) is not int or workers < 1):
        raise refuse(f"{where}(workers=...)", "a number of processes, or None", workers, "1 is this process alone")


def tables_by_name(tables: object) -> dict[str, SubscriptionTexts]:
    """The tables that `Engine.load` is given, by name. Raises `ArgumentError` where one is none."""
    where, remedy = "load(tables=...)", "triplewire.extend.TableTexts(connect, name) makes one"
    listed = [tables] if isinstance(tables, SubscriptionTexts) else tables
    if not isinstance(listed, Iterable):
        raise refuse(where, "a table, or several", tables, remedy)
    named: dict[str, SubscriptionTexts] = {}
    for table in listed:
        if not isinstance(table, SubscriptionTexts):
            raise refuse(where, "tables", table, remedy)
        named[table.name] = table
    return named


def each_publication(publications: object) -> tuple[Publication, ...] | Iterator[Publication]:
    """One publication, or those of an iterable: a tuple where all are there. Raises `ArgumentError` where it is, or
    gives, something else."""
    if isinstance(publications, Publication):
        return (publications,)
    if type(publications) is list and set(map(type, publications)) <= {Publication}:
        return tuple(publications)
    wanted = "a publication, or an iterable of them"
    if (
        isinstance(publications, str | bytes | os.PathLike)
        or not isinstance(publications, Iterable)
        or argument_checks.is_of_rdflib(publications)
    ):
        raise refuse("match(publications)", wanted, publications, _READ)
    if isinstance(publications, Mapping):
        raise refuse("match(publications)", wanted, publications, "match(mapping.values()) takes what it holds")
    return _checked(publications)


def _checked(publications: Iterable[object]) -> Iterator[Publication]:
    for number, publication in enumerate(publications, 1):
        if not isinstance(publication, Publication):
            what = f"expected publications, got {argument_checks.shown(publication)} as number {number}"
            raise ArgumentError(what, source="match(publications)", remedy="Publication(id, triples) makes one")
        yield publication


def check_publication(where: str, publication: object) -> None:
    """Raises `ArgumentError` where this is no publication."""
    remedy = "the publication itself, not its id: read(path) gives publications"
    expect(where, publication, Publication, "a Publication", remedy)


class ArrowColumns(Protocol):
    """What gives Arrow columns by Arrow's PyCapsule interface: data frames of Polars and pandas, readers of batches."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """A capsule with a stream of batches."""


def record_batches(columns: Any) -> list[pa.RecordBatch]:
    """The batches of a batch, of a table, or of what gives Arrow columns (a data frame of Polars or pandas, a reader).

    Raises `ArgumentError` where it is nothing of that.
    """
    import pyarrow as pa  # as in `Engine.match_batch`

    if isinstance(columns, pa.RecordBatch):
        return [columns]
    if isinstance(columns, pa.Table):
        return list(columns.to_batches())
    if not hasattr(columns, "__arrow_c_stream__"):
        remedy = "triplewire.encode.schema.to_batch makes a batch of publications"
        raise refuse("match_batch(batch)", "an Arrow RecordBatch or Table", columns, remedy)
    try:
        return list(pa.table(columns).to_batches())
    except (pa.ArrowException, TypeError, ValueError) as error:
        raise ArgumentError(f"its Arrow columns cannot be read: {error}", source="match_batch(batch)") from error
