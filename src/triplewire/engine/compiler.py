"""Texts to subscriptions, as one engine means them: its operators, limits, taxonomy and entailment.

The languages themselves: `triplewire.languages`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

from triplewire.engine.arguments import called_operators
from triplewire.errors import SubscriptionError, TriplewireError
from triplewire.ir.advice.questions import questions_of
from triplewire.ir.entailment import with_subclasses
from triplewire.ir.evaluation.evaluate import World
from triplewire.ir.nodes import Call, InstanceOf, Label
from triplewire.ir.show import show
from triplewire.ir.subscription import Subscription
from triplewire.ir.taxonomy import Taxonomy
from triplewire.ir.walk import calls_in, walk
from triplewire.languages import parse
from triplewire.languages.sources.tables import SubscriptionTexts, whole_rows
from triplewire.model.operator import Operator, parameters_of, takes, warnings_of_call
from triplewire.model.publication import Publication
from triplewire.model.terms import IRI, made_iri
from triplewire.operators import remedy_for_unknown
from triplewire.operators.order.statistics import LearnedCalls


@dataclass(frozen=True)
class Compiler:
    """Compiles texts with the operators, limits, taxonomy and entailment ("none" or "rdfs") of one engine.

    `learned`: the measured costs of operator calls. `tables`: those in which texts stay, by name.
    """

    world: World
    entailment: str = "none"
    learned: LearnedCalls = field(default_factory=LearnedCalls, compare=False, repr=False)
    tables: dict[str, SubscriptionTexts] = field(default_factory=dict, compare=False, repr=False)

    def compiled(
        self, row: Mapping[str, Any], rules: Mapping[str, Subscription] | None = None, *, full: bool = True
    ) -> Subscription:
        """The subscription of a row {"id", "language", "query", "prefixes", "base"}, or of the row of a table to which
        this one refers; `rules` are those it may name.

        With warnings, and its operators checked, where `full`. Raises what `parse` raises, `SubscriptionError`, and
        `StoreError` where the row of a table is gone or has changed.
        """
        (row,) = whole_rows((row,), self.tables)
        stated = {name: row[name] for name in ("id", "prefixes", "base")}
        operators, settings = self.world.operators, self.world.settings
        subscription = parse(
            row["query"], row["language"], **stated, operators=operators, rules=rules, settings=settings
        )
        return self.checked(subscription) if full else subscription

    def checked(self, subscription: Subscription) -> Subscription:
        """The subscription with all its warnings. Raises `SubscriptionError` for an operator that is not there, and for
        constants that it refuses."""
        nodes = list(walk(subscription.where))
        template = [term for triple in subscription.construct or () for term in triple]
        warnings = dict.fromkeys(subscription.warnings)
        warnings |= dict.fromkeys(questions_of(subscription.where, nodes, template).warnings())
        warnings |= self._warnings_of_names(nodes, subscription.id)
        return replace(subscription, warnings=tuple(warnings)) if warnings else subscription

    def _warnings_of_names(self, nodes: Iterable[object], source: str) -> dict[str, None]:
        """What operators and the taxonomy say of the calls and classes among these nodes. Raises as `checked`."""
        warnings: dict[str, None] = {}
        for node in nodes:
            if isinstance(node, Call):
                warnings |= dict.fromkeys(call_warnings(node, source, self.world.operators))
            elif isinstance(node, InstanceOf) and (warning := class_warning(node.cls, self.world.taxonomy)):
                warnings[warning] = None
        return warnings

    def checked_again(self, subscription: Subscription, before: Compiler) -> Subscription:
        """A subscription that another compiler has checked, which has another taxonomy, with the warnings of this one;
        itself where they are the same, and where an operator now refuses it, which its calls will say."""
        nodes = [node for node in walk(subscription.where) if isinstance(node, Call | InstanceOf)]
        if not nodes:
            return subscription
        with suppress(SubscriptionError):
            former = before._warnings_of_names(nodes, subscription.id)
            if list(self._warnings_of_names(nodes, subscription.id)) != list(former):
                others = tuple(warning for warning in subscription.warnings if warning not in former)
                return self.checked(replace(subscription, warnings=others))
        return subscription

    def with_taxonomy(self, taxonomy: Taxonomy) -> Compiler:
        """The same with another taxonomy, also for those operators that ask one."""
        operators = called_operators("Engine", self.world.operators, taxonomy)
        recall = None if self.world.recall is None else self.world.recall.of(operators, taxonomy)
        return replace(self, world=replace(self.world, taxonomy=taxonomy, operators=operators, recall=recall))

    def check_calls(self, subscription: Subscription) -> None:
        """Raises what `checked` raises, without a look at anything that only warns."""
        for call in calls_in(subscription.where):
            call_warnings(call, subscription.id, self.world.operators)

    def is_plain(self, subscription: Subscription) -> bool:
        """Does the text of the subscription, compiled without other rules, give the same subscription?"""
        try:
            return not subscription.rules and self.compiled(row_of(subscription), full=False) == subscription
        except TriplewireError:
            return False

    def meant(self, subscription: Subscription) -> Subscription:
        """The subscription as it is evaluated: where entailment is on, with subclasses."""
        return subscription if self.entailment == "none" else with_subclasses(subscription)

    def entailed(self, publication: Publication) -> Publication:
        """The publication with all that follows from it, where entailment is on."""
        if self.entailment == "none":
            return publication
        return self.world.taxonomy.properties.entail(publication)


def row_of(subscription: Subscription) -> dict[str, Any]:
    """What a subscription was made from, as a row of a subscription file."""
    row = {"id": subscription.id, "language": subscription.language, "query": subscription.text}
    return row | {"prefixes": dict(subscription.prefixes), "base": subscription.base}


def id_is_taken(id: str, remedy: str = "choose another, or remove the subscription that has it") -> SubscriptionError:
    """The error of a second subscription of one id."""
    return SubscriptionError("the id is taken", source=id, remedy=remedy)


def call_warnings(call: Call, source: str, operators: Mapping[str, Operator]) -> tuple[str, ...]:
    """What the operator says of the constants of a call. Raises `SubscriptionError` when the operator is not there,
    takes other arguments, or refuses these. `source`: the subscription's id."""
    operator = operators.get(call.operator)
    if operator is None:
        what = f"there is no operator named {call.operator!r}"
        raise SubscriptionError(what, source=source, remedy=remedy_for_unknown(operators, call.operator))
    if parameters_of(operator, len(call.arguments)) is None:
        what = f"{call.operator} takes {takes(operator)}, not {len(call.arguments)}"
        raise SubscriptionError(what, source=source)
    try:
        return warnings_of_call(operator, call.arguments)
    except ValueError as error:
        raise SubscriptionError(f"{call.operator}: {error}", source=source) from error


NO_TAXONOMY = "no taxonomy is given, or it states no class: only direct instances of classes can match"


def class_warning(cls: IRI | Label, taxonomy: Taxonomy) -> str:
    """What to say of a class that the taxonomy does not know (semantics, section 4); "" of one that it knows."""
    if taxonomy.resolve(cls):
        return ""
    if not taxonomy.classes:
        return NO_TAXONOMY
    name = cls.text if isinstance(cls, Label) else show(cls)
    near = taxonomy.class_like(cls)
    meant = f"; did you mean {show(made_iri(near)) if isinstance(cls, IRI) else near}?" if near else ""
    return f"the taxonomy knows no class {name!r}: only direct instances can match{meant}"
