"""The sentences of an explanation: which triple a pattern matches, which value fails a condition, what comes nearest.

Each function gives lines of text for one solution (a match) or for the partial solutions that reached the part (a
miss). `ExplainedPair` evaluates pieces of the subscription for that; `explanation` chooses the parts.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, islice
from typing import cast

from triplewire.errors import LimitError
from triplewire.ir import nodes
from triplewire.ir.evaluation.evaluate import Answer, CallKey, CallResults, World, evaluate
from triplewire.ir.fulltext import occurrences, satisfies
from triplewire.ir.nodes import And, Call, Expression, Filter, Label, Pattern, PatternTerm, Variable, Where, conjuncts
from triplewire.ir.show import show, show_term
from triplewire.ir.subscription import Subscription
from triplewire.ir.walk import calls_in, walk
from triplewire.model.match import Binding
from triplewire.model.publication import Graph, Publication
from triplewire.model.terms import IRI, RDF_TYPE, Literal, Term, Triple, made_iri

SOLUTIONS = 200  # partial solutions among which the nearest is searched
LINES = 3  # of one part
CHARACTERS = 80  # of one term
VALUE = Variable(".value")  # the variable to which an expression is bound to get its value


@dataclass
class Spent:
    """Steps that the pieces of an explanation have taken, all together."""

    steps: int = 0


@dataclass(frozen=True)
class ExplainedPair:
    """A subscription and a publication, with the taxonomy, operators and limits of the engine. `results` are the calls
    of operators that have been made; no piece makes one of them again. `spent`: all pieces together take at most as
    many steps as the decision of a pair, else each raises `LimitError`."""

    subscription: Subscription
    publication: Publication
    world: World
    results: CallResults = field(default_factory=dict)
    spent: Spent = field(default_factory=Spent)

    def solutions(self, where: Where, limit: int = SOLUTIONS) -> tuple[Binding, ...]:
        """Solutions of a tree, with all its variables, hidden ones too."""
        return self.answer(where, limit).bindings

    def answer(self, where: Where, limit: int = SOLUTIONS) -> Answer:
        """The same, with the failed calls that it depends on."""
        piece = replace(self.subscription, select=variables(where), where=where, ask=False, construct=None)
        most, left = self.world.settings.max_steps, self.world.settings.max_steps - self.spent.steps
        try:
            if left < 1:
                raise LimitError("no steps are left")
            settings = replace(self.world.settings, max_bindings=limit, max_steps=left)
            answer = evaluate(piece, self.publication, replace(self.world, settings=settings), self.results)
        except LimitError:
            self.spent.steps = most
            what, remedy = f"the explanation takes more than {most} steps", "raise max_steps, or connect the patterns"
            raise LimitError(what, source=self.publication.id, remedy=remedy) from None
        self.spent.steps += answer.steps
        return answer

    def extensions(self, solution: Binding, parts: Iterable[Where]) -> tuple[Binding, ...]:
        """The solutions of a group of these parts together with the solution's values."""
        return self.solutions(And((inline_values(solution), *parts)))

    def failed_call(self, solution: Binding, part: Where) -> str:
        """What an operator said that failed when the part was asked with the solution's values; "" where none did."""
        failures = self.answer(And((inline_values(solution), part))).failures
        return failures[0].what if failures else ""

    def truth(self, condition: Expression, solution: Binding) -> bool | None:
        """The condition's effective boolean value; None is an error."""
        if self.extensions(solution, [Filter(condition)]):
            return True
        return False if self.extensions(solution, [Filter(nodes.Negate(condition))]) else None

    def value(self, expression: Expression, solution: Binding) -> Term | None:
        """The expression's value; None if it is an error or unbound."""
        if isinstance(expression, Variable):
            return solution.get(expression.name)
        if isinstance(expression, IRI | Literal):
            return expression
        for extension in self.extensions(solution, [nodes.Bind(VALUE, expression)]):
            return extension.get(VALUE.name)
        return None


def variables(where: object) -> tuple[str, ...]:
    """The names of all variables in a tree, each once."""
    return tuple(dict.fromkeys(node.name for node in walk(where) if isinstance(node, Variable)))


def inline_values(solution: Mapping[str, Term]) -> Where:
    """A solution as a part of a group."""
    # with blank nodes as they are: no text can write such Values, but they join like any other term
    row = cast(tuple[IRI | Literal | None, ...], tuple(solution.values()))
    return nodes.Values(tuple(map(Variable, solution)), (row,))


