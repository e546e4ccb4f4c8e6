"""The engine: register standing queries, hand it publications, get matches.

    engine = Engine(taxonomy=load_taxonomy("classes.ttl"))
    engine.subscribe("SELECT ?t WHERE { ?s rss:title ?t FILTER ftcontains(?t, \\"olympic games\\") }", id="olympics")
    for match in engine.match(read("feeds/")):
        print(match.subscription, match.publication, match.bindings)

Languages: `triplewire.languages`. Which subscriptions are looked at and how: `triplewire.select`. What a match call
returns: `result`. Why a pair matched or not: `explain`.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from itertools import chain, count, islice
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn, TypeAlias

from triplewire import plugins
from triplewire.argument_checks import expect_callable, expect_path, expect_text, plain_text
from triplewire.config import Settings
from triplewire.engine import arguments
from triplewire.engine.chunk import Snapshot
from triplewire.engine.compiler import Compiler, id_is_taken
from triplewire.engine.current_snapshot import CurrentSnapshot, publications_of, snapshot_for_more
from triplewire.engine.explain.recent import RecentResults
from triplewire.engine.incoming import chunks_of, chunks_of_batches, chunks_of_files, each_matched, matched
from triplewire.engine.result import MatchResult
from triplewire.engine.stats import Clock, Stats
from triplewire.engine.store import contents
from triplewire.engine.store import directory as store
from triplewire.engine.subscriptions import Rules, SubscriptionsView
from triplewire.engine.tiers.interpreted import empty_snapshot
from triplewire.errors import ArgumentError, Refusal, SubscriptionError, raise_refusal
from triplewire.ir.checks import check
from triplewire.ir.subscription import Subscription
from triplewire.ir.taxonomy import Taxonomy
from triplewire.languages.sources.tables import SubscriptionSource, SubscriptionTexts
from triplewire.model.match import Match
from triplewire.model.operator import Operator
from triplewire.model.origins import FROM_SOURCE, FromSource
from triplewire.model.publication import Publication
from triplewire.operators.order import GREEDY
from triplewire.plugins import DEFAULT_MATCHER
from triplewire.read.documents import Source, check_reading, check_sources
from triplewire.read.rdf.contexts import Loader

if TYPE_CHECKING:
    import pyarrow as pa

    from triplewire.engine.explain.explanation import Explanation
    from triplewire.engine.loading import LoadedCount
    from triplewire.operators.calling.cache import OutcomeCache
    from triplewire.operators.order.statistics import LearnedCalls

Refuse: TypeAlias = Callable[[Refusal], None]

ENTAILMENTS = ("none", "rdfs")


class Engine:
    """Subscriptions, a taxonomy, operators and limits; matches publications against them.

    `taxonomy` answers class constraints, and may be the path of its file; `matcher` names a matcher (all give the same
    answers); `operators` are those that calls may name (default: the built-in ones); `settings` are the limits.
    `entailment="rdfs"` applies the taxonomy's rdfs:subPropertyOf, rdfs:domain and rdfs:range to each publication and
    lets an `rdf:type` pattern with a constant class take in the subclasses. `operator_order`: one
    of `operators.order.ORDERS`. `operator_cache`: a folder for outcomes of operators that state a version; they are
    used again for publications of the same content. Any thread may call any method; a match call works on the
    subscriptions, and the taxonomy, that there are then. An engine has no other attributes than these: setting one is
    an `AttributeError`.
    """

    __slots__ = ("__weakref__", "_current", "_last_number", "_matcher", "_matcher_name", "_recent")

    def __init__(
        self,
        *,
        taxonomy: Taxonomy | str | os.PathLike[str] | None = None,
        matcher: str = DEFAULT_MATCHER,
        operators: Mapping[str, Operator] | None = None,
        settings: Settings | None = None,
        entailment: str = "none",
        operator_order: str = GREEDY,
        operator_cache: str | os.PathLike[str] | OutcomeCache | None = None,
    ) -> None:
        expect_text("Engine(matcher=...)", matcher)
        if not isinstance(entailment, str) or entailment not in ENTAILMENTS:
            raise ArgumentError(f"there is no entailment {entailment!r}", remedy=f"known: {', '.join(ENTAILMENTS)}")
        world = arguments.world_of("Engine", taxonomy, operators, settings, operator_order, operator_cache)
        self._matcher_name = matcher
        self._matcher = plugins.find("matcher", matcher)
        self._current = CurrentSnapshot(empty_snapshot(self._matcher, Compiler(world, entailment)))
        self._last_number = 0
        self._recent = RecentResults()

    @property
    def _snapshot(self) -> Snapshot:
        """Read once a call: a snapshot is never changed, only replaced."""
        return self._current.snapshot

    @property
    def _compiler(self) -> Compiler:
        return self._snapshot.compiler

    def _with(self, snapshot: Snapshot) -> Engine:
        """An engine of the same matcher with another snapshot."""
        other = object.__new__(Engine)
        other._matcher_name, other._matcher, other._last_number = self._matcher_name, self._matcher, self._last_number
        other._current, other._recent = CurrentSnapshot(snapshot), RecentResults()
        return other

    # --- subscriptions -----------------------------------------------------------------------------------------------

    def subscribe(
        self,
        query: str | Subscription,
        language: str = "sparql",
        *,
        id: str = "",
        prefixes: Mapping[str, str] | None = None,
        base: str = "",
        replace: bool = False,
    ) -> Subscription:
        """Register a query text, or a subscription that `parse` made; returns it as registered.

        Without an id it gets the next free one of s1, s2, ... Its `warnings` say what may be a mistake. With `replace`
        it takes the place of one with its id in one step: each match call has the one or the other, and where the text
        is refused, the one before stays. Raises `SubscriptionError` when the id is taken or an operator is unknown,
        what `parse` raises, and `StoreError` where texts cannot be written to a temporary file.
        """
        id = arguments.check_query(query, language, id, prefixes, base)
        world = self._compiler.world
        with self._current.lock:
            by_template = None
            if isinstance(query, Subscription):
                plain = False
                subscription = dataclasses.replace(query, id=id, where=check(query, world.settings))
            else:
                row = {"id": id, "language": language, "query": query, "prefixes": prefixes, "base": base}
                by_template = self._snapshot.by_template(row)
                subscription = by_template or self._compiler.compiled(row, Rules.of(self._snapshot), full=False)
                plain = not subscription.rules
            number = self._last_number
            if not subscription.id:
                number = next(n for n in count(number + 1) if f"s{n}" not in self._snapshot)
                subscription = subscription.but(id=f"s{number}")
            before = [subscription.id] if subscription.id in self._snapshot else []
            if before and not replace:
                raise id_is_taken(subscription.id, "choose another, or take its place: subscribe(..., replace=True)")
            if by_template is None:
                subscription = self._compiler.checked(subscription)
            self._last_number = number
            self._current.snapshot = self._snapshot.changed((subscription,), before, plain=plain)
        self._current.start_background_work()
        return subscription

    def unsubscribe(self, id: str) -> bool:
        """Remove a subscription; False when there is none of this id. A rule that names it keeps its meaning, and is
        saved and loaded with it."""
        id = arguments.check_id("unsubscribe(id)", id)
        with self._current.lock:
            if id not in self._snapshot:
                return False
            self._current.snapshot = self._snapshot.changed((), (id,))
        self._current.start_background_work()
        return True

    def load_subscriptions(
        self,
        paths: SubscriptionSource | Iterable[SubscriptionSource],
        *,
        on_refusal: Callable[[Refusal], None] | None = None,
        on_warning: Callable[[str, str], None] | None = None,
        progress: Callable[[int], None] | None = None,
        ids: Collection[str] | None = None,
        replace: bool = False,
        workers: int | arguments.Workers | None = None,
    ) -> LoadedCount:
        """Register the subscriptions of files, folders (`triplewire.languages.sources`) and tables; returns how many.

        Texts of a table (`triplewire.extend.TableTexts`) stay there, but with "reference", or of rules that name rules.
        What is wrong goes to `on_refusal` and the rest is loaded; without it, the first refusal is raised as
        `SubscriptionError`; what came before it stays, and so may what was read with it. `on_warning` gets a
        subscription's id and what its author should know; `progress` gets the number of those registered so far, now
        and then. With `ids`, others than these are passed over.

        With `replace`, they take the place of all that are registered: what has not changed stays, what the files do
        not have any more goes, and the result says how many were `new`, `changed` and `gone`. Publications that are
        matched meanwhile see some of it.

        `workers`: so many processes, with this one, load an empty engine from files of JSON Lines and Parquet (of
        several row groups), with the same result; by default one for each core where there are more than 2.6 million
        subscriptions. Raises `StoreError` where one of them is killed or fails. An engine with operators of its own
        loads in one process.
        """
        files = arguments.subscription_files(paths, on_refusal, on_warning, progress, ids)
        arguments.check_workers("load_subscriptions", workers)
        if replace and ids is not None:
            what, remedy = "some ids cannot take the place of all subscriptions", "leave out ids or replace"
            raise ArgumentError(what, source="load_subscriptions(replace=...)", remedy=remedy)
        refuse = raise_refusal if on_refusal is None else on_refusal
        wanted = None if ids is None else frozenset(map(plain_text, ids))
        if any(isinstance(file, SubscriptionTexts) for file in files):
            self._current.compiled()  # until then, subscriptions are objects with their texts
        elif wanted is None:
            self._current.prepare_for_loading(files)
        loaded = 0
        # it brings Arrow along, which takes a fifth of a second to load
        from triplewire.engine.loading import Difference, LoadedCount, in_parts, load

        difference = Difference(self._current) if replace else None
        parts = None if replace or ids is not None else in_parts(files, self._current, self._matcher_name, workers)
        for registered in load(files, self._compiler, self._current, refuse, on_warning, wanted, difference, parts):
            loaded += registered
            if progress is not None:
                progress(loaded)
        self._current.settle()
        return LoadedCount(loaded) if difference is None else difference.count

    @property
    def subscriptions(self) -> SubscriptionsView:
        """What is registered now, in the order of registration: a view that later changes leave alone."""
        return SubscriptionsView(self._snapshot)

    def get(self, id: str) -> Subscription | None:
        """The subscription of this id, as it was registered; None when there is none."""
        return self._snapshot.get(arguments.check_id("get(id)", id))

    def __contains__(self, id: object) -> bool:
        return isinstance(id, str) and plain_text(id) in self._snapshot

    def __len__(self) -> int:
        return len(self._snapshot)

    def __bool__(self) -> bool:
        """True, with or without subscriptions: an engine is not a list of them."""
        return True

    def __reduce__(self) -> NoReturn:
        raise TypeError("an engine is not copied or pickled: save(path) and Engine.load(path), one engine a process")

    def __repr__(self) -> str:
        return f"<Engine {self._matcher_name!r}: {len(self)} subscription{'s' * (len(self) != 1)}>"

    def settle(self) -> None:
        """Do now, and wait for, what is otherwise done in the background: take changes into the index for good, and
        where the first subscriptions are matched interpreted, compile the kernels. Raises `StoreError` where texts
        cannot be written to a temporary file."""
        self._current.compiled()
        self._current.finish()

    # --- publications ------------------------------------------------------------------------------------------------

    def match(self, publications: Publication | Iterable[Publication]) -> MatchResult:
        """Match one publication or many against all subscriptions.

        A pair that cannot be decided (a limit is passed, an operator fails) becomes one of the result's refusals. What
        the iterable raises is passed on.
        """
        each, clock = arguments.each_publication(publications), Clock()

        def size(most: int) -> int:
            nonlocal each
            if isinstance(each, tuple):
                return len(each)
            with clock("read"):
                ahead = list(islice(each, most))
            each = chain(ahead, each)
            return len(ahead)

        snapshot = self._current.snapshot_for_matching(size)
        return self._recent.keep(matched(snapshot, chunks_of(each, snapshot.compiler, clock), clock))

    def match_files(
        self,
        *sources: Source,
        split: str = "item",
        as_written: bool = False,
        on_refusal: Callable[[Refusal], None] | None = None,
        clock: Clock | None = None,
        loader: Loader | None = None,
    ) -> Iterator[MatchResult]:
        """Match the publications of files, folders and streams, as `triplewire.read` takes them, a chunk at a time.

        Faster than `match(read(...))` for plain N-Quads and N-Triples. What cannot be read goes to `on_refusal`;
        without it, the first `ReadError` is raised. With a `clock`, the time of the stages goes there.
        """
        check_sources("match_files", sources)
        check_reading("match_files", split, on_refusal=on_refusal, loader=loader)

        def results() -> Iterator[MatchResult]:
            stage = clock or Clock()
            with stage("load"):
                snapshot = self._current.snapshot_for_matching(lambda most: publications_of(sources))
            chunks = chunks_of_files(
                sources, split, as_written, loader, on_refusal, snapshot.compiler, stage, snapshot.columnar
            )
            for current, chunk, rows in each_matched(snapshot, chunks, stage, snapshot_for_more):
                result = MatchResult(current)
                result.add(chunk, rows)
                if clock is None:
                    result.stats.seconds = stage.lap()
                yield self._recent.keep(result)
                if clock is None:
                    stage.lap()  # what the caller did meanwhile

        return results()

    def match_batch(
        self,
        batch: pa.RecordBatch | pa.Table | arguments.ArrowColumns,
        *,
        on_refusal: Callable[[Refusal], None] | None = None,
        on_stats: Callable[[Stats], None] | None = None,
        why: bool = False,
    ) -> pa.RecordBatch | pa.Table:
        """Publications in, matches out, as Arrow columns of the schemas in `triplewire.encode.schema`.

        A batch gives a batch. A table, or anything else with Arrow columns (a data frame of Polars or pandas), gives a
        table. Rows that are no publication, and pairs that cannot be decided, are handed to `on_refusal`, and all other
        rows are matched; without it, the first one is raised as `ReadError` or `SubscriptionError`. The refusal of a
        row has the kind "publication" and its number as record, from 1. What was counted goes to `on_stats`. With `why`
        there is a column more, `encode.schema.WHY`: the reasons of each match, as `explain` gives them.
        """
        import pyarrow as pa  # a fifth of a second, and most programs never hand over a batch

        from triplewire.encode.matches import combined
        from triplewire.encode.schema import MATCHES, WHY

        expect_callable("match_batch(on_refusal=...)", on_refusal)
        expect_callable("match_batch(on_stats=...)", on_stats)
        batches, clock = arguments.record_batches(batch), Clock()
        snapshot = self._current.snapshot_for_matching(lambda most: sum(part.num_rows for part in batches))
        chunks = chunks_of_batches(batches, snapshot.compiler, clock, on_refusal, snapshot.columnar)
        result = self._recent.keep(matched(snapshot, chunks, clock))
        for refusal in result.refusals:
            if on_refusal is None:
                raise SubscriptionError(refusal.reason, source=refusal.subject, remedy=refusal.remedy)
            on_refusal(refusal)
        if why:
            from triplewire.engine.explain.why import batches_with_reasons  # as in `explain`

            reasoned = chain.from_iterable(batches_with_reasons(self, part) for part in result.parts)
            matches = pa.Table.from_batches(reasoned, MATCHES.append(WHY))
        else:
            matches = result.to_arrow()
        if on_stats is not None:
            on_stats(result.stats)
        return combined(matches) if isinstance(batch, pa.RecordBatch) else matches

    def explain(
        self, subscription: str | Match, publication: Publication | None = None, *, nearest: bool = False
    ) -> Explanation:
        """Why the subscription of this id matches the publication, or the first part of it that fails; with `nearest`
        also, for a miss, the query nearest to it that matches (`Explanation.nearest`).

        A match of this engine can stand for both as long as its `MatchResult` is there; where that is gone, its
        publication is given, too. Raises `SubscriptionError` when there is no such subscription, `ArgumentError` when
        the publication is missing, `LimitError` where the evaluation passes one.
        """
        registered, known, snapshot, calls = self._recent.pair(self._snapshot, subscription, publication)
        from triplewire.engine.explain.explanation import explained  # matching does without it

        return explained(registered, known, snapshot.compiler, calls, with_nearest=nearest)

    # --- the taxonomy, and other properties --------------------------------------------------------------------------

    @property
    def taxonomy(self) -> Taxonomy:
        """The taxonomy. Another one takes its place where it is set, and may be the path of its file, or None.

        Match calls that begin later see it; those that run, and results that are there, keep the one before. No
        subscription is compiled again; which class tests hold of a name is found out again where the change touches
        it. Raises what `load_taxonomy` raises, as for a cycle: then the one before stays.
        """
        return self._compiler.world.taxonomy

    @taxonomy.setter
    def taxonomy(self, taxonomy: Taxonomy | str | os.PathLike[str] | None) -> None:
        """Put another taxonomy in its place."""
        new = arguments.taxonomy_of("Engine.taxonomy", taxonomy, self.settings)
        with self._current.lock:
            self._current.snapshot = _with_taxonomy(self._snapshot, new)

    def change_taxonomy(
        self, *, add: Taxonomy | None = None, remove: Taxonomy | None = None, drop: Iterable[str] = ()
    ) -> Taxonomy:
        """Put the taxonomy that `Taxonomy.changed` makes of today's in its place, in one step; returns it. Raises what
        that raises: then the one before stays."""
        with self._current.lock:
            new = self.taxonomy.changed(add=add, remove=remove, drop=drop)
            self._current.snapshot = _with_taxonomy(self._snapshot, new)
        return new

    def with_taxonomy(self, taxonomy: Taxonomy | str | os.PathLike[str] | None) -> Engine:
        """An engine of the same subscriptions with another taxonomy. Both share what does not depend on that; later
        changes of the one are not seen by the other."""
        new = arguments.taxonomy_of("Engine.with_taxonomy(taxonomy)", taxonomy, self.settings)
        return self._with(_with_taxonomy(self._snapshot, new))

    @property
    def settings(self) -> Settings:
        """The limits."""
        return self._compiler.world.settings

    @property
    def operators(self) -> Mapping[str, Operator]:
        """The operators that calls may name."""
        return self._compiler.world.operators

    @property
    def learned(self) -> LearnedCalls:
        """What operator calls have cost and how often they were true: `by_operator()` of it."""
        return self._compiler.learned

    @property
    def left_to_verification(self) -> list[str]:
        """The ids of the subscriptions that a matcher of the papers cannot decide by itself (`docs/matching.md`). Their
        candidates are verified; other matchers name none."""
        return self._snapshot.left_to_verification()

    @property
    def unknown_sources(self) -> list[str]:
        """What FROM names, and no publication so far came from, of those that a subscription was otherwise about."""
        operator = self._compiler.world.operators[FROM_SOURCE]
        met = operator.met if isinstance(operator, FromSource) else {}
        return sorted(name for name, is_known in dict(met).items() if not is_known)

    @property
    def source_names(self) -> Mapping[str, Iterable[str]]:
        """Other names of sources, for FROM: what `Publication.source` says -> names. Other ones take their place where
        they are set."""
        operator = self._compiler.world.operators[FROM_SOURCE]
        return operator.names if isinstance(operator, FromSource) else {}

    @source_names.setter
    def source_names(self, names: Mapping[str, Iterable[str]]) -> None:
        """Put other names in their place."""
        operator = self._compiler.world.operators[FROM_SOURCE]
        if isinstance(operator, FromSource):
            operator.names = names

    @property
    def operator_order(self) -> str:
        """The order in which operators are called."""
        return self._compiler.world.operator_order

    # --- storage -----------------------------------------------------------------------------------------------------

    def save(self, path: str | Path, *, index: bool = True, learned: bool = True) -> None:
        """Write everything but the operators to a directory, in place of what was saved there before.

        With `index`, the index of a matcher that has one is written as well, so that loading need not make it anew, and
        texts that are in a table stay there; without, they are written as well;
        with `learned`, what operator calls have cost and how often they were true. A save that is interrupted leaves
        the engine that was there before; one process saves at a time, others wait.
        Raises `StoreError` when the directory holds anything but a saved engine, when it cannot be written, when
        another process has been saving there for a minute, and when a subscription would not come back as it is (one
        that was not made from its text); `LimitError` where there are too many subscriptions for one index.
        """
        expect_path("save(path)", path)
        contents.save(Path(path), self._current, self._matcher_name, index, learned)

    @classmethod
    def load(
        cls,
        path: str | Path,
        *,
        matcher: str | None = None,
        operators: Mapping[str, Operator] | None = None,
        settings: Settings | None = None,
        operator_order: str = GREEDY,
        operator_cache: str | os.PathLike[str] | OutcomeCache | None = None,
        tables: SubscriptionTexts | Iterable[SubscriptionTexts] = (),
    ) -> Engine:
        """The engine that `save` wrote, with its matcher and settings unless others are given.

        A saved index is opened as a memory map, after every file has been read once and found to have the SHA-256 that
        it was saved with. Where operators have other units, or `max_branches` is another, the texts are compiled anew.
        Without an index, a text that other limits or operators refuse is refused here; with one, its pairs are refused
        where it takes the text to decide them. `tables`: those from which subscriptions were loaded.

        Raises `StoreError` when the directory is damaged, of a newer version or no saved engine, and for a table that
        is not given.
        """
        expect_path("load(path)", path)
        if matcher is not None:
            expect_text("load(matcher=...)", matcher)
        arguments.check_operators("load", operators)
        arguments.check_settings("load", settings)
        named = arguments.tables_by_name(tables)
        saved = store.load(Path(path), settings)
        engine = cls(
            taxonomy=saved.taxonomy,
            matcher=saved.matcher if matcher is None else matcher,
            operators=operators,
            settings=saved.settings,
            entailment=saved.entailment,
            operator_order=operator_order,
            operator_cache=operator_cache,
        )
        engine._compiler.tables.update(named)
        contents.fill(engine._current, engine._compiler, engine._matcher, saved, Path(path))
        return engine


def _with_taxonomy(snapshot: Snapshot, taxonomy: Taxonomy) -> Snapshot:
    """The same subscriptions with this taxonomy."""
    compiler = snapshot.compiler
    return snapshot if taxonomy is compiler.world.taxonomy else snapshot.with_compiler(compiler.with_taxonomy(taxonomy))
