"""Lists of calls of operator predicates with constants: `holds(3), near(Berlin, 5 km)`. Each call is read once."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import TypeAlias

from triplewire.config import Settings
from triplewire.errors import TriplewireError
from triplewire.ir.evaluation.unknown import CallKey
from triplewire.ir.nodes import And, Call, Variable
from triplewire.ir.subscription import Subscription
from triplewire.languages.templates.template import Environment
from triplewire.model.operator import Operator, warnings_of_call
from triplewire.model.terms import Literal

Parse: TypeAlias = Callable[[str, Environment], Subscription]

LANGUAGE = "predicates"
MOST_CALLS = 1_000_000  # past that all are forgotten
_LEAST_DEPTH = 4  # `max_query_depth` that no list of calls can pass

_CALL = r"[A-Za-z_]\w*+\([\w .,+/-]*+\)"
_LIST = re.compile(rf"{_CALL}(?:, *{_CALL})*+", re.ASCII)
_BETWEEN = re.compile(r"(?<=\)), *")
_EXAMPLES = ("7", "0815")


class CallLists:
    """Finds such texts. `parse` parses one in full. For one thread at a time."""

    def __init__(self, parse: Parse, operators: Mapping[str, Operator], settings: Settings) -> None:
        self._parse = parse
        self._operators = operators
        self._is_on = settings.max_query_depth >= _LEAST_DEPTH
        self._calls: dict[tuple[str, Environment], CallKey | None] = {}
        self._plain: dict[tuple[str, int, Environment], bool] = {}

    def find(self, text: str, environment: Environment) -> tuple[CallKey, ...] | None:
        """The calls that have to hold; None where the text has to be parsed in full."""
        if not self._is_on or _LIST.fullmatch(text) is None:
            return None
        known, calls = self._calls, []
        for written in _BETWEEN.split(text):
            try:
                call = known[written, environment]
            except KeyError:
                if len(known) >= MOST_CALLS:
                    known.clear()
                    self._plain.clear()
                call = known[written, environment] = self._read(written, environment)
            if call is None:
                return None
            calls.append(call)
        return tuple(calls)

    def _read(self, written: str, environment: Environment) -> CallKey | None:
        """A call; None where it is none with constants, or is refused."""
        name, _, rest = written.partition("(")
        arguments = [argument.strip(" ") for argument in rest[:-1].split(",")]
        if all(map(str.isdigit, arguments)) and self._are_plain(name, len(arguments), environment):
            key = CallKey(name, tuple(map(Literal, arguments)))
            try:
                warnings_of_call(self._operators[name], key.arguments)
            except ValueError:
                return None
            return key
        return self._parsed(written, environment)

    def _are_plain(self, name: str, count: int, environment: Environment) -> bool:
        """Does the operator take so many arguments, and are digits plain literals there? The parser looks at digits in
        no other way."""
        known = self._plain.get((name, count, environment))
        if known is None:
            known = name in self._operators and all(
                self._parsed(f"{name}({', '.join([digits] * count)})", environment)
                == CallKey(name, (Literal(digits),) * count)
                for digits in _EXAMPLES
            )
            self._plain[name, count, environment] = known
        return known

    def _parsed(self, written: str, environment: Environment) -> CallKey | None:
        """The call, parsed in full."""
        try:
            subscription = self._parse(written, environment)
        except TriplewireError:
            return None
        match subscription.where:
            case And((Call(name, arguments),)) if not subscription.warnings:
                if not any(isinstance(argument, Variable) for argument in arguments):
                    return CallKey(name, arguments)  # type: ignore[arg-type]  # no variables
        return None
