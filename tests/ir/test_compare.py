"""Comparison of terms. The cases are data: `tests/cases/compare/lenient.txt`; strict ones are in `test_expressions`."""

from __future__ import annotations

from pathlib import Path

import pytest

from triplewire.ir.nodes import Coercion, Compare, Expression, Label, Variable
from triplewire.ir.values.compare import OPERATORS, lenient
from triplewire.ir.values.numbers import lenient_number
from triplewire.model.terms import IRI, XSD, Literal, Term, parse_term

CASES = Path(__file__).parent.parent / "cases" / "compare" / "lenient.txt"


def read(text: str) -> Term | Label:
    """A term in N-Triples notation, with xsd: for its namespace, or a bare label, with the IRI behind an at sign."""
    if text[0] in '"<_':
        head, mark, name = text.partition("^^xsd:")
        return parse_term(f"{head}^^<{XSD}{name}>" if mark else text)
    label, _, iri = text.partition("@")
    return Label(label, iri)


def cases() -> list[str]:
    return [line for line in CASES.read_text("utf-8").splitlines() if line and not line.startswith("#")]


@pytest.mark.parametrize("line", cases())
def test_lenient(line: str) -> None:
    comparison, _, wanted = line.rpartition(" => ")
    op = next(op for op in comparison.split(" ") if op in OPERATORS)
    left, _, right = comparison.partition(f" {op} ")
    value = read(left)
    if right.startswith("?"):
        constant, other = None, read(right[1:])
    else:
        constant = other = read(right)
    assert wanted in ("true", "false")
    assert lenient(op, value, other, constant=constant) == (wanted == "true")
    mirrored = {"<": ">", ">": "<", "<=": ">=", ">=": "<="}.get(op, op)
    assert lenient(mirrored, other, value, constant=constant) == (wanted == "true")


def test_order_comparisons_agree_with_each_other() -> None:
    """<= is < or =, and of two readings alike one relation holds."""
    texts = ["1", "01", "2", "-3", "1e2", "abc", "ABC", "2020-01-01", "2020-01-01T00:00:00Z", "2020-06-01", ""]
    for a in map(Literal, texts):
        for b in map(Literal, texts):
            holds = {op: lenient(op, a, b, constant=b) for op in OPERATORS}
            assert holds["<="] == (holds["<"] or holds["="])
            assert holds[">="] == (holds[">"] or holds["="])
            assert holds["<"] + holds["="] + holds[">"] in (0, 1)
            assert holds["!="] == (holds["<"] or holds[">"])


def test_digits_cost_no_more_than_their_number() -> None:
    long = lenient_number("9" * 200_000 + "e999999999")
    short = lenient_number("1e999999999")
    assert long is not None
    assert short is not None
    assert short < long


def test_constant_may_stand_on_either_side() -> None:
    node: Expression = Compare("<", Literal("9"), Variable("x"), Coercion.LENIENT)
    assert isinstance(node, Compare)
    assert lenient("<", Literal("9"), Literal("10"), constant=node.left)  # type: ignore[arg-type]  # it is a literal
    assert not lenient("=", IRI("http://e/9"), Literal("9"), constant=None)
