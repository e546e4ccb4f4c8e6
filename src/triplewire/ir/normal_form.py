"""Subscriptions in disjunctive normal form: clauses of triple patterns and tests on single nodes.

A clause is a conjunction. A subscription needs at least one of its clauses. The index (`triplewire.select`) finds
clauses whose parts are there; where `exact` holds, that is all there is to the subscription, else
`triplewire.ir.evaluation.evaluate` decides. A call of an operator may be true: it adds no clause and takes none away.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import prod
from typing import NamedTuple, TypeAlias, TypeVar

from triplewire.ir import nodes as ir
from triplewire.ir.evaluation.unknown import CallKey
from triplewire.ir.subscription import Subscription
from triplewire.ir.values.regexes import PLAIN, needed_texts
from triplewire.ir.walk import calls_in, rewrite, walk
from triplewire.model.origins import FROM_SOURCE
from triplewire.model.terms import IRI, XSD_STRING, Literal

# --- conditions: the tests on single nodes that they imply -----------------------------------------------------------

Test: TypeAlias = ir.Expression
"""A condition on one node: an expression over `X`, true of the node, or a bare `Label` that the node answers to."""

X = ir.Variable("x")
Tests: TypeAlias = tuple[tuple[str, Test], ...]
Alternatives: TypeAlias = list[Tests]

T = TypeVar("T")
_NOTHING: Alternatives = [()]


class Necessary:
    """The necessary tests of conditions over variables that are certainly bound.

    `most` limits the alternatives. `exact` becomes false when a test had to be left out."""

    def __init__(self, bound: frozenset[str], most: int) -> None:
        self.bound = bound
        self.most = most
        self.exact = True

    def of(self, condition: ir.Expression) -> Alternatives:
        """The alternatives of a condition: where it is true, all tests of at least one of them hold.

        Where `exact` stays true, the reverse holds, too."""
        if type(condition) is ir.FullText:
            name = condition.variable.name
            if name not in self.bound:
                return self._nothing()
            before = self.exact
            parts = self._text(condition.expression)
            if self.exact is not before:  # what was left out is in the whole
                self.exact = before
                parts = [(*needed, condition.expression) for needed in parts]
            return [tuple([(name, ir.FullText(X, part)) for part in dict.fromkeys(needed)]) for needed in parts]
        if type(condition) is ir.AllOf:
            return _product([self.of(part) for part in condition.conditions], self)
        if type(condition) is ir.Negate:
            inner = condition.condition
            if type(inner) is ir.Negate:
                return self.of(inner.condition)
            if type(inner) is ir.AllOf or type(inner) is ir.AnyOf:
                opposite = ir.AnyOf if type(inner) is ir.AllOf else ir.AllOf
                return self.of(opposite(tuple([ir.Negate(part) for part in inner.conditions])))
        if type(condition) is ir.AnyOf:
            return self._any_of(condition)
        return self._single(condition)

    def _nothing(self) -> Alternatives:
        self.exact = False
        return _NOTHING

    def _single(self, condition: ir.Expression) -> Alternatives:
        """A condition that is tested as a whole, if it is about one bound variable."""
        names = variables(condition)
        if names is None or len(names) != 1:
            return self._nothing()
        (name,) = names
        if name not in self.bound:
            return self._nothing()
        test = over_x(condition)
        easier = _texts_in_place_of(test)
        if not easier or easier == (test,) or (isinstance(test, ir.AnyOf) and easier == test.conditions):
            return [((name, test),)]  # it can be looked up itself, or nothing before it
        return [((name, easier[0] if len(easier) == 1 else ir.AnyOf(easier)), (name, test))]

    def _any_of(self, condition: ir.AnyOf) -> Alternatives:
        names = variables(condition)
        single = names is not None and len(names) == 1
        if single and (all(map(_is_key, condition.conditions)) or not all(map(_narrows, condition.conditions))):
            return self._single(condition)
        before = self.exact
        alternatives = [tests for part in condition.conditions for tests in self.of(part)]
        if len(alternatives) > self.most and single:
            self.exact = before
            return self._single(condition)
        if () in alternatives:
            return self._nothing()
        if len(alternatives) > self.most:
            self.exact = False
            return [common(alternatives)]
        return alternatives

    def _text(self, expression: ir.TextExpression) -> list[tuple[ir.TextExpression, ...]]:
        """The same for a text: parts that it must satisfy."""
        if isinstance(expression, ir.TextNot) or _is_of_words(expression):
            return [(expression,)]
        if isinstance(expression, ir.TextAnd):
            return _product([self._text(operand) for operand in expression.operands], self)
        if isinstance(expression, ir.TextOr):
            words = tuple([operand for operand in expression.operands if isinstance(operand, ir.Word | ir.Prefix)])
            others = [operand for operand in expression.operands if not isinstance(operand, ir.Word | ir.Prefix)]
            alternatives: list[tuple[ir.TextExpression, ...]] = [(ir.TextOr(words),)] if words else []
            alternatives += [parts for operand in others for parts in self._text(operand)]
            return alternatives if len(alternatives) <= self.most else [(expression,)]
        return [(*_words(expression), expression)]


def _words(expression: ir.TextExpression) -> list[ir.TextExpression]:
    """The words without which a phrase or NEAR occurs nowhere."""
    if isinstance(expression, ir.Phrase):
        return list(expression.items)
    if isinstance(expression, ir.Near):
        return [word for operand in expression.operands for word in _words(operand)]
    return [expression] if _is_of_words(expression) else []


def common(alternatives: Iterable[Sequence[T]]) -> tuple[T, ...]:
    """What is in all of them, in the order of the first."""
    first, *others = alternatives
    parts_of_others = [set(other) for other in others]
    return tuple([part for part in dict.fromkeys(first) if all(part in other for other in parts_of_others)])


def _product(factors: list[list[tuple[T, ...]]], necessary: Necessary) -> list[tuple[T, ...]]:
    """All combinations. A factor that would make too many is reduced to the parts that its members have in common."""
    combinations: list[tuple[T, ...]] = [()]
    for factor in sorted(factors, key=len):
        if len(combinations) * len(factor) > necessary.most:
            necessary.exact = False
            factor = [common(factor)]
        combinations = [a + b for a in combinations for b in factor]
    return combinations


def variables(expression: ir.Expression) -> frozenset[str] | None:
    """The variables of an expression; None where its value depends on more than these."""
    if type(expression) is ir.Compare:  # the frequent one
        left, right = expression.left, expression.right
        if type(left) is ir.Variable and isinstance(right, IRI | Literal | ir.Label):
            return frozenset((left.name,))
    names = set()
    for node in walk(expression):
        if isinstance(node, ir.Variable):
            names.add(node.name)
        elif isinstance(node, ir.Exists | ir.Holds) or (isinstance(node, ir.Function) and node.name == "NOW"):
            return None
    return frozenset(names)


def over_x(expression: ir.Expression) -> Test:
    """An expression of one variable, over `X`."""
    if type(expression) is ir.Compare and type(expression.left) is ir.Variable:
        right = expression.right
        if isinstance(right, IRI | Literal | ir.Label):
            return ir.Compare(expression.op, X, right, expression.coercion)
    return rewrite(expression, (ir.Variable,), lambda _: X)


def _texts_in_place_of(test: Test) -> tuple[Test, ...]:
    """Tests that can be looked up, of which one holds wherever this one does; none where they are not known. An index
    looks for texts before a regular expression is asked, so that few nodes are left."""
    match test:
        case ir.AnyOf(conditions):
            parts = [_texts_in_place_of(part) for part in conditions]
            return tuple(dict.fromkeys([text for part in parts for text in part])) if all(parts) else ()
        case ir.TextTest(ir.TextRelation.REGEX, operand, pattern, False) if not PLAIN.fullmatch(pattern):
            return tuple([ir.TextTest(ir.TextRelation.CONTAINS, operand, text) for text in needed_texts(pattern, "")])
        case ir.Function("REGEX", (operand, Literal(pattern, datatype), *more)) if datatype == XSD_STRING:
            stated = more[0] if more else Literal("")
            if not isinstance(stated, Literal):  # of computed flags nothing is known
                return ()
            flags = stated.lexical
            if operand not in _OPERANDS and ("i" in flags or operand not in _IN_A_CASE):
                return ()
            if PLAIN.fullmatch(pattern) and (flags == "" or (flags == "i" and pattern.isascii())):
                return (test,)
            texts = [Literal(text) for text in needed_texts(pattern, flags)]
            if "i" in flags:
                return tuple([ir.Function("REGEX", (operand, text, Literal("i"))) for text in texts])
            return tuple([ir.Function("CONTAINS", (operand, text)) for text in texts])
    is_regex = isinstance(test, ir.TextTest) and not test.negated  # of a plain text, as others are dealt with
    return (test,) if is_regex or (_is_key(test) and _is_of_the_node(test)) else ()


def _is_of_the_node(test: Test) -> bool:
    """Does a test that is a key look at the node, not at what is computed of it?"""
    match test:
        case ir.Function(_, arguments):
            return any(argument in _OPERANDS or argument in _IN_A_CASE for argument in arguments)
        case ir.Compare(_, left, right):
            return X in (left, right)
        case ir.In(operand):
            return operand == X
    return True


_OPERANDS = (X, ir.Function("STR", (X,)))
_IN_A_CASE = tuple([ir.Function(case, (operand,)) for case in ("LCASE", "UCASE") for operand in _OPERANDS])

_LOOKED_UP = frozenset(("CONTAINS", "STRSTARTS", "STRENDS", "SAMETERM", "LANGMATCHES"))


def _is_key(test: ir.Expression) -> bool:
    """Does the text of a node decide, by a look-up? A disjunction of such tests is one more of them."""
    if isinstance(test, ir.AnyOf):
        return all(map(_is_key, test.conditions))
    if isinstance(test, ir.FullText):
        return _is_of_words(test.expression)
    if isinstance(test, ir.TextTest):
        return not test.negated and test.relation is not ir.TextRelation.REGEX
    if isinstance(test, ir.In):
        return not test.negated
    if isinstance(test, ir.Function):
        return test.name in _LOOKED_UP
    return isinstance(test, ir.InstanceOf) or (isinstance(test, ir.Compare) and test.op == "=")


def _is_of_words(expression: ir.TextExpression) -> bool:
    """Is it a word or prefix, or are they alternatives?"""
    operands = expression.operands if isinstance(expression, ir.TextOr) else (expression,)
    return all(isinstance(operand, ir.Word | ir.Prefix) for operand in operands)


def _narrows(test: ir.Expression) -> bool:
    """Can an index find the nodes of which it holds?"""
    if isinstance(test, ir.AnyOf):
        return all(map(_narrows, test.conditions))
    if isinstance(test, ir.AllOf):
        return any(map(_narrows, test.conditions))
    if isinstance(test, ir.FullText):
        return not isinstance(test.expression, ir.TextNot)
    if isinstance(test, ir.Compare):
        return test.op != "!="
    return _is_key(test)


# --- calls at the top of a query: all have to hold, whatever else it asks for ----------------------------------------


def split(where: ir.Where) -> tuple[tuple[CallKey, ...], ir.Where]:
    """The calls with constants only that have to hold, each once, and the rest. There are none where the rest has
    calls, too: what those are asked with may depend on the solutions."""
    calls: dict[CallKey, None] = {}
    rest: list[ir.Where] = []
    for part in where.parts if isinstance(where, ir.And) else (where,):
        if isinstance(part, ir.Call) and _is_constant(part):
            calls[CallKey(part.operator, part.arguments)] = None  # type: ignore[arg-type]  # no variables
        elif isinstance(part, ir.Filter):
            others = []
            for condition in ir.conjuncts(part.condition):
                if isinstance(condition, ir.Holds) and _is_constant(condition.call):
                    calls[CallKey(condition.call.operator, condition.call.arguments)] = None  # type: ignore[arg-type]
                else:
                    others.append(condition)
            if others:
                rest.append(ir.Filter(others[0] if len(others) == 1 else ir.AllOf(tuple(others))))
        else:
            rest.append(part)
    if not calls or any(True for part in rest for _ in calls_in(part)):
        return (), where
    return tuple(calls), ir.And(tuple(rest))


def _is_constant(call: ir.Call) -> bool:
    return not any(isinstance(argument, ir.Variable) for argument in call.arguments)


# --- clauses ---------------------------------------------------------------------------------------------------------

Position: TypeAlias = IRI | Literal | ir.Variable


@dataclass(frozen=True, slots=True)
class Clause:
    """Patterns that must have a common solution, in which each test holds of the value of its variable.

    Wildcards and labels are variables of their own here (their names start with "*"); every tested variable stands in
    a pattern.
    """

    patterns: tuple[tuple[Position, Position, Position], ...]
    tests: tuple[tuple[str, Test], ...]


@dataclass(frozen=True, slots=True)
class NormalForm:
    """The clauses of a subscription. `exact`: its solutions are those of its clauses, no more and no fewer. `calls`:
    operators decide in the end. `asked`: the calls that have to hold, where those and the clauses are all there is to
    it; where calls are all there is to it, there is no clause. A FROM without other calls is in `asked` alone."""

    clauses: tuple[Clause, ...]
    exact: bool
    calls: bool = False
    asked: tuple[CallKey, ...] = ()


def normal_form(subscription: Subscription, *, most: int) -> NormalForm:
    """The clauses of the subscription, at most `most` of them: past that, they keep what they have in common."""
    calls = any(True for _ in calls_in(subscription.where))
    normal, where = _Normal(max(most, 1)), subscription.where
    asked: tuple[CallKey, ...] = ()
    try:
        if calls:
            asked, where = split(where)
        if asked and isinstance(where, ir.And) and not where.parts:
            return NormalForm((), False, True, asked)
        branches = normal.group(where)
    except RecursionError:  # only where max_query_depth was raised past what Python can hold
        return NormalForm((Clause((), ()),), False, calls)
    clauses = _distinct([_clause(branch) for branch in branches])
    # a clause without patterns binds nothing, so there is nothing to look for
    exact = normal.exact and all(clause.patterns for clause in clauses)
    # of a FROM alone, the publications are known before anything else is asked
    calls = calls and not (exact and len(asked) == 1 and asked[0].operator == FROM_SOURCE)
    return NormalForm(clauses, exact and not calls, calls, asked if exact else ())


class _Branch(NamedTuple):
    """A conjunction. `bound`: the variables that each of its solutions binds. `given`: values that inline data has."""

    patterns: tuple[ir.Pattern, ...]
    bound: frozenset[str]
    tests: Tests
    given: tuple[tuple[str, IRI | Literal], ...] = ()


_EMPTY = _Branch((), frozenset(), ())
_MOST_ROWS = 16  # of inline data that become branches


def _clause(branch: _Branch) -> Clause:
    given = dict(branch.given)
    tests = [test for test in branch.tests if test[0] not in given] if given else list(branch.tests)
    fresh = 0

    def position(term: ir.PatternTerm) -> Position:
        nonlocal fresh
        kind = type(term)
        if kind is ir.Variable:
            return given.get(term.name, term) if given else term  # type: ignore[union-attr,return-value,arg-type]  # `kind` says what it is
        if kind is IRI or kind is Literal:
            return term  # type: ignore[return-value]  # `kind` says what it is
        fresh += 1
        variable = ir.Variable(f"*{fresh}")
        if kind is ir.Label:
            tests.append((variable.name, term))  # type: ignore[arg-type]  # a Label, by its kind
        return variable

    distinct = _distinct(branch.patterns)  # before each wildcard becomes a variable of its own
    patterns = [(position(p.subject), position(p.predicate), position(p.object)) for p in distinct]
    return Clause(_distinct(patterns) if given else tuple(patterns), _distinct(tests))


def _distinct(parts: Sequence[T]) -> tuple[T, ...]:
    return tuple(dict.fromkeys(parts)) if len(parts) > 1 else tuple(parts)


def _joined(a: _Branch, b: _Branch) -> _Branch | None:
    """Both; None where no solution can be one of both."""
    given = a.given
    if b.given:
        values = dict(given)
        if any(values.setdefault(name, term) != term for name, term in b.given):
            return None
        given = tuple(values.items())
    return _Branch(a.patterns + b.patterns, a.bound | b.bound, a.tests + b.tests, given)


def _common(branches: list[_Branch]) -> _Branch:
    """What all branches ask for."""
    patterns = common([branch.patterns for branch in branches])
    bound = frozenset.intersection(*[branch.bound for branch in branches])
    named = _variables(patterns)
    tests = [test for test in common([branch.tests for branch in branches]) if test[0] in named]
    return _Branch(patterns, bound & named, tuple(tests))


def _variables(patterns: Iterable[ir.Pattern]) -> frozenset[str]:
    return frozenset([t.name for p in patterns for t in (p.subject, p.predicate, p.object) if type(t) is ir.Variable])


class _Normal:
    """Builds the disjunctive normal form of one tree; `exact` until something had to be left out."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.exact = True

    def group(self, where: ir.Where) -> list[_Branch]:
        """The branches of a group. Its filters see what the group itself binds, and nothing else."""
        patterns: list[ir.Pattern] = []
        conditions: list[ir.Expression] = []
        factors: list[list[_Branch]] = []
        inline_data: list[ir.Values] = []
        for part in where.parts if isinstance(where, ir.And) else (where,):
            kind = type(part)
            if kind is ir.Pattern:
                patterns.append(part)  # type: ignore[arg-type]  # a Pattern, by its kind
            elif kind is ir.Filter:
                conditions.append(part.condition)  # type: ignore[union-attr]  # a Filter, by its kind
            elif isinstance(part, ir.And):
                factors.append(self.group(part))
            elif isinstance(part, ir.Or):
                branches = [inner for branch in part.branches for inner in self.group(branch)]
                if len(branches) > self.most:
                    self.exact = False
                    branches = [_common(branches)]
                factors.append(branches)
            elif isinstance(part, ir.Values):
                inline_data.append(part)
            else:
                self.exact = False  # it only takes away, or adds to what is there
        bound = _variables(patterns)
        branches = [_Branch(tuple(patterns), bound, ())] if patterns else [_EMPTY]
        for values in inline_data:
            choices = _choices(values, bound)
            if len(values.variables) == len(choices) == 1:
                conditions += choices  # the data say no more than this
                continue
            factors.append(self._values(values))
            conditions += choices if factors[-1] == [_EMPTY] else []
        if factors:
            branches = self._product(branches, factors)
        return self._filtered(branches, conditions) if conditions else branches

    def _product(self, branches: list[_Branch], factors: list[list[_Branch]]) -> list[_Branch]:
        """All combinations; past the limit, of the longest factors only what their branches have in common."""
        while prod(map(len, factors)) > self.most:
            at = max(range(len(factors)), key=lambda i: len(factors[i]))
            factors[at] = [_common(factors[at])]
            self.exact = False
        for factor in factors:
            branches = [both for a in branches for b in factor if (both := _joined(a, b)) is not None]
        return branches

    def _values(self, values: ir.Values) -> list[_Branch]:
        """Each row of short inline data is a branch, in which its values stand for the variables."""
        if not values.rows:
            return []
        self.exact = False
        if len(values.rows) > min(_MOST_ROWS, self.most):
            return [_EMPTY]
        rows = []
        for row in values.rows:
            given = [(v.name, term) for v, term in zip(values.variables, row, strict=True) if term is not None]
            rows.append(_Branch((), frozenset([name for name, _ in given]), (), tuple(given)))
        return rows

    def _filtered(self, branches: list[_Branch], conditions: list[ir.Expression]) -> list[_Branch]:
        for condition in conditions:
            combined: list[_Branch] = []
            of_branches = [self._alternatives(condition, branch.bound, self.most) for branch in branches]
            if sum(map(len, of_branches)) > self.most:
                of_branches = [self._alternatives(condition, branch.bound, 1) for branch in branches]
            for branch, alternatives in zip(branches, of_branches, strict=True):
                combined += [branch._replace(tests=branch.tests + tests) for tests in alternatives]
            branches = combined
        return branches

    def _alternatives(self, condition: ir.Expression, bound: frozenset[str], most: int) -> Alternatives:
        necessary = Necessary(bound, most)
        alternatives = necessary.of(condition)
        self.exact = self.exact and necessary.exact
        return alternatives


def _choices(values: ir.Values, bound: frozenset[str]) -> list[ir.Expression]:
    """What all solutions of inline data satisfy: which terms a variable may be, for each that patterns bind and whose
    column has no UNDEF."""
    conditions: list[ir.Expression] = []
    for variable, *column in zip(values.variables, *values.rows, strict=True) if values.rows else ():
        terms = [term for term in dict.fromkeys(column) if term is not None]
        if variable.name in bound and None not in column:
            conditions.append(ir.AnyOf(tuple([ir.Function("SAMETERM", (variable, term)) for term in terms])))
    return conditions
