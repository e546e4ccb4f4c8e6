"""The figures of the papers 000 (G-ToPSS), 001 (cluster) and 004 (RTF).

Of each: what varies, which matchers are measured, which of their costs are drawn, and what the paper claims. Of 001
those that one engine measures. A figure at another size than the paper's has all its numbers of subscriptions in
proportion.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from bench.drawing import Lines
from bench.nodes import NOISE
from bench.papers.claims import (
    Claim,
    alike,
    below,
    counted,
    falls,
    grows_by,
    grows_faster,
    linear,
    rises,
    slows,
    steady,
)

OURS = "trie"
MICROS, MEGABYTES, INSERTED = "microseconds a publication", "megabytes in use", "microseconds a subscription"


@dataclass(frozen=True, slots=True)
class PaperFigure:
    """A figure. `varies` is a parameter of its workload, `places` its values; `fixed` are those of the other parameters
    that are not the default ones. `measures` names what is drawn of each matcher: fields of `Cost`, "insertion",
    "structure phase" and "constraint phase". `counts`: fields of `Cost` that are in the table alone, for reasons."""

    name: str
    title: str
    workload: str
    varies: str
    places: tuple[float, ...]
    matchers: tuple[str, ...]
    measures: tuple[str, ...]
    up: str
    claims: tuple[Claim, ...]
    fixed: Mapping[str, Any] = field(default_factory=dict)
    counts: tuple[str, ...] = ()


_JOINED, _WALKED = ("comparisons", "list_steps"), ("tries", "comparisons", "list_steps")


def _far_apart(lines: Lines) -> str:
    """Why the time of constraint tables is not linear: entries of lists, joined rows, and the time of an entry."""
    took, steps, rows = (lines[f"constraint-tables: {measure}"] for measure in ("whole", "list_steps", "comparisons"))
    told = (
        f"{step:,.0f} entries of lists and {rows[at]:,.0f} joined rows among {at:,}, {took[at] / step:.3f} us an entry"
        for at, step in sorted(steps.items())
    )
    return f"counted, the work of a publication is linear, but an entry takes longer: {'; '.join(told)} subscriptions"


_SHARED = "not known: no profile was made of it"
_LOOKED_UP = counted(
    "joins try {:,.0f} rows a publication at the fewest edges and {:,.0f} at the most, and {:,.0f} and {:,.0f} entries"
    " of lists of edges are read",
    ("gtopss: comparisons", 0), ("gtopss: comparisons", -1), ("gtopss: list_steps", 0), ("gtopss: list_steps", -1),
)  # fmt: skip
_SAME_LOOK = "an index of numbers in arrays: what the paper's prototype allocates for each object is not there"

_THOUSANDS_000 = (6_000, 12_000, 18_000, 24_000, 30_000)
_THOUSANDS = (20_000, 40_000, 60_000, 80_000, 100_000)
_graph = partial(PaperFigure, workload="graph")
_text = partial(PaperFigure, workload="rtf")


def _ahead(others: tuple[str, ...], measure: str = "whole") -> tuple[Claim, ...]:
    """Is the project's own matcher faster than each of these?"""
    why = "small publications in one batch: verification in a second pass is most of its time"
    return tuple(
        Claim(f"{OURS} takes less time than {other} (whole)", below(f"{OURS}: {measure}", f"{other}: {measure}"), why)
        for other in others
    )


