"""Single subscriptions come and go: each change is a small version, which running streams have at their next batch.

A change writes a delta, which is all that was added since the last full version, and names what was removed. What takes
the place of another one is removed and added in the same version. New subscriptions are matched in stage 1, but for
those that one there contains (`joining`). A root that is removed leaves a router in the delta, for what is below it on
the nodes. Once there are many changes, the parts that they are about are written anew.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from triplewire.engine import Engine
from triplewire.engine.compiler import id_is_taken
from triplewire.engine.views import derived_engine, empty_engine, revision_in
from triplewire.errors import Refusal, SubscriptionError
from triplewire.ir.subscription import Subscription
from triplewire.languages.sources.files import rows_of_ids
from triplewire.operators.files import OperatorFile
from triplewire.partition.placement import add
from triplewire.pipeline.index.joining import joined
from triplewire.pipeline.index.open_version import OpenVersion, opened, refuse_missing
from triplewire.pipeline.index.versions import (
    CHANGED,
    DELTA,
    PLAN,
    SERVER,
    Content,
    Plan,
    Version,
    alone,
    load,
    publish,
    seal,
    sweep,
)

CHANGES = 512
"""Additions and removals that are told beside a full version; with more, the version is written in full."""


@dataclass(frozen=True)
class Change:
    """What a call did: the version that counts now, how many subscriptions were added or removed, and how many took
    the place of one."""

    version: Version
    changed: int
    replaced: int = 0


class _Changes:
    """What a call changes of a version: the delta, the ids that are gone, what the delta adds to the plan."""

    def __init__(self, before: OpenVersion) -> None:
        content = before.version.content
        self.delta = {subscription.id: subscription for subscription in before.added}
        self.gone, self.more = dict.fromkeys(content.gone), content.more
        self._plan, self._engines = before.version.plan, before.all()
        self._removed = set(self._plan.routers)

    def holder(self, id: str) -> Engine | None:
        """The engine with the subscription of this id; None where there is none any more."""
        return None if id in self._removed else next((engine for engine in self._engines if id in engine), None)

    def __contains__(self, id: object) -> bool:
        return isinstance(id, str) and self.holder(id) is not None

    def remove(self, id: str) -> bool:
        """Remove the subscription of this id; False where there is none."""
        holder = self.holder(id)
        if holder is None:
            return False
        self._removed.add(id)
        if self.delta.pop(id, None) is None:
            self.gone[id] = None
        elif id in self.more.placed:
            self.more = replace(self.more, placed={of: node for of, node in self.more.placed.items() if of != id})
        root = holder.get(id) if id in self._plan.routes else None
        if root is not None:
            # its id is made by chance, so that no subscription has it, or will have it
            router = replace(root, id=f"router:{secrets.token_hex(8)}")
            self.delta[router.id] = router
            routes = {of: nodes for of, nodes in self.more.routes.items() if of != id}
            self.more = replace(self.more, routes=routes).with_more(
                Plan({router.id: self._plan.routes[id]}, frozenset({router.id}))
            )
        return True

    def place(self, before: OpenVersion, newcomers: Sequence[Subscription]) -> None:
        """Put newcomers on the nodes to which what contains them leads."""
        if newcomers and before.version.is_staged:
            at_server = [each for each in self.delta.values() if self.more.part_of(each.id) == SERVER]
            routes = self._plan.with_more(self.more).routes
            self.more = self.more.with_more(joined(before, routes, at_server, tuple(self.gone), newcomers))


def subscribe(
    directory: Path,
    files: Sequence[str | os.PathLike[str]],
    operators: Sequence[OperatorFile] = (),
    *,
    replaces: bool = False,
    on_refusal: Callable[[Refusal], None],
    on_warning: Callable[[str, str], None] | None = None,
) -> Change:
    """Add the subscriptions of files to an index. One that is refused goes to `on_refusal`, and the others are added.
    With `replaces`, one takes the place of another of its id in the same version, unless its text is the same; the
    files are read twice. Raises `StoreError` where the index is damaged, or cannot be written."""
    load(directory)  # else `alone` would make the directory
    with alone(directory):
        before = opened(directory, load(directory).name, operators)
        refuse_missing(before)  # a new subscription may call them, and be wrong
        changes, server = _Changes(before), before.server()
        there = rows_of_ids(files, changes, server.settings) if replaces else {}
        now = derived_engine(server, (), [id for id in there if id in server])
        count = len(now)
        now.load_subscriptions(files, on_refusal=on_refusal, on_warning=on_warning)
        new = list(now.subscriptions[count:])
        taken = {subscription.id for subscription in new if subscription.id in changes}
        rows = rows_of_ids(files, taken, now.settings) if taken and not replaces else {}
        for id in sorted(taken) if not replaces else ():
            row, error = rows.get(id), id_is_taken(id, "choose another, or give --replace")
            # no row, where standard input has been read
            on_refusal(row.refusal(error) if row is not None else Refusal.of("subscription", id, error))
        replaced, newcomers = 0, list[Subscription]()
        for subscription in new:
            holder = changes.holder(subscription.id)
            if holder is not None:
                if not replaces or revision_in(holder, subscription.id) == subscription.revision:
                    continue
                changes.remove(subscription.id)
                replaced += 1
            changes.delta[subscription.id] = subscription
            newcomers.append(subscription)
        changes.place(before, newcomers)
        added = len(new) - len(taken)
        return _published(before, changes, added, replaced)


def unsubscribe(
    directory: Path,
    ids: Iterable[str],
    operators: Sequence[OperatorFile] = (),
    *,
    on_refusal: Callable[[Refusal], None],
) -> Change:
    """Remove subscriptions from an index by their ids. An id that is not there goes to `on_refusal`, and the others are
    removed. Raises `StoreError` as `subscribe` does."""
    load(directory)
    with alone(directory):
        before = opened(directory, load(directory).name, operators)
        changes, count = _Changes(before), 0
        for id in ids:
            if changes.remove(id):
                count += 1
            else:
                remedy = f"triplewire pipeline list --index {directory} names those that are there"
                error = SubscriptionError("there is no subscription of this id", remedy=remedy)
                on_refusal(Refusal.of("subscription", id, error))
        return _published(before, changes, -count)


def held(version: OpenVersion) -> Iterator[Subscription]:
    """The subscriptions of a version, those of its delta too: in the order of their registration, node by node."""
    routers = version.version.plan.routers
    for engine in version.all():
        yield from (subscription for subscription in engine.subscriptions if subscription.id not in routers)


def changed_since_built(version: Version, delta: Iterable[Subscription]) -> dict[str, str]:
    """What was added or removed since a version was built from files: id -> revision, "" of what is gone. `delta` are
    the subscriptions of its delta. Raises `StoreError`."""
    routers = version.plan.routers
    added = {subscription.id: subscription.revision for subscription in delta if subscription.id not in routers}
    return {**version.changed, **dict.fromkeys(version.content.gone, ""), **added}


def _published(before: OpenVersion, changes: _Changes, more: int, replaced: int = 0) -> Change:
    """The version with these changes, where there are any: `more` subscriptions than before (fewer where it is
    negative), and so many `replaced`."""
    if not (more or replaced):
        return Change(before.version, 0)
    directory, delta = before.version.directory, list(changes.delta.values())
    count = before.version.content.subscriptions + more
    content = replace(before.version.content, gone=tuple(changes.gone), more=changes.more, subscriptions=count)

    def write(aside: Path, name: str) -> Content:
        if len(delta) + len(content.gone) > CHANGES:
            return _whole(aside, name, before, delta, content)
        if not delta:
            return replace(content, delta="", source="")
        engine = empty_engine(before.server())
        add(engine, delta)
        engine.save(aside / DELTA)
        return replace(content, delta=f"{name}/{DELTA}", source="")

    version = publish(directory, write)
    sweep(directory)
    return Change(version, abs(more), replaced)


def _whole(aside: Path, name: str, before: OpenVersion, delta: list[Subscription], content: Content) -> Content:
    """The version without a delta: the server is written anew, and so are the nodes that something went from."""
    parts = dict(content.parts)
    after = OpenVersion(replace(before.version, content=replace(content, delta="")), before.operators)
    for part in parts:
        saved = after.saved(part)
        gone = [id for id in content.gone if id in saved]
        added = [each for each in delta if content.more.part_of(each.id) == part]
        if gone or added:
            derived_engine(saved, added, gone).save(aside / part)
            parts[part] = f"{name}/{part}"
    plan, whole = "", Version(before.version.directory, before.version.name, content, "")
    if before.version.is_staged:
        removed = set(content.gone) - {subscription.id for subscription in delta}
        routes = {id: nodes for id, nodes in whole.plan.routes.items() if id not in removed}
        seal(aside / PLAN, Plan(routes, whole.plan.routers).to_json())
        plan = f"{name}/{PLAN}"
    seal(aside / CHANGED, {"changed": changed_since_built(whole, delta)})
    changed = f"{name}/{CHANGED}"
    return replace(content, parts=parts, plan=plan, delta="", gone=(), more=Plan(), source="", changed=changed)
