"""Figures of papers as files: tables of their points, and line charts as SVG, drawn without a library."""

from __future__ import annotations

import csv
from collections.abc import Collection, Iterable, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

Line = dict[float, float]
Lines = dict[str, Line]
"""Line -> place on the axis -> value."""

_LEFT, _TOP, _WIDTH, _HEIGHT, _LEGEND = 80, 50, 520, 320, 130
_COLOURS = ("#2c7a4b", "#4a6fa5", "#c98a1b", "#b3392f", "#6b4a9c")


def to_svg(title: str, across: str, up: str, places: Sequence[Any], lines: Mapping[str, Sequence[float | None]]) -> str:
    """The picture. Numbers lie on the axis by their size, from 0; other places one beside the other. Where a line has
    None for a place, it has no point there."""
    if all(isinstance(place, int | float) for place in places) and len(places) > 1:
        low, high = min(places), max(places)
        share = [(place - low) / (high - low) for place in places]
    else:
        share = [number / max(1, len(places) - 1) for number in range(len(places))]
    top = max((value for values in lines.values() for value in values if value is not None), default=0) or 1.0
    bottom, right = _TOP + _HEIGHT, _LEFT + _WIDTH
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{right + _LEGEND}" height="{bottom + 60}"'
        ' font-family="sans-serif" font-size="12">',
        f'<text x="10" y="24" font-size="15">{escape(title)}</text>',
        f'<text x="10" y="{_TOP - 8}" fill="#555">{escape(up)}</text>',
        f'<text x="{right}" y="{bottom + 40}" fill="#555" text-anchor="end">{escape(across)}</text>',
        f'<path d="M{_LEFT} {_TOP}V{bottom}H{right}" fill="none" stroke="#222"/>',
    ]
    for number in range(5):
        y = bottom - number / 4 * _HEIGHT
        parts.append(f'<text x="{_LEFT - 6}" y="{y + 4:.0f}" text-anchor="end">{top * number / 4:,.0f}</text>')
    for place, at in zip(places, share, strict=True):
        shown = f"{place:,}" if isinstance(place, int) else str(place)
        parts.append(
            f'<text x="{_LEFT + at * _WIDTH:.0f}" y="{bottom + 18}" text-anchor="middle">{escape(shown)}</text>'
        )
    for number, (name, values) in enumerate(lines.items()):
        colour = _COLOURS[number % len(_COLOURS)]
        spots = [
            (_LEFT + at * _WIDTH, bottom - value / top * _HEIGHT)
            for at, value in zip(share, values, strict=True)
            if value is not None
        ]
        parts.append(
            f'<polyline points="{" ".join(f"{x:.1f},{y:.1f}" for x, y in spots)}" fill="none" stroke="{colour}"/>'
        )
        parts += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>' for x, y in spots]
        parts.append(f'<text x="{right + 12}" y="{_TOP + 18 * number}" fill="{colour}">{escape(name)}</text>')
    return "\n".join([*parts, "</svg>", ""])


def to_csv(path: Path, head: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """Write the table of a figure: a line of names, then the rows."""
    with path.open("w", encoding="utf-8", newline="") as out:
        table = csv.writer(out)
        table.writerow(head)
        table.writerows(rows)


def write(
    folder: Path, name: str, title: str, across: str, up: str, lines: Lines, counts: Collection[str] = ()
) -> None:
    """Write a figure as a table and as a picture, which has no line of `counts`."""
    folder.mkdir(parents=True, exist_ok=True)
    file = file_of(name)
    rows = [(line, place, f"{value:.6g}") for line, values in lines.items() for place, value in values.items()]
    to_csv(folder / f"{file}.csv", ("line", across, up), rows)
    places = sorted({place for values in lines.values() for place in values})
    shown = {line: values for line, values in lines.items() if line not in counts}
    drawn = {line: [values.get(place) for place in places] for line, values in shown.items()}
    (folder / f"{file}.svg").write_text(to_svg(f"{name}: {title}", across, up, places, drawn), "utf-8")


def file_of(name: str) -> str:
    """The name of the files of a figure, without a suffix."""
    return name.replace("/", "-").replace(", ", "-").replace(" ", "-")
