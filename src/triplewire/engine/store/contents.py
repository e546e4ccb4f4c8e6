"""Saves an engine as the parts of a directory, and fills an engine from them."""

from __future__ import annotations

import json
from dataclasses import asdict
from itertools import groupby, islice
from pathlib import Path
from typing import Any

from triplewire.engine.compiler import Compiler
from triplewire.engine.current_snapshot import CurrentSnapshot
from triplewire.engine.reference import Reference
from triplewire.engine.store import directory as store
from triplewire.engine.store import rows as saved_rows
from triplewire.engine.store.directory import damaged
from triplewire.engine.store.rows import UNITS, units_of
from triplewire.errors import raise_refusal
from triplewire.ir.subscription import Subscription
from triplewire.ir.walk import calls_in
from triplewire.languages.sources.tables import is_pointer, table_of, whole_rows
from triplewire.select.index import IndexMaker

TABLES = "tables"  # the field of the manifest that names the tables in which texts have stayed
LOADED_TOGETHER = 16_384  # subscriptions of a file that are registered together


def save(path: Path, current: CurrentSnapshot, matcher: str, index: bool, learned: bool) -> None:
    """Write an engine to a directory. Raises what `Engine.save` says."""
    snapshot = current.compiled() if index and len(current.snapshot) else current.snapshot
    compiler = snapshot.compiler
    world = compiler.world
    head: dict[str, Any] = {
        "matcher": matcher,
        "entailment": compiler.entailment,
        "settings": asdict(world.settings),
        "counts": {"subscriptions": len(snapshot)},
    }
    classes = json.dumps(world.taxonomy.to_json(), ensure_ascii=False, indent=1)
    parts = {"taxonomy": store.json_part(classes + "\n")}
    learned_calls = compiler.learned.to_json() if learned else {}
    if learned_calls.get("operators"):  # some were made
        parts["learned"] = store.json_part(json.dumps(learned_calls, separators=(",", ":")) + "\n")
    if not (index and snapshot.columnar and len(snapshot)):
        subscriptions = list(snapshot.all())
        called = {call.operator for subscription in subscriptions for call in calls_in(subscription.where)}
        head[UNITS] = units_of(called, world.operators)
        lines = list(saved_rows.rows(subscriptions, compiler))
        store.save(path, lambda: head, {"subscriptions": ("jsonl", lambda s: s.writelines(lines)), **parts})
        return
    from triplewire.engine.store.segment_files import StoredSegment  # it brings compiled kernels along

    head[TABLES] = sorted(compiler.tables)
    stored = StoredSegment(snapshot, compiler)
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
        from triplewire.engine.segments.layers import NONE, Layer  # as in `save`
        from triplewire.engine.segments.segment import SegmentContext
        from triplewire.engine.segments.snapshot import SegmentSnapshot
        from triplewire.engine.store.segment_files import opened

        assert isinstance(matcher, IndexMaker)
        segment = opened(saved, SegmentContext(compiler, matcher), source)
        if segment is not None:
            current.snapshot = SegmentSnapshot(segment.context, [Layer(segment, NONE)])
            return
    with saved.subscriptions as lines:
        parsed = [saved_rows.parsed_row(line, source) for line in lines]
    table_by_id = {row["id"]: row["table"] for row in parsed if is_pointer(row)}
    if table_by_id:
        from triplewire.engine.segments.loading import SegmentRegistrar  # compiled kernels, as in `save`
        from triplewire.languages.sources.files import ParsedRow, RowBatch  # Arrow
        from triplewire.languages.sources.rows import Row

        current.compiled()  # objects would hold the texts
    rows = {row["id"]: row for row in whole_rows(parsed, compiler.tables)}

    def kind(subscription: Subscription) -> tuple[bool, str]:
        return not rows[subscription.id].get("rules"), table_by_id.get(subscription.id, "")

    for (plain, table), group in groupby(saved_rows.compiled_rows(rows, compiler, source), kind):
        checked = (saved_rows.checked(subscription, compiler, source) for subscription in group)
        while together := list(islice(checked, LOADED_TOGETHER)):
            if table and current.snapshot.columnar:
                registrar = SegmentRegistrar(compiler, current, 0, raise_refusal, None)
                stated = [ParsedRow(Row(**rows[each.id], table=table), each) for each in together]
                registrar.add(RowBatch.of(stated))
                registrar.finish()
            else:
                current.snapshot = current.snapshot.changed(together, (), plain=plain)
    current.settle()
