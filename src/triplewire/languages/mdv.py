"""MDV rules (MDV paper, section 2.3; semantics, section 3): read into typed values, from which the tree is made.

rule = parse_rule("search Server s, Rack r register s where s.rack? = r and r.row > 3", context)
rule.variables     {"s": IRI(".../Server"), "r": IRI(".../Rack")}
rule.registered    "s"
rule.tests         (Test("=", Path("s", (Step(IRI(".../rack"), True),)), Path("r")), Test(">", ...))
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from itertools import chain, product
from math import prod
from typing import TypeAlias

from triplewire.errors import LimitError, SubscriptionError
from triplewire.ir import nodes as ir
from triplewire.ir.subscription import Subscription
from triplewire.ir.walk import rewrite, walk
from triplewire.languages.context import Context, Parsed
from triplewire.languages.grammar.bare import (
    IRIS,
    STRINGS,
    WORD,
    BareTokens,
    NamesInForce,
    bounded,
    namespaced,
)
from triplewire.languages.grammar.conditions import FLIPPED
from triplewire.languages.grammar.tokens import COMPARISONS, Token, line_and_column, number, string_value
from triplewire.model.namespaces import RSS, label_iri
from triplewire.model.terms import IRI, RDF_TYPE, Literal, made_iri

__all__ = ["Path", "Rule", "Searched", "Side", "Step", "Test", "parse", "parse_rule"]

CONTAINS, EXISTS = "contains", "exists"


@dataclass(frozen=True, slots=True)
class Searched:
    """A variable of the search clause, and what it stands for: the instances of a class, or what another rule
    registers. `offset`: where the class or the name of the rule begins in the text, in characters from 0."""

    variable: str
    meaning: IRI | Subscription
    offset: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class Step:
    """A property that a path goes on by. `any_element`: is `?` written behind it? It changes no answer."""

    property: IRI
    any_element: bool = False


@dataclass(frozen=True, slots=True)
class Path:
    """A variable of the search clause and the steps that lead on from it; without steps, the resource itself."""

    variable: str
    steps: tuple[Step, ...] = ()
    offset: int = field(default=0, compare=False)


Side: TypeAlias = Path | IRI | Literal


@dataclass(frozen=True, slots=True)
class Test:
    """A comparison; one of its sides at least is a path. `op` is one of = != < <= > >= contains, with `not` already
    worked in; `negated` is for contains, which has no opposite, and for "exists": has the path on the left any value?
    That has no right side. `offset`: where its left side begins."""

    op: str
    left: Side
    right: Side | None
    negated: bool = False
    offset: int = field(default=0, compare=False)

    @property
    def paths(self) -> tuple[Path, ...]:
        """The sides that are paths."""
        return tuple(side for side in (self.left, self.right) if isinstance(side, Path))


@dataclass(frozen=True)
class Rule:
    """A rule. `searched` is the search clause in its order, `registered` the variable whose resources the rule gives,
    one of that clause. `branches` is the condition in disjunctive normal form: the rule holds where all tests of one
    branch do; one branch without tests stands for no condition. `warnings` are for the author."""

    text: str
    searched: tuple[Searched, ...]
    registered: str
    branches: tuple[tuple[Test, ...], ...] = ((),)
    warnings: tuple[str, ...] = ()

    @property
    def variables(self) -> dict[str, IRI | Subscription]:
        """The variables of the search clause and what each stands for: a class, or another rule."""
        return {searched.variable: searched.meaning for searched in self.searched}

    @property
    def tests(self) -> tuple[Test, ...]:
        """The tests of all branches, each once, in the order of the branches."""
        return tuple(dict.fromkeys(chain.from_iterable(self.branches)))

    @property
    def paths(self) -> tuple[Path, ...]:
        """The paths of all tests, each once, in the order of these."""
        return tuple(dict.fromkeys(path for test in self.tests for path in test.paths))

    def place(self, part: Searched | Test | Path) -> tuple[int, int]:
        """Line and column of a part of this rule in its text, both from 1."""
        return line_and_column(self.text, part.offset)


# --- from a rule to its tree -----------------------------------------------------------------------------------------

Place: TypeAlias = str | int
"""Where paths with the same steps from the same variable meet: the variable's name, or a number."""


def _searched(rule: Rule, context: Context) -> tuple[ir.Where, ...]:
    """What the search clause asks: classes as types, rules as their own conditions."""
    limit, patterns = context.settings.max_patterns, 0
    parts: list[ir.Where] = []
    for place, (name, meaning) in enumerate(rule.variables.items(), 1):
        if isinstance(meaning, IRI):
            parts.append(ir.Pattern(ir.Variable(name), RDF_TYPE, meaning))
        else:
            patterns += sum(isinstance(node, ir.Pattern) for node in walk(meaning.where)) - 1
            names = {ir.Variable(meaning.select[0]): ir.Variable(name)}  # its other variables become hidden ones
            for node in walk(meaning.where):
                if isinstance(node, ir.Variable):
                    names.setdefault(node, ir.Variable(f".{place}.{len(names)}"))
            where = rewrite(meaning.where, (ir.Variable,), names.__getitem__)
            parts += where.parts if isinstance(where, ir.And) else (where,)
        patterns += 1
        if patterns > limit:
            what = f"the rule and those that it names have more than {limit} patterns"
            raise LimitError(what, source=context.source, remedy="raise max_patterns")
    return tuple(parts)


