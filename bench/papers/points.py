"""Measures the points of a figure: generates the workload of each place, loads it once, and asks each matcher."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from bench.drawing import Lines
from bench.papers.figures import PaperFigure
from bench.papers.measured import Cost, Loaded
from bench.papers.workload import GraphSetting, write_subscriptions, write_taxonomy
from bench.workloads.catalogue import RTF_PUBLICATIONS, SEED, Case, Place, rtf_case, same_structure
from triplewire.read import read

LONGEST_SECONDS = 120.0  # a matcher whose point took longer is not measured at larger places
_SAME_PUBLICATIONS = 100
_INSERTED = 5  # one in so many subscriptions is inserted into an index of the others; in the paper 20,000 of 100,000
_MOST_INSERTED = 20_000


class Points:
    """Measures figures. `size`: the largest number of subscriptions of a figure, or None for the paper's."""

    def __init__(self, work: Path, size: int | None, progress: Callable[[str], None]) -> None:
        self.place, self.size, self.progress = Place(work), size, progress
        self.taxonomy = work / "classes.ttl"
        write_taxonomy(self.taxonomy)
        self._costs: dict[tuple[Any, ...], Cost] = {}  # several figures have points in common
        self._loaded: dict[tuple[Any, ...], Loaded] = {}  # the last two: a phase compares two settings

    def lines(self, figure: PaperFigure) -> tuple[Lines, list[str]]:
        """The lines of a figure; and what of it was not measured, and why."""
        lines: Lines = defaultdict(dict)
        left_out: dict[str, str] = {}
        for place in figure.places:
            at = self.scaled(figure, place)
            self.progress(f"{figure.name}: {figure.varies} {at:,} ...")
            for name, setting in self._settings(figure, at):
                matchers = [matcher for matcher in figure.matchers if matcher not in left_out]
                self._measure(figure, setting, matchers)
                for matcher in matchers:
                    line = f"{matcher}, {name}" if name else matcher
                    taken = self._point(figure, setting, matcher, line, at, lines)
                    if taken > LONGEST_SECONDS:
                        left_out[matcher] = f"{matcher} was not measured past {at:,}: a point took {taken:.0f} s"
        return lines, list(left_out.values())

    def scaled(self, figure: PaperFigure, place: float) -> float:
        """A place on the axis, where the figure is made at another size."""
        return self._sized(figure, place) if figure.varies == "subscriptions" else place

    def _sized(self, figure: PaperFigure, subscriptions: float) -> int:
        """A number of subscriptions, in proportion to the largest one of the figure."""
        largest = max(figure.places) if figure.varies == "subscriptions" else subscriptions
        share = 1.0 if self.size is None else min(1.0, self.size / largest)
        return max(1, round(share * subscriptions))

    def _settings(self, figure: PaperFigure, at: float) -> Iterator[tuple[str, dict[str, Any]]]:
        """The settings of a place, each with a name where there are several."""
        setting = {"subscriptions": 30_000, **figure.fixed, figure.varies: at}
        if figure.varies != "subscriptions":
            setting["subscriptions"] = self._sized(figure, setting["subscriptions"])
        for share in setting.pop("shares", (None,)):
            yield ("", setting) if share is None else (f"{share} %", {**setting, "share": share})

    def _point(
        self, figure: PaperFigure, setting: dict[str, Any], matcher: str, line: str, at: float, lines: Lines
    ) -> float:
        """Add what is measured of a matcher at a place; returns the seconds that it took."""
        workload, seconds = figure.workload, 0.0
        for measure in (*figure.measures, *figure.counts):
            if measure == "insertion":
                loaded = self._load(workload, setting)
                count = max(1, min(_MOST_INSERTED, len(loaded.segment) // _INSERTED))
                value = loaded.insertion(matcher, count)
            elif measure.endswith("phase"):
                value = self._phase(measure, setting, matcher)
            else:
                cost = self._cost(workload, setting, matcher)
                seconds = max(seconds, cost.seconds)
                value = value_of(cost, measure)
            lines[f"{line}: {measure}"][at] = value
        return seconds

    def _phase(self, measure: str, setting: dict[str, Any], matcher: str) -> float:
        """The structure phase: what the subscriptions take without constraints. The other one: what is to come."""
        structure = self._cost("graph", {**setting, "constraints": False}, matcher).whole
        whole = self._cost("graph", setting, matcher).whole
        return structure if measure.startswith("structure") else max(0.0, whole - structure)

    def _cost(self, workload: str, setting: dict[str, Any], matcher: str) -> Cost:
        return self._costs[workload, *sorted(setting.items()), matcher]

    def _measure(self, figure: PaperFigure, setting: dict[str, Any], matchers: list[str]) -> None:
        """Find out the costs of these matchers that the measures of a figure ask for, side by side."""
        settings = [setting] if any(measure != "insertion" for measure in figure.measures) else []
        if any(measure.endswith("phase") for measure in figure.measures):
            settings.append({**setting, "constraints": False})
        for each in settings:
            key = (figure.workload, *sorted(each.items()))
            unknown = [matcher for matcher in matchers if (*key, matcher) not in self._costs]
            if unknown:
                costs = self._load(figure.workload, each).costs(unknown)
                self._costs.update({(*key, matcher): cost for matcher, cost in costs.items()})

    def _load(self, workload: str, setting: dict[str, Any]) -> Loaded:
        key = (workload, *sorted(setting.items()))
        if key not in self._loaded:
            for older in list(self._loaded)[:-1]:
                del self._loaded[older]  # its memory is free before the next one is loaded
            case, count = self._case(workload, setting)
            publications = list(islice(read(case.publications), count))
            self._loaded[key] = Loaded(case.subscriptions, publications, self.taxonomy)
        return self._loaded[key]

    def _case(self, workload: str, setting: dict[str, Any]) -> tuple[Case, int | None]:
        """The files of a setting, and how many of the publications count."""
        size = int(setting["subscriptions"])
        if workload == "graph":
            wanted = GraphSetting(**setting)
            return self.place.case("", wanted.name, lambda path: write_subscriptions(wanted, path, SEED)), None
        if workload == "rtf":
            publications = setting.get("publications", RTF_PUBLICATIONS)
            if self.size is not None:
                publications = max(20, round(publications * min(1.0, self.size / 100_000)))
            return rtf_case(self.place, setting.get("share", 50), size), publications
        return same_structure(self.place, size), _SAME_PUBLICATIONS


def value_of(cost: Cost, measure: str) -> float:
    """What is drawn of a cost."""
    if measure == "matrix":
        return cost.structure
    if measure == "memory":
        return cost.structure + cost.subscriptions
    if measure == "queries":
        return cost.structure + cost.read
    if measure == "throughput":
        return 1e6 / max(cost.selection + cost.look_up, 1e-9)
    return float(getattr(cost, measure))
