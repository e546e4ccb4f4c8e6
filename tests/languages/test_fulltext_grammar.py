"""What becomes of full-text expressions: tests/cases/fulltext/grammar.txt, each with its tree or its error."""

from __future__ import annotations

import pytest
from case_files import Case, read_cases

from triplewire.errors import TriplewireError
from triplewire.ir.show import show
from triplewire.languages.context import Context
from triplewire.languages.grammar.full_text import parse_expression
from triplewire.languages.sparql.terms import QueryTokens


def outcome(text: str) -> str:
    """The line of the case file: the expression, or the error."""
    try:
        tokens = QueryTokens(text, Context())
        expression = parse_expression(tokens)
        tokens.rest_is_empty()
    except TriplewireError as error:
        return f"=! {type(error).__name__} {error}"
    return f"=> {show(expression)}"


@pytest.mark.parametrize("case", read_cases("fulltext/grammar.txt"), ids=str)
def test_expression(case: Case) -> None:
    assert outcome(case.text) == case.outcome
