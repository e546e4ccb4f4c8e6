"""Which newcomers join what is spread over nodes (001, section 4.4): those that a subscription at the server contains.

    for each newcomer, the general ones first:
        a witness    a publication that it matches, made of its parts
        candidates   what matches the witness at the server: who contains the newcomer is among these
        a root       a candidate that contains it; the newcomer goes to the smallest node, and the root leads there

So a change looks at a few subscriptions, however many there are. Of what calls operators no witness is made, and no
call is made here: it stays at the server, as does what is contained in ways that are not known.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

from triplewire.engine import Engine
from triplewire.engine.store.rows import units_of_called
from triplewire.engine.views import derived_engine, meaning_of, witness_of
from triplewire.ir.subscription import Subscription
from triplewire.ir.walk import calls_in
from triplewire.operators import MissingOperator, built_in_operators
from triplewire.partition.containment import MOST_CANDIDATES, contains, form_of, specialty
from triplewire.pipeline.index.open_version import OpenVersion
from triplewire.pipeline.index.versions import SERVER, Plan


def joined(
    before: OpenVersion,
    routes: Mapping[str, Sequence[int]],
    at_server: Sequence[Subscription],
    gone: Sequence[str],
    newcomers: Sequence[Subscription],
) -> Plan:
    """Where newcomers are placed, and which roots lead there. `before`: the version that they come to; `routes`: where
    its roots lead now; `at_server`: its delta at the server with the newcomers, without what is `gone`. Raises
    `StoreError`."""
    engine = _server(before, at_server, gone)
    world, entailment = meaning_of(engine)
    forms = [form_of(each, world, entailment) for each in newcomers if each.language != "mdv"]
    candidates = _candidates(engine, [each for each in newcomers if each.language != "mdv"])
    leads: dict[str, set[int]] = {}
    sizes = [len(before.node(node)) for node in range(before.nodes)]
    placed: dict[str, int] = {}
    for form in sorted(forms, key=specialty):
        for id in candidates.get(form.id, ()) if form.id not in leads else ():
            root = engine.get(id) if id != form.id and id not in placed else None
            if root is not None and contains(form_of(root, world, entailment), form, world.taxonomy):
                nodes = leads.setdefault(id, set(routes.get(id, ())))
                node = min(range(before.nodes), key=lambda node: (sizes[node], node not in nodes, node))
                nodes.add(node)
                sizes[node] += 1
                placed[form.id] = node
                break
    return Plan({id: tuple(sorted(nodes)) for id, nodes in leads.items()}, placed=placed)


def _server(before: OpenVersion, at_server: Sequence[Subscription], gone: Sequence[str]) -> Engine:
    """What may contain others at the server, in an engine in which no call succeeds."""
    folder = before.version.directory / before.version.part(SERVER)
    silent = {name: MissingOperator.of(name, units) for name, units in units_of_called(folder).items()}
    saved = Engine.load(folder, operators={**built_in_operators(), **silent}) if silent else before.saved(SERVER)
    plain = [each for each in at_server if not any(calls_in(each.where)) and each.language != "mdv"]
    return derived_engine(saved, plain, [id for id in gone if id in saved])


def _candidates(engine: Engine, newcomers: Sequence[Subscription]) -> Mapping[str, list[str]]:
    """Newcomer -> the subscriptions that match its witness."""
    witnesses = {}
    for number, newcomer in enumerate(newcomers):
        if (witness := witness_of(engine, newcomer, f"urn:witness:{number}")) is not None:
            witnesses[newcomer.id] = witness
    of_witness = {witness.id: id for id, witness in witnesses.items()}
    candidates: dict[str, list[str]] = defaultdict(list)
    for match in engine.match(list(witnesses.values())) if witnesses else ():
        if len(candidates[of_witness[match.publication]]) < MOST_CANDIDATES:
            candidates[of_witness[match.publication]].append(match.subscription)
    return candidates
