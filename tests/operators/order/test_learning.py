"""What is learned of operator calls: decayed, explored, merged, saved, released; the same counts, the same order."""

from __future__ import annotations

import gc
import json
import random
import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cli.runner import triplewire
from operators.scenes import Counting, engine, usual
from triplewire import Engine, Publication
from triplewire.errors import StoreError
from triplewire.extend import Argument, Parameter
from triplewire.ir.evaluation.evaluate import CallKey
from triplewire.kernels.calls.event import FALSE, OPEN, TRUE
from triplewire.model.terms import Literal
from triplewire.operators.order import learned as tables
from triplewire.operators.order import statistics
from triplewire.operators.order.greedy import Greedy, SubOrder, ordered
from triplewire.operators.order.learned import Expected, text_of_key
from triplewire.operators.order.protocol import CallOrder, Conjunctions, Numbers, Outcomes
from triplewire.operators.order.statistics import LearnedCalls


def keys(count: int, operator: str = "holds") -> list[CallKey]:
    return [CallKey(operator, (Literal(str(number)),)) for number in range(count)]


def taught(seed: int = 0, calls: int = 40, publications: int = 50) -> LearnedCalls:
    """What is known after drawn outcomes of some calls each publication."""
    learned, chance = LearnedCalls(seed), random.Random(1)
    rows = learned.rows([*keys(calls), *keys(3, "other")])
    for _ in range(publications):
        some = np.array(sorted(chance.sample(rows.tolist(), 10)))
        true = np.array([chance.random() < (row % 7) / 7 for row in some.tolist()])
        learned.add(some, true, np.array([0.001 * (1 + row % 5) for row in some.tolist()]))
    learned.failed(["other"])
    return learned


def evaluated(learned: LearnedCalls, key: CallKey) -> float:
    """How often a call was made, as far as it counts today."""
    calls = {text: made for text, _, made, *_ in learned.to_json()["calls"]}
    return float(calls.get(text_of_key(key), 0))


def planned(learned: LearnedCalls) -> list[int]:
    """The calls of a publication to which all of them are false, in the greedy order."""
    rows = np.array([row for start in range(36) for row in (start, start + 2, start + 4)])
    asked = Conjunctions.of(np.arange(0, len(rows) + 1, 3, dtype=np.int32), rows)
    return made(Greedy(), asked, np.arange(36, dtype=np.int32), learned.expected(asked.row), np.ones(40, np.int8))


def made(
    order: CallOrder, asked: Conjunctions, everybody: Numbers, expected: Expected, outcomes: Outcomes
) -> list[int]:
    """The calls of a publication for which they have these outcomes."""
    event, calls = asked.begun(everybody, np.zeros(0, np.int32), np.zeros(0, np.int8)), []
    plan = order.plan(event, asked, expected)
    portion = next(plan)
    try:
        while True:
            calls += portion.calls.tolist()
            portion = plan.send(outcomes[portion.calls])
    except StopIteration:
        closed = np.logical_or.reduceat(outcomes[asked.call] == FALSE, asked.offset[:-1])
        assert (event.state == OPEN).tolist() == (~closed).tolist()
        return calls


def test_what_is_expected_holds_for_a_while() -> None:
    learned = taught(publications=300)
    rows, before = learned.rows(keys(40)), None
    same = 0
    for _ in range(100):
        expected = learned.expected(rows, before=before)
        same += expected is before
        before = before if expected.is_drawn else expected
        learned.add(rows[:1], np.array([True]), np.array([0.5]))
    assert 70 <= same <= 95
    for change in (learned.to_json, lambda: learned.merge(taught(publications=2).take_new_counts())):
        before = next(e for e in (learned.expected(rows) for _ in range(9)) if not e.is_drawn)
        change()
        assert learned.expected(rows, before=before) is not before


def test_first_choices_are_made_once_and_right_for_all() -> None:
    """Of several of which the same is expected, an order that knows the others makes the calls of a fresh one."""
    chance = np.random.default_rng(7)
    rows = np.sort(np.argsort(chance.random((300, 60)), axis=1)[:, :4], axis=1).ravel()
    asked = Conjunctions.of(np.arange(0, len(rows) + 1, 4, dtype=np.int32), rows)
    everybody, order = np.arange(300, dtype=np.int32), Greedy()
    expected = Expected(chance.uniform(0.6, 0.99, 60), chance.uniform(1, 9, 60))
    for _ in range(20):
        outcomes = np.where(chance.random(60) < expected.false, FALSE, TRUE).astype(np.int8)
        assert made(order, asked, everybody, expected, outcomes) == made(Greedy(), asked, everybody, expected, outcomes)