def cheap_first(parts: tuple[Where, ...], made: Mapping[CallKey, object]) -> tuple[Where, ...]:
    """The parts; behind all others those that call operators and bind nothing: first those with calls that have been
    made, then the others. So a part that is cheap and fails is named without a call."""
    bound = frozenset(name for part in parts if not any(calls_in(part)) for name in variables(part))

    def is_made(call: Call) -> bool:
        if any(isinstance(argument, Variable) for argument in call.arguments):
            return any(key.operator == call.operator for key in made)
        return (call.operator, call.arguments) in made

    def rank(part: Where) -> int:
        calls = list(calls_in(part))
        if not calls or not bound.issuperset(variables(part)):
            return 0
        return 1 if all(map(is_made, calls)) else 2

    return tuple(sorted(parts, key=rank))


def parts_of(where: Where) -> tuple[Where, ...]:
    """The parts of a group, with filters split into their conjuncts. Any other tree is its only part."""
    parts = where.parts if isinstance(where, And) else (where,)
    split = ([Filter(c) for c in conjuncts(part.condition)] if isinstance(part, Filter) else [part] for part in parts)
    return tuple(chain.from_iterable(split))


def in_order(parts: tuple[Where, ...]) -> tuple[Where, ...]:
    """The parts in an order in which each prefix can be evaluated as a group of its own.

    It is the order of the text, except for parts that act on the whole group: a Filter, a Not and a Call come right
    after the last part that shares a variable with them, if that is later than their own place.
    """
    place = {number: (number, 0) for number in range(len(parts))}
    names = [frozenset(variables(part)) for part in parts]
    for rank, kind in ((1, Call), (2, Filter | nodes.Not)):
        settled = [n for n, part in enumerate(parts) if not isinstance(part, Call | Filter | nodes.Not)]
        settled += [n for n, part in enumerate(parts) if rank == 2 and isinstance(part, Call)]
        for number, part in enumerate(parts):
            if isinstance(part, kind):
                shared = [place[n] for n in settled if names[n] & names[number]]
                last = max(shared, default=(number, 0))
                if last > place[number]:
                    place[number] = (last[0], rank)
    return tuple(parts[number] for number in sorted(place, key=lambda n: (place[n], n)))


def term_text(term: Term) -> str:
    """A term, shortened to CHARACTERS."""
    text = show_term(term)
    return text if len(text) <= CHARACTERS else text[: CHARACTERS - 3] + "..."


def triple_text(triple: Triple) -> str:
    """A triple on one line."""
    return " ".join(map(term_text, triple))


def _fixed(term: PatternTerm, solution: Binding) -> Term | None:
    if isinstance(term, Variable):
        return solution.get(term.name)
    return term if isinstance(term, IRI | Literal) else None


def matching(pattern: Pattern, solution: Binding, graph: Graph) -> Iterator[Triple]:
    """The triples that the pattern matches under the solution."""
    terms = (pattern.subject, pattern.predicate, pattern.object)
    for triple in graph.find(*(_fixed(term, solution) for term in terms)):
        values: dict[Variable, Term] = {}

        def fits(term: PatternTerm, value: Term, values: dict[Variable, Term] = values) -> bool:
            if isinstance(term, Variable):
                return values.setdefault(term, value) == value
            if isinstance(term, Label):  # may it stand for the value? Anything else was looked up already
                return value.lexical == term.text if isinstance(value, Literal) else value == made_iri(term.iri or ">")
            return True

        if all(map(fits, terms, triple)):
            yield triple


def nearest_lines(pattern: Pattern, partials: Sequence[Binding], graph: Graph) -> list[str]:
    """What the publication has instead, for the partial solutions that come nearest."""
    best, lines = 5, dict[str, None]()
    for partial in partials:
        distance, line = _instead(pattern, partial, graph)
        if distance < best:
            best, lines = distance, {}
        if distance == best:
            lines[line] = None
    return list(lines)[:LINES]


def _instead(pattern: Pattern, partial: Binding, graph: Graph) -> tuple[int, str]:
    """The distance of the nearest triple (1 to 4), and a sentence about it."""
    terms = (pattern.subject, pattern.predicate, pattern.object)
    subject, predicate, object_ = (_described(term, partial) for term in terms)
    any_ = Variable(".any")
    for triple in matching(Pattern(pattern.subject, pattern.predicate, any_), partial, graph):
        value, owner = term_text(triple.object), term_text(triple.subject)
        return 1, f"{owner} {term_text(triple.predicate)} is {value}, not {object_}"
    for triple in matching(Pattern(any_, pattern.predicate, pattern.object), partial, graph):
        owner = term_text(triple.subject)
        return 2, f"{term_text(triple.predicate)} {term_text(triple.object)} belongs to {owner}, not {subject}"
    for triple in matching(Pattern(any_, pattern.predicate, Variable(".other")), partial, graph):
        return 3, f"there is {triple_text(triple)}, but no {subject} {predicate} {object_}"
    of_subject = matching(Pattern(pattern.subject, Variable(".other"), any_), partial, graph)
    others = dict.fromkeys(term_text(triple.predicate) for triple in of_subject)
    if others and not (isinstance(pattern.subject, Variable) and pattern.subject.name not in partial):
        return 4, f"{subject} has no {predicate}; it has {', '.join(list(others)[:8])}"
    return 4, f"no triple has the predicate {predicate}" if len(graph) else "the publication has no triples"


