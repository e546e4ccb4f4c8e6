"""The rows of a run, one for each figure, as a table, as JSON Lines, or as a picture."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from html import escape
from typing import Any

MEGA, GIGA = 1e6, 1e9
MICROS = "us/publication"


@dataclass(frozen=True, slots=True)
class Figure:
    """One figure. `target` is its upper bound, or with `at_least` its lower bound; None where it has none. `value` is
    None where it could not be measured. `note` says why, or how the time was spent where a target is missed."""

    workload: str
    name: str
    value: float | None
    unit: str = ""
    target: float | None = None
    at_least: bool = False
    note: str = ""

    @property
    def met(self) -> bool | None:
        """Does the figure keep its target? None where it has none."""
        if self.target is None:
            return None
        if self.value is None:
            return False
        return self.value >= self.target if self.at_least else self.value <= self.target

    def to_json(self) -> dict[str, Any]:
        """The row as `--json` writes it."""
        value = None if self.value is None else _rounded(self.value)
        target = None if self.target is None else _rounded(self.target)
        return {
            "workload": self.workload, "name": self.name, "value": value, "unit": self.unit, "target": target,
            "met": self.met,
        }  # fmt: skip

    def missed_by(self) -> str:
        """By how much the target is missed, or what kept the figure from being measured."""
        if self.value is None or self.target is None:
            return self.note or "not measured"
        if self.at_least:
            by = f"{(self.target - self.value) / self.target:.0%} short"
        else:
            by = f"{self.value / self.target - 1:.0%} over" if self.target else "over"
        return f"{by} ({self.note})" if self.note else by


def to_line(row: Figure) -> str:
    """A row for another process of the same run."""
    return json.dumps(asdict(row))


def from_line(line: str) -> Figure:
    """The row that `to_line` wrote."""
    return Figure(**json.loads(line))


WIDTHS = (12, 62, 14, 17, 14)


def table_head() -> str:
    """The headings of the table."""
    workload, name, value, unit, target = WIDTHS
    return f"{'workload':{workload}} {'figure':{name}} {'value':>{value}} {'unit':{unit}} {'target':>{target}}"


def table_line(row: Figure) -> str:
    """One row of the table."""
    workload, name, value, unit, target = WIDTHS
    bound = "" if row.target is None else f"{'>=' if row.at_least else '<='} {_shown(row.target)}"
    verdict = {None: "", True: "  met", False: f"  MISSED, {row.missed_by()}"}[row.met]
    if row.met is None and row.note:
        verdict = f"  {row.note}"
    shown = "-" if row.value is None else _shown(row.value)
    return (
        f"{row.workload:{workload}} {row.name:{name}} {shown:>{value}} {row.unit:{unit}} {bound:>{target}}{verdict}"
    ).rstrip()


def summary(rows: Iterable[Figure]) -> Iterator[str]:
    """The number of targets that were met, and each one that was not."""
    named = [row for row in rows if row.target is not None]
    if not named:
        return
    missed = [row for row in named if not row.met]
    yield f"{len(named) - len(missed)} of {len(named)} targets met"
    for row in missed:
        yield f"missed: {row.workload}: {row.name}: {row.missed_by()}"


def _rounded(value: float) -> float:
    return float(f"{value:.6g}")


def _shown(value: float) -> str:
    return f"{value:,.0f}" if value == int(value) or abs(value) >= 1_000 else f"{value:,.4g}"


# --- plot ------------------------------------------------------------------------------------------------------------
# Draws rows as an SVG of bars, one for each row, without a library.


_LEFT, _WIDTH, _BAR, _GAP, _TOP = 470, 520, 16, 8, 48
_MET, _MISSED, _PLAIN = "#2c7a4b", "#b3392f", "#4a6fa5"


def to_svg(rows: Sequence[Figure], title: str) -> str:
    """The SVG of the rows of a run."""
    bars = [(row, _share(row)) for row in rows if row.target and row.value]
    label = "value in parts of the target (line: the target; longer than the line is worse)"
    if not bars:
        bars = [(row, row.value) for row in rows if row.unit.startswith("us/") and row.value]
        label = "microseconds, logarithmic"
    height = _TOP + len(bars) * (_BAR + _GAP) + 40
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_LEFT + _WIDTH + 120}" height="{height}"'
        ' font-family="sans-serif" font-size="12">',
        f'<text x="10" y="20" font-size="15">{escape(title)}</text>',
        f'<text x="10" y="38" fill="#555">{escape(label)}</text>',
    ]
    low, high = _limits([share for _, share in bars])
    for place, (row, share) in enumerate(bars):
        parts += _bar(row, _TOP + place * (_BAR + _GAP), _length(share, low, high))
    if any(row.target for row, _ in bars):
        x = _LEFT + _length(1.0, low, high)
        parts.append(f'<line x1="{x:.0f}" x2="{x:.0f}" y1="{_TOP - 4}" y2="{height - 36}" stroke="#222"/>')
    return "\n".join([*parts, "</svg>", ""])


def _share(row: Figure) -> float:
    """The value as a fraction of the target; above 1 is worse."""
    assert row.value
    assert row.target
    return row.target / row.value if row.at_least else row.value / row.target


def _limits(values: Sequence[float]) -> tuple[float, float]:
    """Powers of ten around the values, and around 1."""
    low = math.floor(math.log10(min([*values, 1.0])))
    return low, max(math.ceil(math.log10(max([*values, 1.0]))), low + 1)


def _length(value: float, low: float, high: float) -> float:
    """The length of a bar, in pixels."""
    return max(2.0, (math.log10(value) - low) / (high - low) * _WIDTH)


def _bar(row: Figure, y: int, length: float) -> list[str]:
    """A bar with its name and its value."""
    colour = _PLAIN if row.met is None else _MET if row.met else _MISSED
    name = escape(f"{row.workload}: {row.name}")
    bound = "" if row.target is None else f" ({'>=' if row.at_least else '<='} {row.target:.4g})"
    return [
        f'<text x="{_LEFT - 8}" y="{y + 12}" text-anchor="end">{name}</text>',
        f'<rect x="{_LEFT}" y="{y}" width="{length:.1f}" height="{_BAR}" fill="{colour}"/>',
        f'<text x="{_LEFT + length + 6:.1f}" y="{y + 12}">{escape(f"{row.value:.4g} {row.unit}{bound}")}</text>',
    ]
