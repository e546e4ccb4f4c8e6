"""Texts to subscriptions, as one engine means them: its operators, limits, taxonomy and entailment.

The languages themselves: `triplewire.languages`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from triplewire.errors import SubscriptionError, TriplewireError
from triplewire.ir.entailment import with_subclasses
from triplewire.ir.evaluation.evaluate import World
from triplewire.ir.nodes import Call, InstanceOf, Label
from triplewire.ir.show import show
from triplewire.ir.subscription import Subscription
from triplewire.ir.taxonomy import Taxonomy
from triplewire.ir.walk import walk
from triplewire.languages import parse
from triplewire.model.operator import Operator
from triplewire.model.publication import Publication
from triplewire.model.terms import IRI

_encode = json.JSONEncoder(ensure_ascii=False).encode


@dataclass(frozen=True)
class Compiler:
    """What a text means beside what it says. `entailment` is "none" or "rdfs"."""

    world: World
    entailment: str = "none"

    def compiled(
        self, row: Mapping[str, Any], rules: Mapping[str, Subscription] | None = None, *, full: bool = True
    ) -> Subscription:
        """The subscription of a row {"id", "language", "query", "prefixes", "base"}; `rules` are those it may name.

        With warnings, and its operators checked, where `full`. Raises what `parse` raises, and `SubscriptionError`.
        """
        subscription = parse(
            row["query"],
            row["language"],
            id=row["id"],
            prefixes=row["prefixes"],
            base=row["base"],
            operators=self.world.operators,
            rules=rules,
            settings=self.world.settings,
        )
        return self.checked(subscription) if full else subscription

    def checked(self, subscription: Subscription) -> Subscription:
        """The subscription with the warnings that the taxonomy gives. Raises `SubscriptionError` for an operator that
        is not there."""
        check_operators(subscription, self.world.operators)
        warnings = dict.fromkeys((*subscription.warnings, *unknown_classes(subscription, self.world.taxonomy)))
        return replace(subscription, warnings=tuple(warnings))

    def is_plain(self, subscription: Subscription) -> bool:
        """Is the subscription what its text gives by itself, without other rules?"""
        try:
            return self.compiled(row_of(subscription), full=False) == subscription
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


def line_of(row: Mapping[str, object]) -> bytes:
    """The row as a line of a subscription file. Lone surrogates stay what they are."""
    return _encode(row).encode("utf-8", "surrogatepass") + b"\n"


def id_is_taken(id: str) -> SubscriptionError:
    """The error of a second subscription of one id."""
    return SubscriptionError("the id is taken", source=id, remedy="choose another, or unsubscribe the first one")


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
        if isinstance(node, InstanceOf) and (warning := class_warning(node.cls, taxonomy)):
            yield warning


def class_warning(cls: IRI | Label, taxonomy: Taxonomy) -> str:
    """What to say of a class that the taxonomy does not know; "" of one that it knows."""
    if taxonomy.resolve(cls):
        return ""
    name = cls.text if isinstance(cls, Label) else show(cls)
    return f"the taxonomy knows no class {name!r}: only direct instances can match"
