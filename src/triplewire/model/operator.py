"""The protocol of expensive operators (operators paper, section 3): predicates over a whole publication.

An operator gets the publication and its arguments and returns false, true, or a finite set of bindings. The built-in
ones and the registry: `triplewire.operators`. An operator may check the constants of a call, once, when a
subscription is registered (`ChecksConstants`), and state how it is to be called (`Traits`).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from difflib import get_close_matches
from functools import lru_cache
from inspect import getattr_static
from typing import Any, Protocol, TypeAlias, runtime_checkable

from triplewire.errors import OperatorFault, text_of_raised
from triplewire.model.publication import Publication
from triplewire.model.term_checks import fault_of_term
from triplewire.model.terms import IRI, BlankNode, Literal, Term

Argument: TypeAlias = Term | None
"""A constant or a bound variable's value; None stands for an output, which the answer binds."""

Verdict: TypeAlias = bool | Iterable[tuple[Term, ...]]
"""True or False, or the rows that hold: one term for each argument, inputs repeated as given."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """A formal argument. `unit` ("m", "kg", ...) is what quantities such as `5 km` are converted to; "" takes none."""

    name: str
    unit: str = ""


class Operator(Protocol):
    """An expensive predicate. It must be deterministic and must not change the publication."""

    @property
    def name(self) -> str:
        """The name under which subscriptions call it."""

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        """The formal arguments, in order. A call must have as many arguments, or as many as one of `other_forms`."""

    def evaluate(self, publication: Publication, arguments: tuple[Argument, ...]) -> Verdict:
        """Does it hold? Any exception makes the call unknown, and is reported."""


def parameters_of(operator: Operator, arguments: int) -> tuple[Parameter, ...] | None:
    """The formal arguments of a call with so many; None where it takes others. An operator may have `other_forms`:
    tuples of parameters, each of another length."""
    return next((form for form in forms_of(operator) if len(form) == arguments), None)


def forms_of(operator: Operator) -> tuple[tuple[Parameter, ...], ...]:
    """All forms in which an operator is called."""
    return (operator.parameters, *getattr(operator, "other_forms", ()))


def takes(operator: Operator) -> str:
    """How many arguments it takes, in words."""
    counts = [len(form) for form in forms_of(operator)]
    return f"{' or '.join(map(str, counts))} argument{'s' * (counts != [1])}"


@runtime_checkable
class ChecksConstants(Protocol):
    """What an operator may have besides: a look at the constants of a call, before any publication comes."""

    def check_constants(self, arguments: tuple[Argument, ...]) -> Iterable[str]:
        """Warnings about a call with these constants; None stands for a variable. Raises `ValueError`, whose text says
        what is wrong and what is expected, where the call could only fail."""


def nothing_to_say(arguments: tuple[Argument, ...]) -> tuple[str, ...]:
    """The check of an operator that takes any constants."""
    return ()


def takes_any_constants(operator: object) -> bool:
    """Is it certain that an operator refuses no constants, and warns of none?"""
    return getattr(operator, "check_constants", nothing_to_say) is nothing_to_say


def warnings_of_call(operator: Operator, arguments: Sequence[object]) -> tuple[str, ...]:
    """The warnings of an operator about the arguments of a call. Raises `ValueError` where it refuses them."""
    check = getattr(operator, "check_constants", None)
    if check is None:
        return ()
    constants = tuple([term if isinstance(term, IRI | Literal) else None for term in arguments])
    try:
        return tuple(check(constants))
    except (ValueError, KeyboardInterrupt):
        raise
    except BaseException as error:  # foreign code
        raise ValueError(f"its check failed: {text_of_raised(error)}") from error


def rows_of(verdict: Any, arguments: Sequence[Argument], limit: int) -> bool | tuple[tuple[Term, ...], ...]:
    """The verdict on these arguments, checked: a truth, or distinct rows in the order given. Raises `OperatorFault`
    where it is something else, has a term that is none, or more than `limit` rows."""
    if isinstance(verdict, bool):
        return verdict
    if isinstance(verdict, str | bytes | Mapping) or not isinstance(verdict, Iterable):
        raise _wrong(f"it gives {verdict!r:.60}", arguments)
    rows: dict[tuple[Term, ...], None] = {}
    for count, row in enumerate(verdict):
        if count >= limit:
            raise OperatorFault(f"its answer is wrong: more than {limit} rows (max_steps)")
        is_row = isinstance(row, Iterable) and not isinstance(row, str | bytes | Mapping)
        whole = tuple(row) if is_row else ()
        if len(whole) != len(arguments) or not all(isinstance(term, IRI | Literal | BlankNode) for term in whole):
            raise _wrong(f"it gives the row {whole if is_row else row!r:.100}", arguments)
        for term, argument in zip(whole, arguments, strict=True):
            if term != argument and (fault := fault_of_term(term)):
                raise OperatorFault(f"its answer is wrong: {fault}")
        rows[whole] = None
    return tuple(rows)


def _wrong(given: str, arguments: Sequence[Argument]) -> OperatorFault:
    """Of an answer that is no verdict on these arguments: what it gives, and what it should."""
    count = len(arguments)
    rows = f"rows (tuples of {count} term{'s' * (count != 1)}: IRI, Literal or BlankNode)"
    return OperatorFault(f"its answer is wrong: {given}, and should give True, False, or {rows}")


MOST_AT_ONCE = 256  # calls of one operator
MOST_SECONDS = 3_600.0
MOST_RETRIES = 10
LEAST_MEMORY, MEMORY = 1 << 26, 1 << 30  # bytes of address space


@dataclass(frozen=True, slots=True)
class Traits:
    """What an operator may state besides, as attributes of these names; all are optional."""

    version: str = ""  # changes when its answers may
    cost: float = 1.0  # of a call, in any unit that is the same for all operators; seconds by default
    timeout: float | None = None  # seconds of a call; default: `operator_seconds`, 5 where it is isolated
    concurrency: int = 1  # calls that are made at once
    isolated: bool = False  # it runs in a process of its own
    memory: int = MEMORY  # bytes of address space of that process
    budget_per_hour: float | None = None  # of `cost`, in any hour
    retries: int = 0  # calls that are made once more each, where one failed for a reason that may pass


def traits_of(operator: object) -> Traits:
    """What an operator states. Raises `ValueError`, which says what is wrong and what is expected."""
    stated: dict[str, Any] = {}
    for known in fields(Traits):
        value = getattr(operator, known.name, known.default)
        if fault := _fault(known.name, value):
            raise ValueError(f"has {known.name} = {value!r:.60}, which is not {fault}")
        stated[known.name] = value
    return Traits(**stated)


_OTHERS = ("cacheable", "check_constants", "other_forms", "with_taxonomy")
OPTIONAL = frozenset((*(known.name for known in fields(Traits)), *_OTHERS))
_OTHER_WORDS = {"budget": "budget_per_hour", "retry": "retries", "retrys": "retries"}


@lru_cache(maxsize=1_024)
def meant_by(name: str, known: frozenset[str]) -> str:
    """The known attribute or key that somebody may have meant by another name; "" where there is none."""
    other = _OTHER_WORDS.get(name, "")
    near = get_close_matches(name, sorted(known), 1, 0.8) if len(name) > 4 else []  # "host" is not "cost"
    return other if other in known else "".join(near)


def misspelt(operator: object) -> str:
    """What is wrong with a public attribute that is nearly one of `OPTIONAL`, where that one is not stated: it would
    be without effect. "" where there is none. Methods are not looked at, unless their name is nearly that of one."""
    stated = [name for name in dir(operator) if not name.startswith("_")]
    left = OPTIONAL.difference(stated)
    for name in stated:
        near = meant_by(name, left) if name not in OPTIONAL else ""
        is_of_method = near in ("check_constants", "with_taxonomy")
        if near and callable(getattr_static(operator, name)) == is_of_method:
            return f"has an attribute {name!r}, which means nothing; did you mean {near}?"
    return ""


def _fault(name: str, value: object) -> str:
    """What the value of a trait should have been; "" where it is right."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    number: Any = value if is_number else -1
    if name == "version":
        return "" if isinstance(value, str) else "a text"
    if name == "isolated":
        return "" if isinstance(value, bool) else "True or False"
    if name == "cost":
        return "" if number >= 0 else "a number from 0"
    if name == "budget_per_hour":
        return "" if value is None or number >= 0 else "a number from 0, in units of cost"
    if name == "retries":
        return "" if type(value) is int and 0 <= value <= MOST_RETRIES else f"an integer from 0 to {MOST_RETRIES}"
    if name == "timeout":
        return "" if value is None or 0 < number <= MOST_SECONDS else f"a number of seconds up to {MOST_SECONDS:g}"
    if name == "concurrency":
        return "" if type(value) is int and 1 <= value <= MOST_AT_ONCE else f"an integer from 1 to {MOST_AT_ONCE}"
    return "" if type(value) is int and value >= LEAST_MEMORY else f"a number of bytes from {LEAST_MEMORY}"