G_TOPSS = (
    _graph(
        "000/9a", "Memory and subscriptions", varies="subscriptions", places=_THOUSANDS_000, matchers=("gtopss",),
        measures=("matrix", "memory"), up=MEGABYTES, claims=(
            Claim("memory grows linearly with the subscriptions", linear("gtopss: memory", 0.05),
                  "pieces of one big graph have edges in common, and the more there are the fewer of them are new"),
        ),
    ),
    _graph(
        "000/9b", "Matching time and subscriptions, in two phases", varies="subscriptions", places=_THOUSANDS_000,
        matchers=("gtopss", "gtopss-greedy", OURS),
        measures=("look_up", "selection", "whole", "structure phase", "constraint phase"), up=MICROS,
        fixed={"constraints": True}, counts=("matches", "comparisons"), claims=(
            Claim("matching time grows with the subscriptions", rises("gtopss: whole", slack=NOISE), _SHARED),
            Claim("the structure phase grows by a fixed amount", linear("gtopss: structure phase", 0.2), _SHARED),
            Claim("the constraint phase grows by a fixed amount", linear("gtopss: constraint phase", 0.2),
                  counted("the phase is the difference of two runs, and no more than runs differ by. Counted it does"
                          " grow by a fixed amount: joins try {:,.0f}, {:,.0f}, {:,.0f} rows a publication for {:,.0f},"
                          " {:,.0f}, {:,.0f} matches at the first, the middle and the last place; but classes are"
                          " looked up once for all subscriptions, and a test is one comparison",
                          *((f"gtopss: {count}", at) for count in ("comparisons", "matches") for at in (0, 2, -1)))),
            *_ahead(("gtopss",)),
        ),
    ),
    _graph(
        "000/9c", "Memory and overlap", varies="overlap", places=(5, 25, 50, 75, 95), matchers=("gtopss",),
        measures=("matrix", "memory"), up=MEGABYTES, claims=(
            Claim("the matrix space shrinks as subscriptions overlap more", falls("gtopss: matrix"), _SAME_LOOK),
            Claim("the whole memory shrinks as subscriptions overlap more", falls("gtopss: memory"), _SAME_LOOK),
        ),
    ),
    _graph(
        "000/9d", "Memory and size of subscriptions", varies="edges", places=(2, 4, 6, 8, 10), matchers=("gtopss",),
        measures=("matrix", "memory"), up=MEGABYTES, claims=(
            Claim("memory grows with the size of subscriptions", rises("gtopss: matrix", "gtopss: memory"), _SAME_LOOK),
        ),
    ),
    _graph(
        "000/9e", "Matching time and size of subscriptions", varies="edges", places=(4, 5, 6, 7, 8),
        matchers=("gtopss", "gtopss-greedy", OURS), measures=("selection", "whole"), up=MICROS,
        fixed={"own_nodes": 5}, counts=_JOINED, claims=(
            Claim("from 4 to 8 edges the time almost doubles", grows_by("gtopss: whole", 1.5, 2.5), _LOOKED_UP),
            Claim("matching time grows with the edges of subscriptions", rises("gtopss: whole", slack=NOISE),
                  _LOOKED_UP),
        ),
    ),
    _graph(
        "000/9f", "Matching time and matching ratio", varies="ratio", places=(0.1, 0.5, 1.0, 2.0, 4.0),
        matchers=("gtopss", OURS), measures=("selection", "whole"), up=MICROS, claims=(
            Claim("matching time grows very rapidly with the matches", grows_by("gtopss: whole", 5.0),
                  "a join of one row a pattern is short beside the look-ups"),
            *_ahead(("gtopss",)),
        ),
    ),
    _graph(
        "000/10a", "G-ToPSS and OPS", varies="subscriptions", places=_THOUSANDS_000,
        matchers=("gtopss", "gtopss-greedy", "ops", OURS), measures=("selection", "whole"), up=MICROS, claims=(
            Claim("the time of OPS grows more than that of G-ToPSS",
                  grows_faster("ops: whole", "gtopss: whole"), _SHARED),
            Claim("G-ToPSS is faster than OPS", below("gtopss: whole", "ops: whole"), _SHARED),
            *_ahead(("gtopss", "ops")),
        ),
    ),
    _graph(
        "000/10b", "G-ToPSS, OPS and naive", varies="subscriptions", places=_THOUSANDS_000,
        matchers=("gtopss", "ops", "naive", OURS), measures=("selection", "whole"), up=MICROS, claims=(
            Claim("OPS is far better than naive", below("ops: whole", "naive: whole", 5.0), _SHARED),
            Claim("the time of naive grows most", grows_faster("naive: whole", "ops: whole"), _SHARED),
            *_ahead(("naive",)),
        ),
    ),
    _graph(
        "000/stars", "Edges of G_M by the mapping of stars", varies="stars", places=(1, 2, 3, 4),
        matchers=("gtopss", "gtopss-greedy"), measures=("size", "selection"), up="edges of G_M; microseconds",
        claims=(
            Claim("a mapping by what is there makes a sparser G_M (section 4.1, left to the future)",
                  below("gtopss-greedy: size", "gtopss: size"), "the greedy choice looks one star ahead"),
        ),
    ),
)  # fmt: skip

