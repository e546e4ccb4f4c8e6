"""Draws rows as an SVG of bars, one for each row, without a library.

Rows with a target are shown as fractions of it on a logarithmic scale, with a line at 1. Where a run has no target, its
times are shown instead.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape

from triplewire.bench.report import Figure

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
