"""Generated and real pairs: what an explanation says is so.

A miss names the first part after which no solution is left: the parts before it still match, together with it they do
not, and without it the pair matches or a later part is named. A match names triples of the publication and conditions
that are true.
"""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import islice

from hypothesis import given, settings

import shared_data
from amounts import examples
from engine.generated import WORLD, groups, publications
from triplewire import Subscription, parse, read
from triplewire.engine.explain.explanation import Explanation, Finding, Verdict, explain
from triplewire.engine.explain.reasons import in_order, parts_of, triple_text
from triplewire.ir.evaluation.evaluate import evaluate
from triplewire.ir.nodes import And, Where
from triplewire.ir.show import show
from triplewire.model.publication import Publication


def subscription(where: Where) -> Subscription:
    return Subscription("s", "sparql", "", ("x", "y", "z"), where)


def matches(where: Where, publication: Publication) -> bool:
    return bool(evaluate(subscription(where), publication, WORLD).bindings)


def check(one: Subscription, publication: Publication) -> bool:
    """Check one explanation; True for a match."""
    explanation = explain(one, publication, WORLD)
    assert explanation.matched == bool(evaluate(one, publication, WORLD).bindings)
    assert str(explanation)
    assert explanation.to_dict()["matched"] == explanation.matched
    if explanation.matched:
        check_match(explanation, publication)
    else:
        check_miss(explanation, in_order(parts_of(one.where)), publication)
    return explanation.matched


@settings(max_examples=examples(400), deadline=None)
@given(groups, publications)
def test_explanations_are_right(group: And, publication: Publication) -> None:
    check(subscription(group), publication)


def test_real_pairs_are_right() -> None:
    """Full-text queries over feeds and DBpedia."""
    rows = (json.loads(line) for line in shared_data.lines("10-workloads/rtf-queries-100k-ft050.jsonl.gz"))
    tuples = [row[2] for row in islice(rows, 0, 24_000, 400) if row[1]]
    some = [parse(sparql(t), id=str(number)) for number, t in enumerate(tuples)]
    stream = read(str(shared_data.path("10-workloads/mixed-5000.nq.gz")))
    verdicts = [check(one, publication) for publication in islice(stream, 0, 5_000, 250) for one in some]
    assert verdicts.count(True) > 10
    assert verdicts.count(False) > 10


def sparql(tuples: list[list[str]]) -> str:
    patterns = " . ".join(" ".join(item[:3]) for item in tuples)
    texts = ((item[2], " ftAND ".join(f'"{word}"' for word in item[3])) for item in tuples if len(item) == 4)
    return f"SELECT * {{ {patterns} {' '.join(f'FILTER ftcontains({v}, {words})' for v, words in texts)} }}"


def check_match(explanation: Explanation, publication: Publication) -> None:
    there = {triple_text(triple) for triple in publication.triples}
    for finding in explanation.findings:
        assert finding.verdict in (Verdict.HOLDS, Verdict.ABSENT)
        check_held(finding, there)


def check_held(finding: Finding, there: set[str]) -> None:
    """A pattern has its triple; of an alternative, one branch holds."""
    if " UNION " in finding.part and finding.part.startswith("("):
        assert [part.verdict for part in finding.parts].count(Verdict.HOLDS) == 1
    elif not finding.part.startswith(("FILTER", "OPTIONAL", "NOT", "MINUS", "BIND", "VALUES", "{")):
        assert finding.because
        assert finding.because[0] in there
    for part in finding.parts:
        if part.verdict is Verdict.HOLDS:
            check_held(part, there)


def check_miss(explanation: Explanation, parts: tuple[Where, ...], publication: Publication) -> None:
    verdicts = [finding.verdict for finding in explanation.findings]
    at = verdicts.index(Verdict.FAILS)
    assert verdicts == [Verdict.HOLDS] * at + [Verdict.FAILS] + [Verdict.NOT_REACHED] * (len(parts) - at - 1)
    assert [finding.part for finding in explanation.findings] == [show(part) for part in parts]
    assert matches(And(parts[:at]), publication)
    assert not matches(And(parts[: at + 1]), publication)
    failing = explanation.findings[at]
    assert failing.because or failing.parts
    without = And(parts[:at] + parts[at + 1 :])
    next_one = explain(replace(subscription(without)), publication, WORLD)
    if not next_one.matched:
        assert [f.part for f in next_one.findings[:at]] == [show(part) for part in parts[:at]]
        assert {f.verdict for f in next_one.findings[:at]} <= {Verdict.HOLDS}
        assert next_one.failing is not None
        assert next_one.failing.part in [show(part) for part in parts[at + 1 :]]
