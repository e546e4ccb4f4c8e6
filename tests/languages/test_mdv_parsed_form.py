"""The parsed form of MDV rules: the cases of tests/cases/mdv/parsed.toml, and that the tree says the same."""

from __future__ import annotations

import tomllib
from dataclasses import FrozenInstanceError
from typing import Any

import pytest

from shared_data import ROOT
from triplewire import IRI, Literal
from triplewire.errors import LanguageError, LimitError
from triplewire.ir.show import show_term
from triplewire.languages import parse
from triplewire.languages.context import Context
from triplewire.languages.mdv import Path, Rule, Searched, Side, parse_rule
from triplewire.languages.mdv import Test as RuleTest

TERMS = "http://example.org/terms#"
CASES = tomllib.loads((ROOT / "tests/cases/mdv/parsed.toml").read_text("utf-8"))["case"]
BIG = parse(f"search <{TERMS}Server> s register s where s.<{TERMS}memory> > 64", "mdv", id="big")
RULES = {"big": BIG, "own": BIG}


def shown_term(term: IRI | Literal) -> str:
    """An IRI of the tests' vocabulary with its prefix."""
    text = term.value if isinstance(term, IRI) else ""
    return f"t:{text.removeprefix(TERMS)}" if text.startswith(TERMS) else show_term(term)


def shown(part: Searched | RuleTest | Side) -> str:
    """A part of a rule as the cases write it."""
    if isinstance(part, Searched):
        return part.variable
    if isinstance(part, RuleTest):
        sides = [shown(side) for side in (part.left, part.right) if side is not None]
        return f"{'not ' if part.negated else ''}{part.op} {' '.join(sides)}"
    if isinstance(part, Path):
        steps = (shown_term(step.property) + "?" * step.any_element for step in part.steps)
        return ".".join([part.variable, *steps])
    return shown_term(part)


def places(rule: Rule) -> dict[str, str]:
    """Where each part begins; of those that look the same, the first."""
    out: dict[str, str] = {}
    paths = (path for test in rule.tests for path in test.paths)
    for part in (*rule.searched, *rule.tests, *paths):
        line, column = rule.place(part)
        out.setdefault(shown(part), f"{line}:{column}")
    return out


def parsed(case: dict[str, Any]) -> Rule:
    """The rule of a case."""
    prefixes = {"": TERMS, "t": TERMS} if case.get("default", True) else {}
    return parse_rule(case["text"], Context(source="own", prefixes=prefixes, rules=RULES))


@pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])
def test_rule(case: dict[str, Any]) -> None:
    rule = parsed(case)
    variables = {
        name: shown_term(meaning) if isinstance(meaning, IRI) else f"rule {meaning.id}"
        for name, meaning in rule.variables.items()
    }
    assert variables == case["variables"]
    assert list(variables) == list(case["variables"])
    assert rule.registered == case["registered"]
    assert [list(map(shown, branch)) for branch in rule.branches] == case["branches"]
    assert list(map(shown, rule.tests)) == case.get("tests", [test for branch in case["branches"] for test in branch])
    assert list(map(shown, rule.paths)) == case["paths"]
    assert list(rule.warnings) == case.get("warnings", [])
    found = places(rule)
    assert {part: found[part] for part in case.get("at", {})} == case.get("at", {})


def test_equal_rules_are_equal_wherever_their_parts_stand() -> None:
    one, other = (parse_rule(f"search <urn:A> a register a where{space}a.<urn:p> = 1") for space in (" ", "\n\n  "))
    assert one.tests == other.tests
    assert one.paths == other.paths
    assert one.searched == other.searched
    assert (one.place(one.tests[0]), other.place(other.tests[0])) == ((1, 35), (3, 3))
    with pytest.raises(FrozenInstanceError):
        one.registered = "b"  # type: ignore[misc]


def test_a_registered_rule_is_parsed_again_from_its_subscription() -> None:
    text = "search big s register s where s.rack = 3"
    subscription = parse(text, "mdv", id="racked", prefixes={"": TERMS}, rules=RULES)
    rules = {rule.id: rule for rule in subscription.rules}
    rule = parse_rule(text, Context("racked", dict(subscription.prefixes), subscription.base, rules=rules))
    assert rule.variables == {"s": BIG}
    assert (rule.registered,) == subscription.select


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("search <urn:A> a register b", "1:27: the search clause has no variable 'b'"),
        ("search <urn:A> a register a where a.<urn:p>", "1:44: found end of text, expected a comparison"),
        ("search <urn:A> a,\n<urn:B> a register a", "2:9: the variable 'a' is taken"),
    ],
)
def test_what_is_wrong_is_told_with_its_place(text: str, error: str) -> None:
    with pytest.raises(LanguageError) as raised:
        parse_rule(text)
    assert f"{raised.value.line}:{raised.value.column}: {raised.value.what}".startswith(error)


def test_branches_are_limited() -> None:
    condition = " and ".join(f"(a.<urn:p{number}> = 1 or a.<urn:q{number}> = 2)" for number in range(20))
    with pytest.raises(LimitError, match="branches"):
        parse_rule(f"search <urn:A> a register a where {condition}")