CLUSTER = (
    _graph(
        "001/9a", "Look-up time and subscriptions", varies="subscriptions", places=_THOUSANDS,
        matchers=("constraint-tables", "gtopss", OURS), measures=("look_up", "selection", "whole"), up=MICROS,
        fixed={"edges": 10, "nodes": 30, "ratio": 0.1}, counts=_JOINED, claims=(
            Claim("matching time increases linearly with the subscriptions",
                  linear("constraint-tables: whole", 0.2), _far_apart),
            *_ahead(("constraint-tables", "gtopss")),
        ),
    ),
    PaperFigure(
        "001/9b", "Same structure, other constraints: constraint tables and G-ToPSS", "same structure",
        "subscriptions", _THOUSANDS, ("constraint-tables", "gtopss", OURS), ("look_up", "selection", "whole"), MICROS, (
            Claim("the time of G-ToPSS grows with the subscriptions", grows_by("gtopss: whole", 3.0), _SHARED),
            Claim("the time with constraint tables is constant", steady("constraint-tables: whole", 1.5), _SHARED),
            Claim("constraint tables are 125 times faster at the end (20 and 2,500 ms)",
                  below("constraint-tables: whole", "gtopss: whole", 125.0, last=True),
                  "constraints are ranks in arrays here, so that G-ToPSS too compares numbers and builds no binding"),
            *_ahead(("constraint-tables", "gtopss")),
        ),
    ),
)  # fmt: skip

_RTF = ("rtf-s", "rtf-m", "ibroker")


def _slower_base(lines: Lines) -> str:
    """Why RTF is not so many times as fast as iBroker: the work of both at the last place."""
    (tries, compared, steps), (visited, _, marked) = (
        [max(lines[f"{name}: {measure}"].items())[1] for measure in _WALKED] for name in ("ibroker", "rtf-m")
    )
    return (
        f"iBroker looks up {tries:,.0f} buckets, compares {compared:,.0f} triples a publication and takes {steps:,.0f}"
        f" steps along lists, RTFm visits {visited:,.0f} nodes and takes {marked:,.0f} steps:"
        f" {(compared + steps) / (visited + marked):.0f} times as much work, each part of which is as short"
    )


_NEXT_ROW = counted(
    "an entry of the paper's iBroker refers to the bucket of the query's next attribute, which here is the next row of"
    " the table: it would have {:,.0f} references more, of 8 bytes each, beside its {:,.1f} MB and RTFm's {:,.1f}",
    ("ibroker: patterns", -1), ("ibroker: queries", -1), ("rtf-m: queries", -1),
)  # fmt: skip
_SAME_NODES = "the forests differ in word nodes alone, by fewer bytes than a part of a percent of them takes"


def _of_rtf(measure: str) -> tuple[str, ...]:
    return tuple(f"{matcher}: {measure}" for matcher in _RTF)


def _shares(measure: str, reason: bool = False) -> tuple[Claim, ...]:
    """The claims of 7a and 7b: none of the text is least, all of it is most."""
    return tuple(
        Claim(f"{matcher}, {low} %: {measure} is below {matcher}, {high} %: {measure}",
              below(f"{matcher}, {low} %: {measure}", f"{matcher}, {high} %: {measure}"),
              _more_tuples(matcher, low, high) if reason else _SHARED)
        for matcher in ("rtf-s", "rtf-m") for low, high in ((0, 50), (50, 100))
    )  # fmt: skip


def _more_tuples(matcher: str, low: int, high: int) -> Callable[[Lines], str]:
    return counted(
        "a tuple with words is reached by fewer publications than one without: with the larger share of text the walk"
        " visits {1:,.0f} nodes a publication (with the smaller {0:,.0f}) and takes {3:,.0f} ({2:,.0f}) steps along"
        " lists, which mark tuples in the query table and take longer the larger that is",
        *((f"{matcher}, {share} %: {count}", -1) for count in ("tries", "list_steps") for share in (low, high)),
    )


