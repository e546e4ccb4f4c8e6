"""`rewrite`: parts of the named kinds are replaced, the rest stays the object that it was."""

from __future__ import annotations

from triplewire.ir.nodes import And, Compare, Filter, Label, Not, Pattern, TextRelation, TextTest, Variable
from triplewire.ir.walk import rewrite
from triplewire.model.terms import IRI, Literal

X, Y, Z = Variable("x"), Variable("y"), Variable("z")
PATTERN = Pattern(X, IRI("urn:p"), Y)
FILTER = Filter(Compare(">", Y, Literal("5")))
TREE = And((PATTERN, FILTER, Not(And((PATTERN,)))))


def test_parts_are_replaced_at_any_depth_and_what_replaces_them_is_left_alone() -> None:
    renamed = Pattern(Y, IRI("urn:p"), Y)
    assert rewrite(TREE, (Variable,), lambda variable: Y if variable == X else variable) == And(
        (renamed, FILTER, Not(And((renamed,))))
    )
    group: object = PATTERN
    assert rewrite(group, (Pattern,), lambda pattern: And((pattern, pattern))) == And((PATTERN, PATTERN))


def test_parts_come_in_order() -> None:
    seen: list[Variable] = []

    def note(variable: Variable) -> Variable:
        seen.append(variable)
        return variable

    rewrite(TREE, (Variable,), note)
    assert seen == [X, Y, Y, X, Y]


def test_a_part_without_changes_is_the_same_object() -> None:
    assert rewrite(TREE, (Variable,), lambda variable: variable) is TREE
    assert rewrite(TREE, (Label,), lambda label: Z) is TREE
    changed = rewrite(TREE, (Not,), lambda group: PATTERN)
    assert changed == And((PATTERN, FILTER, PATTERN))
    assert changed.parts[1] is FILTER


def test_strings_are_parts() -> None:
    test = TextTest(TextRelation.CONTAINS, X, "a", False)
    assert rewrite((test, "a"), (str,), {"a": "b", "x": "z"}.get) == (
        TextTest(TextRelation.CONTAINS, Z, "b", False),
        "b",
    )
