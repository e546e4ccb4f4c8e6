"""Property paths (SPARQL 1.1, 9 and 18.2.2.4): read into a small tree, then written as patterns, filters and Or.

Bindings are distinct, so that paths which give duplicates in SPARQL need no care here. Recursive paths and those of
length zero are refused, but for `rdf:type/rdfs:subClassOf*`, which the taxonomy answers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NoReturn, TypeAlias

from triplewire.ir.nodes import ANY, And, Filter, In, InstanceOf, Or, PatternTerm, Relation, Where
from triplewire.languages.grammar.tokens import END, Token
from triplewire.languages.sparql.terms import TermReader
from triplewire.model.terms import IRI, RDF_TYPE, RDFS

SUBCLASS_OF = IRI(RDFS + "subClassOf")
_RECURSIVE = "write a sequence of a fixed length; for classes rdf:type/rdfs:subClassOf*"
_REFUSED = {
    "*": ("the recursive path '*' (zero or more)", _RECURSIVE),
    "+": ("the recursive path '+' (one or more)", _RECURSIVE),
    "?": ("the zero-length path '?' (zero or one)", "write both cases, with and without the step, and UNION"),
}


@dataclass(frozen=True, slots=True)
class Inverse:
    """`^path`"""

    path: Path


@dataclass(frozen=True, slots=True)
class Sequence:
    """`path / path`, flat."""

    steps: tuple[Path, ...]


@dataclass(frozen=True, slots=True)
class Alternative:
    """`path | path`, flat."""

    branches: tuple[Path, ...]


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


Path: TypeAlias = IRI | Inverse | Sequence | Alternative | Excluding | Repeated

# --- reading -------------------------------------------------------------------------------------------------------


def starts_path(terms: TermReader) -> bool:
    """Can the next token start a path?"""
    return terms.tokens.peek().kind in ("iri", "name") or terms.tokens.at("a", "^", "!", "(")


def read_path(terms: TermReader, outermost: bool = True) -> Path:
    """The path at the cursor (productions 88 to 96). `outermost`: an object follows, which may be a `*`."""
    with terms.tokens.nested():
        branches = [_read_sequence(terms, outermost)]
        while terms.tokens.accept("|"):
            branches.append(_read_sequence(terms, outermost))
        return Alternative(tuple(branches)) if len(branches) > 1 else branches[0]


def _read_sequence(terms: TermReader, outermost: bool) -> Path:
    steps = [_read_step(terms, outermost)]
    while terms.tokens.accept("/"):
        steps.append(_read_step(terms, outermost))
    return Sequence(tuple(steps)) if len(steps) > 1 else steps[0]


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
        iri = terms.accept_predicate()
        if iri is None:
            tokens.unexpected("a predicate or a property path")
        path = iri
    if _is_modifier(terms, outermost):
        path = Repeated(path, tokens.next())
    return Inverse(path) if inverse else path


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
        iri = terms.accept_predicate()
        if iri is None:
            tokens.unexpected("a predicate of a negated property set")
        members.append(iri)

    if not tokens.accept("("):
        member()
    elif not tokens.accept(")"):
        member()
        while tokens.accept("|"):
            member()
        tokens.expect(")")
    return Excluding(tuple(forward) if forward or not backward else None, tuple(backward))


# --- translation -----------------------------------------------------------------------------------------------------


def translate(terms: TermReader, subject: PatternTerm, path: Path, object_: PatternTerm) -> list[Where]:
    """Parts of a group that hold when `path` leads from `subject` to `object_`. Refuses repeated paths by name."""
    match path:
        case IRI():
            return [terms.pattern(subject, path, object_)]
        case Inverse(inner):
            return translate(terms, object_, inner, subject)
        case Sequence(steps):
            return _sequence(terms, subject, steps, object_)
        case Alternative(branches):
            return [Or(tuple(_branch(translate(terms, subject, branch, object_)) for branch in branches))]
        case Excluding(forward, backward):
            both: list[Where] = []
            if forward is not None:
                both.append(_branch(_other_than(terms, subject, forward, object_)))
            if backward:
                both.append(_branch(_other_than(terms, object_, backward, subject)))
            return [Or(tuple(both))] if len(both) > 1 else _parts(both[0])
        case Repeated(_, token):
            _refuse(terms, token)


def _sequence(terms: TermReader, subject: PatternTerm, steps: tuple[Path, ...], object_: PatternTerm) -> list[Where]:
    parts: list[Where] = []
    last = steps[-1]
    of_class = isinstance(last, Repeated) and last.token.text == "*" and last.path == SUBCLASS_OF
    if of_class and steps[-2] == RDF_TYPE:
        assert isinstance(last, Repeated)
        if not isinstance(object_, IRI):
            terms.tokens.unsupported(
                last.token, "rdf:type/rdfs:subClassOf* with an object other than an IRI", "the class must be constant"
            )
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


def _parts(branch: Where) -> list[Where]:
    return list(branch.parts) if isinstance(branch, And) else [branch]


def _refuse(terms: TermReader, token: Token) -> NoReturn:
    terms.tokens.unsupported(token, *_REFUSED[token.text])