def test_the_same_counts_in_the_same_order_out() -> None:
    one, other = taught(), taught()
    loaded = LearnedCalls()
    loaded.rows(reversed(keys(40)))  # other rows for the same calls
    loaded.restore(json.loads(json.dumps(one.to_json())))
    assert loaded.to_json() == one.to_json()
    rows = loaded.rows(keys(40))
    for _ in range(200):  # also where probabilities are drawn
        first, second, third = (learned.expected(learned.rows(keys(40))) for learned in (one, other, loaded))
        assert first.false.tolist() == second.false.tolist() == third.false.tolist()
        assert first.cost.tolist() == third.cost.tolist()
    assert len(rows) == 40
    assert planned(one) == planned(other)
    asked = Conjunctions.of(np.array([0, 2, 4], np.int32), np.array([0, 1, 0, 2]))
    orders = [[part.tolist() for part in ordered(asked, learned.expected(asked.row))] for learned in (one, other)]
    assert orders[0] == orders[1]


def test_many_calls_are_restored_and_merged() -> None:
    one, restored, merged = taught(calls=500, publications=100), LearnedCalls(), LearnedCalls()
    restored.restore(one.to_json())
    merged.merge(one.take_new_counts())
    assert restored.to_json() == one.to_json()
    assert len(merged) == len(restored) > 400


def test_few_calls_count_as_many_do(monkeypatch: pytest.MonkeyPatch) -> None:
    few, many = LearnedCalls(), LearnedCalls()
    calls = [(key, number % 3 == 0, 0.01 * number) for number, key in enumerate([*keys(5), *keys(2, "other")])]
    for _ in range(4):
        few.made(calls)
    monkeypatch.setattr(statistics, "FEW", 0)
    for _ in range(4):
        many.made(calls)
    assert few.to_json()["calls"] == many.to_json()["calls"]
    one_by_one, together = few.by_operator(), many.by_operator()
    assert one_by_one.keys() == together.keys()
    for name, row in together.items():  # numbers are added in another order
        assert one_by_one[name] == pytest.approx(row)


def test_another_seed_draws_others() -> None:
    drawn = [[taught(seed, publications=5).expected(np.arange(40)).is_drawn for seed in range(400)]]
    assert 1 <= sum(drawn[0]) <= 20, "about 2 % of publications"


def test_old_counts_weigh_less() -> None:
    learned = LearnedCalls()
    rows = learned.rows(keys(1))
    for outcome in [True] * 400 + [False] * 400:
        learned.add(rows, np.array([outcome]), np.array([10.0 if outcome else 100.0]))
    expected = learned.expected(rows)
    assert expected.false[0] > 0.8
    assert expected.cost[0] > 80


def test_what_workers_counted_is_merged() -> None:
    driver, workers = LearnedCalls(), [taught(publications=20), taught(publications=30)]
    for worker in workers:
        driver.merge(json.loads(json.dumps(worker.take_new_counts())))
        assert worker.take_new_counts() == {"operators": {}, "calls": []}, "each count is told once"
    told = driver.by_operator()
    assert told["holds"]["calls"] + told["other"]["calls"] == 10 * 50 + 2
    assert told["other"]["failed"] == 2
    for name in ("holds", "other"):
        shares = [worker.by_operator()[name]["selectivity"] for worker in workers]
        assert min(shares) <= told[name]["selectivity"] <= max(shares)


@pytest.mark.parametrize(
    "told",
    [
        {}, {"operators": {}, "calls": 3}, {"operators": {"x": [1, 2]}, "calls": []}, {"operators": [], "calls": []},
        {"operators": {}, "calls": [["nonsense", 1, 1, 1]]}, {"operators": {}, "calls": [['["x",["a"]]', 1, -1, 1]]},
        {"operators": {}, "calls": [['["x",["a"]]', 1, 1]]}, {"operators": {"x": [1e999] * 6}, "calls": []},
        {"operators": {}, "calls": [], "independence": [1]}, {"operators": {}, "calls": [], "publications": -1},
    ],
    ids=str,
)  # fmt: skip
def test_what_is_no_knowledge_is_refused(told: Any) -> None:
    learned = taught()
    before = learned.to_json()
    with pytest.raises(ValueError, match=r"\w"):
        learned.restore(told)
    assert learned.to_json() == before


