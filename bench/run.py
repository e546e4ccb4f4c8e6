"""Runs experiments, each in processes of its own, and collects their rows.

Each step is a new process, so that experiments share neither memory nor compiled code.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench.experiments import EXPERIMENTS, compare, from_json, to_json
from bench.measure import Operators, use
from bench.report import Figure, from_line, to_line
from bench.workloads.catalogue import WORKLOADS, Place
from triplewire.errors import TriplewireError

ALL = "all"
_LAST_SECONDS = 90.0  # that a step has to end what it has started


@dataclass(frozen=True, slots=True)
class BenchPlan:
    """What to run: a workload, or all of them. `compared` names two matchers, or is empty. `operators`: those that the
    subscriptions of `data` may call. `only`: rounds of the peers, or all where it is empty."""

    workload: str
    matcher: str
    compared: tuple[str, ...] = ()
    size: int | None = None
    data: Path | None = None
    operators: Operators = field(default_factory=Operators)
    only: tuple[str, ...] = ()

    def names(self) -> list[str]:
        """The experiments. `all` leaves out those that run by their name only."""
        if self.workload != ALL:
            return [self.workload]
        if self.compared:
            return list(WORKLOADS)
        return [name for name, experiment in EXPERIMENTS.items() if not experiment.by_name]


def run(plan: BenchPlan, progress: Callable[[str], None]) -> Iterator[Figure]:
    """The rows of all experiments, as they are measured. An experiment that fails gives a row that says so."""
    names = plan.names()
    with tempfile.TemporaryDirectory(prefix="triplewire-bench-") as folder:
        for number, name in enumerate(names, 1):
            experiment, begun = EXPERIMENTS[name], time.perf_counter()
            progress(f"[{number}/{len(names)}] {experiment.workload}: {experiment.about} ...")
            try:
                yield from _experiment(plan, name, folder)
            except _Failed as failure:
                progress(str(failure))
                yield Figure(experiment.workload, f"{experiment.about}: failed", None, "", 0.0, note=str(failure))
            progress(f"[{number}/{len(names)}] done in {time.perf_counter() - begun:.0f} s")


class _Failed(Exception):
    """A step ended with an error."""


def _experiment(plan: BenchPlan, name: str, folder: str) -> Iterator[Figure]:
    """The rows of one experiment. Raises `_Failed`."""
    job: dict[str, Any] = {
        "name": name, "work": folder, "size": plan.size, "data": None if plan.data is None else str(plan.data),
        "matcher": plan.matcher, "compared": plan.compared,
        "operators": plan.operators.files, "order": plan.operators.order,
        "only": plan.only,
    }  # fmt: skip
    (written,) = _step({**job, "step": "prepare"})
    cases = json.loads(written)
    for group in [[case] for case in cases] if EXPERIMENTS[name].apart else [cases]:
        for line in _step({**job, "step": "measure", "cases": group}):
            yield from_line(line)


def _step(job: dict[str, Any]) -> Iterator[str]:
    """The lines that the process of a step writes. Raises `_Failed` where it ends with an error."""
    command = [sys.executable, "-m", "bench.run", json.dumps(job)]
    with tempfile.TemporaryFile() as errors:  # no pipe, which could fill up: it is read after the end
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True) as process:
            assert process.stdout is not None
            try:
                yield from process.stdout
            except BaseException:
                process.terminate()  # not killed: it ends what it has started
                with suppress(subprocess.TimeoutExpired):
                    process.wait(_LAST_SECONDS)
                process.kill()
                raise
        if process.returncode:
            errors.seek(0)
            said = errors.read().decode("utf-8", "replace").strip().splitlines()
            raise _Failed(said[-1] if said else f"exit code {process.returncode}")


def end_in_order() -> None:
    """Have SIGTERM leave all blocks of this process, as Ctrl-C does, so that none of its own is left behind."""
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))


def step(job: dict[str, Any]) -> None:
    """Do one step in the process that was started for it. Writes lines of JSON to standard output."""
    experiment = EXPERIMENTS[job["name"]]
    use(Operators(tuple(job["operators"]), job["order"]))
    data = None if job["data"] is None else Path(job["data"])
    place = Place(Path(job["work"]), job["size"], data, tuple(job["only"]))
    if job["step"] == "prepare":
        print(json.dumps(to_json(experiment.prepare(place))))
        return
    cases = from_json(job["cases"])
    if job["compared"]:
        rows = compare(experiment.workload, place, cases, *job["compared"])
    else:
        rows = experiment.measure(place, cases, job["matcher"])
    for row in rows:
        print(to_line(row), flush=True)


def main(argument: str) -> int:
    """The main function of the process of a step. Writes an error to standard error, in one line."""
    end_in_order()
    try:
        step(json.loads(argument))
    except TriplewireError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
