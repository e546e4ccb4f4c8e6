"""Fills the rows of clauses from templates and parameters: those of many subscriptions at once.

    for each subscription, until one has no template:
        of one template:  copy its rows; in each gap the id of the parameter
        of several:       number the selected variables: those of the head, or all with a name
                          first all patterns, numbering other variables as they come; then all tests,
                          each once; stop where there are too many variables

A place of a template's pattern is a constant, a variable, or a gap, which names a parameter of the part; a test of a
template is one, or a gap, whose values stand by part in `gap_value`. Used through `triplewire.clauses.from_templates`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from triplewire.kernels.shared.compiled import called_helper, helper, kernel

TERM, NAME = -(1 << 28), -(1 << 29)
"""A gap for parameter k: TERM - 1 - k for its term, NAME - 1 - k for the variable that it names; NAME for a variable
without a name, a wildcard. Above are variables."""
STAR, LISTED, ASKED = 0, 1, 2
"""What a head selects: all variables, those that it names, none."""
EXACT, ASK, DISTINCT = 1, 2, 4  # as in `triplewire.clauses.clauses`
MOST_VARIABLES = 1_024  # of a subscription of several templates
ROWS, CLAUSES, PATTERNS, TESTS, NAMES = 0, 1, 2, 3, 4  # places in `state`: how much of each is written
STATE = 5
_WILDCARD = -1  # in place of the parameter that is a variable
_int: Any = np.int64


class TemplateTables(NamedTuple):
    """The rows of some templates, one behind the other."""

    clause_offset: Any  # template -> its slice of the clauses
    pattern_end: Any  # clause -> where its patterns end, counted from the first of its template
    test_end: Any
    variables: Any
    pattern_offset: Any  # template -> its slice of the patterns
    pattern: Any  # flat
    test_offset: Any  # template -> its slice of the tests
    test: Any
    test_variable: Any
    selected: Any
    flags: Any


class Parts(NamedTuple):
    """The parts of subscriptions, and the values of their gaps."""

    first: Any  # subscription -> its first part; of several, its head
    last: Any
    is_joined: Any  # has it a head and several templates?
    template: Any  # part -> its template, or what a head selects; -1 for none
    parameter_offset: Any
    parameter: Any
    term: Any  # parameter -> its constant, where it stands for a term
    gap_offset: Any  # part -> its slice of `gap_value`
    gap_value: Any


class Rows(NamedTuple):
    """What is written: columns as those of `triplewire.clauses.clauses.ClauseTable`, offsets from the first row here;
    and the parameters that are the selected variables of a subscription of several templates."""

    clause_offset: Any
    pattern_offset: Any
    pattern: Any  # flat
    test_offset: Any
    test_variable: Any
    test: Any
    variables: Any
    selected: Any
    flags: Any
    names_offset: Any
    names: Any


@helper
def _end_clause(out: Rows, state: Any, variables: int) -> None:
    state[CLAUSES] += 1
    out.variables[state[CLAUSES] - 1] = variables
    out.pattern_offset[state[CLAUSES]], out.test_offset[state[CLAUSES]] = state[PATTERNS], state[TESTS]


@called_helper
def _fill(template: int, part: int, parts: Parts, tables: TemplateTables, out: Rows, state: Any) -> None:
    """The rows of one template."""
    parameters, gaps = parts.parameter_offset[part], parts.gap_offset[part]
    first_pattern, first_test = tables.pattern_offset[template], tables.test_offset[template]
    pattern, test = _int(first_pattern), _int(first_test)
    for clause in range(tables.clause_offset[template], tables.clause_offset[template + 1]):
        while pattern < first_pattern + tables.pattern_end[clause]:
            for k in range(3):
                code = _int(tables.pattern[3 * pattern + k])
                if code < TERM:
                    code = _int(parts.term[parts.parameter[parameters + TERM - 1 - code]])
                out.pattern[3 * state[PATTERNS] + k] = code
            state[PATTERNS] += 1
            pattern += 1
        while test < first_test + tables.test_end[clause]:
            number = _int(tables.test[test])
            out.test[state[TESTS]] = parts.gap_value[gaps - 1 - number] if number < 0 else number
            out.test_variable[state[TESTS]] = tables.test_variable[test]
            state[TESTS] += 1
            test += 1
        _end_clause(out, state, tables.variables[clause])
    out.selected[state[ROWS]], out.flags[state[ROWS]] = tables.selected[template], tables.flags[template]


@helper
def _number_of(name: int, names: Any, first: int, count: int) -> Any:
    """The number of a variable among those that came before; `count` where it is new."""
    number = _int(0)
    while number < count and names[first + number] != name:
        number += 1
    return number


@called_helper
def _named(part: int, parts: Parts, tables: TemplateTables, first: int, count: int, out: Rows) -> Any:
    """Number the variables with names in the patterns of a part. Returns how many there are now."""
    template, parameters = parts.template[part], parts.parameter_offset[part]
    for i in range(3 * tables.pattern_offset[template], 3 * tables.pattern_offset[template + 1]):
        code = _int(tables.pattern[i])
        if code < NAME and count < MOST_VARIABLES:
            name = parts.parameter[parameters + NAME - 1 - code]
            number = _number_of(name, out.names, first, count)
            out.names[first + number] = name
            count = max(count, number + 1)
    return count


@helper
def _is_same(a: int, b: int, names: Any, first: int) -> Any:
    """Are these places equal, in the text? Wildcards are, and become two variables."""
    return a == b or (a < 0 and b < 0 and names[first - 1 - a] == _WILDCARD and names[first - 1 - b] == _WILDCARD)


@called_helper
def _patterns(part: int, parts: Parts, tables: TemplateTables, first: int, count: int, out: Rows, state: Any) -> Any:
    """Write the patterns of a part that are new. Returns how many variables there are now."""
    template, parameters, begin = parts.template[part], parts.parameter_offset[part], out.pattern_offset[state[CLAUSES]]
    count = _named(part, parts, tables, first, count, out)
    for pattern in range(tables.pattern_offset[template], tables.pattern_offset[template + 1]):
        to, before, is_new = 3 * state[PATTERNS], count, True
        for k in range(3):
            code = _int(tables.pattern[3 * pattern + k])
            if code == NAME:
                out.names[first + count] = _WILDCARD
                count += 1
                code = -count
            elif code < NAME:
                name = parts.parameter[parameters + NAME - 1 - code]
                code = -1 - _number_of(name, out.names, first, count)
            elif code < TERM:
                code = _int(parts.term[parts.parameter[parameters + TERM - 1 - code]])
            out.pattern[to + k] = code
        for other in range(3 * begin, to, 3):
            same = True
            for k in range(3):
                same = same and _is_same(out.pattern[other + k], out.pattern[to + k], out.names, first)
            is_new = is_new and not same
        state[PATTERNS] += is_new
        count = count if is_new else before
        if count > MOST_VARIABLES - 3:
            return _int(-1)
    return count


@called_helper
def _tests(part: int, parts: Parts, tables: TemplateTables, first: int, count: int, out: Rows, state: Any) -> None:
    """Write the tests of a part that are new."""
    template, parameters = parts.template[part], parts.parameter_offset[part]
    for test in range(tables.test_offset[template], tables.test_offset[template + 1]):
        to, number, is_new = state[TESTS], _int(tables.test[test]), True
        number = _int(parts.gap_value[parts.gap_offset[part] - 1 - number]) if number < 0 else number
        name = parts.parameter[parameters + NAME - 1 - tables.test_variable[test]]
        variable = _number_of(name, out.names, first, count)
        out.test[to], out.test_variable[to] = number, variable
        for other in range(out.test_offset[state[CLAUSES]], to):
            is_new = is_new and not (out.test[other] == number and out.test_variable[other] == variable)
        state[TESTS] += is_new


@called_helper
def _join(row: int, parts: Parts, tables: TemplateTables, out: Rows, state: Any) -> Any:
    """The rows of a head and several templates; False where they have too many variables."""
    head, last, first = parts.first[row], parts.last[row], out.names_offset[state[ROWS]]
    selects, count, flags = parts.template[head], _int(0), EXACT
    for i in range(parts.parameter_offset[head], parts.parameter_offset[head + 1]):
        number = _number_of(parts.parameter[i], out.names, first, count)
        out.names[first + number] = parts.parameter[i]
        count = max(count, number + 1)
    for part in range(head + 1, last):
        count = _named(part, parts, tables, first, count, out) if selects == STAR else count
    selected = count
    for part in range(head + 1, last):
        if count >= 0:
            count = _patterns(part, parts, tables, first, count, out, state)
            flags &= tables.flags[parts.template[part]]
    good = count >= 0
    if good:
        for part in range(head + 1, last):
            _tests(part, parts, tables, first, count, out, state)
        _end_clause(out, state, count)
        flags |= DISTINCT if selected == count else 0
        flags |= ASK if selects == ASKED else 0
        out.selected[state[ROWS]], out.flags[state[ROWS]] = selected, flags
        out.names_offset[state[ROWS] + 1] = first + selected
    return good


@kernel
def fill(row: int, parts: Parts, tables: TemplateTables, room: int, out: Rows, state: Any) -> int:
    """Write the rows of subscriptions from `row` on; returns the first one that has none by template, or for which
    there is no room. `room`: clauses, patterns or tests of all."""
    good = True
    out.clause_offset[0] = out.pattern_offset[0] = out.test_offset[0] = out.names_offset[0] = 0
    for k in range(STATE):
        state[k] = 0
    while good and row < parts.first.size:
        patterns, tests = state[PATTERNS], state[TESTS]
        first = parts.first[row]
        good = parts.last[row] > first and max(state[CLAUSES], patterns, tests) < room
        if good and parts.is_joined[row]:
            good = _join(row, parts, tables, out, state)
        elif good:
            out.names_offset[state[ROWS] + 1] = out.names_offset[state[ROWS]]
            _fill(parts.template[first], first, parts, tables, out, state)
        if good:
            state[ROWS] += 1
            out.clause_offset[state[ROWS]] = state[CLAUSES]
            row += 1
        else:
            state[PATTERNS], state[TESTS] = patterns, tests
    return row
