"""The engine: register standing queries, hand it publications, get matches.

    engine = Engine(taxonomy=load_taxonomy("classes.ttl"))
    engine.subscribe("SELECT ?t WHERE { ?s rss:title ?t FILTER ftcontains(?t, \\"olympic games\\") }", id="olympics")
    for match in engine.match(read("feeds/")):
        print(match.subscription, match.publication, match.bindings)

Languages: `triplewire.languages`. Which subscriptions are looked at and how: `triplewire.matchers`. What a match call
returns: `result`. Why a pair matched or not: `explain`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby, islice
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from triplewire import plugins
from triplewire.config import Settings
from triplewire.engine.compiler import Compiler, id_is_taken
from triplewire.engine.current import Current, publications_of
from triplewire.engine.incoming import Portion, chunk_of_columns, chunks_of, chunks_of_files
from triplewire.engine.registered import Registered
from triplewire.engine.result import MatchResult
from triplewire.engine.rules import Rules, Seen
from triplewire.engine.stats import Clock
from triplewire.engine.store import directory as store
from triplewire.engine.store import rows as saved_rows
from triplewire.engine.tiers.matcher import empty_snapshot
from triplewire.errors import LimitError, Refusal, SubscriptionError, TriplewireError, raise_refusal
from triplewire.ir.checks import check
from triplewire.ir.evaluation.evaluate import World
from triplewire.ir.subscription import Subscription
from triplewire.ir.taxonomy import EMPTY, Taxonomy
from triplewire.languages import parse
from triplewire.matchers import Chunk, Snapshot
from triplewire.model.operator import Operator
from triplewire.model.publication import Publication
from triplewire.operators import built_in_operators
from triplewire.read.sources import Source

if TYPE_CHECKING:
    import pyarrow as pa

    from triplewire.engine.explain.explanation import Explanation

File: TypeAlias = "str | os.PathLike[str]"
Refuse: TypeAlias = Callable[[Refusal], None]
Warn: TypeAlias = Callable[[str, str], None]

ENTAILMENTS = ("none", "rdfs")
LOADED_TOGETHER = 16_384  # subscriptions of a file that are registered together


class Engine:
    """Subscriptions, a taxonomy, operators and limits; matches publications against them.

    `taxonomy` answers class constraints; `matcher` names a matcher (all give the same answers); `operators` are those
    that calls may name (default: the built-in ones); `settings` are the limits. `entailment="rdfs"` applies the
    taxonomy's rdfs:subPropertyOf, rdfs:domain and rdfs:range to each publication and lets an `rdf:type` pattern with a
    constant class, of any language, take in the subclasses. Any number of threads may call any method: a match call
    works on the subscriptions that were registered when it began.
    """

    def __init__(
        self,
        *,
        taxonomy: Taxonomy | None = None,
        matcher: str = "trie",
        operators: Mapping[str, Operator] | None = None,
        settings: Settings | None = None,
        entailment: str = "none",
    ) -> None:
        if entailment not in ENTAILMENTS:
            raise TriplewireError(f"there is no entailment {entailment!r}", remedy=f"known: {', '.join(ENTAILMENTS)}")
        world = World(
            EMPTY if taxonomy is None else taxonomy,
            built_in_operators() if operators is None else operators,
            settings or Settings(),
        )
        self._compiler = Compiler(world, entailment)
        self._matcher_name = matcher
        self._matcher = plugins.find("matcher", matcher)
        self._current = Current(empty_snapshot(self._matcher, self._compiler))
        self._last_number = 0

    @property
    def _snapshot(self) -> Snapshot:
        """Read once a call: a snapshot is never changed, only replaced."""
        return self._current.snapshot

    # --- subscriptions -----------------------------------------------------------------------------------------------

    def subscribe(
        self,
        query: str | Subscription,
        language: str = "sparql",
        *,
        id: str = "",
        prefixes: Mapping[str, str] | None = None,
        base: str = "",
    ) -> Subscription:
        """Register a query text, or a subscription that `parse` made; returns it as registered.

        Without an id it gets the next free one of s1, s2, ... Its `warnings` say what may be a mistake (a class that
        the taxonomy does not know). Raises `SubscriptionError` when the id is taken or an operator is unknown, and
        what `parse` raises.
        """
        world = self._compiler.world
        with self._current.lock:
            if isinstance(query, Subscription):
                plain = False
                subscription = replace(query, id=id or query.id, where=check(query, world.settings))
            else:
                rules = Seen(Rules(self._snapshot))
                subscription = parse(
                    query,
                    language,
                    id=id,
                    prefixes=prefixes,
                    base=base,
                    operators=world.operators,
                    rules=rules,
                    settings=world.settings,
                )
                plain = not rules.used
            if not subscription.id:
                subscription = replace(subscription, id=self._fresh_id())
            if subscription.id in self._snapshot:
                raise id_is_taken(subscription.id)
            subscription = self._compiler.checked(subscription)
            self._current.snapshot = self._snapshot.changed((subscription,), (), plain=plain)
        self._current.work_aside()
        return subscription

    def _fresh_id(self) -> str:
        while True:
            self._last_number += 1
            if (name := f"s{self._last_number}") not in self._snapshot:
                return name

    def unsubscribe(self, id: str) -> bool:
        """Remove a subscription; False when there is none of this id. A rule that names it keeps its meaning."""
        with self._current.lock:
            if id not in self._snapshot:
                return False
            self._current.snapshot = self._snapshot.changed((), (id,))
        self._current.work_aside()
        return True

    def load_subscriptions(
        self,
        paths: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
        *,
        on_refusal: Callable[[Refusal], None] | None = None,
        on_warning: Callable[[str, str], None] | None = None,
        progress: Callable[[int], None] | None = None,
        ids: Collection[str] | None = None,
    ) -> int:
        """Register the subscriptions of files and folders (`triplewire.languages.sources.files`); returns how many.

        What is wrong goes to `on_refusal` and the rest is loaded; without it, the first refusal is raised as
        `SubscriptionError`, and what was loaded before it stays. `on_warning` gets a subscription's id and what its
        author should know; `progress` gets the number of those registered so far, now and then. With `ids`, others
        than these are passed over.
        """
        refuse = raise_refusal if on_refusal is None else on_refusal
        files = [paths] if isinstance(paths, str | os.PathLike) else list(paths)
        wanted = None if ids is None else frozenset(ids)
        if wanted is None:
            self._current.for_loading(files)
        loaded = 0
        for more in self._load(files, refuse, on_warning, wanted):
            loaded += more
            if progress is not None:
                progress(loaded)
        self._current.settle()
        return loaded

    def _load(self, files: list[File], refuse: Refuse, warn: Warn | None, ids: frozenset[str] | None) -> Iterator[int]:
        """Register the subscriptions of files; yields how many more, now and then."""
        # it brings Arrow along, which takes a fifth of a second to load
        from triplewire.engine.loading import load

        yield from load(files, self._compiler, self._current, refuse, warn, ids)

    @property
    def subscriptions(self) -> Sequence[Subscription]:
        """What is registered now, in the order of registration: a view that later changes leave alone."""
        return Registered(self._snapshot)

    def settle(self) -> None:
        """Do now, and wait for, what is otherwise done in the background: take changes into the index for good, and
        where the first subscriptions are matched interpreted, compile the kernels."""
        self._current.compiled()
        self._current.settle()

    # --- publications ------------------------------------------------------------------------------------------------

    def match(self, publications: Publication | Iterable[Publication]) -> MatchResult:
        """Match one publication or many against all subscriptions.

        A pair that cannot be decided (a limit is passed, an operator fails) becomes one of the result's refusals; the
        others go on. What the iterable itself raises is passed on.
        """
        snapshot, clock = self._current.for_matching(), Clock()
        given = iter([publications] if isinstance(publications, Publication) else publications)
        return _matched(snapshot, chunks_of(given, self._compiler, clock), clock)

    def match_files(
        self,
        *sources: Source,
        split: str = "item",
        on_refusal: Callable[[Refusal], None] | None = None,
        clock: Clock | None = None,
    ) -> Iterator[MatchResult]:
        """Match the publications of files, folders and streams, as `triplewire.read` takes them, a chunk at a time.

        Faster than `match(read(...))` where the matcher takes columns and a file is plain N-Quads or N-Triples, and the
        same otherwise. A publication that cannot be read goes to `on_refusal`; without it, the first one is raised as
        `ReadError`. With a `clock`, the time of the stages goes there, and not to the results.
        """
        mine, portion = clock or Clock(), Portion()
        with mine("load"):
            snapshot = self._current.for_matching(lambda: publications_of(sources))
        for whole in chunks_of_files(sources, split, self._compiler, mine, on_refusal, snapshot.columnar):
            for chunk in portion.parts(whole):
                rows = snapshot.match(chunk, mine)
                portion.record(len(chunk), len(rows))
                result = MatchResult(snapshot)
                result.add(chunk, rows)
                if clock is None:
                    result.stats.seconds = mine.lap()
                yield result
                if clock is None:
                    mine.lap()  # what the caller did meanwhile

    def match_batch(
        self, batch: pa.RecordBatch, *, on_refusal: Callable[[Refusal], None] | None = None
    ) -> pa.RecordBatch:
        """Publications in, matches out, as Arrow batches of the schemas in `triplewire.encode.schema`.

        Rows that are no publication, and pairs that cannot be decided, are handed to `on_refusal`; without it, the
        first one is raised as `ReadError` or `SubscriptionError`.
        """
        # Arrow takes a fifth of a second to load, and most programs never hand over a batch
        from triplewire.encode.matches import combined
        from triplewire.encode.schema import from_batch

        snapshot, clock = self._current.for_matching(lambda: batch.num_rows), Clock()
        whole = chunk_of_columns(batch, self._compiler, clock) if snapshot.columnar else None
        given = from_batch(batch, settings=self._compiler.world.settings, on_refusal=on_refusal)
        chunks = chunks_of(given, self._compiler, clock) if whole is None else [whole]
        result = _matched(snapshot, chunks, clock)
        for refusal in result.refusals:
            if on_refusal is None:
                raise SubscriptionError(refusal.reason, source=refusal.subject, remedy=refusal.remedy)
            on_refusal(refusal)
        return combined(result.to_arrow())

    def explain(self, subscription_id: str, publication: Publication) -> Explanation:
        """Why the subscription matches the publication, or the first part of it that fails.

        Raises `SubscriptionError` when there is no such subscription, `LimitError` where the evaluation passes one.
        """
        subscription = self._snapshot.get(subscription_id)
        if subscription is None:
            raise SubscriptionError("there is no subscription of this id", source=subscription_id)
        from triplewire.engine.explain.explanation import explain  # matching does without it

        compiler = self._compiler
        try:
            return explain(compiler.meant(subscription), compiler.entailed(publication), compiler.world)
        except RecursionError:
            raise LimitError(
                "the query is nested too deep to be explained", source=subscription.id, remedy="lower max_query_depth"
            ) from None

    # --- storage -----------------------------------------------------------------------------------------------------

    def save(self, path: str | Path, *, index: bool = True) -> None:
        """Write everything but the operators to a directory, in place of what was saved there before.

        With `index`, the index of a matcher that has one is written as well, so that loading need not make it anew.
        Raises `StoreError` when the directory holds anything but a saved engine, when it cannot be written, and when a
        subscription would not come back as it is (one that was not made from its text).
        """
        compiler, count = self._compiler, len(self._snapshot)
        snapshot = self._current.compiled() if index and count else self._snapshot
        world = compiler.world
        head = store.header(world.settings, self._matcher_name, compiler.entailment, len(snapshot))
        parts = {"taxonomy": store.taxonomy_part(world.taxonomy)}
        if not (index and snapshot.columnar and len(snapshot)):
            lines = list(saved_rows.rows(snapshot.all(), compiler))
            store.save(Path(path), lambda: head, {"subscriptions": ("jsonl", lambda s: s.writelines(lines)), **parts})
            return
        # compiled kernels, which the other matchers do without
        from triplewire.engine.store.segment_files import StoredSegment

        stored = StoredSegment.of(snapshot, compiler)
        store.save(Path(path), lambda: {**head, **stored.manifest()}, {**stored.parts(), **parts})

    @classmethod
    def load(
        cls,
        path: str | Path,
        *,
        matcher: str | None = None,
        operators: Mapping[str, Operator] | None = None,
        settings: Settings | None = None,
        verify: bool = False,
    ) -> Engine:
        """The engine that `save` wrote, with its matcher and settings unless others are given.

        A saved index is opened as a memory map, in about the same time whatever its size; of files larger than
        8 MiB, sizes and samples are checked, and with `verify` every byte. Raises `StoreError` when the directory is
        damaged, of a newer version or no saved engine.
        """
        saved = store.load(Path(path), settings, whole=verify)
        engine = cls(
            taxonomy=saved.taxonomy,
            matcher=saved.matcher if matcher is None else matcher,
            operators=operators,
            settings=saved.settings,
            entailment=saved.entailment,
        )
        engine._fill(saved, str(path))
        return engine

    def _fill(self, saved: store.Saved, source: str) -> None:
        """Take over the subscriptions of a saved engine: its index, or else what its texts give."""
        compiler = self._compiler
        if saved.index is not None and self._current.compiled().columnar:
            from triplewire.engine.store.segment_files import opened  # as in `save`

            snapshot = opened(saved, compiler, self._matcher, source)
            if snapshot is not None:
                self._current.snapshot = snapshot
                return
        with saved.subscriptions as lines:
            rows = {row["id"]: row for row in (saved_rows.parsed_row(line, source) for line in lines)}
        subscriptions = saved_rows.compiled_rows(rows, compiler, source)
        for plain, group in groupby(subscriptions, lambda subscription: not rows[subscription.id].get("rules")):
            checked = (saved_rows.checked(subscription, compiler, source) for subscription in group)
            while together := list(islice(checked, LOADED_TOGETHER)):
                self._current.snapshot = self._snapshot.changed(together, (), plain=plain)
        self._current.settle()


def _matched(snapshot: Snapshot, chunks: Iterable[Chunk], clock: Clock) -> MatchResult:
    """The matches of chunks, in parts of so many rows."""
    result, portion = MatchResult(snapshot), Portion()
    for whole in chunks:
        for chunk in portion.parts(whole):
            rows = snapshot.match(chunk, clock)
            portion.record(len(chunk), len(rows))
            result.add(chunk, rows)
    result.stats.seconds = clock.seconds()
    return result
