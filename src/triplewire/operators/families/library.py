"""What operators on optional libraries share: they say what to install where their library is absent."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cache, partial
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Self

from triplewire.ir.taxonomy import EMPTY, Taxonomy
from triplewire.ir.values.numbers import lenient_number
from triplewire.model.operator import Argument, Parameter, Verdict
from triplewire.model.publication import Publication
from triplewire.model.terms import XSD, Literal, Term
from triplewire.operators import Check, Evaluate, text_of

DOUBLE, INTEGER = XSD + "double", XSD + "integer"
_MOST_DIGITS = 40  # characters of a number

Library = tuple[str, str]
"""The name of a distribution, and that of the module which it installs."""


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
    other_forms: tuple[tuple[Parameter, ...], ...] = ()  # with more or fewer arguments
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


@dataclass(frozen=True)
class TaxonomyOperator(LibraryOperator):
    """An operator that answers by a method of its own, with the taxonomy of the engine in which it is called."""

    taxonomy: Taxonomy = field(default=EMPTY, repr=False)

    def with_taxonomy(self, taxonomy: Taxonomy) -> Self:
        """The same operator over another taxonomy."""
        return replace(self, taxonomy=taxonomy)

    def __getstate__(self) -> Mapping[str, Any]:
        """Without what is made of the taxonomy, for another process."""
        return {entry.name: getattr(self, entry.name) for entry in fields(self)}


def require(extra: str, libraries: Iterable[Library]) -> None:
    """Raises `ValueError` that says what to install where a library is absent. Nothing is imported."""
    for distribution, module in libraries:
        if find_spec(module) is None:
            raise ValueError(
                f"the library {distribution} is not installed; in a copy of the sources: pip install '.[{extra}]'"
            )


@cache
def _installed(distribution: str) -> str:
    try:
        return version(distribution)
    except PackageNotFoundError:
        return "absent"


def data_of_operators() -> list[Path]:
    """The files and folders of the user that operators look into, as the environment names them."""
    variables = ("FREQUENCIES", "ONTOLOGY", "PLACES", "SHAPES")
    return [Path(path) for name in variables if (path := os.environ.get(f"TRIPLEWIRE_{name}"))]


def state_of_file(path: str) -> tuple[int, int]:
    """What is another one when a file has changed: when it was written, and its size. Raises `OSError`."""
    stat = os.stat(path)
    return stat.st_mtime_ns, stat.st_size


# --- arguments -------------------------------------------------------------------------------------------------------


def number_of(argument: Argument, name: str, least: float, most: float) -> float:
    """An argument as a number from `least` to `most`. Raises `ValueError` naming it."""
    text = text_of(argument, name)
    number = lenient_number(text.strip()) if len(text) <= _MOST_DIGITS else None
    if number is None:
        raise ValueError(f"{name} is {text[:_MOST_DIGITS]!r}, which is no number")
    if not least <= number <= most:
        raise ValueError(f"{name} is {text}, but goes from {least:g} to {most:g}")
    return float(number)


def each_constant(arguments: tuple[Argument, ...], *readers: Callable[[Argument], Any]) -> Iterator[Any]:
    """What its reader makes of each constant. Raises what the readers raise."""
    return (reader(a) for a, reader in zip(arguments, readers, strict=True) if a is not None)


def checked(*readers: Callable[[Argument], Any]) -> Check:
    """A check without warnings, which refuses what the reader of a constant refuses. It can travel to a process."""
    return partial(_check, readers)


def _check(readers: tuple[Callable[[Argument], Any], ...], arguments: tuple[Argument, ...]) -> Iterable[str]:
    deque(each_constant(arguments, *readers), maxlen=0)
    return ()


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
    if not (isinstance(argument, Literal) and isinstance(answer, Literal)):
        return False
    number = lenient_number(argument.lexical)
    return number is not None and number == lenient_number(answer.lexical)


def rows(arguments: tuple[Argument, ...], answers: Iterable[tuple[Term, ...]]) -> tuple[tuple[Term, ...], ...]:
    """The rows of these answers that agree with the inputs, each once. Inputs are repeated as they were given."""
    agreeing = (answer for answer in answers if all(map(same_value, arguments, answer)))
    repeated = (
        tuple(term if argument is None else argument for argument, term in zip(arguments, answer, strict=True))
        for answer in agreeing
    )
    return tuple(dict.fromkeys(repeated))
