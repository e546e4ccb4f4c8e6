"""What runs in Spark's Python workers: a version of an index; Arrow batches of publications in, outcomes out.

It imports no Spark, so it can be called, and tested, on plain batches. A worker serves many tasks: it opens a version
once (`triplewire.pipeline.index.open_version`). What travels to it is a path, or the files of the version, never an
object. The tasks that write what they find: `triplewire.pipeline.tasks`.
"""

from __future__ import annotations

import json
import os
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import NoneType
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from triplewire.argument_checks import expect, expect_callable, expect_path, expect_text, refuse
from triplewire.config import Settings
from triplewire.encode.strings import of_numbers
from triplewire.engine import Engine
from triplewire.engine.stats import Stats
from triplewire.errors import ArgumentError, LimitError, Refusal, StoreError
from triplewire.folders import replace_text
from triplewire.ir.subscription import Subscription
from triplewire.operators.calling.budgets import share_budgets
from triplewire.operators.files import OperatorFile
from triplewire.operators.order import GREEDY
from triplewire.operators.order.statistics import LearnedCalls
from triplewire.pipeline.index.open_version import OpenVersion, opened, opened_files
from triplewire.pipeline.rows import OUTCOME_ROWS, refused, widened
from triplewire.read.documents import SPLITS

OnStats: TypeAlias = Callable[[Stats], None] | None

MOST_ROWS = 1 << 14  # of one batch of matches

_applied: weakref.WeakKeyDictionary[LearnedCalls, str] = weakref.WeakKeyDictionary()


@dataclass(frozen=True)
class Calling:
    """What a worker is told. `order`: one of `operators.order.ORDERS`; `cache`: a folder of its machine for outcomes,
    or ""; `budgets`: the folder of budgets, or ""; `learned`: what `LearnedCalls.to_json` gave, as text; `why`: are the
    reasons of each match wanted?"""

    order: str = GREEDY
    cache: str = ""
    budgets: str = field(default="", repr=False)
    learned: str = field(default="", repr=False)
    why: bool = False

    @property
    def kind(self) -> tuple[str, str]:
        """What an engine is made with; engines of another kind are other engines."""
        return self.order, self.cache

    def begin(self, *engines: Engine) -> None:
        """A task of a worker begins to use these engines."""
        if self.budgets:
            share_budgets(self.budgets)
        for engine in engines:
            if self.learned and _applied.get(engine.learned) != self.learned:
                engine.learned.restore(json.loads(self.learned))
                _applied[engine.learned] = self.learned


def newly_learned(engines: Iterable[Engine]) -> list[str]:
    """What was counted with each engine since this was asked last, as JSON texts."""
    counted = (engine.learned.take_new_counts() for engine in engines)
    return [json.dumps(told, sort_keys=True, separators=(",", ":")) for told in counted if told["operators"]]


class JobLearning:
    """What a job has learned of operators, on the driver. It is kept in a file from start to start."""

    def __init__(self, file: Path) -> None:
        self.calls = LearnedCalls()
        self._file = file
        with suppress(OSError, ValueError, RecursionError):  # a job that has learned nothing calls in another order
            self.calls.restore(json.loads(file.read_bytes()))

    def told(self, calling: Calling) -> Calling:
        """What the workers of a micro-batch are told."""
        known = self.calls.to_json()
        return replace(calling, learned=json.dumps(known, separators=(",", ":")) if known["operators"] else "")

    def merge(self, counted: Iterable[str]) -> None:
        """Count what came from tasks (`newly_learned`); the order in which they ended does not matter. Write it to the
        file."""
        if not (texts := sorted(counted)):
            return
        for text in texts:
            self.calls.merge(json.loads(text))
        with suppress(OSError):  # as above
            replace_text(self._file, json.dumps(self.calls.to_json(), separators=(",", ":")) + "\n")