class _Branch:
    """Makes one branch, a conjunction of comparisons."""

    def __init__(self, registered: str) -> None:
        self._registered = registered
        self._places: dict[tuple[Place, IRI], Place] = {}  # where a step leads from a place
        self._middle: set[Place] = set()  # places that some path goes on from
        self._shared: dict[Place, ir.Variable] = {}  # the resources there
        self._patterns: list[ir.Pattern] = []
        self._count = 0  # hidden variables made
        self._same: dict[ir.Variable, ir.Variable] = {}  # a variable and another that is the same

    def compile(self, searched: tuple[ir.Where, ...], tests: tuple[Test, ...]) -> ir.And:
        """One branch: what the search clause asks, then the paths, then the conditions."""
        for path in chain.from_iterable(test.paths for test in tests):
            place: Place = path.variable
            for position, step in enumerate(path.steps):
                if position:
                    self._middle.add(place)
                place = self._places.setdefault((place, step.property), len(self._places))
        stated = [test for test in tests if not (test.op == EXISTS and test.negated)]
        filters = [condition for test in stated if (condition := self._condition(test)) is not None]
        # last, when it is known which resources other paths go on from
        absent = [self._absent(test.left) for test in tests if test not in stated and isinstance(test.left, Path)]
        parts: list[ir.Where] = [*searched, *self._patterns, *filters, *absent]
        if self._same:
            names = {variable: self._root(variable) for variable in self._same}
            parts = [rewrite(part, (ir.Variable,), lambda variable: names.get(variable, variable)) for part in parts]
        return ir.And(tuple(dict.fromkeys(parts)))

    def _condition(self, test: Test) -> ir.Filter | None:
        if test.op == "=" and isinstance(test.left, Path) and isinstance(test.right, Path):
            path, resource = (test.left, test.right) if test.left.steps else (test.right, test.left)
            if not resource.steps:
                ends = self._end(path, ir.Variable(resource.variable)), ir.Variable(resource.variable)
                # of two variables that are one, the registered one stays, else one of the search clause
                representative, other = sorted(
                    map(self._root, ends), key=lambda v: (v.name != self._registered, v.hidden)
                )
                if representative != other:
                    self._same[other] = representative
                return None
        left = self._end(test.left) if isinstance(test.left, Path) else test.left
        if test.right is None:
            return None  # the pattern says it
        right = self._end(test.right) if isinstance(test.right, Path) else test.right
        if test.op == CONTAINS:
            return ir.Filter(_contains(left, right, test.negated))
        if isinstance(left, ir.Variable):
            return ir.Filter(ir.Compare(test.op, left, right, ir.Coercion.LENIENT))
        return ir.Filter(ir.Compare(FLIPPED[test.op], right, left, ir.Coercion.LENIENT))

    def _end(self, path: Path, end: ir.Variable | None = None) -> ir.Variable:
        """The variable at the end of the path: the shared one, else `end`, else a new one."""
        resource = ir.Variable(path.variable)
        place: Place = path.variable
        for step in path.steps:
            place = self._places[place, step.property]
            following = self._shared.get(place)
            if following is None:
                if end is not None and place not in self._middle:
                    following = end
                else:
                    self._count += 1
                    following = ir.Variable(f".{self._count}")
                self._patterns.append(ir.Pattern(resource, step.property, following))
                if place in self._middle:
                    self._shared[place] = following
            resource = following
        return resource

    def _absent(self, path: Path) -> ir.Not:
        """No way along the path; from the resource that other paths go on from, where they share a beginning."""
        place: Place = path.variable
        resource = ir.Variable(path.variable)
        patterns: list[ir.Where] = []
        for position, step in enumerate(path.steps, 1):
            place = self._places[place, step.property]
            if not patterns and place in self._shared and position < len(path.steps):
                resource = self._shared[place]
                continue
            self._count += 1
            following = ir.Variable(f".{self._count}")
            patterns.append(ir.Pattern(resource, step.property, following))
            resource = following
        return ir.Not(ir.And(tuple(patterns)))

    def _root(self, variable: ir.Variable) -> ir.Variable:
        while variable in self._same:
            variable = self._same[variable]
        return variable


