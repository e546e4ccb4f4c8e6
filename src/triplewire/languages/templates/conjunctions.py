"""Texts that are read part by part: GQL texts as conjunctions of templates, and lists of calls of operator predicates.

`SELECT * WHERE (...) AND (...)` has a template for each tuple.
Graph patterns of many edges seldom differ in their parameters only, but their tuples do, once variables are parameters,
too. A text is split where nothing but ` AND ` stands between two closed parentheses. Such tuples are read one after the
other and know nothing of each other: the patterns of the text are those of the tuples, the filters stand behind them,
and it selects what the tuples bind. A template is trusted as a tuple when the first text with it, parsed in full, is
what its tuples make of it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from triplewire.config import Settings
from triplewire.errors import TriplewireError
from triplewire.ir.evaluation.unknown import CallKey
from triplewire.ir.nodes import And, Call, Variable, Where
from triplewire.ir.normal_form import NormalForm, normal_form
from triplewire.ir.subscription import Subscription
from triplewire.languages.templates.builder import Equal, is_conjunction
from triplewire.languages.templates.template import (
    MARK,
    WITH_VARIABLES,
    Conjunction,
    Environment,
    Parameters,
    ParsedForm,
    Template,
)
from triplewire.model.operator import Operator, warnings_of_call
from triplewire.model.terms import Literal

Parse: TypeAlias = Callable[[str, Environment], Subscription]
TemplateOf: TypeAlias = Callable[[str, Parameters, Environment, "Equal | None"], Template | None]

_HEAD = re.compile(r"(?:[^()\0]*?\s)?(?:SELECT\s+\*\s+)?WHERE\s+(?=\()", re.IGNORECASE)
_LEFT_OVER = re.compile(r"[\"'\\$?]")  # of a string or a variable that is no parameter
_PARENTHESIS = re.compile("[()]")
_AND = " AND "


class Conjunctions:
    """Finds the tuples of texts. `template_of` gives the template of a tuple, `parse` parses in full."""

    def __init__(self, template_of: TemplateOf, parse: Parse, settings: Settings) -> None:
        self._template_of = template_of
        self._parse = parse
        self._settings = settings
        self._trusted: set[Template] = set()
        self._refused: set[Template] = set()

    def clear(self) -> None:
        """Forget all templates."""
        self._trusted.clear()
        self._refused.clear()

    def find(self, text: str, environment: Environment) -> tuple[Conjunction, Parameters] | None:
        """The text as a conjunction; None where it is not known to be one."""
        pieces = WITH_VARIABLES.split(text)
        marked = MARK.join(pieces[::2])
        head = _HEAD.match(marked)
        if head is None:
            return None
        parameters = tuple(pieces[1::2])
        templates: list[Template] = []
        start = 0
        tuple_text = ""
        for piece in marked[head.end() :].split(_AND):
            tuple_text = tuple_text + _AND + piece if tuple_text else piece
            if tuple_text.count("(") > tuple_text.count(")"):
                continue
            end = start + tuple_text.count(MARK)
            template = self._tuple(head[0], tuple_text, parameters[start:end], environment)
            if template is None:
                return None
            templates.append(template)
            start, tuple_text = end, ""
        patterns = sum(len(template.example_form.clauses[0].patterns) for template in templates)
        if tuple_text or patterns > self._settings.max_patterns:
            return None
        conjunction = Conjunction(environment[0], tuple(templates))
        if len(templates) > 1 and not all(map(self._trusted.__contains__, templates)):
            return (conjunction, parameters) if self._trust(conjunction, parameters, text, environment) else None
        return conjunction, parameters

    def _tuple(self, head: str, tuple_text: str, parameters: Parameters, environment: Environment) -> Template | None:
        """The template of a tuple; None where there is none that may stand in a conjunction."""
        names = [parameter if parameter[0] == "?" else number for number, parameter in enumerate(parameters)]
        template = self._template_of(head + tuple_text, parameters, environment, tuple(map(names.index, names)))
        if template is None or template in self._trusted:
            return template
        if template in self._refused or not (_is_closed(tuple_text) and _is_tuple(template)):
            self._refused.add(template)
            return None
        return template

    def _trust(self, conjunction: Conjunction, parameters: Parameters, text: str, environment: Environment) -> bool:
        """Compare the conjunction with the text parsed in full, and trust or refuse its templates from now on."""
        try:
            stated = self._parse(text, environment)
        except TriplewireError:
            return False
        of_tuples = conjunction.subscription(parameters, stated.id, text, dict(environment[2]), environment[1])
        is_same = stated == of_tuples and not stated.warnings
        if is_same and normal_form(stated, most=self._settings.max_branches) == conjunction.normal_form(parameters):
            self._trusted.update(conjunction.templates)
            return True
        self._refused.update([template for template in conjunction.templates if template not in self._trusted])
        return False


def _is_closed(tuple_text: str) -> bool:
    """Is it one pair of parentheses with what is in it, and no string or variable that is no parameter?"""
    if _LEFT_OVER.search(tuple_text) or not tuple_text.endswith(")"):
        return False
    depth = 0
    for parenthesis in _PARENTHESIS.finditer(tuple_text):
        depth += 1 if parenthesis[0] == "(" else -1
        if depth <= 0 and parenthesis.end() < len(tuple_text):
            return False
    return depth == 0


def _is_tuple(template: Template) -> bool:
    """Are its parts those of a conjunction whatever else is in it, and does it select all that they bind?"""
    form = template.example_form
    if template.warnings or template.ask or template.named or not is_conjunction(template.stated, form):
        return False
    terms = [term for pattern in form.clauses[0].patterns for term in pattern]
    names = dict.fromkeys([term.name for term in terms if isinstance(term, Variable)])
    return tuple(names) == template.select and not any(name.startswith("*") for name in names)


# --- lists of calls with constants: `holds(3), near(Berlin, 5 km)` ---------------------------------------------------

LANGUAGE = "predicates"
MOST_CALLS = 1_000_000  # past that all are forgotten
_LEAST_DEPTH = 4  # `max_query_depth` that no list of calls can pass

_CALL = r"[A-Za-z_]\w*+\([\w .,+/-]*+\)"
_LIST = re.compile(rf"{_CALL}(?:, *{_CALL})*+", re.ASCII)
_BETWEEN = re.compile(r"(?<=\)), *")
_EXAMPLES = ("7", "0815")


@dataclass(slots=True, eq=False)  # not frozen, as that takes longer, and there are millions
class CallList(ParsedForm):
    """What is meant by a list of calls with constants."""

    calls: tuple[CallKey, ...]
    language: str = LANGUAGE
    ask: bool = False
    warnings: tuple[str, ...] = ()  # of the text; operators may warn of constants

    def normal_form(self, parameters: Parameters) -> NormalForm:
        """The calls, and no clause."""
        return NormalForm((), exact=False, calls=True, asked=tuple(dict.fromkeys(self.calls)))

    def where(self, parameters: Parameters) -> Where:
        """The calls."""
        return And(tuple([Call(call.operator, call.arguments) for call in self.calls]))  # type: ignore[arg-type]  # no outputs


class CallLists:
    """Finds such texts. `parse` parses one in full. For one thread at a time."""

    def __init__(self, parse: Parse, operators: Mapping[str, Operator], settings: Settings) -> None:
        self._parse = parse
        self._operators = operators
        self._is_on = settings.max_query_depth >= _LEAST_DEPTH
        self._calls: dict[tuple[str, Environment], CallKey | None] = {}
        self._plain: dict[tuple[str, int, Environment], bool] = {}

    def find(self, text: str, environment: Environment) -> CallList | None:
        """What the text means; None where it has to be parsed in full."""
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
        return CallList(tuple(calls))

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
