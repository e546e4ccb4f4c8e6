"""Single subscriptions come and go: each change is a small version, which running streams have at their next batch.

A change writes a delta, which is all that was added since the last full version, and names what was removed. New
subscriptions are matched in stage 1. A root that is removed leaves a router in the delta, for what is below it on the
nodes. Once there are many changes, the parts that they are about are written anew.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from triplewire.engine.compiler import id_is_taken
from triplewire.engine.views import derived_engine, empty_engine
from triplewire.errors import Refusal, SubscriptionError
from triplewire.ir.subscription import Subscription
from triplewire.languages.sources.files import rows_of_ids
from triplewire.operators.files import OperatorFile
from triplewire.partition.placement import add
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
    """What a call did: the version that counts now, and how many subscriptions were changed."""

    version: Version
    changed: int


def subscribe(
    directory: Path,
    files: Sequence[str | os.PathLike[str]],
    operators: Sequence[OperatorFile] = (),
    *,
    on_refusal: Callable[[Refusal], None],
    on_warning: Callable[[str, str], None] | None = None,
) -> Change:
    """Add the subscriptions of files to an index. One that is refused goes to `on_refusal`, and the others are added.
    Raises `StoreError` where the index is damaged, or cannot be written."""
    load(directory)  # else `alone` would make the directory
    with alone(directory):
        before = opened(directory, load(directory).name, operators)
        refuse_missing(before)  # a new subscription may call them, and be wrong
        now = derived_engine(before.server())
        now.load_subscriptions(files, on_refusal=on_refusal, on_warning=on_warning)
        new, shards = list(now.subscriptions[len(before.server()) :]), before.all()[1:]
        taken = {subscription.id for subscription in new if any(subscription.id in shard for shard in shards)}
        added = [subscription for subscription in new if subscription.id not in taken]
        rows = rows_of_ids(files, taken, now.settings) if taken else {}
        for id in sorted(taken):
            row, error = rows.get(id), id_is_taken(id)  # no row, where standard input has been read
            on_refusal(row.refusal(error) if row is not None else Refusal.of("subscription", id, error))
        content = before.version.content
        more = replace(content, subscriptions=content.subscriptions + len(added))
        return _published(before, [*before.added, *added], more, len(added))


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
        content, plan = before.version.content, before.version.plan
        engines, delta = before.all(), {subscription.id: subscription for subscription in before.added}
        gone, more, count = dict.fromkeys(content.gone), content.more, 0
        taken = {*plan.routers}
        for id in ids:
            holders = [engine for engine in engines if id in engine] if id not in taken else []
            if not holders:
                what, remedy = "there is no subscription of this id", "look for the id in the matches"
                on_refusal(Refusal.of("subscription", id, SubscriptionError(what, remedy=remedy)))
                continue
            taken.add(id)
            count += 1
            if delta.pop(id, None) is None:
                gone[id] = None
                root = holders[0].get(id) if id in plan.routes else None
                if root is not None:
                    name = f"router:{id}"
                    while name in taken or name in delta or name in engines[0]:
                        name += "'"
                    router = replace(root, id=name)
                    taken.add(name)
                    delta[router.id] = router
                    more = more.with_more(Plan({router.id: plan.routes[id]}, frozenset({router.id})))
        left = replace(content, gone=tuple(gone), more=more, subscriptions=content.subscriptions - count)
        return _published(before, list(delta.values()), left, count)


def changed_since_built(version: Version, delta: Iterable[Subscription]) -> dict[str, str]:
    """What was added or removed since a version was built from files: id -> revision, "" of what is gone. `delta` are
    the subscriptions of its delta. Raises `StoreError`."""
    routers = version.plan.routers
    added = {subscription.id: subscription.revision for subscription in delta if subscription.id not in routers}
    return {**version.changed, **dict.fromkeys(version.content.gone, ""), **added}


def _published(before: OpenVersion, delta: list[Subscription], content: Content, changed: int) -> Change:
    """The version with that content and that delta, where anything is changed."""
    if not changed:
        return Change(before.version, 0)
    directory = before.version.directory

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
    return Change(version, changed)


def _whole(aside: Path, name: str, before: OpenVersion, delta: list[Subscription], content: Content) -> Content:
    """The version without a delta: the server is written anew, and so are the nodes that something went from."""
    parts = dict(content.parts)
    after = OpenVersion(replace(before.version, content=replace(content, delta="")), before.operators)
    for part in parts:
        saved = after.saved(part)
        gone = [id for id in content.gone if id in saved]
        if gone or (part == SERVER and delta):
            derived_engine(saved, delta if part == SERVER else (), gone).save(aside / part)
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
