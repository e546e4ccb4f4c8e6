"""A query as a graph with what became of each part for a publication: where boxes and arrows of the picture lie.

A box is a variable or a term, an arrow a triple pattern; conditions hang below the first variable that they ask of.
Boxes stand in columns by their distance from the first subject.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from triplewire.engine.explain.explanation import Explanation, Finding, Verdict
from triplewire.ir.nodes import And, Call, Filter, Minus, Not, Optional, Or, Pattern, Variable, Where, conjuncts
from triplewire.ir.show import show, show_position, show_term
from triplewire.ir.walk import walk

WIDTH, HEADING, LINE = 250, 46, 26  # of a box, of its names, of a condition
_ACROSS, _DOWN, _MARGIN = 190, 26, 14  # between columns, between boxes of one, around all
_CHARACTERS = 31  # of a line in a box


@dataclass
class Box:
    """A variable or a term, with its value for the publication and its conditions."""

    name: str
    value: str = ""
    conditions: list[tuple[str, str]] = field(default_factory=list)  # text, verdict
    x: int = 0
    y: int = 0

    @property
    def height(self) -> int:
        """With its conditions."""
        return HEADING + LINE * len(self.conditions)


@dataclass(frozen=True)
class Arrow:
    """A triple pattern. `is_absent`: it stands in a part that must not match."""

    begin: Box
    end: Box
    text: str
    verdict: str
    is_absent: bool

    @property
    def path(self) -> str:
        """The line, as SVG writes it (SVG 2, 9.3)."""
        x, y = self.begin.x + WIDTH, self.begin.y + HEADING // 2
        to_x, to_y = self.end.x, self.end.y + HEADING // 2
        if to_x > x:
            return f"M{x},{y} C{x + 70},{y} {to_x - 150},{to_y} {to_x},{to_y}"
        return f"M{x},{y} C{x + 90},{y} {self.end.x + WIDTH + 90},{to_y} {self.end.x + WIDTH},{to_y}"

    @property
    def label(self) -> tuple[int, int, str]:
        """Where the text stands: by the head of the arrow, so that arrows that begin at one box do not hide it."""
        y = self.end.y + HEADING // 2 - 7
        return (self.end.x - 16, y, "end") if self.end.x > self.begin.x else (self.end.x + WIDTH + 16, y, "start")


@dataclass(frozen=True)
class Drawing:
    """A picture and its size."""

    boxes: list[Box]
    arrows: list[Arrow]
    width: int
    height: int


def drawing(where: Where, explanation: Explanation) -> Drawing:
    """The picture of a query and an explanation of it."""
    values = {f"?{name}": show_term(term) for name, term in explanation.solution.items()}
    boxes: dict[str, Box] = {}

    def box(name: str, key: str = "") -> Box:
        return boxes.setdefault(key or name, Box(name, values.get(name, "")))

    arrows: list[Arrow] = []
    for part, verdict, is_absent in _parts(where, dict(_verdicts(explanation.findings)), Verdict.NOT_REACHED, False):
        if isinstance(part, Pattern):
            subject, end = show_position(part.subject), show_position(part.object)
            key = "" if isinstance(part.object, Variable) or part.object in _subjects(where) else f"{len(arrows)} {end}"
            arrows.append(Arrow(box(subject), box(end, key), show_position(part.predicate), verdict.value, is_absent))
        else:
            asked = next((f"?{node.name}" for node in walk(part) if isinstance(node, Variable)), "")
            text = show(part).removeprefix("FILTER ")
            box(asked or text).conditions.append((text, verdict.value))
    return _placed(list(boxes.values()), arrows)


def _subjects(where: Where) -> set[object]:
    return {node.subject for node in walk(where) if isinstance(node, Pattern)}


def _verdicts(findings: Iterable[Finding]) -> Iterator[tuple[str, Verdict]]:
    for finding in findings:
        yield finding.part, finding.verdict
        yield from _verdicts(finding.parts)


def _parts(
    where: Where, verdicts: Mapping[str, Verdict], around: Verdict, is_absent: bool
) -> Iterator[tuple[Where, Verdict, bool]]:
    """The patterns and conditions of a tree, with what became of each: of one that has no finding, what became of the
    part around it."""
    verdict = verdicts.get(show(where), around)
    match where:
        case And(parts) | Or(parts):
            for part in parts:
                yield from _parts(part, verdicts, verdict, is_absent)
        case Optional(group) | Not(group) | Minus(group):
            yield from _parts(group, verdicts, verdict, is_absent or not isinstance(where, Optional))
        case Filter(condition):
            for each in map(Filter, conjuncts(condition)):
                yield each, verdicts.get(show(each), verdict), is_absent
        case Pattern() | Call():
            yield where, verdict, is_absent


def _placed(boxes: list[Box], arrows: list[Arrow]) -> Drawing:
    """The boxes in columns by their distance from the first."""
    column: dict[int, int] = {}
    for first in boxes:
        if id(first) in column:
            continue
        column[id(first)] = 0
        reached = [first]
        for box in reached:  # grows meanwhile: breadth first
            for arrow in arrows:
                for here, there, step in ((arrow.begin, arrow.end, 1), (arrow.end, arrow.begin, 0)):
                    if here is box and id(there) not in column:
                        column[id(there)] = column[id(box)] + step
                        reached.append(there)
    bottoms: dict[int, int] = {}
    for box in boxes:
        place = column[id(box)]
        box.x, box.y = _MARGIN + place * (WIDTH + _ACROSS), bottoms.get(place, _MARGIN)
        bottoms[place] = box.y + box.height + _DOWN
    loops = any(arrow.end.x <= arrow.begin.x for arrow in arrows)
    width = max((box.x for box in boxes), default=0) + WIDTH + _MARGIN + 100 * loops
    return Drawing(boxes, arrows, width, max(bottoms.values(), default=0) - _DOWN + _MARGIN)


def cut(text: str, most: int = _CHARACTERS) -> str:
    """A text that fits into a box."""
    return text if len(text) <= most else text[: most - 1] + "\N{HORIZONTAL ELLIPSIS}"