@dataclass(frozen=True)
class IndexFilter:
    """A version of an index, ready to travel. Called in a worker, it matches.

    Workers open the version in `directory`, a path that all of them see; or, where that is "", they unpack `files`, the
    ZIP archive of an index, and `version` is the hash of what that says. `nodes` is the number of shards of stage 2;
    with 0 there is one stage, which is a call of this object. `sha256` is the hash of the manifest: of a version that
    has taken the place of another one, nothing is matched.
    """

    directory: str
    version: str
    nodes: int = 0
    operators: tuple[OperatorFile, ...] = field(default=(), repr=False)
    calling: Calling = field(default_factory=Calling, repr=False, compare=False)
    sha256: str = field(default="", repr=False)
    files: bytes = field(default=b"", repr=False, compare=False)

    def opened(self) -> OpenVersion:
        """The version, opened once a process. Raises `StoreError`."""
        if not self.directory:
            return opened_files(self.files, self.version, self.operators, self.calling.kind)
        version = opened(self.directory, self.version, self.operators, self.calling.kind)
        if self.sha256 not in ("", version.version.sha256):
            raise StoreError(
                f"the version {self.version} is another one than when the micro-batch began", source=self.directory
            )
        return version

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Outcomes (`OUTCOME_ROWS`) of publications. A refused input (`PUBLICATION_ROWS`) is passed on as it is."""
        engine = self.opened().server()
        self.calling.begin(engine)
        for batch in batches:
            refusals, publications = parted(batch)
            if refusals.num_rows:
                yield widened(refusals, OUTCOME_ROWS)
            failed: list[Refusal] = []
            for rows, matches in matched(engine, publications, failed, why=self.calling.why):
                wide = widened(matches, OUTCOME_ROWS, source=sources_of(rows, matches))
                # the JVM holds a batch as a whole, and there may be a million matches of a batch of publications
                yield from (wide.slice(first, MOST_ROWS) for first in range(0, max(wide.num_rows, 1), MOST_ROWS))
            yield refused(failed, OUTCOME_ROWS)


def parted(batch: pa.RecordBatch) -> tuple[pa.RecordBatch, pa.RecordBatch]:
    """The refused inputs of a batch, as a column `refusal`, and its publications."""
    if "refusal" not in batch.schema.names:
        return refused((), pa.schema([OUTCOME_ROWS.field("refusal")])), batch
    is_refusal = pc.is_valid(batch.column("refusal"))
    return batch.filter(is_refusal).select(["refusal"]), batch.filter(pc.invert(is_refusal))


def matched(
    engine: Engine, batch: pa.RecordBatch, refusals: list[Refusal], on_stats: OnStats = None, *, why: bool = False
) -> Iterator[tuple[pa.RecordBatch, pa.RecordBatch]]:
    """Publications with their matches: all at once, or in parts where the texts of the matches are too long together,
    or where a row is such that Arrow does not hand over its batch. That row alone is refused."""
    refused_here: list[Refusal] = []
    try:
        matches = engine.match_batch(batch, on_refusal=refused_here.append, on_stats=on_stats, why=why)
    except (LimitError, ValueError) as error:  # `pa.ArrowInvalid` and `UnicodeDecodeError` are such
        if batch.num_rows > 1:
            half = batch.num_rows // 2
            yield from matched(engine, batch.slice(0, half), refusals, on_stats, why=why)
            yield from matched(engine, batch.slice(half), refusals, on_stats, why=why)
        else:
            id = (pc.cast(batch.column("id"), pa.binary())[0].as_py() or b"(no id)").decode("utf-8", "backslashreplace")
            refusals.append(Refusal("publication", id, "", f"the row cannot be read: {error}", "mend the row"))
        return
    refusals += refused_here
    yield batch, matches


def sources_of(publications: pa.RecordBatch, matches: pa.RecordBatch) -> pa.Array:
    """Where the publication of each match was read, as far as the publications say so; of several with one id, the
    last one counts."""
    if "source" not in publications.schema.names or not publications.num_rows:
        return pa.nulls(matches.num_rows, pa.string())
    backwards = of_numbers(np.arange(publications.num_rows)[::-1])
    ids, sources = (publications.column(name).take(backwards).cast(pa.string()) for name in ("id", "source"))
    return sources.take(pc.index_in(matches.column("publication"), value_set=ids))


# --- what callers hand to the pipeline, checked before Spark is asked for anything -----------------------------------


def check_rows(where: str, df: Any) -> None:
    """Raises `ArgumentError` where this is no data frame of Spark with publications."""
    remedy = "publications(spark, path) makes one"
    if not hasattr(df, "mapInArrow"):
        raise refuse(where, "a data frame of Spark", df, remedy)
    missing = [name for name in ("id", "triples") if name not in df.columns]
    if missing:
        what = f"the data frame has no column {' and no column '.join(missing)}, only {', '.join(df.columns)}"
        raise ArgumentError(what, source=where, remedy=remedy)


def check_session(where: str, spark: object) -> None:
    """Raises `ArgumentError` where this is no Spark session."""
    if not hasattr(spark, "readStream"):
        raise refuse(where, "a Spark session", spark, "spark_session() starts one")


def check_reading(path: object, split: object, settings: object) -> None:
    """Raises `ArgumentError` where an argument of `publications` is wrong."""
    expect_path("publications(path)", path)
    if split not in SPLITS:
        raise refuse("publications(split=...)", " or ".join(SPLITS), split)
    expect("publications(settings=...)", settings, (Settings, NoneType), "Settings, or None")


def check_session_arguments(name: object, master: object, config: Mapping[Any, Any] | None, log: object) -> None:
    """Raises `ArgumentError` where an argument of `spark_session` is wrong."""
    expect_text("spark_session(name)", name)
    expect_text("spark_session(master=...)", master)
    expect("spark_session(config=...)", config, (Mapping, NoneType), "a mapping of Spark's settings")
    if log is not None:
        expect_path("spark_session(log=...)", log)


def check_subscriptions(subscriptions: object) -> None:
    """Raises `ArgumentError` where these are no subscriptions, nor files of them."""
    where, wanted = "match_publications(subscriptions)", "a path, a Subscription, several of these, or an Engine"
    if isinstance(subscriptions, str | os.PathLike | Subscription | Engine | IndexFilter):
        return
    if isinstance(subscriptions, bytes) or not isinstance(subscriptions, Iterable):
        raise refuse(where, wanted, subscriptions)
    if isinstance(subscriptions, list | tuple | set | frozenset):  # others are read once
        for entry in subscriptions:
            expect(where, entry, (str, os.PathLike, Subscription), wanted, "parse(text) makes a Subscription")


def check_compiling(
    taxonomy: object, operators: object, settings: object, on_refusal: object, on_warning: object = None
) -> None:
    """Raises `ArgumentError` where an argument of `compile_filter` is wrong."""
    name = "match_publications"
    for path in taxonomy if isinstance(taxonomy, list | tuple) else () if taxonomy is None else (taxonomy,):
        expect_path(f"{name}(taxonomy=...)", path, "it is read on the driver")
    remedy = "triplewire.operators.files.read_operator_files(paths) reads them"
    if not isinstance(operators, list | tuple):
        raise refuse(f"{name}(operators=...)", "a list of operator files", operators, remedy)
    for file in operators:
        expect(f"{name}(operators=...)", file, OperatorFile, "an operator file", remedy)
    expect(f"{name}(settings=...)", settings, (Settings, NoneType), "Settings, or None")
    expect_callable(f"{name}(on_refusal=...)", on_refusal)
    expect_callable(f"{name}(on_warning=...)", on_warning)
