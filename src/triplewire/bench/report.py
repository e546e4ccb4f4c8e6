"""The rows of a run, one for each figure, as a table or as JSON Lines. As a picture: `triplewire.bench.plot`."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from typing import Any


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