RTF = (
    _text(
        "004/5a", "Filtering time and queries", varies="subscriptions", places=_THOUSANDS, matchers=(*_RTF, OURS),
        measures=("look_up", "selection", "whole"), up=MICROS, counts=_WALKED, claims=(
            Claim("filtering time grows with the queries", rises(*_of_rtf("selection"), slack=NOISE), _SHARED),
            Claim("RTFm is 92 times as fast as iBroker",
                  below("rtf-m: selection", "ibroker: selection", 92.0, last=True), _slower_base),
            Claim("RTFs is 94 times as fast as iBroker",
                  below("rtf-s: selection", "ibroker: selection", 94.0, last=True), _slower_base),
            *(Claim(f"{name} is faster than iBroker", below(f"{name}: selection", "ibroker: selection"), _slower_base)
              for name in ("rtf-s", "rtf-m")),
            Claim("RTFs is 2.5 % faster than RTFm", below("rtf-s: selection", "rtf-m: selection", 1.025, last=True),
                  counted("in the one forest of words the walk also goes on to words that stand below other structures"
                          " alone: it visits {:,.0f} nodes a publication, RTFm {:,.0f}, and takes {:,.0f} and {:,.0f}"
                          " steps along lists, at each of which it also asks whether the tuple's structure was reached,"
                          " two reads more",
                          *((f"{name}: {measure}", -1) for measure in ("tries", "list_steps")
                            for name in ("rtf-s", "rtf-m")))),
            *_ahead(_RTF),
        ),
    ),
    _text(
        "004/5b", "Throughput and publications", varies="publications", places=(1_000, 2_000, 3_000, 4_000, 5_000),
        matchers=(*_RTF, OURS), measures=("throughput",), up="publications a second (selection)",
        fixed={"subscriptions": 100_000}, counts=_WALKED, claims=(
            *(Claim(f"the throughput of {name} remains steady", steady(f"{name}: throughput", 1.3),
                    counted("the work does: {:,.0f}, {:,.0f} and {:,.0f} steps along lists a publication at the first,"
                            " the middle and the last place", *((f"{name}: list_steps", at) for at in (0, 2, -1))))
              for name in _RTF),
            *(Claim(f"{name} reaches more than iBroker", below("ibroker: throughput", f"{name}: throughput"),
                    _slower_base) for name in ("rtf-s", "rtf-m")),
        ),
    ),
    _text(
        "004/6a", "Memory and queries", varies="subscriptions", places=_THOUSANDS, matchers=_RTF,
        measures=("queries",), up=MEGABYTES, counts=("patterns",), claims=(
            Claim("RTFs needs no more than RTFm", below("rtf-s: queries", "rtf-m: queries"), _SAME_NODES),
            Claim("iBroker needs more than RTFm", below("rtf-m: queries", "ibroker: queries"),
                  _NEXT_ROW),
            Claim("the first queries need more than as many later ones",
                  slows("rtf-s: queries", "rtf-m: queries"), _SAME_LOOK),
        ),
    ),
    _text(
        "004/6b", "Insertion time and queries", varies="subscriptions", places=_THOUSANDS, matchers=_RTF,
        measures=("insertion",), up=INSERTED, claims=(
            Claim("iBroker inserts faster than RTFs", below("ibroker: insertion", "rtf-s: insertion"), _SHARED),
            Claim("iBroker inserts faster than RTFm", below("ibroker: insertion", "rtf-m: insertion"), _SHARED),
            Claim("insertion takes longer with more queries",
                  rises("rtf-s: insertion", "rtf-m: insertion", slack=NOISE),
                  "a look-up in a hash table takes as long in a large one, but for the processor's caches"),
        ),
    ),
    _text(
        "004/7a", "Filtering time, queries and share of text", varies="subscriptions", places=_THOUSANDS,
        matchers=("rtf-s", "rtf-m"), measures=("selection",), up=MICROS, fixed={"shares": (0, 50, 100)},
        counts=_WALKED, claims=(
            *_shares("selection", reason=True),
            Claim("without text both take as long",
                  alike("rtf-s, 0 %: selection", "rtf-m, 0 %: selection", 1.3), _SHARED),
            Claim("with all text RTFm is faster than RTFs",
                  below("rtf-m, 100 %: selection", "rtf-s, 100 %: selection"), _SHARED),
        ),
    ),
    _text(
        "004/7b", "Insertion time, queries and share of text", varies="subscriptions", places=_THOUSANDS,
        matchers=("rtf-s", "rtf-m"), measures=("insertion",), up=INSERTED, fixed={"shares": (0, 50, 100)},
        claims=_shares("insertion"),
    ),
    _text(
        "004/memory", "Memory and share of text", varies="share", places=(0, 50, 100), matchers=_RTF,
        measures=("queries",), up=MEGABYTES, fixed={"subscriptions": 100_000}, claims=(
            Claim("memory is least without text", rises("rtf-s: queries", "rtf-m: queries"), _SAME_NODES),
            Claim("RTFs needs no more than RTFm", below("rtf-s: queries", "rtf-m: queries"), _SAME_NODES),
        ),
    ),
)  # fmt: skip

FIGURES = (*G_TOPSS, *CLUSTER, *RTF)