def _contains(left: ir.Variable | IRI | Literal, right: ir.Variable | IRI | Literal, negated: bool) -> ir.Expression:
    if isinstance(left, ir.Variable) and isinstance(right, Literal):
        return ir.TextTest(ir.TextRelation.CONTAINS, left, right.lexical, negated)
    literals = [ir.Function("ISLITERAL", (side,)) for side in (left, right) if isinstance(side, ir.Variable)]
    texts: list[ir.Expression] = [  # a constant is read by its text, quoted or not
        Literal(side.lexical) if isinstance(side, Literal) else ir.Function("STR", (side,)) for side in (left, right)
    ]
    contains = ir.Function("CONTAINS", tuple(texts))
    return ir.AllOf((*literals, ir.Negate(contains) if negated else contains))


# --- from a text to a rule -------------------------------------------------------------------------------------------

KEYWORDS = frozenset({"SEARCH", "REGISTER", "WHERE", "AND", "OR", "NOT", CONTAINS.upper()})
_NEGATED = {"=": "!=", "!=": "=", "<": ">=", ">=": "<", ">": "<=", "<=": ">", CONTAINS: CONTAINS}

_PATTERN = re.compile(
    rf"""
      (?P<skip>\s++|--[^\n]*+)
    | {IRIS}
    | {STRINGS}
    | (?P<name>(?:{WORD})?+:(?:[\w%]++(?:-[\w%]++)*+)?+)
    | (?P<word>{WORD})
    | (?P<number>(?:[0-9]++(?:\.[0-9]++)?+|(?<![\w>?])\.[0-9]++)(?:[eE][+-]?[0-9]++)?+)
    | (?P<symbol>!=|<=|>=|[.,()?=<>+-])
    | (?P<other>.)
    """,
    re.VERBOSE | re.DOTALL,
)

Branches: TypeAlias = list[list[Test]]
"""A condition in disjunctive normal form."""


def parse(text: str, context: Context) -> Parsed:
    """Compile an MDV rule. Raises `LanguageError`, and `LimitError` past `max_branches` or `max_patterns`."""
    with bounded(context):
        rule = _Parser(text, context).rule()
        searched = _searched(rule, context)
        branches = tuple(_Branch(rule.registered).compile(searched, tests) for tests in rule.branches)
        where = branches[0] if len(branches) == 1 else ir.Or(branches)
        return Parsed((rule.registered,), where, warnings=rule.warnings)


def parse_rule(text: str, context: Context | None = None) -> Rule:
    """What an MDV rule says. `context` has what comes from outside the text: prefixes, base, other rules, limits.
    Raises `LanguageError` with line and column, and `LimitError` past `max_branches`."""
    context = Context() if context is None else context
    with bounded(context):
        return _Parser(text, context).rule()


def _behind_a_side(previous: Token) -> bool:
    """Can `<` only be a comparison behind this token?"""
    if previous.kind == "word":
        return previous.text.upper() not in KEYWORDS
    if previous.kind == "name":
        return not previous.text.endswith(":")  # a prefix that is being declared
    return previous.kind in ("string", "number", "iri") or previous.text == "?"


