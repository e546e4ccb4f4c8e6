"""What operators on optional libraries share: they say what to install where their library is absent."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from typing import Any

from triplewire.ir.values.numbers import lenient_number
from triplewire.model.operator import Argument, Parameter, Verdict
from triplewire.model.publication import Publication
from triplewire.model.terms import IRI, XSD, Literal, Term
from triplewire.operators import text_of

DOUBLE, INTEGER = XSD + "double", XSD + "integer"
_MOST_DIGITS = 40  # characters of a number

Library = tuple[str, str]
"""The name of a distribution, and that of the module which it installs."""

Evaluate = Callable[[Publication, tuple[Argument, ...]], Verdict]
Check = Callable[[tuple[Argument, ...]], Iterable[str]]


def no_warnings(arguments: tuple[Argument, ...]) -> Iterable[str]:
    """The check of an operator that takes any constants."""
    return ()


@dataclass(frozen=True)
class LibraryOperator:
    """An operator whose function needs libraries. Without one of them every call is refused when it is registered.

    `cost` is a guess of the seconds of a call, `isolated` says that a call can take much time or memory.
    """

    name: str
    parameters: tuple[Parameter, ...]
    function: Evaluate
    check: Check
    extra: str
    libraries: tuple[Library, ...]
    cost: float
    isolated: bool = False
    revision: int = 1
    cacheable: bool = True  # an answer depends on nothing but publication, arguments, version and taxonomy

    @property
    def version(self) -> str:
        """The revision of our code and the versions of the libraries, on which an answer depends."""
        return "+".join((str(self.revision), *(f"{name}-{_installed(name)}" for name, _ in self.libraries)))

    def check_constants(self, arguments: tuple[Argument, ...]) -> Iterable[str]:
        """Warnings. Raises `ValueError` where a library is absent or a constant is wrong."""
        require(self.extra, self.libraries)
        return tuple(self.check(arguments))

    def evaluate(self, publication: Publication, arguments: tuple[Argument, ...]) -> Verdict:
        """The result of the function. Raises `ValueError` where a library is absent."""
        require(self.extra, self.libraries)
        return self.function(publication, arguments)


def require(extra: str, libraries: Iterable[Library]) -> None:
    """Raises `ValueError` that says what to install where a library is absent. Nothing is imported."""
    for distribution, module in libraries:
        if not _is_there(module):
            raise ValueError(f"the library {distribution} is not installed; install triplewire[{extra}]")


def _is_there(module: str) -> bool:
    return find_spec(module) is not None


@cache
def _installed(distribution: str) -> str:
    try:
        return version(distribution)
    except PackageNotFoundError:
        return "absent"


# --- arguments -------------------------------------------------------------------------------------------------------


def number_of(argument: Argument, name: str, least: float, most: float) -> float:
    """An argument as a number from `least` to `most`. Raises `ValueError` naming it."""
    text = text_of(argument, name)
    number = lenient_number(text) if len(text) <= _MOST_DIGITS else None
    if number is None:
        raise ValueError(f"{name} is {text[:_MOST_DIGITS]!r}, which is no number")
    if not least <= number <= most:
        raise ValueError(f"{name} is {text}, but goes from {least:g} to {most:g}")
    return float(number)


def each_constant(
    arguments: tuple[Argument, ...], *readers: Callable[[Argument], Any] | None
) -> Iterator[tuple[Argument, Any]]:
    """Each constant with what its reader makes of it; None reads nothing. Raises what the readers raise."""
    for argument, reader in zip(arguments, readers, strict=True):
        if argument is not None and reader is not None:
            yield argument, reader(argument)


@dataclass(frozen=True)
class Checked:
    """A check without warnings, which refuses what the reader of a constant refuses. It can travel to a process."""

    readers: tuple[Callable[[Argument], Any] | None, ...]

    def __call__(self, arguments: tuple[Argument, ...]) -> Iterable[str]:
        """No warnings. Raises what the readers raise."""
        for _ in each_constant(arguments, *self.readers):
            pass
        return ()


def checked(*readers: Callable[[Argument], Any] | None) -> Checked:
    """The check of a call by a reader for each argument; None reads nothing."""
    return Checked(readers)


def nothing_asked(publication: Publication, arguments: tuple[Argument, ...]) -> bool:
    """The function of an operator that answers by a method of its own."""
    return False


# --- answers ---------------------------------------------------------------------------------------------------------


def integer(value: int) -> Literal:
    """An xsd:integer."""
    return Literal(str(value), INTEGER)


def double(value: float) -> Literal:
    """An xsd:double, as Python writes it: the shortest text that reads as the same number."""
    return Literal(repr(float(value)), DOUBLE)


def same_value(argument: Argument, answer: Term) -> bool:
    """May this answer stand for the argument: is it open, the same term, or a literal of the same number?"""
    if argument is None or argument == answer:
        return True
    if isinstance(argument, IRI) or not (isinstance(argument, Literal) and isinstance(answer, Literal)):
        return False
    given, known = lenient_number(argument.lexical), lenient_number(answer.lexical)
    return given is not None and given == known


def row(arguments: tuple[Argument, ...], answers: tuple[Term, ...]) -> tuple[Term, ...] | None:
    """A row of these answers, in which inputs are repeated as they were given; None where one is another value."""
    if not all(map(same_value, arguments, answers)):
        return None
    return tuple(answer if given is None else given for given, answer in zip(arguments, answers, strict=True))


def rows(arguments: tuple[Argument, ...], answers: Iterable[tuple[Term, ...]]) -> tuple[tuple[Term, ...], ...]:
    """The rows of these answers that agree with the inputs, each once."""
    made = (row(arguments, each) for each in answers)
    return tuple(dict.fromkeys(each for each in made if each is not None))
