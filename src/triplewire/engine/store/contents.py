"""Saves an engine as the parts of a directory, and fills an engine from them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from itertools import groupby, islice
from pathlib import Path
from typing import Any

from triplewire.engine.chunk import Snapshot
from triplewire.engine.compiler import Compiler, compiler_of
from triplewire.engine.current_snapshot import CurrentSnapshot
from triplewire.engine.reference import Reference
from triplewire.engine.store import directory as store
from triplewire.engine.store import rows as saved_rows
from triplewire.engine.store.directory import damaged
from triplewire.engine.store.rows import UNITS, units_in
from triplewire.errors import raise_refusal
from triplewire.ir.subscription import Subscription
from triplewire.languages.sources.tables import is_pointer, table_of, whole_rows
from triplewire.select.index import IndexMaker

TABLES = "tables"  # the field of the manifest that names the tables in which texts have stayed
LOADED_TOGETHER = 16_384  # subscriptions of a file that are registered together


def save(path: Path, current: CurrentSnapshot, matcher: str, index: bool, learned: bool) -> None:
    """Write an engine to a directory. Raises what `Engine.save` says."""
    snapshot = current.compiled() if index and len(current.snapshot) else current.snapshot
    compiler = compiler_of(snapshot)
    world = compiler.world
    head = store.header(world.settings, matcher, compiler.entailment, len(snapshot))
    parts = {"taxonomy": store.taxonomy_part(world.taxonomy), **(_learned_part(compiler) if learned else {})}
    if not (index and snapshot.columnar and len(snapshot)):
        subscriptions = list(snapshot.all())
        head[UNITS] = units_in(subscriptions, world.operators)
        lines = list(saved_rows.rows(subscriptions, compiler))
        store.save(path, lambda: head, {"subscriptions": ("jsonl", lambda s: s.writelines(lines)), **parts})
        return
    from triplewire.engine.store.segment_files import StoredSegment  # it brings compiled kernels along

    head[TABLES] = sorted(compiler.tables)
    stored = StoredSegment.of(snapshot, compiler)
    store.save(path, lambda: {**head, **stored.manifest()}, {**stored.parts(), **parts})


def fill(
    current: CurrentSnapshot, compiler: Compiler, matcher: IndexMaker | Reference, saved: store.SavedEngine, path: Path
) -> None:
    """Fill an empty engine from a saved one: the subscriptions from its index, or else from their texts; and what it
    learned of operators."""
    if saved.learned is not None:
        try:
            compiler.learned.restore(saved.learned)
        except ValueError as error:
            raise damaged(path, f"what it learned of operators cannot be read ({error})") from error
    source = str(path)
    for name in saved.manifest.get(TABLES, ()):
        table_of(compiler.tables, name)
    if saved.index is not None and current.compiled().columnar:
        from triplewire.engine.store.segment_files import opened  # as in `save`

        assert isinstance(matcher, IndexMaker)
        snapshot: Snapshot | None = opened(saved, compiler, matcher, source)
        if snapshot is not None:
            current.snapshot = snapshot
            return
    with saved.subscriptions as lines:
        parsed = [saved_rows.parsed_row(line, source) for line in lines]
    table_by_id = {row["id"]: row["table"] for row in parsed if is_pointer(row)}
    if table_by_id:
        current.compiled()  # objects would hold the texts
    rows = {row["id"]: row for row in whole_rows(parsed, compiler.tables)}

    def kind(subscription: Subscription) -> tuple[bool, str]:
        return not rows[subscription.id].get("rules"), table_by_id.get(subscription.id, "")

    for (plain, table), group in groupby(saved_rows.compiled_rows(rows, compiler, source), kind):
        checked = (saved_rows.checked(subscription, compiler, source) for subscription in group)
        while together := list(islice(checked, LOADED_TOGETHER)):
            if table and current.snapshot.columnar:
                _register_pointers(current, compiler, table, rows, together)
            else:
                current.snapshot = current.snapshot.changed(together, (), plain=plain)
    current.settle()


def _register_pointers(
    current: CurrentSnapshot,
    compiler: Compiler,
    table: str,
    rows: Mapping[str, Mapping[str, Any]],
    together: Sequence[Subscription],
) -> None:
    """Register subscriptions whose texts stay in a table. `rows`: what stands there, by id."""
    from triplewire.engine.segments.loading import SegmentRegistrar  # compiled kernels, as in `save`
    from triplewire.languages.sources.files import ParsedRow  # Arrow
    from triplewire.languages.sources.rows import Row

    registrar = SegmentRegistrar(compiler, current, 0, raise_refusal, None)
    parsed = [ParsedRow(Row(**rows[subscription.id], table=table), None, (), subscription) for subscription in together]
    registrar.add(parsed)
    registrar.finish()


def _learned_part(compiler: Compiler) -> Mapping[str, store.Part]:
    """The file of what was learned of operator calls; none where none were made."""
    learned: dict[str, Any] = compiler.learned.to_json()
    if not learned["operators"]:
        return {}
    return {"learned": store.json_part(json.dumps(learned, separators=(",", ":")) + "\n")}