class _Parser:
    def __init__(self, text: str, context: Context) -> None:
        self._context = context
        self._tokens = BareTokens(text, context, _PATTERN, _behind_a_side)
        self._names = NamesInForce(self._tokens)
        self._searched: dict[str, Searched] = {}  # by variable
        self._guessed: dict[str, None] = {}  # bare names without a vocabulary

    def rule(self) -> Rule:
        tokens = self._tokens
        self._names.prologue()
        tokens.expect("SEARCH")
        tokens.conjuncts(self._class, ",")
        tokens.expect("REGISTER")
        registered = self._search_variable().text
        where = tokens.accept("WHERE")
        branches: Branches = self._or(negated=False) if where is not None else [[]]
        if where is not None:
            tokens.note(where.offset)
        tokens.rest_is_empty()
        searched = tuple(self._searched.values())
        warning = "without PREFIX : <...> or a base, these names are read as terms of RSS 1.0: "
        warnings = (warning + ", ".join(self._guessed),) if self._guessed else ()
        return Rule(tokens.text, searched, registered, tuple(map(tuple, branches)), warnings)

    def _class(self) -> None:
        tokens = self._tokens
        expected = "a class or the name of a rule"
        token = tokens.accept_kind("word", "name", "iri", "number") or tokens.unexpected(expected)
        name = token.text[1:-1] if token.kind == "iri" else token.text
        try:
            rule = self._context.rules.get(name) if name != self._context.source else None
        except SubscriptionError as error:
            tokens.fail(token, error.what, error.remedy)
        is_rule = rule is not None and rule.language == "mdv"
        if not is_rule and token.kind == "number":
            tokens.fail(token, f"found {token}, expected {expected}")
        meaning = rule if rule is not None and is_rule else self._iri_of(token)
        variable = tokens.peek()
        if variable.kind != "word" or variable.text.upper() in KEYWORDS:
            tokens.unexpected("a variable")
        if variable.text in self._searched:
            tokens.fail(variable, f"the variable {variable.text!r} is taken", "give each class a variable of its own")
        self._searched[tokens.next().text] = Searched(variable.text, meaning, token.offset)

    def _search_variable(self) -> Token:
        token = self._tokens.expect_kind("word", "a variable of the search clause")
        if token.text not in self._searched:
            known = ", ".join(self._searched)
            self._tokens.fail(token, f"the search clause has no variable {token.text!r}", f"it has: {known}")
        return token

    def _iri_of(self, token: Token) -> IRI:
        """The IRI of a class or step, which may be without prefix."""
        if token.kind != "word":
            return self._names.iri_of(token)
        text = token.text
        if self._names.default:
            return made_iri(label_iri(text, self._names.default))
        if self._names.base:
            return made_iri(namespaced(text, self._names.base))
        self._guessed[text] = None
        return made_iri(label_iri(text, RSS))

    def _or(self, negated: bool) -> Branches:
        with self._tokens.nested():
            operands = self._tokens.separated(lambda: self._and(negated), "OR")
            return self._conjunction(operands) if negated else self._disjunction(operands)

    def _and(self, negated: bool) -> Branches:
        operands = self._tokens.conjuncts(lambda: self._not(negated), "AND")
        return self._disjunction(operands) if negated else self._conjunction(operands)

    def _not(self, negated: bool) -> Branches:
        while self._tokens.accept("NOT"):
            negated = not negated
        if self._tokens.accept("("):
            inner = self._or(negated)
            self._tokens.expect(")")
            return inner
        return [[self._comparison(negated)]]

    def _disjunction(self, operands: list[Branches]) -> Branches:
        self._check_count(sum(map(len, operands)))
        return list(chain.from_iterable(operands))

    def _conjunction(self, operands: list[Branches]) -> Branches:
        self._check_count(prod(map(len, operands)))
        single = list(chain.from_iterable(branches[0] for branches in operands if len(branches) == 1))
        several = [branches for branches in operands if len(branches) > 1]
        return [single + list(chain.from_iterable(choice)) for choice in product(*several)]

    def _check_count(self, count: int) -> None:
        limit = self._context.settings.max_branches
        if count > limit:
            what = f"the condition has more than {limit} branches in disjunctive normal form"
            remedy = "split it into several rules, or raise max_branches"
            raise LimitError(what, source=self._context.source, remedy=remedy)

    def _comparison(self, negated: bool) -> Test:
        tokens, first = self._tokens, self._tokens.peek()
        if tokens.at(EXISTS.upper()) and first.text not in self._searched:
            tokens.next()
            path = self._side()
            if not (isinstance(path, Path) and path.steps):
                tokens.fail(first, "exists asks for a property", "write exists and a path, such as c.p")
            return Test(EXISTS, path, None, negated, first.offset)
        left = self._side()
        expected = f"a comparison ({' '.join(COMPARISONS)} {CONTAINS})"
        operator = tokens.accept(*COMPARISONS, CONTAINS.upper()) or tokens.unexpected(expected)
        right = self._side()
        if not isinstance(left, Path) and not isinstance(right, Path):
            tokens.fail(first, "this compares two constants", "begin a path with a variable of the search clause")
        op = operator.text.lower()
        if op == CONTAINS and (isinstance(left, IRI) or isinstance(right, IRI)):
            tokens.fail(operator, "contains compares text, not an IRI", "quote the text")
        return Test(_NEGATED[op] if negated else op, left, right, negated and op == CONTAINS, first.offset)

    def _side(self) -> Side:
        tokens = self._tokens
        token = tokens.peek()
        if tokens.accept_kind("string"):
            return Literal(string_value(tokens, token))
        if tokens.accept_kind("iri", "name"):
            return self._names.iri_of(token)
        if tokens.accept_kind("number"):
            return number(token.text)
        if token.text in ("+", "-") and tokens.peek(1).kind == "number":
            tokens.next()
            return number(token.text + tokens.next().text)
        if token.kind != "word" or token.text.upper() in KEYWORDS:
            tokens.unexpected("a path or a constant")
        if token.text not in self._searched and tokens.peek(1).text != ".":
            known = ", ".join(self._searched)
            tokens.fail(token, f"found {token}, expected a path or a constant", f"variables: {known}; quote a text")
        variable = self._search_variable()
        steps: list[Step] = []
        while tokens.accept("."):
            step = tokens.accept_kind("word", "name", "iri") or tokens.unexpected("a step of the path")
            # `?`, any element: without a schema every step means that
            steps.append(Step(self._iri_of(step), tokens.accept("?") is not None))
        return Path(variable.text, tuple(steps), variable.offset)