@pytest.mark.slow
def test_rows_of_subscriptions_that_are_gone_are_released(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "LEAST", 16)
    matching = engine("trie", usual())
    matching.settle()
    matching.subscribe("yes(stays), no(stays)", "predicates", id="stays")
    learned = matching.learned
    gc.freeze()  # what other tests left would be looked through 21 times
    for turn in range(20):
        ids = [matching.subscribe(f"yes({turn}-{n}), no({n})", "predicates").id for n in range(40)]
        matching.match(Publication(f"urn:p{turn}", ()))
        stays = learned.rows_if_known(keys(0))
        for id_ in ids:
            matching.unsubscribe(id_)
        matching.settle()
        gc.collect()
    matching.match(Publication("urn:last", ()))
    gc.collect()
    gc.unfreeze()
    assert len(stays) == 0
    assert len(learned) <= 250, "of 842 calls in all; 82 are those of one turn"
    assert len(learned.keys) <= 400, "rows are used again"
    assert evaluated(learned, CallKey("no", (Literal("stays"),))) > 5, "what is needed is kept"


def test_calls_with_long_arguments_are_counted_by_operator_alone() -> None:
    learned, long = LearnedCalls(), [CallKey("yes", (Literal(f"{n}" * 300),)) for n in range(9)]
    for key in long:
        learned.made([(key, True, 0.5), (CallKey("no", (Literal("short"),)), False, 0.5)])
    assert [len(learned), learned.by_operator()["yes"]["calls"]] == [1, 9]
    holder = threading.Event()  # something that may be referred to weakly
    rows = learned.held(long, holder)
    learned.made([(long[0], True, 0.5)])
    assert len(learned) == 10
    assert learned.rows_if_known(long).tolist() == rows.tolist()
    del holder
    gc.collect()
    learned.tidy()
    assert len(learned) == 1


@pytest.mark.parametrize("matcher", ["reference", "trie"])
def test_each_way_to_match_learns(matcher: str) -> None:
    """Calls that are decided pair by pair count as those that are decided for all subscriptions at once."""
    counting = usual()
    matching = engine(matcher, counting)
    for number, query in enumerate(("yes(1), no(2)", "yes(3)", "bad(4)", "rows(?x)", "yes(1), rows(?y)")):
        matching.subscribe(query, "predicates", id=str(number))
    for number in range(3):
        list(matching.match(Publication(f"urn:{number}", ())).refusals)
    made = Counter(name for _, name, _ in counting.asked.elements())
    told = matching.learned.by_operator()
    assert {name: own["calls"] for name, own in told.items()} == made
    assert {name: own["failed"] for name, own in told.items()} == dict.fromkeys(made, 0) | {"bad": 3}
    assert {name: own.get("selectivity") for name, own in told.items()} == {"yes": 1, "no": 0, "bad": None, "rows": 1}
    one, other = (CallKey(name, (Literal("1"),)) for name in ("yes", "no"))
    assert evaluated(matching.learned, one) > 2, "each call counts by itself as well"
    assert evaluated(matching.learned, other) == 0


class Stated:
    """An operator that states its cost; `answer` gives its outcome by the publication's number."""

    parameters = (Parameter("x"),)

    def __init__(self, name: str, cost: float, answer: Callable[[int], bool]) -> None:
        self.name, self.cost, self.answer = name, cost, answer

    def evaluate(self, publication: Publication, arguments: tuple[Argument, ...]) -> bool:
        return self.answer(int(publication.id.removeprefix("urn:")))


def spent(order: str, *operators: Stated, count: int = 300) -> float:
    """What one subscription costs that needs all of these."""
    matching = Engine(matcher="trie", operators={each.name: each for each in operators}, operator_order=order)
    matching.settle()
    matching.subscribe(", ".join(f"{each.name}(1)" for each in operators), "predicates")
    return sum(matching.match(Publication(f"urn:{n}", ())).stats.operators.cost for n in range(count))


@pytest.mark.slow
def test_a_small_share_is_explored(monkeypatch: pytest.MonkeyPatch) -> None:
    """The cheap call was true ten times, the dear one only five times: it is taken first, and is false from then on.
    The cheap one, by now false as well, would never be made again."""
    operators = Stated("dear", 10, lambda n: n < 5), Stated("cheap", 1, lambda n: n < 10)
    with_exploring = spent("greedy", *operators)
    monkeypatch.setattr(statistics, "EXPLORED", 0.0)
    without = spent("greedy", *operators)
    assert without > 2_900
    assert with_exploring < 0.7 * without


@pytest.mark.slow
@pytest.mark.parametrize("order", ["greedy", "sub-order"])
def test_the_order_follows_drift(order: str) -> None:
    """At first one call is false, later the other one."""
    first, second = Stated("first", 1, lambda n: n >= 60), Stated("second", 1, lambda n: n < 60)
    assert spent(order, first, second, count=300) < 300 * 1.3  # twice as many for who never changes the order


