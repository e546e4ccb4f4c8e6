"""Full versions of an index, from subscription files: compiled, spread over nodes, saved as arrays that are mapped.

The index that a run makes for itself is saved as texts alone where its work is small (`saved_once`)."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from triplewire.config import Settings
from triplewire.engine import Engine
from triplewire.engine.arguments import Workers
from triplewire.engine.store.directory import read_manifest
from triplewire.engine.views import derived_engine, empty_engine, is_compiled_for, revision_in
from triplewire.errors import Refusal, StoreError, raise_refusal
from triplewire.ir.evaluation.evaluate import World
from triplewire.ir.subscription import Subscription
from triplewire.ir.taxonomy import EMPTY, Taxonomy
from triplewire.model.operator import Operator
from triplewire.model.publication import Publication
from triplewire.operators import built_in_operators
from triplewire.operators.files import OperatorFile, operators_of
from triplewire.partition.placement import SERVER as AT_SERVER
from triplewire.partition.placement import add
from triplewire.partition.plan import MERGE_PERCENT, partitioner
from triplewire.partition.sample import Statistics
from triplewire.pipeline.filter import Calling, IndexFilter
from triplewire.pipeline.index.changes import changed_since_built
from triplewire.pipeline.index.open_version import OpenVersion, opened, refuse_missing, usable
from triplewire.pipeline.index.versions import (
    CHANGED,
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
from triplewire.plugins import DEFAULT_MATCHER
from triplewire.read.documents import Source

OWN_RETAINED = 2
"""Versions that stay of an index that only one run uses."""

REPLICATED = "replicated"
"""The partitioner that leaves all in one part."""


@dataclass(frozen=True)
class IndexOptions:
    """What the texts of subscriptions mean beside what they say: taxonomy, entailment, operators, limits; and the
    matcher, for which all answers are the same."""

    taxonomy: Taxonomy = EMPTY
    entailment: str = "none"
    operators: Mapping[str, Operator] = field(default_factory=built_in_operators)
    settings: Settings = field(default_factory=Settings)
    matcher: str = DEFAULT_MATCHER

    def engine(self) -> Engine:
        """An engine without subscriptions."""
        return Engine(
            taxonomy=self.taxonomy,
            matcher=self.matcher,
            entailment=self.entailment,
            operators=self.operators,
            settings=self.settings,
        )


@dataclass(frozen=True)
class Spread:
    """How subscriptions are spread over nodes: `name` is one of `triplewire.partition.plan.NAMES`; for *merging*,
    `sample` are publications, and `percent` of the subscriptions are to leave the server. `collect`: who says what is
    known of a larger sample, once the subscriptions are compiled (`triplewire.pipeline.stat_collection`)."""

    name: str = REPLICATED
    nodes: int = 1
    sample: Sequence[Publication] = ()
    percent: float = MERGE_PERCENT
    collect: Callable[[Engine], Statistics] | None = None


def build(
    directory: Path,
    files: Sequence[str | os.PathLike[str]],
    options: IndexOptions | None = None,
    spread: Spread | None = None,
    *,
    on_refusal: Callable[[Refusal], None] = raise_refusal,
    on_warning: Callable[[str, str], None] | None = None,
    on_note: Callable[[str], None] | None = None,
    since: str | None = None,
    workers: Workers | None = None,
) -> Version:
    """Compile the subscriptions of files, and publish them as a new version of the index in `directory`.

    A subscription that is refused goes to `on_refusal`, and the others are built. `on_warning` gets a subscription's id
    and what its author should know, and the ids of those that `changes` added, removed or gave another text meanwhile
    or before, where the files say otherwise. `on_note` is told where another version was built from files after
    `newest_built` gave `since` (by default: after this call began), and where the version before had a taxonomy and
    this one has none. `workers`: see `Engine.load_subscriptions`. Raises `StoreError` where the
    directory holds something else or cannot be written, `TriplewireError` where there is no such partitioner.
    """
    since = newest_built(directory) if since is None else since
    engine = (options or IndexOptions()).engine()
    engine.load_subscriptions(files, on_refusal=on_refusal, on_warning=on_warning, workers=workers)
    chosen = spread or Spread()
    shards = None if chosen.name == REPLICATED else _spread(engine, options or IndexOptions(), chosen)
    with alone(directory):
        other, undone, taxonomy = newest_built(directory), _undone(directory, engine), _taxonomy_of(directory)
        version = publish(directory, lambda aside, name: _written(aside, name, engine, shards, chosen))
        sweep(directory)
    if on_warning is not None:
        for id_, what in undone:
            on_warning(id_, what.format(version.name))
    if on_note is not None and other not in ("", since):
        takes = f"{version.name} takes its place"
        on_note(f"{other} was built while {version.name} was compiled, perhaps from newer files, and {takes}")
    if on_note is not None and engine.taxonomy == EMPTY and taxonomy not in ("", _taxonomy_of(directory)):
        on_note(f"the version before {version.name} had a taxonomy, and none was given for this one")
    return version


def change_taxonomy(
    directory: Path, taxonomy: Taxonomy, operators: Sequence[OperatorFile] = (), sample: Sequence[Publication] = ()
) -> Version:
    """Publish a new full version of an index: the same subscriptions with this taxonomy. Those that are spread over
    nodes are spread anew, as the taxonomy says which contain which (`sample`: see `Spread`). `operators`: the files
    that give the index its own. Other writers wait meanwhile. Raises `StoreError` where the index is damaged, or cannot
    be written."""
    load(directory)  # else `alone` would make the directory
    with alone(directory):
        before = opened(directory, load(directory).name, operators)
        refuse_missing(before)
        content, shards = before.version.content, None
        engine = before.server().with_taxonomy(taxonomy)
        spread = Spread(content.partitioner, content.nodes, sample, content.percent)
        if before.version.is_staged:
            on_nodes = (subscription for node in before.all()[1:] for subscription in node.subscriptions)
            engine = derived_engine(engine, on_nodes, before.version.plan.routers)
            manifest = read_manifest(directory / before.version.part(SERVER))
            means = manifest["entailment"], operators_of(operators), engine.settings, manifest["matcher"]
            shards = _spread(engine, IndexOptions(taxonomy, *means), spread)

        def write(aside: Path, name: str) -> Content:
            seal(aside / CHANGED, {"changed": changed_since_built(before.version, before.added)})
            whole = _written(aside, name, engine, shards, spread)
            return replace(whole, built=content.built, changed=f"{name}/{CHANGED}")

        version = publish(directory, write)
        sweep(directory)
    return version


def newest_built(directory: Path) -> str:
    """The name of the version that was built from files last, whatever `changes` made of it; "" where none is known."""
    try:
        return load(directory).content.built
    except StoreError:
        return ""


def _taxonomy_of(directory: Path) -> str:
    """The hash of the taxonomy of the version that counts; "" where there is none that can be read."""
    try:
        return str(read_manifest(directory / load(directory).part(SERVER))["files"]["taxonomy"]["sha256"])
    except (StoreError, LookupError, TypeError):
        return ""


def _undone(directory: Path, engine: Engine) -> list[tuple[str, str]]:
    """What was changed since the last version from files, perhaps while this one was compiled, and is not so in the
    engine: the ids, and what was done, with a place for the name of the new version. Nothing of a version that cannot
    be opened as it is."""
    try:
        before = opened(directory, load(directory).name)
        changed = changed_since_built(before.version, before.added)
    except StoreError:
        return []
    name, undone = before.version.name, []
    for id_, revision in changed.items():
        now = revision_in(engine, id_)
        if revision and not now:
            undone.append((id_, f"it was added to {name}: it is not in {{}}, as in the files"))
        elif now and not revision:
            undone.append((id_, f"it was removed from {name}: it is in {{}}, as in the files"))
        elif now != revision:
            undone.append((id_, f"it has another text in {name}: in {{}} it has that of the files"))
    return undone


def saved_once(
    directory: Path, engine: Engine, operators: Sequence[OperatorFile] = (), *, sources: Iterable[Source] = ()
) -> Version:
    """The version with the subscriptions of an engine: the one that counts, where that is it, or a new one. It is for
    an index that only one run uses. `operators`: the files that give the engine its own. Raises `StoreError`.

    `sources`: the files and folders of its publications. Where they are small work for it, nobody waits for the
    kernels: the texts are saved without an index, and the workers begin interpreted."""
    is_compiled = is_compiled_for(engine, sources)
    with alone(directory):
        for left in directory.glob(".built.*"):  # by a process that was killed
            shutil.rmtree(left, ignore_errors=True)
        built = directory / f".built.{os.getpid()}"
        engine.save(built, index=is_compiled)
        source = _source_of(built, operators)
        with suppress(StoreError):
            there = load(directory)
            is_same = there.content.source == source
            if is_same and _has_index(there.directory / there.part(SERVER)) == _has_index(built):
                version = usable(directory, there.name, operators)
                shutil.rmtree(built)
                return version

        version = publish(directory, partial(_in_one_part, built, len(engine), source))
        sweep(directory, retained=OWN_RETAINED)
        return version


def shipped(engine: Engine, operators: Sequence[OperatorFile] = ()) -> IndexFilter:
    """The subscriptions of an engine as a version whose files travel with the filter, so that no folder has to be
    shared; it is named by the hash of what it says. `operators`: the files that give the engine its own.

    Raises `StoreError` where these files lack an operator that is called, and where a subscription cannot be compiled
    from its text again."""
    with tempfile.TemporaryDirectory(prefix="triplewire-") as folder:
        directory, built = Path(folder, "index"), Path(folder, "built")
        directory.mkdir()
        engine.save(built, index=False, learned=False)
        version = publish(directory, partial(_in_one_part, built, len(engine), _source_of(built, operators)))
        refuse_missing(OpenVersion(version, operators))
        files = Path(shutil.make_archive(str(Path(folder, "files")), "zip", directory)).read_bytes()
    calling = Calling(engine.operator_order)
    return IndexFilter("", version.content.source, operators=tuple(operators), calling=calling, files=files)


def _in_one_part(built: Path, subscriptions: int, source: str, aside: Path, name: str) -> Content:
    """Have a saved engine as the only part of a version."""
    os.rename(built, aside / SERVER)
    return Content(REPLICATED, 1, {SERVER: f"{name}/{SERVER}"}, subscriptions, source=source)


def _has_index(folder: Path) -> bool:
    """Was an engine saved with an index? Whoever opens that waits for the kernels."""
    return "index" in read_manifest(folder)


def _source_of(folder: Path, operators: Sequence[OperatorFile]) -> str:
    """A hash of what a saved engine says and was told of: texts, taxonomy, settings, operators."""
    manifest = read_manifest(folder)
    texts = [manifest["files"][part]["sha256"] for part in ("subscriptions", "taxonomy")]
    means = {name: manifest[name] for name in ("matcher", "entailment", "settings")}
    parts = [
        *texts,
        json.dumps(means, sort_keys=True),
        *(text for file in operators for text in (file.path, file.text)),
    ]
    return hashlib.sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()


@dataclass(frozen=True)
class _Shards:
    """The engines of the parts, and what leads to which."""

    engines: Mapping[str, Engine]
    plan: Plan
    everywhere: tuple[int, ...]


def _spread(engine: Engine, options: IndexOptions, spread: Spread) -> _Shards:
    """The subscriptions of an engine, on the nodes that the partitioner puts them on."""
    world = World(options.taxonomy, options.operators, options.settings)
    known = spread.collect(engine) if spread.collect is not None else Statistics(spread.sample, ())
    chosen = partitioner(
        spread.name,
        spread.nodes,
        world,
        entailment=options.entailment,
        sample=known.publications,
        summaries=known.summaries,
        percent=spread.percent,
    )
    everything = list(engine.subscriptions)
    # the server has the rules that new ones may name
    chosen.subscribe(subscription for subscription in everything if subscription.language != "mdv")
    placement = chosen.placement
    groups: dict[int, list[Subscription]] = {node: [] for node in range(AT_SERVER, spread.nodes)}
    for subscription in everything:
        groups[placement.place.get(subscription.id, AT_SERVER)].append(subscription)
    groups[AT_SERVER] += placement.mergers.values()
    engines = {}
    for node, subscriptions in groups.items():
        shard = engines[SERVER if node == AT_SERVER else f"node-{node}"] = empty_engine(engine)
        add(shard, subscriptions)
    routes = {id: tuple(sorted(nodes)) for id, nodes in placement.routes.items()}
    return _Shards(engines, Plan(routes, frozenset(placement.mergers)), tuple(sorted(placement.everywhere)))


def _written(aside: Path, name: str, engine: Engine, shards: _Shards | None, spread: Spread) -> Content:
    if shards is None:
        engine.save(aside / SERVER)
        return Content(spread.name, spread.nodes, {SERVER: f"{name}/{SERVER}"}, len(engine), built=name)
    for part, shard in shards.engines.items():
        shard.save(aside / part)
    seal(aside / PLAN, shards.plan.to_json())
    return Content(
        spread.name,
        spread.nodes,
        {part: f"{name}/{part}" for part in shards.engines},
        len(engine),
        shards.everywhere,
        f"{name}/{PLAN}",
        built=name,
        percent=spread.percent,
    )
