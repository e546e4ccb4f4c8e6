"""The index over a set of subscriptions: their constants, tests, programs and tries. Never changed once built.

`IndexBuilder` takes subscriptions one after the other; `Index.arrays` is what is saved. Ids and texts of the
subscriptions, live changes and storage: `triplewire.engine`.
"""

from __future__ import annotations

import gc
import io
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from triplewire.encode.batch import Batch, Ids
from triplewire.encode.names import Names, term_names
from triplewire.ir.evidence import Clause, Evidence, Position
from triplewire.ir.nodes import Variable
from triplewire.kernels.star_bits import ALONE, ASKS, WIDTH
from triplewire.languages.masks import Constants
from triplewire.languages.shape import Composed, Shape
from triplewire.model.terms import IRI, Literal
from triplewire.select.columns import Strings
from triplewire.select.features import Features
from triplewire.select.growing import GrowingPrograms
from triplewire.select.idle import Idle
from triplewire.select.programs import ASK, DISTINCT, EXACT, Programs
from triplewire.select.room import Room
from triplewire.select.shaped import ShapedRows
from triplewire.select.tests import Tests, TestTable, build
from triplewire.select.trie import SetTrie, Trie, build_trie
from triplewire.select.walk import Selected, SubjectAtoms, Workspace, subject_atoms, walk

_MANY = 1 << 14  # subscriptions that are worth the time of letting go
_KEPT = 1 << 24  # atoms, or clauses, that it may have room for; one that has grown larger is let go

Arrays = Mapping[str, NDArray[Any]]


@dataclass(frozen=True)
class Index:
    """What the select and verify stages need of the subscriptions 0 .. n-1."""

    terms: Names  # the constants of patterns
    tests: Tests
    programs: Programs
    trie: Trie

    def __len__(self) -> int:
        return len(self.programs)

    @cached_property
    def marks(self) -> Ids:
        """Clause -> what settling it needs to know, in one number: `triplewire.kernels.star_bits` has the bits."""
        programs, owner = self.programs, self.trie.owner
        found = programs.selected.astype(np.int32) << WIDTH
        found |= np.where(programs.flags & ASK != 0, np.int32(ASKS), np.int32(0))
        found |= np.where(np.diff(programs.clause_offset) == 1, np.int32(ALONE), np.int32(0))
        marks: Ids = found[owner]
        marks |= self.trie.status
        return marks

    @cached_property
    def _lazy_places(self) -> dict[int, int]:
        """Lazy test -> a place in `programs.test` where it stands."""
        where = np.flatnonzero(np.asarray(self.tests.is_lazy)[self.programs.test])
        found, first = np.unique(self.programs.test[where], return_index=True)
        return dict(zip(found.tolist(), where[first].tolist(), strict=True))

    @cached_property
    def _spaces(self) -> Idle[Workspace]:
        return Idle()

    def atoms(self, batch: Batch, features: Features) -> SubjectAtoms:
        """The atoms that the subjects of the batch satisfy."""
        with self._spaces.one(self._new_space, _is_small) as space:
            return subject_atoms(self.trie, batch, features, space).kept()

    def select(
        self, batch: Batch, features: Features, cap: int, room: Room, atoms: SubjectAtoms | None = None
    ) -> Selected:
        """What of the batch could match; `cap` is `max_bindings`. What is accepted lies in the room. `atoms` are given
        where they are known already."""
        with self._spaces.one(self._new_space, _is_small) as space:
            found = subject_atoms(self.trie, batch, features, space) if atoms is None else atoms
            return walk(self.trie, features, found, cap, space, room)

    def _new_space(self) -> Workspace:
        return Workspace(self.trie, len(self))

    def place(self, test: int) -> tuple[int, int, int]:
        """Where a lazy test is stated: (subscription, its clause from 0, the clause's test from 0)."""
        at = self._lazy_places[test]
        clause = int(np.searchsorted(self.programs.test_offset, at, side="right")) - 1
        subscription = int(np.searchsorted(self.programs.clause_offset, clause, side="right")) - 1
        first = int(self.programs.clause_offset[subscription])
        return subscription, clause - first, at - int(self.programs.test_offset[clause])

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Everything as flat arrays, for `from_arrays`."""
        parts: dict[str, Arrays] = {"terms": self.terms.arrays(), "tests": self.tests.arrays()}
        parts["programs"] = {f.name: getattr(self.programs, f.name) for f in fields(self.programs)}
        for name in ("atoms", "stars"):
            parts[name] = _to_arrays(getattr(self.trie, name))
        parts["trie"] = _to_arrays(self.trie)
        return {f"{part}.{name}": column for part, columns in parts.items() for name, column in columns.items()}

    @classmethod
    def from_arrays(cls, arrays: Arrays) -> Index:
        """What `arrays` gave; the arrays are used as they are (they may be memory maps). Raises `KeyError`."""
        parts: dict[str, dict[str, NDArray[Any]]] = {}
        for name, column in arrays.items():
            part, _, rest = name.partition(".")
            parts.setdefault(part, {})[rest] = column
        columns = _from_arrays(Trie, parts["trie"])
        columns |= {name: SetTrie(**_from_arrays(SetTrie, parts[name])) for name in ("atoms", "stars")}
        trie = Trie(**columns)
        programs = Programs(**parts["programs"])
        return cls(Names.from_arrays(parts["terms"]), Tests.from_arrays(parts["tests"]), programs, trie)

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays."""
        return sum(column.nbytes for column in self.arrays().values())


