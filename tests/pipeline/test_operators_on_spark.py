"""Operators on Spark's workers: opened once a process, learned together, under one budget; the same answers."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from runs import dead_letters_in, index_of, rows_in

from operators.service import service
from triplewire import Engine, Publication
from triplewire.encode.schema import to_batch
from triplewire.model.terms import IRI, Literal, Triple
from triplewire.operators.files import OperatorFile, operators_of
from triplewire.operators.order.statistics import LearnedCalls
from triplewire.pipeline.filter import Calling, JobLearning
from triplewire.pipeline.index.build import shipped
from triplewire.pipeline.output import Output
from triplewire.pipeline.run import PipelineRun
from triplewire.pipeline.tasks import OneStage
from triplewire.pipeline.written import Target

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

HOLDS = """
import os
from triplewire.extend import Parameter

def log(word):
    file = os.open(LOG, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(file, f"{word} {os.getpid()}\\n".encode())
    os.close(file)

log("opened")

class Holds:
    name, parameters, version = "holds", (Parameter("number"),), "1"
    def evaluate(self, publication, arguments):
        log("called")
        return int(publication.triples[0].object.lexical) % int(arguments[0].lexical) == 0

operators = (Holds(),)
"""
PUBLICATIONS = 40
BUDGET = 10


def subscribed(operators: list[OperatorFile], **given: Any) -> Engine:
    engine = Engine(operators=operators_of(operators), **given)
    for first in (2, 3, 5):
        for second in (2, 3, 5, 7):
            if first != second:
                engine.subscribe(f"holds({first}), holds({second})", "predicates", id=f"{first} {second}")
    return engine


def publications() -> list[Publication]:
    predicate = IRI("urn:p")
    return [Publication(f"urn:{n}", (Triple(IRI("urn:s"), predicate, Literal(str(n))),)) for n in range(PUBLICATIONS)]


def test_a_task_begins_with_what_is_known_and_tells_what_it_counted(tmp_path: Path) -> None:
    operators = [OperatorFile("holds.py", HOLDS.replace("LOG", repr(str(tmp_path / "log"))))]
    first, told = shipped(subscribed(operators, operator_order="sequential"), operators), []
    assert first.calling.order == "sequential"
    known = LearnedCalls()
    known.merge({"operators": {"holds": [1000, 0, 1.0]}, "calls": [['["holds",["7","x",""]]', 10, 1000, 1.0]]})
    text = json.dumps(known.to_json())
    calling = Calling("naive", str(tmp_path / "cache"), learned=text)
    second = replace(first, calling=calling)
    assert second.opened().server() is not first.opened().server(), "one of another order is another engine"
    assert second.opened().server().operator_order == "naive"
    batches = [to_batch(publications()[:5]), to_batch(publications()[5:9])]
    for number, batch in enumerate(batches, 1):
        (report,) = OneStage(second, Target(str(tmp_path / "out"), "v1"))([batch])
        told += [json.loads(each) for each in report.to_pylist()[0]["learned"]]
        assert second.opened().server().learned.by_operator()["holds"]["calls"] == 1000 + sum(
            line["operators"]["holds"][0] for line in told
        )
        assert len(told) == number, "each task tells its own"
    lines = (tmp_path / "log").read_text().splitlines()
    assert sum(line.startswith("called") for line in lines) == sum(line["operators"]["holds"][0] for line in told)
    orders = []
    for counted in (told, told[::-1]):
        job = JobLearning(tmp_path / f"learned-{len(orders)}")
        job.merge(map(json.dumps, counted))
        orders.append(job.calls.to_json())
        assert JobLearning(tmp_path / f"learned-{len(orders) - 1}").calls.to_json() == job.calls.to_json()
    assert orders[0] == orders[1], "whichever task ends first"
    (tmp_path / "damaged").write_text("{")
    assert len(JobLearning(tmp_path / "damaged").calls) == 0


@pytest.mark.xdist_group("spark")
def test_one_job(spark: SparkSession, tmp_path: Path) -> None:
    """Two runs of a job: opened once a process, each call counted, one budget, and then all from the cache."""
    log = tmp_path / "log"
    (tmp_path / "in").mkdir()
    for number, publication in enumerate(publications()):
        lines = "".join(f"{s} {p} {o} <{publication.id}> .\n" for s, p, o in publication.triples)
        (tmp_path / "in" / f"{number}.nq").write_text(lines)
    with service() as server:
        operators = [
            OperatorFile("holds.py", HOLDS.replace("LOG", repr(str(log)))),
            OperatorFile("services.toml", server.toml(budget_per_hour=BUDGET, timeout=60.0)),
        ]
        engine = subscribed(operators)
        engine.subscribe("mentions(x)", "predicates", id="dear")
        log.unlink()
        output = Output(tmp_path / "out")
        output.prepare(tmp_path / "in", False)
        index = index_of(engine, output, operators)
        calling = Calling("sequential", str(tmp_path / "cache"))
        job = PipelineRun(str(tmp_path / "in"), index, output, calling=calling)
        job.batch(spark)
        wanted = Counter(
            f"{first} {second}"
            for n in range(PUBLICATIONS)
            for first in (2, 3, 5)
            for second in (2, 3, 5, 7)
            if first != second and n % first == n % second == 0
        )
        assert Counter(row[1] for row in rows_in(tmp_path / "out")) == wanted + Counter(dear=BUDGET)
        letters = dead_letters_in(tmp_path / "out")
        assert len(letters) == PUBLICATIONS - BUDGET, "every undecided pair is reported"
        assert all("budget" in letter.reason for letter in letters)
        assert len(server.asked) == BUDGET, "of all workers together"
        words = Counter(log.read_text().splitlines())
        assert {count for line, count in words.items() if line.startswith("opened")} == {1}
        calls = sum(count for line, count in words.items() if line.startswith("called"))
        learned = JobLearning(output.learned).calls.by_operator()
        assert learned["holds"]["calls"] == calls
        assert (learned["mentions"]["calls"], learned["mentions"]["failed"]) == (BUDGET, 0), "others were not made"
        job.batch(spark)
        assert Counter(row[1] for row in rows_in(tmp_path / "out"))["2 3"] == wanted["2 3"]
        assert len(server.asked) == BUDGET
        again = Counter(log.read_text().splitlines())
        assert sum(count for line, count in again.items() if line.startswith("called")) == calls, "from the cache"
        assert {count for line, count in again.items() if line.startswith("opened")} == {1}
        output.release()
