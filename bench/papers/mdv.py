"""Figures 11 to 15 of the MDV paper (003, section 4), and what its section 3.5 weighs three passes against.

Documents are like figure 1 of the paper, with two resources each. A rule of type OID, PATH or JOIN fits one document;
of COMP rules a document fits a share. The cost of a document is the processor's time for its batch, from its triples to
the notices, divided by the size of the batch: documents are parsed in a process of its own, which does not count, nor
does it count how long a disk takes.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path

from bench.drawing import Lines
from bench.metadata_beside import updated_three_ways
from bench.papers.claims import Claim, alike, below, grows_by, levels_off, rises
from bench.papers.figures import PaperFigure
from bench.workloads.mdv_documents import document, mixed, rules
from triplewire.metadata.messages import Withdraw
from triplewire.metadata.registry import Registry

BASES = {"few rules": 1_000, "ten times as many": 10_000, "a hundred times as many": 100_000}
MOST_RULES = max(BASES.values())
BATCHES = (1, 10, 100, 1_000)
SHARES = (1, 10, 50, 100)
SHARED_RULES = 10_000
LISTED_RULES = (1_000, 10_000, 40_000)
_COMP_SHARE = 10
_RUNS_ALONE, _RUNS = 9, 3  # of a batch of one document, and of others
_MOST_NOTICES = 1_000_000  # of a batch: with more, nothing else would be measured
_DOCUMENT = "milliseconds a document"
_ONE_TRANSACTION = "statements and a synced commit a batch cost what they cost: a batch of one pays for all of them"
_STILL_SEEN = "what a batch costs by itself, in statements and a synced commit, is still seen at the last size"
_INDEXED = (
    "rules are found by an index of their constants, so that those which do not fit cost nothing: in batches of 100, a"
    " document takes {} steps of SQLite's machine and the batch {} statements, among 1,000 rules as among 10,000; the"
    " paper's grow with the stored results of its join rules, and here none are stored"
)
_STEPS = {"PATH": ("6,130", 86), "JOIN": ("7,320", 101)}
_STAYS = "from some size on the cost stays"
_NOTICES = (
    "each document is told with all rules that hold it, which are as many whatever the size of the batch: with 1,000 of"
    " 10,000 rules it takes 109,000 steps of SQLite's machine alone, 102,700 among 10 and 103,060 among 100, and the"
    " batch 73 statements"
)
_LEAST = "in a batch of one document few notices take less than the batch itself"


def _figure(number: int, kind: str, claims: tuple[Claim, ...]) -> PaperFigure:
    title = f"{kind} rules: a document by size of batch"
    return PaperFigure(
        f"003/{number}", title, kind, "documents of a batch", BATCHES, tuple(BASES), (), _DOCUMENT, claims
    )


_FEW, _TEN_TIMES, _MANY = BASES


def _batches_pay() -> tuple[Claim, ...]:
    cheaper = "a document costs less in a large batch"
    return (
        *(Claim(f"{line}: {cheaper}", grows_by(line, 0.0, 0.999), _ONE_TRANSACTION) for line in BASES),
        *(Claim(f"{line}: {_STAYS}", levels_off(line, 2.0), _STILL_SEEN) for line in BASES),
    )  # fmt: skip


def _depends_on_rules(kind: str) -> Claim:
    why = _INDEXED.format(*_STEPS[kind]) if kind in _STEPS else ""
    return Claim(f"{kind}: more rules cost more", below(_FEW, _MANY, 1.05), why)


FIGURES = (
    _figure(11, "OID", (
        *_batches_pay(),
        Claim("the cost does not depend on the number of rules (10,000 and 100,000)", alike(_TEN_TIMES, _MANY, 1.3),
              "counted it does not: a document takes 4,040 steps of SQLite's machine in batches of 100 and 4,210 in"
              " those of 1,000, a batch 73 and 75 statements, with either number; it is the larger one that is faster"
              " in the largest batches, and no count says why"),
    )),
    _figure(12, "PATH", (*_batches_pay(), _depends_on_rules("PATH"))),
    _figure(13, "COMP", (
        *(Claim(f"{line}: {_STAYS}", levels_off(line, 2.0), _STILL_SEEN) for line in BASES),
        Claim("small batches are better", rises(_MANY), _NOTICES),
        _depends_on_rules("COMP"),
    )),
    _figure(14, "JOIN", (*_batches_pay(), _depends_on_rules("JOIN"))),
    PaperFigure(
        "003/15", "COMP rules: a document by size of batch and share of rules that fit", "shares",
        "documents of a batch", BATCHES, tuple(f"{share} %" for share in SHARES), (), _DOCUMENT,
        tuple(Claim(f"{high} % cost more than {low} % at each size of batch", below(f"{low} %", f"{high} %"), _LEAST)
              for low, high in pairwise(SHARES)),
    ),
    PaperFigure(
        "003/3.5", "A batch of updates: three passes, lists of resources, time-to-live", "three ways", "rules",
        LISTED_RULES, ("three passes", "lists of resources", "time-to-live"), (), "milliseconds a batch of 100",
        (
            Claim("three passes take less than lists of resources that are compared",
                  below("three passes", "lists of resources"), "with few rules all of them are asked at once"),
            Claim("three passes take less than telling all again (time-to-live)",
                  below("three passes", "time-to-live"), "of few documents all are told quickly"),
        ),
    ),
)  # fmt: skip


def lines_of(figure: PaperFigure, work: Path, size: int | None, progress: Callable[[str], None]) -> Lines:
    """The lines of a figure; with `size`, the largest number of rules, all are fewer in proportion (`BASES` has the
    paper's own numbers)."""

    def sized(number: int, largest: int) -> int:
        return number if size is None else max(1, round(number * min(1.0, size / largest)))

    lines: Lines = {}
    if figure.workload == "three ways":
        for number in LISTED_RULES:
            count = sized(number, LISTED_RULES[-1])
            progress(f"{figure.name}: {count:,} rules ...")
            costs = updated_three_ways(work / f"{count}.db", mixed(count), min(count, 1_000))
            for line, seconds in zip(figure.matchers, costs, strict=True):
                lines.setdefault(line, {})[count] = seconds * 1e3
        return lines
    if figure.workload == "shares":
        settings = [(f"{share} %", "COMP", sized(SHARED_RULES, SHARED_RULES), share) for share in SHARES]
    else:
        settings = [(line, figure.workload, sized(base, MOST_RULES), _COMP_SHARE) for line, base in BASES.items()]
    for line, kind, base, share in settings:
        progress(f"{figure.name}: {line}: {base:,} rules ...")
        lines[line] = dict(costs_by_batch(work / f"{kind}-{base}-{share}.db", kind, base, share))
    return lines


def costs_by_batch(file: Path, kind: str, base: int, share: int) -> Iterator[tuple[int, float]]:
    """Sizes of batches, of no more documents than rules, and the milliseconds of a document, over a registry in this
    file; `share`: the percentage of COMP rules that fit."""
    with Registry.open(f"sqlite:///{file}") as registry:
        registry.subscribe("lmr", rules(kind, base))
        cost(registry, base, 1, 0)  # the parsing process starts
        for batch in (batch for batch in BATCHES if batch <= base):
            if kind != "COMP" or base * share // 100 * batch <= _MOST_NOTICES:
                yield batch, cost(registry, base, batch, base * share // 100)


def cost(registry: Registry, base: int, batch: int, value: int) -> float:
    """The milliseconds of a document: median of some batches of new documents, which are deleted again."""
    measured = []
    for run in range(_RUNS_ALONE if batch == 1 else _RUNS):
        changes = [document((run * batch + place) % base, value) for place in range(batch)]
        begun = time.process_time()
        registry.apply(changes)
        measured.append((time.process_time() - begun) * 1e3 / batch)
        registry.apply([Withdraw(change.document) for change in changes])
    return statistics.median(measured)
