"""What papers claim of the lines of a figure, as predicates that say what was measured, and whether it holds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import Any

from bench.drawing import Line, Lines


@dataclass(frozen=True, slots=True)
class Outcome:
    """What was measured, and whether the claim holds."""

    measured: str
    held: bool


@dataclass(frozen=True, slots=True)
class Verdict:
    """A row: a claim of a figure, what was measured, whether it holds, and why where it does not."""

    figure: str
    claim: str
    measured: str
    held: bool
    note: str = ""

    def to_json(self) -> dict[str, Any]:
        """The row as `--json` writes it."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Claim:
    """What a paper says, how it is found out, and why it does not hold here, where that is known: as a text, or as a
    function of what was measured."""

    text: str
    check: Callable[[Lines], Outcome]
    why: str | Callable[[Lines], str] = ""

    def reason(self, lines: Lines) -> str:
        """Why it does not hold of these lines."""
        try:
            return self.why if isinstance(self.why, str) else self.why(lines)
        except KeyError as missing:
            return f"the table has no line {missing}: it is to be measured again"


def counted(text: str, *asked: tuple[str, int]) -> Callable[[Lines], str]:
    """A reason with numbers of the run in its fields: of each of these lines, its value at the place with this number
    among its places, or at the last."""

    def why(lines: Lines) -> str:
        values = ([value for _, value in sorted(lines[line].items())] for line, _ in asked)
        return text.format(
            *(of_line[min(place, len(of_line) - 1)] for of_line, (_, place) in zip(values, asked, strict=True))
        )

    return why


def told(line: Line) -> str:
    """The values of a line in the order of its places."""
    return ", ".join(f"{value:,.4g}" for _, value in sorted(line.items()))


def times_more(line: Line) -> float:
    """How many times its first value the last one of a line is."""
    values = [value for _, value in sorted(line.items())]
    return values[-1] / max(values[0], 1e-9)


def rises(*names: str, slack: float = 0.0) -> Callable[[Lines], Outcome]:
    """Each of the lines rises from place to place; a fall by the share `slack` is no fall."""

    def check(lines: Lines) -> Outcome:
        values = [[value for _, value in sorted(lines[name].items())] for name in names]
        held = all(low * (1 - slack) <= high for line in values for low, high in pairwise(line))
        return Outcome("; ".join(told(lines[name]) for name in names), held and all(v[-1] > v[0] for v in values))

    return check


def falls(*names: str) -> Callable[[Lines], Outcome]:
    """Each of the lines falls from place to place."""

    def check(lines: Lines) -> Outcome:
        values = [[value for _, value in sorted(lines[name].items())] for name in names]
        held = all(high > low for line in values for high, low in pairwise(line))
        return Outcome("; ".join(told(lines[name]) for name in names), held)

    return check


def linear(name: str, most: float) -> Callable[[Lines], Outcome]:
    """No value is off the straight line through the first and the last point by more than the share `most` of the
    last."""

    def check(lines: Lines) -> Outcome:
        points = sorted(lines[name].items())
        (x0, y0), (x1, y1) = points[0], points[-1]
        slope = (y1 - y0) / (x1 - x0) if x1 > x0 else 0.0
        off = max(abs(y - y0 - slope * (x - x0)) for x, y in points) / max(y1, 1e-9)
        return Outcome(f"{told(lines[name])}: off by {off:.0%} at most", off <= most and y1 > y0)

    return check


def grows_by(name: str, least: float, most: float = float("inf")) -> Callable[[Lines], Outcome]:
    """The last value is so many times the first one."""

    def check(lines: Lines) -> Outcome:
        times = times_more(lines[name])
        return Outcome(f"{times:.2f} times ({told(lines[name])})", least <= times <= most)

    return check


def grows_faster(faster: str, slower: str) -> Callable[[Lines], Outcome]:
    """From the first place to the last, one line gains more than another."""

    def check(lines: Lines) -> Outcome:
        gains = [max(line.items())[1] - min(line.items())[1] for line in (lines[faster], lines[slower])]
        return Outcome(f"{gains[0]:+,.4g} and {gains[1]:+,.4g}", gains[0] > gains[1])

    return check


def below(lower: str, upper: str, times: float = 1.0, last: bool = False) -> Callable[[Lines], Outcome]:
    """The upper line is at least so many times the lower one, at every place or at the last."""

    def check(lines: Lines) -> Outcome:
        places = sorted(set(lines[lower]) & set(lines[upper]))
        ratios = [lines[upper][place] / max(lines[lower][place], 1e-9) for place in places[-1 if last else 0 :]]
        return Outcome(", ".join(f"{ratio:,.3g}" for ratio in ratios) + " times", min(ratios) >= times)

    return check


def steady(name: str, most: float) -> Callable[[Lines], Outcome]:
    """The largest value is at most so many times the smallest."""

    def check(lines: Lines) -> Outcome:
        values = lines[name].values()
        times = max(values) / max(min(values), 1e-9)
        return Outcome(f"{times:.2f} times ({told(lines[name])})", times <= most)

    return check


def levels_off(name: str, most: float) -> Callable[[Lines], Outcome]:
    """From the last place but one to the last, the value falls or grows by at most so many times."""

    def check(lines: Lines) -> Outcome:
        *_, before, last = (value for _, value in sorted(lines[name].items()))
        times = max(before, last) / max(min(before, last), 1e-9)
        return Outcome(f"{times:.2f} times ({told(lines[name])})", times <= most)

    return check


def alike(first: str, second: str, most: float) -> Callable[[Lines], Outcome]:
    """At every place, the larger one of two lines is at most so many times the smaller one."""

    def check(lines: Lines) -> Outcome:
        pairs = [(lines[first][place], lines[second][place]) for place in sorted(lines[first])]
        times = [max(pair) / max(min(pair), 1e-9) for pair in pairs]
        return Outcome(", ".join(f"{ratio:.2f}" for ratio in times) + " times", max(times) <= most)

    return check


def slows(*names: str) -> Callable[[Lines], Outcome]:
    """The first value of each line is more than any later one adds to the one before it."""

    def check(lines: Lines) -> Outcome:
        values = [[value for _, value in sorted(lines[name].items())] for name in names]
        held = all(line[0] > max(high - low for low, high in pairwise(line)) for line in values)
        return Outcome("; ".join(told(lines[name]) for name in names), held)

    return check
