"""Which operators the subscriptions of a saved engine call, and the units of their parameters, as its manifest says.

So the engine can be opened without these operators: `triplewire.operators.missing` stands in for them. They are the
field "units" of the manifest, or of its entry "index" where there is one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from triplewire.engine.store.manifest import MANIFEST, damaged, read_manifest
from triplewire.ir.subscription import Subscription
from triplewire.ir.walk import calls_in
from triplewire.model.operator import Operator

UNITS = "units"


def units_in(subscriptions: Iterable[Subscription], operators: Mapping[str, Operator]) -> dict[str, list[str]]:
    """The operators that some subscriptions call, each with the units of its parameters."""
    called = {call.operator for subscription in subscriptions for call in calls_in(subscription.where)}
    return units_of(called, operators)


def units_of(names: Iterable[str], operators: Mapping[str, Operator]) -> dict[str, list[str]]:
    """The units of the parameters of those operators that are there."""
    return {name: [each.unit for each in operators[name].parameters] for name in sorted(names) if name in operators}


def units_of_called(directory: Path) -> dict[str, tuple[str, ...]]:
    """The operators that the subscriptions of a saved engine call, each with the units of its parameters; none where an
    earlier version saved it without an index. Raises `StoreError`."""
    manifest = read_manifest(directory)
    entry = manifest.get("index", manifest)
    units = entry.get(UNITS, {}) if isinstance(entry, Mapping) else {}
    try:
        return {str(name): tuple(map(str, own)) for name, own in units.items()}
    except (AttributeError, TypeError) as error:
        raise damaged(directory / MANIFEST, f"it does not say which operators are called ({error})") from error
