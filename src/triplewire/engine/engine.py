"""The engine: register standing queries, hand it publications, get matches.

    engine = Engine(taxonomy=load_taxonomy("classes.ttl"))
    engine.subscribe("SELECT ?t WHERE { ?s rss:title ?t FILTER ftcontains(?t, \\"olympic games\\") }", id="olympics")
    for match in engine.match(read("feeds/")):
        print(match.subscription, match.publication, match.bindings)

Languages: `triplewire.languages`. Which subscriptions are looked at and how: `triplewire.matchers`. What a match call
returns: `result`. Why a pair matched or not: `explain`.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from triplewire import plugins
from triplewire.config import Settings
from triplewire.engine import store
from triplewire.engine.explain import Explanation, explain
from triplewire.engine.result import MatchResult
from triplewire.errors import LimitError, Refusal, SubscriptionError, TriplewireError
from triplewire.ir.entailment import with_subclasses
from triplewire.ir.evaluate import World
from triplewire.ir.nodes import Call, InstanceOf, Label
from triplewire.ir.normalize import check
from triplewire.ir.show import show
from triplewire.ir.subscription import Subscription
from triplewire.ir.taxonomy import EMPTY, Taxonomy
from triplewire.ir.walk import walk
from triplewire.languages import parse
from triplewire.matchers import MakeMatcher, Matcher
from triplewire.model.operator import Operator
from triplewire.model.publication import Publication
from triplewire.operators import built_in_operators

if TYPE_CHECKING:
    import pyarrow as pa

ENTAILMENTS = ("none", "rdfs")


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
        matcher: str = "reference",
        operators: Mapping[str, Operator] | None = None,
        settings: Settings | None = None,
        entailment: str = "none",
    ) -> None:
        if entailment not in ENTAILMENTS:
            raise TriplewireError(f"there is no entailment {entailment!r}", remedy=f"known: {', '.join(ENTAILMENTS)}")
        self._entailment = entailment
        self._make: MakeMatcher = plugins.find("matcher", matcher)
        self._matcher_name = matcher
        self._world = World(
            EMPTY if taxonomy is None else taxonomy,
            built_in_operators() if operators is None else operators,
            settings or Settings(),
        )
        self._lock = threading.Lock()  # held by writers, and by the reader that builds a new snapshot
        self._subscriptions: dict[str, Subscription] = {}
        self._rules: dict[str, Subscription] = {}  # those in MDV, which other MDV rules may name
        self._snapshot: Matcher | None = None  # over the current subscriptions; None after a change
        self._last_number = 0

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
        world = self._world
        with self._lock:
            if isinstance(query, Subscription):
                subscription = replace(query, id=id or query.id, where=check(query, world.settings))
            else:
                subscription = parse(
                    query,
                    language,
                    id=id,
                    prefixes=prefixes,
                    base=base,
                    operators=world.operators,
                    rules=self._rules,
                    settings=world.settings,
                )
            if not subscription.id:
                subscription = replace(subscription, id=self._fresh_id())
            if subscription.id in self._subscriptions:
                raise SubscriptionError(
                    "the id is taken", source=subscription.id, remedy="choose another, or unsubscribe the first one"
                )
            check_operators(subscription, world.operators)
            warnings = dict.fromkeys((*subscription.warnings, *unknown_classes(subscription, world.taxonomy)))
            subscription = replace(subscription, warnings=tuple(warnings))
            self._subscriptions[subscription.id] = subscription
            if subscription.language == "mdv":
                self._rules[subscription.id] = subscription
            self._snapshot = None
            return subscription

    def _fresh_id(self) -> str:
        while True:
            self._last_number += 1
            if (name := f"s{self._last_number}") not in self._subscriptions:
                return name

    def unsubscribe(self, id: str) -> bool:
        """Remove a subscription; False when there is none of this id. A rule that names it keeps its meaning."""
        with self._lock:
            self._rules.pop(id, None)
            self._snapshot = None
            return self._subscriptions.pop(id, None) is not None

    @property
    def subscriptions(self) -> tuple[Subscription, ...]:
        """What is registered now, in the order of registration."""
        with self._lock:
            return tuple(self._subscriptions.values())

    # --- publications ------------------------------------------------------------------------------------------------

    def match(self, publications: Publication | Iterable[Publication]) -> MatchResult:
        """Match one publication or many against all subscriptions.

        A pair that cannot be decided (a limit is passed, an operator fails) becomes one of the result's refusals; the
        others go on. What the iterable itself raises is passed on.
        """
        matcher, result, begun = self._matcher(), MatchResult(), time.perf_counter()
        for stated in [publications] if isinstance(publications, Publication) else publications:
            publication = self._entailed(stated)
            candidates = matcher.selector.candidates(publication)
            result.publications += 1
            result.pairs += len(candidates)
            for subscription, outcome in matcher.verifier.verify(publication, candidates):
                result.add(publication, subscription, outcome)
        result.seconds = time.perf_counter() - begun
        return result

    def _entailed(self, publication: Publication) -> Publication:
        return publication if self._entailment == "none" else self._world.taxonomy.properties.entail(publication)

    def _meant(self, subscription: Subscription) -> Subscription:
        return subscription if self._entailment == "none" else with_subclasses(subscription)

    def _matcher(self) -> Matcher:
        matcher = self._snapshot  # one read: a matcher is never changed, only replaced
        if matcher is None:
            with self._lock:
                matcher = self._snapshot
                if matcher is None:
                    meant = tuple(map(self._meant, self._subscriptions.values()))
                    matcher = self._snapshot = self._make(meant, self._world)
        return matcher

    def match_batch(
        self, batch: pa.RecordBatch, *, on_refusal: Callable[[Refusal], None] | None = None
    ) -> pa.RecordBatch:
        """Publications in, matches out, as Arrow batches of the schemas in `triplewire.encode.schema`.

        Rows that are no publication, and pairs that cannot be decided, are handed to `on_refusal`; without it, the
        first one is raised as `ReadError` or `SubscriptionError`.
        """
        # Arrow takes a fifth of a second to load, and most programs never hand over a batch
        from triplewire.encode.schema import from_batch, matches_to_batch

        result = self.match(from_batch(batch, settings=self._world.settings, on_refusal=on_refusal))
        for refusal in result.refusals:
            if on_refusal is None:
                raise SubscriptionError(refusal.reason, source=refusal.subject, remedy=refusal.remedy)
            on_refusal(refusal)
        return matches_to_batch(result)

    def explain(self, subscription_id: str, publication: Publication) -> Explanation:
        """Why the subscription matches the publication, or the first part of it that fails.

        Raises `SubscriptionError` when there is no such subscription, `LimitError` where the evaluation passes one.
        """
        subscription = self._subscriptions.get(subscription_id)
        if subscription is None:
            raise SubscriptionError("there is no subscription of this id", source=subscription_id)
        try:
            return explain(self._meant(subscription), self._entailed(publication), self._world)
        except RecursionError:
            raise LimitError(
                "the query is nested too deep to be explained", source=subscription.id, remedy="lower max_query_depth"
            ) from None

    # --- storage -----------------------------------------------------------------------------------------------------

    def save(self, path: str | Path) -> None:
        """Write everything but the operators to a directory, in place of what was saved there before.

        Raises `StoreError` when the directory holds anything but a saved engine, when it cannot be written, and when a
        subscription would not come back as it is (one that was not made from its text).
        """
        world = self._world
        state = store.Saved(self.subscriptions, world.taxonomy, world.settings, self._matcher_name, self._entailment)
        store.save(Path(path), state, world.operators)

    @classmethod
    def load(
        cls,
        path: str | Path,
        *,
        matcher: str | None = None,
        operators: Mapping[str, Operator] | None = None,
        settings: Settings | None = None,
    ) -> Engine:
        """The engine that `save` wrote, with its matcher and settings unless others are given.

        Raises `StoreError` when the directory is damaged, of a newer version or no saved engine.
        """
        operators = built_in_operators() if operators is None else operators
        saved = store.load(Path(path), operators, settings)
        engine = cls(
            taxonomy=saved.taxonomy,
            matcher=saved.matcher if matcher is None else matcher,
            operators=operators,
            settings=saved.settings,
            entailment=saved.entailment,
        )
        for subscription in saved.subscriptions:
            engine.subscribe(subscription)
        return engine


def check_operators(subscription: Subscription, operators: Mapping[str, Operator]) -> None:
    """Raises `SubscriptionError` when the subscription calls an operator that is not there, or with other arguments."""
    for node in walk(subscription.where):
        if not isinstance(node, Call):
            continue
        operator = operators.get(node.operator)
        if operator is None:
            known = ", ".join(sorted(operators)) or "none"
            raise SubscriptionError(
                f"there is no operator named {node.operator!r}", source=subscription.id, remedy=f"known: {known}"
            )
        if len(operator.parameters) != len(node.arguments):
            what = f"{node.operator} takes {len(operator.parameters)} arguments, not {len(node.arguments)}"
            raise SubscriptionError(what, source=subscription.id)


def unknown_classes(subscription: Subscription, taxonomy: Taxonomy) -> Iterator[str]:
    """A warning for each class of the subscription that the taxonomy does not know (semantics, section 4)."""
    for node in walk(subscription.where):
        if isinstance(node, InstanceOf) and not taxonomy.resolve(node.cls):
            name = node.cls.text if isinstance(node.cls, Label) else show(node.cls)
            yield f"the taxonomy knows no class {name!r}: only direct instances can match"
