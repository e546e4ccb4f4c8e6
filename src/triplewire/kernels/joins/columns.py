"""Arrays that belong together, as the kernels that join patterns take them."""

from __future__ import annotations

from typing import Any, NamedTuple


class SortedTriples(NamedTuple):
    """The triples of a batch by publication, subject, predicate and object; of some, in other orders too."""

    offset: Any  # publication -> its slice; one longer than the publications
    pairs: Any  # subject << 32 | predicate
    object: Any
    key_offset: Any  # publication -> where its keys begin, or -1 (`triplewire.kernels.joins.components.sort_triples`)
    keys: Any


class NodeFeatures(NamedTuple):
    """Which tests hold of which terms (`triplewire.clauses.features.Features`)."""

    offset: Any  # term -> its slice of `test`
    test: Any
    low: Any  # shape (range groups, terms)
    high: Any
    node_offset: Any  # publication -> its slice of `node_key`
    node_key: Any  # term << 32 | test, ascending: what holds in this publication only


class PairColumns(NamedTuple):
    """Pairs of a publication and some clauses of one subscription."""

    publication: Any
    clause_offset: Any  # pair -> its slice of `clauses`; one longer than the pairs
    clauses: Any
    width: Any  # how many variables are selected; 0 where one solution is enough


class StatedClauses(NamedTuple):
    """The clauses of a segment and their components (`triplewire.kernels.joins.components`)."""

    pattern_offset: Any
    pattern: Any
    component_offset: Any
    component: Any
    member: Any
    test_offset: Any
    test_variable: Any
    test: Any


class JoinedClauses(NamedTuple):
    """Some clauses and their components, with their constants as the batch's terms."""

    code_offset: Any  # clause -> its slice of `code`
    code: Any  # shape (patterns, 3)
    component_offset: Any
    component: Any
    member: Any
    condition_offset: Any  # clause -> its slice of `condition`
    condition: Any  # shape (tests, 6): variable, test, kind, group, operator, rank


class ResidualAnswers(NamedTuple):
    """What is known of residual predicates (`triplewire.verify.answers`)."""

    scope: Any  # test -> has it an answer for each publication?
    known: Any  # hash table


class SolutionRows(NamedTuple):
    """Where solutions go."""

    rows: Any
    pieces: Any  # shape (pieces, 4): pair, clause, begin in `rows`, number of rows
    slots: Any  # hash table over the rows of a component


class SearchState(NamedTuple):
    """What a search works with."""

    frame: Any
    value: Any
    state: Any


class PublicationSlice(NamedTuple):
    """The publication at hand: its number, its slice of the triples, and where its keys begin, or -1."""

    number: int
    begin: int
    end: int
    keys: int


class ClauseConditions(NamedTuple):
    """The tests of the clause at hand, and what they ask."""

    condition: Any
    features: NodeFeatures
    residual: ResidualAnswers