def _described(term: PatternTerm, partial: Binding) -> str:
    value = _fixed(term, partial)
    if value is None or not isinstance(term, Variable):
        return show(term)
    return f"?{term.name} = {term_text(value)}"


def condition_lines(pair: ExplainedPair, condition: Expression, solution: Binding, truth: bool | None) -> list[str]:
    """Why the condition has this truth value (None: an error) under the solution."""
    match condition:
        case nodes.AllOf(conditions):
            return _joined(pair, conditions, solution, whole=True)
        case nodes.AnyOf(conditions):
            return _joined(pair, conditions, solution, whole=False)
        case nodes.Negate(inner):
            return condition_lines(pair, inner, solution, None if truth is None else not truth)
        case nodes.Compare(op, left, right):
            other = _valued(pair, right, solution)
            error = " (they cannot be compared)" if truth is None else ""
            return [f"{_valued(pair, left, solution)} is {'' if truth else 'not '}{op} {other}{error}"]
        case nodes.TextTest(relation, operand, text, negated):
            verb = f"{'not ' if negated else ''}{relation.value} {Literal(text)}"
            return [f"{_valued(pair, operand, solution)} {'does' if truth else 'does not'}: {verb}"]
        case nodes.In(operand, choices, negated):
            listed = ", ".join(show(choice) for choice in choices)
            if truth is None:
                return [f"{_valued(pair, operand, solution)} cannot be compared with each of {listed}"]
            return [f"{_valued(pair, operand, solution)} is {'not ' if truth is negated else ''}one of {listed}"]
        case nodes.InstanceOf():
            return _instance_lines(pair, condition, solution, truth is True)
        case nodes.FullText(variable, expression):
            return _text_lines(expression, variable, solution, truth is True)
        case nodes.Exists(group):
            return [f"{show(group)} has {'a' if truth else 'no'} solution here"]
        case nodes.Holds(call):
            return [call_line(call, solution, truth)]
    values = ", ".join(_valued(pair, Variable(name), solution) for name in variables(condition))
    outcome = "an error" if truth is None else str(truth).lower()
    return [f"{show(condition)} is {outcome}" + (f" where {values}" if values else "")]


def _joined(pair: ExplainedPair, conditions: Sequence[Expression], solution: Binding, *, whole: bool) -> list[str]:
    """The lines of a conjunction (`whole`) or a disjunction.

    They are those of its first member that decides: in a conjunction one that is not true, in a disjunction one that
    is. Where no member decides alone, they are those of all. Members that call operators are asked last.
    """
    verdicts: dict[Expression, bool | None] = {}
    for condition in sorted(conditions, key=lambda condition: any(calls_in(condition))):
        verdict = verdicts[condition] = pair.truth(condition, solution)
        if (verdict is True) is not whole:
            return condition_lines(pair, condition, solution, verdict)
    return [line for c in conditions for line in condition_lines(pair, c, solution, verdicts[c])]


def _valued(pair: ExplainedPair, expression: Expression, solution: Binding) -> str:
    """An expression with its value: `?year = 2001`."""
    if isinstance(expression, Label):
        return expression.text
    if isinstance(expression, IRI | Literal):
        return show(expression)
    value = pair.value(expression, solution)
    name = show(expression)
    if value is None:
        return f"{name} {'(unbound)' if isinstance(expression, Variable) else '(an error)'}"
    return f"{name} = {term_text(value)}"


def _instance_lines(pair: ExplainedPair, condition: nodes.InstanceOf, solution: Binding, truth: bool) -> list[str]:
    node, graph = solution.get(condition.variable.name), pair.publication.graph
    shown = f"?{condition.variable.name}"
    if node is None:
        return [f"{shown} (unbound)"]
    if truth:
        path = pair.world.taxonomy.path(node, condition.relation, condition.cls, graph)
        if path:
            return [f"{shown} = " + " -> ".join((term_text(node), *(term_text(made_iri(step)) for step in path[1:])))]
        return [f"{shown} = {term_text(node)} is {condition.relation.value} {show(condition.cls)}"]
    classes = [] if isinstance(node, Literal) else [term_text(cls) for cls in graph.objects(node, RDF_TYPE)]
    line = f"{shown} = {term_text(node)} is not {condition.relation.value} {show(condition.cls)}"
    return [f"{line}; its classes here: {', '.join(classes[:8])}" if classes else line]


