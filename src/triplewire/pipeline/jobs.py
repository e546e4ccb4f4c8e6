"""Publications and subscriptions to matches, as Spark data frames, in batch and in streams alike.

    rows = outcomes(publications(spark, "feeds/"), compile_filter("subscriptions/"))
    rows.persist()                       # else each of the two below matches everything again
    matches(rows).write.parquet("matches")
    dead_letters(rows).write.parquet("dead-letter")

The same with files in and Parquet out, as one call: `run`. What happens in the workers: `filter`, `tasks`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from triplewire.config import Settings
from triplewire.engine import Engine
from triplewire.errors import ArgumentError, Refusal, TriplewireError, raise_refusal
from triplewire.ir.subscription import Subscription
from triplewire.ir.taxonomy import EMPTY
from triplewire.operators.files import OperatorFile, operators_of
from triplewire.pipeline.filter import IndexFilter, check_compiling, check_rows, check_subscriptions
from triplewire.pipeline.index.build import IndexOptions, shipped
from triplewire.pipeline.rows import INDEX_VERSION, MATCH_ROWS, OUTCOME_ROWS, REFUSAL_FIELDS, columns_of
from triplewire.pipeline.sources import FileReader, files_of_tasks
from triplewire.pipeline.tasks import (
    NODE,
    REPORT,
    ROUTED,
    ROUTED_ROWS,
    FirstStage,
    OneStage,
    SecondStage,
    reports_of_files,
)
from triplewire.pipeline.written import REPORTS, Report, Target, Written
from triplewire.plugins import DEFAULT_MATCHER
from triplewire.read.taxonomy import load_taxonomy

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SubscriptionSource: TypeAlias = "str | os.PathLike[str] | Subscription"
Subscriptions: TypeAlias = "SubscriptionSource | Iterable[SubscriptionSource] | Engine | IndexFilter"
"""A file or folder of subscriptions, one that `parse` made, several of these, an engine, or a compiled filter."""


def match_publications(
    df: DataFrame,
    subscriptions: Subscriptions,
    *,
    taxonomy: str | Path | Sequence[str | Path] | None = None,
    matcher: str = DEFAULT_MATCHER,
    entailment: str = "none",
    operators: Sequence[OperatorFile] = (),
    settings: Settings | None = None,
    why: bool = False,
    on_refusal: Callable[[Refusal], None] | None = None,
) -> DataFrame:
    """One row a match: publication, subscription, bindings (JSON text), truncated, matched_at, construct, content,
    revision, index_version, which is the hash of what was compiled, and why, which is null but with `why`: a JSON list
    of sentences.

    `df` is what `sources.publications` gives, or any data frame with the columns id and triples (and source, published,
    refusal) of those types, in batch or streaming. The text of the `operators`
    (`triplewire.operators.files.read_operator_files`) travels to the workers. A subscription that is refused goes to
    `on_refusal`, and without it is raised. Refused publications and pairs are left out here: see `outcomes` and
    `dead_letters`.
    """
    check_rows("match_publications(df)", df)
    index = compile_filter(
        subscriptions,
        taxonomy=taxonomy,
        matcher=matcher,
        entailment=entailment,
        operators=operators,
        settings=settings,
        on_refusal=on_refusal,
    )
    return matches(outcomes(df, replace(index, calling=replace(index.calling, why=why or index.calling.why))))


def outcomes(df: DataFrame, index: IndexFilter) -> DataFrame:
    """Matches and refusals in one data frame, for `matches` and `dead_letters` to part.

    `df` as for `match_publications`. The column `source` says where the publication was read, and `index_version` which
    version of the subscriptions gave the row. A version with shards of nodes takes two stages: `write_outcomes`.
    """
    from pyspark.sql.functions import lit

    if index.nodes:
        raise ArgumentError(
            f"the version {index.version} is spread over nodes, which takes two stages",
            source="outcomes(index)",
            remedy="triplewire pipeline run --index",
        )
    return df.mapInArrow(index, columns_of(OUTCOME_ROWS)).withColumn(INDEX_VERSION, lit(index.version))


def write_outcomes(df: DataFrame, index: IndexFilter, target: Target, reader: FileReader | None = None) -> Written:
    """Have the outcomes of a batch written by the workers, as one job. `df`: publications, or with a `reader` the files
    that it reads (`sources.files`)."""
    if index.nodes:
        first = df.mapInArrow(FirstStage(index, target, reader), columns_of(ROUTED_ROWS))
        routed = first.select(NODE, f"{ROUTED}.*", REPORT).repartitionById(index.nodes, NODE)
        told = routed.mapInArrow(SecondStage(index, target), columns_of(REPORTS))
    else:
        told = df.mapInArrow(OneStage(index, target, reader), columns_of(REPORTS))
    return _written(target, [row.asDict(recursive=True) for row in told.collect()])


def write_outcomes_of_files(
    spark: SparkSession,
    tasks: Sequence[Sequence[tuple[str, int]]],
    index: IndexFilter,
    target: Target,
    reader: FileReader,
) -> Written:
    """The same for files of this machine: the path and size in bytes of each, task by task."""
    if index.nodes:
        return write_outcomes(files_of_tasks(spark, tasks), index, target, reader)
    work = partial(reports_of_files, OneStage(index, target, reader))
    return _written(target, spark.sparkContext.parallelize(tasks, len(tasks)).mapPartitions(work).collect())


def _written(target: Target, reports: Iterable[dict[str, Any]]) -> Written:
    """The reports of tasks in the order of their files."""
    in_order = sorted(reports, key=lambda report: str(report["file"]))
    return Written(Path(target.folder), [Report(**report) for report in in_order])


def matches(outcomes: DataFrame) -> DataFrame:
    """The matches among the outcomes."""
    return outcomes.where("refusal IS NULL").select(*MATCH_ROWS.names)


def dead_letters(outcomes: DataFrame) -> DataFrame:
    """The refusals among the outcomes: kind, subject, where, reason, remedy."""
    return outcomes.where("refusal IS NOT NULL").select(*(f"refusal.{name}" for name in REFUSAL_FIELDS))


def compile_filter(
    subscriptions: Subscriptions,
    *,
    taxonomy: str | Path | Sequence[str | Path] | None = None,
    matcher: str = DEFAULT_MATCHER,
    entailment: str = "none",
    operators: Sequence[OperatorFile] = (),
    settings: Settings | None = None,
    on_refusal: Callable[[Refusal], None] | None = None,
    on_warning: Callable[[str, str], None] | None = None,
) -> IndexFilter:
    """Read and compile subscriptions, on the driver, once. What it gives takes their files to the workers.

    `on_warning` gets a subscription's id and what its author should know. With an engine, which has a taxonomy, a
    matcher, an entailment and settings of its own, those given here are not looked at; `operators` are those files that
    give the engine its own. Raises `OperatorError` where such a file gives none.
    """
    check_subscriptions(subscriptions)
    check_compiling(taxonomy, operators, settings, on_refusal, on_warning)
    if isinstance(subscriptions, IndexFilter):
        return subscriptions
    if isinstance(subscriptions, Engine):
        return shipped(subscriptions, operators)
    settings, refuse = settings or Settings(), on_refusal or raise_refusal
    classes = load_taxonomy(taxonomy, settings) if taxonomy else EMPTY
    engine = IndexOptions(classes, entailment, operators_of(operators), settings, matcher).engine()
    is_single = isinstance(subscriptions, str | os.PathLike | Subscription)
    entries: list[Any] = [subscriptions] if is_single else list(cast("Iterable[Any]", subscriptions))
    for subscription in entries:
        if isinstance(subscription, Subscription):
            try:
                registered = engine.subscribe(subscription)
            except TriplewireError as error:
                refuse(Refusal.of("subscription", subscription.id, error))
                continue
            if on_warning is not None:
                for warning in registered.warnings:
                    on_warning(registered.id, warning)
    files = [entry for entry in entries if not isinstance(entry, Subscription)]
    if files:
        engine.load_subscriptions(files, on_refusal=refuse, on_warning=on_warning)
    return shipped(engine, operators)
