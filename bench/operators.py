"""The targets for expensive operators, and what is told beside them."""

from __future__ import annotations

import asyncio
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import islice, pairwise
from pathlib import Path

import numpy as np

from bench import operators_paper as paper
from bench.operators_paper import Run, known_chances, learning, least_calls
from bench.report import Figure
from bench.workloads.catalogue import SEED, Case, Place
from bench.workloads.operators import RECIPES, CallWorkload, Truths, costs, generated, real, real_folder
from triplewire.engine import Engine
from triplewire.model.operator import Argument, Operator
from triplewire.model.publication import Publication
from triplewire.model.terms import IRI, Literal, Triple
from triplewire.operators import function_operator
from triplewire.operators.http import declared
from triplewire.operators.order import ORDERS
from triplewire.operators.order.greedy import order_named

# --- engines ---------------------------------------------------------------------------------------------------------
# Engines with subscriptions of calls, and what they take.


_KINDS = 100  # of subscriptions and events; each event has one
_SUBSCRIBED = 100


def call_engine(work: Path, workload: CallWorkload, truths: list[Truths], matcher: str) -> Engine:
    """An engine whose subscriptions are calls alone, loaded from a file."""
    return _loaded(work, workload, truths, matcher, lambda number, calls: {
        "id": str(number), "language": "predicates", "query": ", ".join(f"holds({call})" for call in calls),
    })  # fmt: skip


def with_kinds(work: Path, workload: CallWorkload, truths: list[Truths], matcher: str) -> int:
    """How many calls there are where each subscription has a pattern as well, which an event of a hundred satisfies."""

    def row(number: int, calls: list[int]) -> dict[str, str]:
        conditions = " && ".join(f'op:holds("{call}")' for call in calls)
        query = f'SELECT * {{ ?event <urn:kind> "k{number % _KINDS}" FILTER ({conditions}) }}'
        return {"id": str(number), "language": "sparql", "query": query}

    return asked(_loaded(work, workload, truths, matcher, row), truths)


def _loaded(
    work: Path,
    workload: CallWorkload,
    truths: list[Truths],
    matcher: str,
    row: Callable[[int, list[int]], dict[str, str]],
) -> Engine:
    def holds(publication: Publication, arguments: tuple[Argument, ...]) -> bool:
        (predicate,) = arguments
        assert isinstance(predicate, Literal)
        return bool(truths[int(publication.id)][int(predicate.lexical)])

    operators: dict[str, Operator] = {"holds": function_operator("holds", ["number"], holds)}
    engine, file = Engine(operators=operators, matcher=matcher), work / "operators.jsonl"
    predicate, ends = workload.predicate.tolist(), workload.offset.tolist()
    with file.open("w", encoding="utf-8") as out:
        for number, (begin, end) in enumerate(pairwise(ends)):
            out.write(json.dumps(row(number, predicate[begin:end])) + "\n")
    engine.load_subscriptions(file)
    engine.settle()
    file.unlink()
    return engine


def _publications(truths: list[Truths]) -> Iterator[Publication]:
    for number in range(len(truths)):
        name = IRI(f"urn:event:{number}")
        yield Publication(str(number), (Triple(name, IRI("urn:kind"), Literal(f"k{number % _KINDS}")),))


def planned(engine: Engine, truths: list[Truths]) -> list[float]:
    """The seconds that choosing the calls of each event took."""
    return [engine.match(publication).stats.operators.planning_seconds for publication in _publications(truths)]


def asked(engine: Engine, truths: list[Truths]) -> int:
    """How many calls the events take."""
    return engine.match(_publications(truths)).stats.operators.calls


def subscribe_millis(engine: Engine) -> float:
    """The median time of a further subscription."""
    millis = []
    for number in range(_SUBSCRIBED):
        begun = time.perf_counter()
        engine.subscribe(
            f"holds({number}), holds({number + 7}), holds({3 * number + 11})", "predicates", id=f"+{number}"
        )
        millis.append((time.perf_counter() - begun) * 1e3)
    return statistics.median(millis)


# --- service ---------------------------------------------------------------------------------------------------------
# A service that answers operator calls after a while, in a process of its own: `python -m ... SECONDS`.


_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s"