def _text_lines(expression: nodes.TextExpression, variable: Variable, solution: Binding, truth: bool) -> list[str]:
    value = solution.get(variable.name)
    if not isinstance(value, Literal) or not value.has_text:
        return [f"?{variable.name} = {term_text(value)} has no text" if value else f"?{variable.name} (unbound)"]
    shown = f"?{variable.name} = {term_text(value)}"
    if not truth:
        return [f"{shown} does not satisfy {show(part)}" for part in _failing(expression, value.lexical)]
    words = occurrences(expression, value.lexical)
    if not words:
        return [f"{shown} satisfies {show(expression)}"]
    places = ", ".join(f"{word!r} is word {position}" for word, position in words)
    return [f"?{variable.name} = {_in_context(value, *words[0])}: {places}"]


def _in_context(value: Literal, word: str, position: int) -> str:
    """A literal, shortened to CHARACTERS around a word. A word that its text does not have as it is, as where words
    are stemmed, is looked for by its position."""
    text = value.lexical
    if len(show_term(value)) <= CHARACTERS:
        return term_text(value)
    at = [match.start() for match in re.finditer(rf"(?<!\w){re.escape(word)}(?!\w)", text, re.IGNORECASE)]
    words = [match.start() for match in islice(re.finditer(r"[^\W_]+", text), position + 1)]
    near = words[-1] if words else 0
    place = min(at, key=lambda start: abs(start - near)) if at else near
    begin = max(0, min(place - CHARACTERS // 2, len(text) - CHARACTERS))
    if begin:  # a whole word is the first one
        ends = (blanks.end() for blanks in re.finditer(r"\s+", text))
        begin = min(place, next((end for end in ends if end > begin), begin))
    shown = text[begin : begin + CHARACTERS]
    before, after = "..." * bool(begin), "..." * (begin + CHARACTERS < len(text))
    return show_term(replace(value, lexical=f"{before}{shown}{after}"))


def _failing(expression: nodes.TextExpression, lexical: str) -> Iterator[nodes.TextExpression]:
    """The smallest parts of a full-text expression that decide that the text does not satisfy it."""
    if isinstance(expression, nodes.TextAnd):
        failing = next(operand for operand in expression.operands if not satisfies(operand, lexical))
        yield from _failing(failing, lexical)
    elif isinstance(expression, nodes.TextOr):
        for operand in expression.operands:
            yield from _failing(operand, lexical)
    elif isinstance(expression, nodes.TextNot) and isinstance(expression.operand, nodes.TextNot):
        yield from _failing(expression.operand.operand, lexical)
    else:
        yield expression


def call_line(call: Call, solution: Binding, truth: bool | None) -> str:
    """An operator call and its verdict."""
    arguments = ", ".join(
        f"{show(a)} = {term_text(solution[a.name])}" if isinstance(a, Variable) and a.name in solution else show(a)
        for a in call.arguments
    )
    return f"{call.operator}({arguments}) is {'unknown' if truth is None else str(truth).lower()}"


def why_not(pair: ExplainedPair, part: Where, partials: Sequence[Binding]) -> list[str]:
    """Why the part leaves no partial solution: lines about the first few of them, or the nearest."""
    if isinstance(part, Pattern):
        return nearest_lines(part, partials, pair.publication.graph)
    lines = dict[str, None]()
    for partial in partials:
        lines.update(dict.fromkeys(_why_not_one(pair, part, partial)))
        if len(lines) >= LINES:
            break
    return list(lines)[:LINES]


def _why_not_one(pair: ExplainedPair, part: Where, partial: Binding) -> list[str]:
    match part:
        case Filter(condition):
            return condition_lines(pair, condition, partial, pair.truth(condition, partial))
        case nodes.Not(group) | nodes.Minus(group):
            for other in pair.extensions(partial, [group]):
                patterns = (part for part in getattr(group, "parts", (group,)) if isinstance(part, Pattern))
                first = (next(matching(part, other, pair.publication.graph), None) for part in patterns)
                lines = [f"there is {triple_text(triple)}" for triple in first if triple]
                return lines or [f"{show(group)} has a solution"]
            failed = pair.failed_call(partial, part)
            return [failed or f"{show(group)} has a solution that agrees with {_bound(partial)}"]
        case nodes.Values():
            return [f"no row agrees with {_bound(partial)}"]
        case Call():
            return [pair.failed_call(partial, part) or call_line(part, partial, False)]
    return [f"no solution for {_bound(partial)}"]


def _bound(solution: Binding) -> str:
    return ", ".join(f"?{name} = {term_text(term)}" for name, term in solution.items()) or "the empty solution"
