"""Rows of matches as JSON text: of each list of rows, the objects {variable: term} in the order of the rows.

The rows come as steps (`triplewire.kernels.joins.steps`), the terms and the variables as texts that are copied. Used
through `triplewire.verify.json_texts`.
"""

from __future__ import annotations

from typing import Any

from triplewire.kernels.shared.compiled import helper, kernel

_OPEN, _CLOSE, _OPEN_LIST, _CLOSE_LIST, _COMMA, _SPACE = 0x7B, 0x7D, 0x5B, 0x5D, 0x2C, 0x20


@kernel
def row_offsets(steps: Any, term_offset: Any, variable_offset: Any, first: Any, width: Any, row: Any,
                offset: Any) -> None:  # fmt: skip
    """Where the text of each list begins, and the last one ends. `steps` is (offset, column, place, completes); of list
    i, column k holds the variable first[i] + k. A term without text is unbound. Lists of width 0 have one row.

    `row` is as long as the widest list: column -> bytes of what is there."""
    begins, column, place, completes = steps
    offset[0] = 0
    for i in range(width.size):
        rows, size = 0, 0
        for n in range(begins[i], begins[i + 1]):
            k, term = column[n], place[n]
            variable = first[i] + k
            length = term_offset[term + 1] - term_offset[term]
            row[k] = length + variable_offset[variable + 1] - variable_offset[variable] if length else 0
            if completes[n]:
                bound = 0
                for c in range(width[i]):
                    size += row[c]
                    bound += 1 if row[c] else 0
                size += 2 + 2 * max(bound - 1, 0)
                rows += 1
        if width[i] == 0:
            rows, size = 1, 2
        offset[i + 1] = offset[i] + size + 2 + 2 * max(rows - 1, 0)


@helper
def _copied(text: Any, begin: Any, end: Any, out: Any, at: Any) -> Any:
    """Copy text[begin : end] to `at`; returns where it ends there."""
    for k in range(end - begin):
        out[at + k] = text[begin + k]
    return at + end - begin


@helper
def _row(row: Any, terms: Any, variables: Any, first: int, width: int, out: Any, at: int) -> int:
    """Write a row, column -> term, to `at`; returns where it ends."""
    term_text, term_offset = terms
    variable_text, variable_offset = variables
    out[at] = _OPEN
    at += 1
    begin = at
    for k in range(width):
        term, variable = row[k], first + k
        if term_offset[term + 1] > term_offset[term]:
            if at > begin:
                out[at], out[at + 1] = _COMMA, _SPACE
                at += 2
            at = _copied(variable_text, variable_offset[variable], variable_offset[variable + 1], out, at)
            at = _copied(term_text, term_offset[term], term_offset[term + 1], out, at)
    out[at] = _CLOSE
    return at + 1


@kernel
def write_rows(steps: Any, terms: Any, variables: Any, first: Any, width: Any, row: Any, offset: Any,
               out: Any) -> None:  # fmt: skip
    """Write the text of each list to where `offset` says (`row_offsets`). `terms` and `variables` are (text, offset);
    the text of a variable is what stands before its term. `row`: column -> term, as long as the widest list."""
    begins, column, place, completes = steps
    for i in range(width.size):
        at = offset[i]
        out[at] = _OPEN_LIST
        at += 1
        begin = at
        if width[i] == 0:
            at = _row(row, terms, variables, first[i], width[i], out, at)
        for n in range(begins[i], begins[i + 1]):
            row[column[n]] = place[n]
            if completes[n]:
                if at > begin:
                    out[at], out[at + 1] = _COMMA, _SPACE
                    at += 2
                at = _row(row, terms, variables, first[i], width[i], out, at)
        out[at] = _CLOSE_LIST
