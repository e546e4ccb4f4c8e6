"""Rules from what a person picks while browsing a provider (MDV paper, section 2.3)."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from triplewire.errors import SubscriptionError
from triplewire.metadata.messages import RuleText
from triplewire.metadata.registry import Registry
from triplewire.model.terms import RDF_TYPE, made_iri


def rules_of_picks(registry: Registry, picks: Sequence[str], condition: str = "") -> list[RuleText]:
    """A rule for each pick: a class with its instances, for which the condition holds (over `c`, as `c.memory > 64`; a
    step without prefix is in the namespace of the class), or a resource. Equal picks give equal rules. Raises
    `SubscriptionError` where there is no such class or resource."""
    classes = registry.classes()
    rules: list[RuleText] = []
    for pick in dict.fromkeys(picks):
        if pick in classes:
            where = f"\nwhere {condition}" if condition else ""
            namespace = pick[: max(pick.rfind("#"), pick.rfind("/")) + 1]
            query = f"PREFIX : <{namespace}>\nsearch <{pick}> c\nregister c{where}"
        else:
            told = registry.resources([pick]).get(pick)
            types = [value for name, value in told.statements if name == RDF_TYPE.value] if told is not None else []
            if not types:
                what = f"there is no class or resource {pick}"
                raise SubscriptionError(what, remedy="`triplewire metadata browse` shows what there is")
            query = f"search {min(types)} c\nregister c\nwhere c = {made_iri(pick)}"
        digest = hashlib.sha256(query.encode("utf-8", "surrogatepass")).hexdigest()[:12]
        rules.append(RuleText(f"pick-{digest}", query))
    return rules