def test_sub_order_is_made_anew_in_the_background() -> None:
    asked = Conjunctions.of(np.array([0, 2], np.int32), np.array([0, 1]))
    order, learned = SubOrder(), LearnedCalls()
    rows = learned.rows(keys(2))
    event = asked.begun(np.zeros(1, np.int32), np.zeros(0, np.int32), np.zeros(0, np.int8))
    chains = []
    for outcome in (True, False):
        for _ in range(100):
            learned.add(rows, np.array([outcome, not outcome]), np.array([0.01, 0.01]))
            order.plan(event, asked, learned.expected(rows))
            order.settle()
        chains.append(made(order, asked, np.zeros(1, np.int32), learned.expected(rows), np.full(2, FALSE, np.int8))[0])
    assert chains == [1, 0], "the call that is rarely true comes first"


@pytest.mark.slow
def test_dependence_is_told() -> None:
    """Three calls that are always true together: eight times as many subscriptions hold as would if they were not."""

    def coin(publication: Publication, arguments: tuple[Argument, ...]) -> bool:
        return random.Random(publication.id).random() < 0.5

    def apart(publication: Publication, arguments: tuple[Argument, ...]) -> bool:
        return random.Random(f"{publication.id} {arguments}").random() < 0.5

    told = {}
    for answer in (coin, apart):
        counting = Counting()
        counting.add("holds", answer)
        matching = engine("trie", counting, operator_order="naive")
        matching.settle()
        for turn in range(30):
            calls = [f"holds({(turn + place) % 30})" for place in range(3)]
            matching.subscribe(", ".join(calls), "predicates")
        matching.match([Publication(f"urn:{n}", ()) for n in range(200)])
        told[answer] = matching.learned.independence.fault()
    assert "depend on each other" in told[coin]
    assert told[apart] == ""


def test_saved_and_loaded_with_the_engine(tmp_path: Path) -> None:
    matching = engine("trie", usual())
    matching.settle()
    matching.subscribe("yes(1), bad(1), no(2)", "predicates")
    matching.match([Publication(f"urn:{n}", ()) for n in range(5)])
    matching.save(tmp_path / "engine")
    loaded = Engine.load(tmp_path / "engine", operators=usual().operators)
    assert loaded.learned.by_operator() == matching.learned.by_operator()
    assert loaded.learned.by_operator()["no"] == {
        **matching.learned.by_operator()["no"],
        "calls": 5,
        "failed": 0,
        "selectivity": 0.0,
    }
    plain = Engine.load(tmp_path / "engine", operators=usual().operators, matcher="reference")
    assert plain.learned.by_operator() == matching.learned.by_operator()
    done = triplewire("operators", "--engine", str(tmp_path / "engine"), "--json")
    assert done.code == 0
    shown = {row["name"]: row for row in done.rows}
    assert "yes" not in shown, "the command shows operators that are there"
    (file,) = (tmp_path / "engine").glob("learned.*.json")
    file.write_text(file.read_text().replace('"calls"', '"balls"'))
    with pytest.raises(StoreError, match="damaged"):
        Engine.load(tmp_path / "engine", operators=usual().operators)
    done = triplewire("operators", "--engine", str(tmp_path / "engine"))
    assert done.code == 2
    assert "damaged" in done.err


def test_the_command_shows_what_an_engine_has_learned(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text(
        "from triplewire.extend import Parameter\n"
        "class Even:\n    name, parameters = 'even', (Parameter('x'),)\n"
        "    def evaluate(self, publication, arguments): return int(arguments[0].lexical) % 2 == 0\n"
        "operators = (Even(),)\n"
    )
    from triplewire.operators.files import operators_of, read_operator_files

    matching = Engine(operators=operators_of(read_operator_files([file])))
    matching.settle()
    for number in (1, 2, 3, 4):
        matching.subscribe(f"even({number})", "predicates")
    matching.match(Publication("urn:p", ()))
    matching.save(tmp_path / "engine")
    done = triplewire("operators", "--operators", str(file), "--engine", str(tmp_path / "engine"), "--json")
    row = {row["name"]: row for row in done.rows}["even"]
    assert (row["calls"], row["failures"]) == (4, 0)
    assert row["selectivity"] == 0.5
    assert 0 < row["learned"] < 1
    assert triplewire("operators", "--engine", str(tmp_path)).code == 2
    (tmp_path / "_learned.json").write_text(json.dumps(matching.learned.to_json()))  # as in an output folder
    done = triplewire("operators", "--operators", str(file), "--engine", str(tmp_path), "--json")
    assert {row["name"]: row for row in done.rows}["even"] == row
    (tmp_path / "_learned.json").write_text("{}")
    assert triplewire("operators", "--engine", str(tmp_path)).code == 2