def _is_small(space: Workspace) -> bool:
    return max(len(space.checks), len(space.atoms)) <= _KEPT


def _to_arrays(value: Any) -> dict[str, NDArray[Any]]:
    """The columns of a dataclass; numbers as arrays of one."""
    columns = ((f.name, getattr(value, f.name)) for f in fields(value))
    return {name: np.atleast_1d(column) for name, column in columns if isinstance(column, np.ndarray | int)}


def _from_arrays(kind: type, columns: Mapping[str, NDArray[Any]]) -> dict[str, Any]:
    scalars = {f.name: f.type for f in fields(kind) if f.type in ("int", "bool")}
    return {
        name: (bool if scalars[name] == "bool" else int)(column[0]) if name in scalars else column
        for name, column in columns.items()
    }


class IndexBuilder:
    """Collects subscriptions; `build` makes the index of them, numbered in the order in which they came."""

    def __init__(self) -> None:
        self._terms: dict[IRI | Literal, int] = {}
        self._tests = TestTable()
        self._rows = GrowingPrograms()
        self._shaped = ShapedRows(self._rows, self._term, self._tests)

    def __len__(self) -> int:
        return len(self._rows)

    def add(self, evidence: Evidence, select: Sequence[str], ask: bool) -> None:
        """The next subscription. `select` names its selected variables, none of an ASK query."""
        selected = () if ask else tuple(dict.fromkeys(select))
        flags = (EXACT if evidence.exact else 0) | (ASK if ask else 0)
        distinct = True
        for clause in evidence.clauses:
            variables = {name: number for number, name in enumerate(selected)}
            self._clause(clause, variables)
            distinct = distinct and len(variables) == len(selected)
        self._rows.end(len(selected), flags | (DISTINCT if distinct else 0))

    def add_shaped(self, shape: Shape | Composed, constants: Constants) -> None:
        """The next subscription, as `triplewire.languages.shapes` found it: the same as `add`, and faster."""
        if not self._shaped.add(shape, constants):
            self.add(shape.evidence_of(constants), shape.select_of(constants), shape.ask)

    def _clause(self, clause: Clause, variables: dict[str, int]) -> None:
        rows = self._rows
        for pattern in clause.patterns:
            rows.pattern.extend([self._position(position, variables) for position in pattern])
        for name, test in clause.tests:
            rows.test_variable.append(variables[name])
            rows.test.append(self._tests.add(test))
        rows.end_clause(len(variables))

    def _position(self, position: Position, variables: dict[str, int]) -> int:
        if isinstance(position, Variable):
            return -1 - variables.setdefault(position.name, len(variables))
        return self._term(position)

    def _term(self, term: IRI | Literal) -> int:
        return self._terms.setdefault(term, len(self._terms))

    def build(self) -> Index:
        """The index of all that was added. The builder is spent then: its small objects go before the index is made,
        which else would come to lie among them, and keep their memory from being given back. What is needed of them
        waits as bytes of one object meanwhile, for the same reason."""
        names, specs, rows = term_names(list(self._terms)), self._tests.specs(), self._rows
        del self._terms, self._tests, self._rows, self._shaped
        many = len(rows) >= _MANY
        if many:
            aside = _set_aside(names, specs)
            del names, specs
            _let_go()
            names, specs = _taken_back(aside)
            del aside
        tests, programs = build(specs), rows.programs()
        index = Index(names, tests, programs, build_trie(programs, tests, len(names)))
        if many:
            _let_go()
        return index


def _set_aside(names: Names, specs: Strings) -> io.BytesIO:
    aside = io.BytesIO()
    for column in (*names.arrays().values(), specs.text, specs.offset):
        np.save(aside, column)
    aside.seek(0)
    return aside


def _taken_back(aside: io.BytesIO) -> tuple[Names, Strings]:
    names = Names.from_arrays({f.name: np.load(aside) for f in fields(Names)})
    return names, Strings(np.load(aside), np.load(aside))


def _let_go() -> None:
    """Drop small objects that nobody needs. Cycles are collected, with what they come from. And the interpreter
    remembers where attributes of types were found, by the names as they were asked for: thousands of strings."""
    gc.collect()
    clear = getattr(sys, "_clear_internal_caches", None) or sys._clear_type_cache
    clear()