async def _serve(seconds: float) -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                lines = head.lower().split(b"\r\n")
                length = next(int(line[15:]) for line in lines if line.startswith(b"content-length:"))
                asked = json.loads(await reader.readexactly(length))
                await asyncio.sleep(seconds)
                body = json.dumps({"answers": [True] * len(asked["calls"])}).encode("ascii")
                writer.write(_HEAD % (len(body), body))
                await writer.drain()
        except (asyncio.IncompleteReadError, asyncio.CancelledError, ConnectionError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)


@contextmanager
def slow_service(seconds: float) -> Iterator[str]:
    """The URL of such a service, as long as the block runs."""
    command = [sys.executable, "-m", __name__, str(seconds)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            yield f"http://127.0.0.1:{int(process.stdout.readline())}/"
        finally:
            process.stdin.close()
            process.wait(timeout=10)


if __name__ == "__main__":
    asyncio.run(_serve(float(sys.argv[1])))


# --- targets ------------------------------------------------------------


EVENTS = 30  # for which the orders learn
BOUNDED = 10  # of them, those whose lower bound is computed
PLANNED, SELECTED = 100, 20  # events that an engine matches
SERVED, ALONE = 10_000, 200  # events whose calls a service answers, 32 at once and one at a time
AT_ONCE, SECONDS = 32, 0.05

BEST_SHARE, BOUND, COST_SHARE, BELOW = 0.9, 1.1, 0.5, 80.0
PLANNING_MILLIS, SUBSCRIBE_MILLIS, SELECTED_PERCENT, FASTER = 20.0, 2.0, 9.0, 25.0
NAIVE, SEQUENTIAL, SUB_ORDER, GREEDY = "naive", "sequential", "sub-order", "greedy"
_OTHERS = (NAIVE, SEQUENTIAL, SUB_ORDER)
_EQUAL, _INVERSE = RECIPES
_BOUNDED = 2  # generated events, whose bounds differ little
_CAUSE = 0.5  # share of correlated predicates


def cases(place: Place) -> list[Case]:
    """None: what is measured is generated where it is needed."""
    return []


def measure(place: Place, given: list[Case], matcher: str) -> Iterator[Figure]:
    """All figures."""
    full, chance = place.size is None, np.random.default_rng(SEED)
    size = place.sized(paper.SUBSCRIPTIONS)
    shrunk = size / paper.SUBSCRIPTIONS
    drawn = generated(size, max(50, int(shrunk * paper.PREDICATES)), 5, 1.0, _INVERSE, chance)
    events = [drawn.event(chance) for _ in range(EVENTS)]
    folder = real_folder(place.data) if full else None
    yield from _paper(drawn, events[: paper.EVENTS], full)
    if folder is None:
        why = "skipped: it is not there; --data names its folder" if full else "skipped: it has one size only"
        yield Figure("operators", "real workload", None, note=why)
        workload, truths = drawn, events
    else:
        workload, truths = real(folder, max(EVENTS, PLANNED))
        yield from _real(workload, truths[:EVENTS])
    yield from _unequal(workload, truths[:EVENTS], full)
    yield from _correlated(drawn, chance)
    yield from _engine(place.work, workload, (truths * PLANNED)[:PLANNED], matcher, full)
    yield from _served(matcher, full)
    yield from paper.figures(SEED, shrunk)


def _row(name: str, value: float, unit: str, target: float | None = None, at_least: bool = False) -> Figure:
    return Figure("operators", name, value, unit, target, at_least)


def _paper(workload: CallWorkload, events: list[Truths], full: bool) -> Iterator[Figure]:
    """The paper's generator at its largest size."""
    runs = {order: known_chances(workload, order_named(order), events) for order in ORDERS}
    below = 100 * (1 - runs[SUB_ORDER].calls / runs[NAIVE].calls)
    name = f"generated, Zipf 1, {_INVERSE}: sub-order below naive"
    yield _row(name, below, "%", BELOW if full else None, at_least=True)
    yield _row("generated: sub-order, planning of an event", 1e3 * runs[SUB_ORDER].planning, "ms")
    chance = np.random.default_rng(SEED)
    even = generated(len(workload.offset) - 1, len(workload.true), 5, None, _EQUAL, chance)
    least = statistics.mean(least_calls(even, even.event(chance)) for _ in range(_BOUNDED))
    yield _row(f"generated, uniform popularity, {_EQUAL}: lower bound (the paper has 7,037)", least, "calls/event")


def _real(workload: CallWorkload, events: list[Truths]) -> Iterator[Figure]:
    """Calls of the real workload, and how few there could be."""
    runs = {order: learning(workload, order, events) for order in ORDERS}
    for order, run in runs.items():
        yield _row(f"real workload: {order}", run.calls, "calls/event")
    best = min(runs[NAIVE].calls, runs[SEQUENTIAL].calls)
    yield _row(
        "real workload: greedy over the better of naive and sequential", runs[GREEDY].calls / best, "x", BEST_SHARE
    )
    other = min(runs[order].calls for order in _OTHERS)
    yield _row("real workload: greedy over the best other order", runs[GREEDY].calls / other, "x", 1.0)
    first = events[:BOUNDED]
    least = statistics.mean(least_calls(workload, event) for event in first)
    greedy = learning(workload, GREEDY, first).calls
    yield _row("real workload: lower bound (fractional hitting set of each event)", least, "calls/event")
    yield _row("real workload: greedy over the lower bound", greedy / least, "x", BOUND)


def _unequal(workload: CallWorkload, events: list[Truths], full: bool) -> Iterator[Figure]:
    """Costs over four decades, which are learned as the calls are made."""
    cost = costs(len(workload.true), np.random.default_rng(SEED))
    runs: dict[str, Run] = {order: learning(workload, order, events, cost) for order in ORDERS}
    for order, run in runs.items():
        yield _row(f"unequal costs: {order}", run.cost, "s/event")
    share = runs[GREEDY].cost / runs[SEQUENTIAL].cost
    yield _row("unequal costs: greedy over sequential", share, "x", COST_SHARE if full else None)


def _correlated(workload: CallWorkload, chance: np.random.Generator) -> Iterator[Figure]:
    """Predicates that are true together, of which the orders know nothing."""
    events = [workload.event(chance, _CAUSE) for _ in range(EVENTS)]
    runs = {order: learning(workload, order, events) for order in ORDERS}
    for order, run in runs.items():
        yield _row(f"correlated predicates: {order}", run.calls, "calls/event")
    best = min(runs[order].calls for order in _OTHERS)
    yield _row("correlated predicates: greedy over the best other order", runs[GREEDY].calls / best, "x")


def _engine(work: Path, workload: CallWorkload, truths: list[Truths], matcher: str, full: bool) -> Iterator[Figure]:
    """What an engine takes for planning, for a subscription, and where cheap parts decide first."""
    engine = call_engine(work, workload, truths, matcher)
    stats = planned(engine, truths)
    yield _row("planning", 1e3 * statistics.median(stats), "ms/event", PLANNING_MILLIS if full else None)
    yield _row("planning, 95th percentile", 1e3 * sorted(stats)[int(0.95 * len(stats))], "ms/event")
    millis = subscribe_millis(engine)
    yield _row("subscribe one", millis, "ms", SUBSCRIBE_MILLIS if full else None)
    without = asked(engine, truths[:SELECTED])
    del engine
    selected = with_kinds(work, workload, truths[:SELECTED], matcher)
    name = "selection first: calls with a pattern of 1 % selectivity over those without"
    yield _row(name, 100 * selected / without, "%", SELECTED_PERCENT if full else None)


def _served(matcher: str, full: bool) -> Iterator[Figure]:
    """A service that takes 50 ms a call."""
    from triplewire.engine import Engine

    rates = {}
    with slow_service(SECONDS) as url:
        for at_once, count in ((1, ALONE), (AT_ONCE, SERVED if full else ALONE)):
            text = (
                f'[operators.mentions]\nkind = "http"\nurl = "{url}"\nparameters = ["topic"]\ntimeout = 5.0\n'
                f"concurrency = {at_once}\nallow_private_addresses = true\n"
            )
            operators = {operator.name: operator for operator in declared(text)}
            engine = Engine(operators=operators, matcher=matcher)
            engine.subscribe("mentions(x)", "predicates", id="one")
            engine.match([Publication("warm", ())])
            publications = (Publication(str(number), ()) for number in range(count))
            begun, matches = time.perf_counter(), 0
            while chunk := list(islice(publications, 1_000)):
                matches += len(engine.match(chunk))
            rates[at_once] = count / (time.perf_counter() - begun)
            if matches != count:
                yield Figure("operators", f"http: {matches} of {count} answers", None, "", 0.0, note="calls were lost")
    yield _row("http, 50 ms a call: one at a time", rates[1], "events/s")
    name = f"http, 50 ms a call: {SERVED:,} events, {AT_ONCE} at once over one at a time"
    yield _row(name, rates[AT_ONCE] / rates[1], "x", FASTER if full else None, at_least=True)
