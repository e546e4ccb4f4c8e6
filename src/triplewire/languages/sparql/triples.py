"""Triples of a group or of a CONSTRUCT template, and their property paths.

Paths are read into a small tree, then written as patterns, filters and Or. Standard: SPARQL 1.1, section 19.8,
productions 75 to 105; of paths, sections 9 and 18.2.2.4. Blank nodes become hidden variables. Their labels reach as far
as one basic graph pattern; `BlankLabels` keeps that.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from triplewire.ir.nodes import ANY, And, Filter, In, InstanceOf, Or, Pattern, PatternTerm, Relation, Variable, Where
from triplewire.languages.grammar.tokens import END, Token
from triplewire.languages.sparql.terms import TermReader
from triplewire.model.terms import IRI, RDF, RDF_TYPE, RDFS

SUBCLASS_OF = IRI(RDFS + "subClassOf")
_RECURSIVE = "write a sequence of a fixed length; for classes rdf:type/rdfs:subClassOf*"
_REFUSED = {
    "*": ("the recursive path '*' (zero or more)", _RECURSIVE),
    "+": ("the recursive path '+' (one or more)", _RECURSIVE),
    "?": ("the zero-length path '?' (zero or one)", "write both cases, with and without the step, and UNION"),
}


@dataclass(frozen=True, slots=True)
class Joined:
    """By `op`: `^path`; or, flat, `path / path`, `path | path`."""

    op: str
    paths: tuple[Path, ...]


@dataclass(frozen=True, slots=True)
class Excluding:
    """A negated property set: `forward` is None where it has inverse members only."""

    forward: tuple[IRI, ...] | None
    backward: tuple[IRI, ...]


@dataclass(frozen=True, slots=True)
class Repeated:
    """`path*`, `path+` or `path?`, written at `token`."""

    path: Path
    token: Token


Path: TypeAlias = IRI | Joined | Excluding | Repeated


def starts_path(terms: TermReader) -> bool:
    """Can the next token start a path?"""
    return terms.tokens.peek().kind in ("iri", "name") or terms.tokens.at("a", "^", "!", "(")


def read_path(terms: TermReader, outermost: bool = True) -> Path:
    """The path at the cursor (productions 88 to 96). `outermost`: an object follows, which may be a `*`."""
    with terms.tokens.nested():
        branches = terms.tokens.separated(lambda: _read_sequence(terms, outermost), "|")
        return Joined("|", tuple(branches)) if len(branches) > 1 else branches[0]


def _read_sequence(terms: TermReader, outermost: bool) -> Path:
    steps = terms.tokens.separated(lambda: _read_step(terms, outermost), "/")
    return Joined("/", tuple(steps)) if len(steps) > 1 else steps[0]


def _read_step(terms: TermReader, outermost: bool) -> Path:
    tokens = terms.tokens
    inverse = tokens.accept("^")
    path: Path
    if tokens.accept("!"):
        path = _read_excluding(terms)
    elif tokens.accept("("):
        path = read_path(terms, outermost=False)
        tokens.expect(")")
    else:
        path = terms.accept_predicate() or tokens.unexpected("a predicate or a property path")
    if _is_modifier(terms, outermost):
        path = Repeated(path, tokens.next())
    return Joined("^", (path,)) if inverse else path


def _is_modifier(terms: TermReader, outermost: bool) -> bool:
    """Does the next token repeat the path? A `*` that no object follows is itself the object, the wildcard."""
    tokens = terms.tokens
    if tokens.at("?"):
        return True
    if tokens.at("+"):
        return not terms.sign_touches()
    if not tokens.at("*"):
        return False
    after = tokens.peek(1)
    if not outermost:
        return True
    if after.kind == "word":
        return after.text.lower() in ("true", "false")
    return after.kind != END and after.text not in (".", ";", ",", "]", "}", "{")


def _read_excluding(terms: TermReader) -> Excluding:
    tokens = terms.tokens
    forward: list[IRI] = []
    backward: list[IRI] = []

    def member() -> None:
        members = backward if tokens.accept("^") else forward
        members.append(terms.accept_predicate() or tokens.unexpected("a predicate of a negated property set"))

    if not tokens.accept("("):
        member()
    elif not tokens.accept(")"):
        tokens.separated(member, "|")
        tokens.expect(")")
    return Excluding(tuple(forward) if forward or not backward else None, tuple(backward))


def translate(terms: TermReader, subject: PatternTerm, path: Path, object_: PatternTerm) -> list[Where]:
    """Parts of a group that hold when `path` leads from `subject` to `object_`. Refuses repeated paths by name."""
    match path:
        case IRI():
            return [terms.pattern(subject, path, object_)]
        case Joined("^", (inner,)):
            return translate(terms, object_, inner, subject)
        case Joined("/", steps):
            return _sequence(terms, subject, steps, object_)
        case Joined(_, branches):
            return [Or(tuple(_branch(translate(terms, subject, branch, object_)) for branch in branches))]
        case Excluding(forward, backward):
            both: list[list[Where]] = []
            if forward is not None:
                both.append(_other_than(terms, subject, forward, object_))
            if backward:
                both.append(_other_than(terms, object_, backward, subject))
            return [Or(tuple(map(_branch, both)))] if len(both) > 1 else both[0]
        case Repeated(_, token):
            terms.tokens.unsupported(token, *_REFUSED[token.text])


def _sequence(terms: TermReader, subject: PatternTerm, steps: tuple[Path, ...], object_: PatternTerm) -> list[Where]:
    parts: list[Where] = []
    last = steps[-1]
    if isinstance(last, Repeated) and last.token.text == "*" and last.path == SUBCLASS_OF and steps[-2] == RDF_TYPE:
        if not isinstance(object_, IRI):
            what = "rdf:type/rdfs:subClassOf* with an object other than an IRI"
            terms.tokens.unsupported(last.token, what, "the class must be constant")
        asserted = terms.hidden()
        steps = (*steps[:-2], RDF_TYPE)
        parts.append(Filter(InstanceOf(asserted, Relation.SUBCLASS, object_)))
        object_ = asserted
    walked: list[Where] = []
    for step in steps[:-1]:
        between = terms.hidden()
        walked.extend(translate(terms, subject, step, between))
        subject = between
    return [*walked, *translate(terms, subject, steps[-1], object_), *parts]


def _other_than(
    terms: TermReader, subject: PatternTerm, excluded: tuple[IRI, ...], object_: PatternTerm
) -> list[Where]:
    if not excluded:
        return [terms.pattern(subject, ANY, object_)]
    predicate = terms.hidden()
    return [terms.pattern(subject, predicate, object_), Filter(In(predicate, excluded, negated=True))]


def _branch(parts: list[Where]) -> Where:
    return parts[0] if len(parts) == 1 else And(tuple(parts))


# --- triples ---------------------------------------------------------------------------------------------------------

FIRST, REST, NIL = IRI(RDF + "first"), IRI(RDF + "rest"), IRI(RDF + "nil")


class BlankLabels:
    """Which hidden variable a label stands for, and in which basic graph pattern (5.1.1)."""

    def __init__(self, terms: TermReader) -> None:
        self._terms = terms
        self._known: dict[str, tuple[Variable, int]] = {}
        self._last = 0
        self.current = 0

    def end_of_pattern(self) -> None:
        """What follows belongs to another basic graph pattern."""
        self._last += 1
        self.current = self._last

    def variable(self, token: Token) -> Variable:
        """The hidden variable of a label; refuses a label of another basic graph pattern."""
        if token.text not in self._known:
            self._known[token.text] = self._terms.hidden(), self.current
        variable, pattern = self._known[token.text]
        if pattern != self.current:
            what = f"the blank node {token.text} is used in two graph patterns"
            self._terms.tokens.fail(token, what, "use a variable instead")
        return variable


class TripleReader:
    """Reads triples at the cursor into `parts`. In a template neither paths nor wildcards are allowed."""

    def __init__(self, terms: TermReader, labels: BlankLabels, parts: list[Where], template: bool = False) -> None:
        self._terms = terms
        self._tokens = terms.tokens
        self._labels = labels
        self._template = template
        self.parts = parts

    def starts(self) -> bool:
        """Can the next token start triples?"""
        token = self._tokens.peek()
        if token.kind in ("symbol", "word"):
            return self._tokens.at("[", "(", "*", "+", "-", "TRUE", "FALSE")
        return token.kind in ("variable", "iri", "name", "blank", "string", "number")

    def same_subject(self) -> None:
        """A subject with its predicates and objects."""
        said = len(self.parts)
        subject = self._node(self.parts)
        # [ ... ] and ( ... ) say something by themselves; [] and (), like any other term, do not
        if len(self.parts) == said or self._starts_predicate():
            self._properties(subject, self.parts)

    def _starts_predicate(self) -> bool:
        tokens = self._tokens
        return starts_path(self._terms) or tokens.peek().kind == "variable" or tokens.at("*")

    def _properties(self, subject: PatternTerm, parts: list[Where]) -> None:
        """Predicates with their objects, semicolons between them; at least one."""
        begins = [self._tokens.peek().offset]
        self._predicate(subject, parts)
        while self._tokens.accept(";"):
            if self._starts_predicate():
                begins.append(self._tokens.peek().offset)
                self._predicate(subject, parts)
        self._tokens.note_conjuncts(begins)

    def _predicate(self, subject: PatternTerm, parts: list[Where]) -> None:
        """One predicate or path, with its objects, commas between them."""
        tokens = self._tokens
        simple = self._wildcard() if tokens.at("*") else self._terms.accept_variable()
        if simple is None and not starts_path(self._terms):
            tokens.unexpected("a predicate: a variable, an IRI, 'a', a property path or '*'")
        start = tokens.peek()
        path = read_path(self._terms) if simple is None else None
        if self._template and path is not None and not isinstance(path, IRI):
            tokens.fail(start, "a CONSTRUCT template takes no property path")
        while True:
            inner: list[Where] = []
            object_ = self._node(inner)
            if path is not None:
                parts.extend(translate(self._terms, subject, path, object_))
            elif simple is not None:
                parts.append(self._terms.pattern(subject, simple, object_))
            parts.extend(inner)
            if not tokens.accept(","):
                return

    def _wildcard(self) -> PatternTerm:
        token = self._tokens.expect("*")
        if self._template:
            self._tokens.fail(token, "'*' cannot stand in a CONSTRUCT template", "use a variable")
        return ANY

    def _node(self, parts: list[Where]) -> PatternTerm:
        """A term of a triple; what [ ... ] and ( ... ) say goes to `parts`."""
        tokens = self._tokens
        token = tokens.peek()
        if token.kind == "variable":
            return self._terms.variable()
        if token.kind == "blank":
            return self._labels.variable(tokens.next())
        if tokens.at("*"):
            return self._wildcard()
        if tokens.accept("["):
            node = self._terms.hidden()
            if not tokens.accept("]"):
                with tokens.nested():
                    self._properties(node, parts)
                tokens.expect("]")
            return node
        if tokens.accept("("):
            return self._collection(parts)
        constant = self._terms.accept_constant()
        return constant or tokens.unexpected("a variable, an IRI, a literal, a blank node or '*'")

    def _collection(self, parts: list[Where]) -> PatternTerm:
        """After `(`: an RDF list (4.2.3)."""
        tokens = self._tokens
        if tokens.accept(")"):
            return NIL
        head = node = self._terms.hidden()
        with tokens.nested():
            while True:
                inner: list[Where] = []
                parts.append(Pattern(node, FIRST, self._node(inner)))
                parts.extend(inner)
                if tokens.accept(")"):
                    parts.append(Pattern(node, REST, NIL))
                    return head
                following = self._terms.hidden()
                parts.append(Pattern(node, REST, following))
                node = following
