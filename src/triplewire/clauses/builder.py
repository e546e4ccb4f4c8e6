"""From subscriptions, one after the other, to clauses: `ClauseBuilder`."""

from __future__ import annotations

import gc
import sys
from collections.abc import Sequence

from triplewire.clauses.calls import RequiredCallsBuilder
from triplewire.clauses.clauses import Clauses
from triplewire.clauses.growing import GrowingTable
from triplewire.clauses.node_tests.table import TestTable, build
from triplewire.clauses.table import too_many_rows
from triplewire.clauses.template_rows import TemplateRows
from triplewire.encode.names import term_names
from triplewire.ir.evaluation.unknown import CallKey
from triplewire.ir.normal_form.clauses import NormalForm
from triplewire.languages.templates import AnyTemplate
from triplewire.languages.templates.call_lists import CallList
from triplewire.languages.templates.parameters import Parameters
from triplewire.model.terms import IRI, Literal

_MANY = 1 << 14  # subscriptions for which it is worth the time to release small objects


class ClauseBuilder:
    """Collects subscriptions. `build` makes the clauses of them, numbered in the order in which they came."""

    def __init__(self) -> None:
        self._constants: dict[IRI | Literal, int] = {}
        self._tests = TestTable()
        self._table = GrowingTable()
        self._asked = RequiredCallsBuilder()
        self._rows = TemplateRows(self._table, self._constant, self._tests)

    def __len__(self) -> int:
        return len(self._table)

    @property
    def is_full(self) -> bool:
        """Is there no room for a subscription?"""
        return self._table.is_full

    def add(self, form: NormalForm, select: Sequence[str], ask: bool) -> None:
        """The next subscription. `select` names its selected variables, none of an ASK query. Raises `LimitError` where
        there is no room for it."""
        if self.is_full:
            raise too_many_rows()
        self._rows.add_form(form, () if ask else tuple(dict.fromkeys(select)), ask)
        self._asked.add(form.asked)

    def add_from_template(self, template: AnyTemplate, parameters: Parameters, asked: Sequence[CallKey] = ()) -> None:
        """The next subscription, as `triplewire.languages.templates` found it: the same as `add`, and faster. `asked`:
        the calls that have to hold."""
        if self.is_full or isinstance(template, CallList) or not self._rows.add(template, parameters):
            self.add(template.normal_form(parameters), template.selected(parameters), template.ask)
        else:
            self._asked.add(asked)

    def _constant(self, term: IRI | Literal) -> int:
        return self._constants.setdefault(term, len(self._constants))

    def build(self) -> Clauses:
        """The clauses of all that was added. The builder is spent then: it lets go of its objects before the arrays are
        made, so that their memory can be given back."""
        constants, specs, table = term_names(list(self._constants)), self._tests.specs(), self._table.table()
        asked = self._asked.build()
        del self._constants, self._tests, self._table, self._rows
        if len(table) >= _MANY:
            _release_small_objects()
        return Clauses.of(constants, build(specs), table, asked)


def _release_small_objects() -> None:
    """Drop objects that nobody needs, so that whole arenas of Python's allocator are free (decision 025).

    The interpreter's type cache holds names as they were asked for: thousands of strings, each in an arena of its own.
    """
    gc.collect()
    clear = getattr(sys, "_clear_internal_caches", None) or sys._clear_type_cache
    clear()
