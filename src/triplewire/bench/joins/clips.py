"""How many times as long as the engine does CLIPS take, a rule engine that shares joins among rules?

A subscription becomes a rule that fires where there is a solution (`exists`: a rule of plain patterns fires for each
solution, which takes 1.4 times as long), a triple a fact of three numbers. Timed are, of CLIPS, facts that are written
as text from terms, the run, and what takes the facts away; of the engine, all from N-Quads bytes to match rows. CLIPS
matches as Rete does: C. L. Forgy, "Rete: A Fast Algorithm for the Many Pattern/Many Object Pattern Match Problem",
Artificial Intelligence 19, 1982.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator, Sequence
from itertools import groupby, islice
from pathlib import Path
from typing import Any, TypeAlias

from triplewire.bench import measure
from triplewire.bench.loaded import MICROS
from triplewire.bench.report import Figure
from triplewire.bench.workloads.catalogue import Case
from triplewire.engine import Engine
from triplewire.errors import TriplewireError
from triplewire.ir.nodes import Variable
from triplewire.ir.normal_form.clauses import Position, normal_form
from triplewire.ir.subscription import Subscription
from triplewire.read import read

TIMES = 300  # as long as the engine, at least: the target
_EACH = 10  # every tenth publication
_TURNS = 3

Facts: TypeAlias = Sequence[tuple[str, str, str]]
"""The triples of a publication, terms as in N-Triples."""


class Rules:
    """Subscriptions as rules of CLIPS, one a subscription, numbered in their order."""

    def __init__(self, subscriptions: Sequence[Subscription]) -> None:
        """Raises `ImportError` without `clipspy`, and `TriplewireError` where a subscription is more than patterns."""
        from clips import Environment  # a package that is no dependency of the engine

        self._environment: Any = Environment()
        self._found: set[int] = set()
        self._number: dict[str, int] = {}
        self._environment.define_function(self._found.add, "found")
        for number, subscription in enumerate(subscriptions):
            self._environment.build(f"(defrule s{number} {self._condition(subscription)} => (found {number}))")

    def _condition(self, subscription: Subscription) -> str:
        form = normal_form(subscription, most=1)
        if not form.exact or len(form.clauses) != 1 or form.clauses[0].tests:
            raise TriplewireError(f"{subscription.id} is no conjunction of patterns, which is all that CLIPS is given")
        names: dict[str, str] = {}

        def written(position: Position) -> str:
            if isinstance(position, Variable):
                return names.setdefault(position.name, f"?v{len(names)}")
            return self._numbered(str(position))

        patterns = (f"(triple {' '.join(map(written, pattern))})" for pattern in form.clauses[0].patterns)
        return f"(exists {' '.join(patterns)})"

    def _numbered(self, term: str) -> str:
        return str(self._number.setdefault(term, len(self._number)))

    def matching(self, publication: Facts) -> set[int]:
        """The numbers of the subscriptions that a publication satisfies."""
        numbered = self._numbered
        facts = [f"(triple {numbered(s)} {numbered(p)} {numbered(o)})" for s, p, o in publication]
        self._found.clear()
        self._environment.load_facts("\n".join(facts))  # as text: facts that Python holds are never freed
        self._environment.run()
        self._environment.eval("(retract *)")
        return set(self._found)


def facts_of(publications: Path) -> list[Facts]:
    """The triples of each publication of a file."""
    return [[(str(s), str(p), str(o)) for s, p, o in publication.triples] for publication in read(publications)]


def beside_clips(engine: Engine, case: Case, work: Path, target: float | None) -> Iterator[Figure]:
    """The time of CLIPS over that of the engine, by turns, for every tenth publication of a case."""
    name = f"{case.label}: CLIPS over the engine"
    try:
        rules = Rules(engine.subscriptions)
    except ImportError:
        yield Figure("graph", name, None, "x", note="clipspy is not installed")
        return
    source = _sample(case.publications, work)
    facts = facts_of(source.path)
    their_matches = sum(len(rules.matching(triples)) for triples in facts)  # a warm-up as well
    matches = measure.match(engine, source).matches
    if their_matches != matches:
        yield Figure(
            "graph", name, None, "x", target, note=f"CLIPS finds {their_matches:,} matches, the engine {matches:,}"
        )
        return
    theirs, ours = [], []
    for _ in range(_TURNS):
        begun = time.perf_counter()
        for triples in facts:
            rules.matching(triples)
        theirs.append((time.perf_counter() - begun) / len(facts))
        ours.append(measure.timed(engine, source).micros / 1e6)
    yield Figure("graph", f"{case.label}: CLIPS", statistics.median(theirs) * 1e6, MICROS)
    ratio = statistics.median(theirs) / statistics.median(ours)
    yield Figure("graph", name, ratio, "x", target, at_least=True)


def _sample(publications: Path, work: Path) -> measure.Input:
    """A file with every tenth publication."""
    path = work / f"{publications.stem}-each-{_EACH}.nq"
    lines = publications.read_bytes().splitlines(keepends=True)
    graphs = [b"".join(own) for _, own in groupby(lines, lambda line: line.rsplit(b" ", 2)[1])]
    sampled = list(islice(graphs, 0, None, _EACH))
    path.write_bytes(b"".join(sampled))
    return measure.Input(path, len(sampled))
