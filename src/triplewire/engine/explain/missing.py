"""What a publication would have to say to be matched by a query that misses it, as sentences.

From the solutions of a query that is near and does match (`nearest`), each part of the missed query that does not hold
is made to: a text gets the words that it lacks, a value becomes one that satisfies the comparison, a triple is added.
The changed publication is matched again; what does not help is not told.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from decimal import Decimal

from triplewire.engine.explain.reasons import ExplainedPair, parts_of, term_text
from triplewire.errors import LimitError, TriplewireError
from triplewire.ir import nodes
from triplewire.ir.evaluation.evaluate import World
from triplewire.ir.nodes import Expression, Filter, Label, Pattern, PatternTerm, Variable, Where
from triplewire.ir.show import show
from triplewire.ir.subscription import Subscription
from triplewire.model.match import Binding
from triplewire.model.publication import Publication
from triplewire.model.terms import IRI, RDF_TYPE, BlankNode, Literal, Term, Triple, made_iri

_SOLUTIONS = 20  # of the near query, among which the one with the fewest changes is taken


def missing(pair: ExplainedPair, near: Subscription) -> tuple[str, ...]:
    """The fewest changes of the publication with which the subscription of the pair matches it, one sentence each; none
    where it takes more than texts, values, classes and triples, or the pair's steps. `near` matches the publication as
    it is."""
    branches = _branches(pair.subscription.where)
    told: list[tuple[str, ...]] = []
    with suppress(LimitError):
        for solution in replace(pair, subscription=near).solutions(near.where, _SOLUTIONS):
            for branch in branches:
                changed = _Changed(pair, solution)
                if changed.satisfies(parts_of(branch)) and changed.matches():
                    told.append(tuple(changed.said))
    return min(told, key=lambda said: (len(said), said), default=())


def witness(subscription: Subscription, world: World, id: str) -> Publication | None:
    """A publication of this id that the subscription matches, made from nothing; None where it takes more than texts,
    values, classes and triples, or an operator."""
    pair = ExplainedPair(subscription, Publication(id, ()), world)
    for branch in _branches(subscription.where):
        parts = parts_of(branch)
        subjects = [part.subject for part in parts if isinstance(part, Pattern)]
        named = {each.name: made_iri(f"{id}#{each.name}") for each in subjects if isinstance(each, Variable)}
        changed = _Changed(pair, named)
        with suppress(TriplewireError):
            if changed.satisfies(parts) and changed.matches():
                return changed.publication
    return None


def _branches(where: Where) -> tuple[Where, ...]:
    """The alternatives of a query; itself where it has none."""
    while isinstance(where, nodes.And) and len(where.parts) == 1:
        (where,) = where.parts
    return where.branches if isinstance(where, nodes.Or) else (where,)


class _Changed:
    """A publication that is changed until the parts of a query hold for one solution."""

    def __init__(self, pair: ExplainedPair, solution: Binding) -> None:
        self._pair = pair
        self._values: dict[str, Term] = dict(solution)
        self._before: dict[str, Term] = {}
        self._triples = list(pair.publication.triples)
        self.said: list[str] = []

    @property
    def publication(self) -> Publication:
        """It as it is now."""
        return Publication(self._pair.publication.id, self._triples, attachments=self._pair.publication.attachments)

    def satisfies(self, parts: Sequence[Where]) -> bool:
        """Make all parts hold; False where one is of a kind for which that is not known."""
        patterns = [part for part in parts if isinstance(part, Pattern)]
        self._keep_values(patterns)
        held: list[Where] = []
        for part in sorted(parts, key=lambda part: isinstance(part, Filter)):
            if self._pair.extensions(self._values, [*held, part]):
                held.append(part)
        if not all(part in held or isinstance(part, Pattern | Filter) for part in parts):
            return False
        self._values = dict(self._pair.extensions(self._values, held)[0])
        self._before = dict(self._values)
        for part in parts:
            if isinstance(part, Filter) and part not in held and not self._make_true(part.condition, patterns):
                return False
        for name, value in self._values.items():
            if (old := self._before.get(name)) not in (None, value):
                self._triples = [t if t.object != old else Triple(t.subject, t.predicate, value) for t in self._triples]
        return all(map(self._state, patterns))

    def _keep_values(self, patterns: Sequence[Pattern]) -> None:
        """Forget the values of what the near query asks instead, and of variables that a parser named."""
        names = {pattern.subject.name for pattern in patterns if isinstance(pattern.subject, Variable)}
        for pattern in patterns:
            if self._stated(pattern) is not None:
                names.update(nodes.names_bound(pattern))
        named = {name: value for name, value in self._values.items() if not Variable(name).hidden}
        self._values = {name: value for name, value in named.items() if name in names}

    def matches(self) -> bool:
        """Does the changed publication match?"""
        pair = replace(self._pair, publication=self.publication, results={})
        return bool(pair.solutions(self._pair.subscription.where, 1))

    def _make_true(self, condition: Expression, patterns: Sequence[Pattern]) -> bool:
        """Choose a value with which a condition on one variable is true."""
        match condition:
            case nodes.FullText(variable, expression):
                words = _words(expression)
                return words is not None and self._add_text(variable, words, patterns)
            case nodes.TextTest(nodes.TextRelation.CONTAINS, variable, text, False):
                return self._add_text(variable, [text], patterns)
            case nodes.Compare(op, Variable() as variable, IRI() | Literal() | Label() as constant):
                value = _satisfying(op, Literal(constant.text) if isinstance(constant, Label) else constant)
                if value is None:
                    return False
                was = self._values.get(variable.name)
                self._values[variable.name] = value
                if was is not None:  # else the triple that is added says it
                    place = _place(variable, patterns)
                    self.said.append(f"{place} would have to be {op} {show(constant)} (it is {term_text(was)})")
                return True
            case nodes.InstanceOf(variable, _, cls):
                node = self._values.get(variable.name)
                known = sorted(self._pair.world.taxonomy.meant(cls))
                if node is None and known:  # the triple that is added says it
                    self._values[variable.name] = made_iri(known[0])
                    return True
                if not isinstance(node, IRI | BlankNode) or not known:
                    return False
                self._triples.append(Triple(node, RDF_TYPE, made_iri(known[0])))
                self.said.append(f"{term_text(node)} would have to be a {show(cls)}")
                return True
        return False

    def _add_text(self, variable: Variable, words: Sequence[str], patterns: Sequence[Pattern]) -> bool:
        was = self._values.get(variable.name, Literal(""))
        if not isinstance(was, Literal):
            return False
        lacking = [word for word in words if word.casefold() not in was.lexical.casefold()] or list(words)
        self._values[variable.name] = replace(was, lexical=" ".join([was.lexical, *lacking]).strip())
        if was.lexical:
            said = " and ".join(f"{word!r}" for word in lacking)
            self.said.append(f"{_place(variable, patterns)} would have to contain {said}")
        return True

    def _stated(self, pattern: Pattern) -> Triple | None:
        """A triple that the pattern matches with the values chosen."""
        fixed = [self._fixed(term) for term in (pattern.subject, pattern.predicate, pattern.object)]
        return next(
            (t for t in self._triples if all(f in (None, term) for f, term in zip(fixed, t, strict=True))), None
        )

    def _state(self, pattern: Pattern) -> bool:
        """Add the triple of a pattern where the publication does not state it."""
        terms = (pattern.subject, pattern.predicate, pattern.object)
        stated = self._stated(pattern)
        if stated is None:
            subject, predicate, object_ = map(self._fixed, terms)
            subject = subject or made_iri(self._pair.publication.id)
            if not isinstance(subject, IRI | BlankNode) or not isinstance(predicate, IRI):
                return False
            stated = Triple(subject, predicate, object_ or Literal("anything"))
            self._triples.append(stated)
            said = term_text(object_) if object_ is not None else "of any value"
            self.said.append(f"{term_text(subject)} would have to have {show(predicate)} {said}")
        for term, value in zip(terms, stated, strict=True):
            if isinstance(term, Variable):
                self._values.setdefault(term.name, value)
        return True

    def _fixed(self, term: PatternTerm) -> Term | None:
        if isinstance(term, Variable):
            return self._values.get(term.name)
        if isinstance(term, Label):
            return Literal(term.text)
        return term if isinstance(term, IRI | Literal) else None


def _place(variable: Variable, patterns: Sequence[Pattern]) -> str:
    """A variable as people call it: the property whose value it is."""
    predicates = [pattern.predicate for pattern in patterns if pattern.object == variable]
    named = [show(predicate) for predicate in predicates if isinstance(predicate, IRI)]
    return named[0] if named else "a text" if predicates else show(variable)


def _words(expression: nodes.TextExpression) -> list[str] | None:
    """Texts that satisfy an expression where a literal has them all; None where it excludes some."""
    match expression:
        case nodes.Word(word):
            return [word]
        case nodes.Prefix(prefix):
            return [prefix]
        case nodes.Phrase(items):
            return [" ".join(item.word if isinstance(item, nodes.Word) else item.prefix for item in items)]
        case nodes.TextAnd(operands):
            each = [_words(operand) for operand in operands]
            return None if None in each else [word for words in each for word in words or ()]
        case nodes.TextOr(operands):
            return next((words for operand in operands if (words := _words(operand)) is not None), None)
        case nodes.Near(operands, gaps, _) if all(least == 0 for least, _ in gaps):
            near = [_words(operand) for operand in operands]
            return None if None in near else [" ".join(word for words in near for word in words or ())]
    return None


def _satisfying(op: str, constant: IRI | Literal) -> IRI | Literal | None:
    """A value that is `op` the constant; None where none is known."""
    if op in ("=", "<=", ">="):
        return constant
    if op in ("<", ">") and isinstance(constant, Literal):
        try:
            return replace(constant, lexical=str(Decimal(constant.lexical) + (1 if op == ">" else -1)))
        except ArithmeticError:  # no number, or one of too many digits
            return None
    return None
