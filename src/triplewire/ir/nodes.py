"""The intermediate representation of a standing query (semantics, section 2).

`where` is a tree of parts. And is a SPARQL group: its parts are read from left to right, its Filters and Nots apply to
the whole group. Conditions inside a Filter are expressions. Elsewhere the nodes are named `ir.And`, by
`from triplewire.ir import nodes as ir`.

    where      := And | Or | Not | Optional | Minus | Pattern | Filter | Bind | Values | Call
    expression := Variable | IRI | Literal | Label | Compare | TextTest | InstanceOf | FullText | Function
                | AllOf | AnyOf | Negate | In | Exists | Holds
"""

from __future__ import annotations

import enum
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from triplewire.model.terms import IRI, Literal

# --- full-text expressions (semantics, section 5) --------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Analyzer:
    """How text becomes words. `tokenizer` is "default" or "unicode"; `stemming` a Snowball language or ""."""

    tokenizer: str = "default"
    stemming: str = ""
    ignore_diacritics: bool = False


@dataclass(frozen=True, slots=True)
class Word:
    """A word, in the form that the analyzer gives it."""

    word: str
    analyzer: Analyzer = Analyzer()


@dataclass(frozen=True, slots=True)
class Prefix:
    """Any word with this prefix, which is never stemmed."""

    prefix: str
    analyzer: Analyzer = Analyzer()


@dataclass(frozen=True, slots=True)
class Phrase:
    """At least two consecutive words. Only the last may be a Prefix."""

    items: tuple[Word | Prefix, ...]


@dataclass(frozen=True, slots=True)
class Near:
    """One occurrence of each operand, without overlap, with gaps[i] = (least, most) words between operands i and i + 1.

    If ordered[i] is true, operand i + 1 comes after operand i, else on either side. Operands are Word, Prefix, Phrase,
    or a TextOr of them.
    """

    operands: tuple[TextExpression, ...]
    gaps: tuple[tuple[int, int], ...]
    ordered: tuple[bool, ...]


@dataclass(frozen=True, slots=True)
class TextNot:
    """The text does not satisfy it."""

    operand: TextExpression


@dataclass(frozen=True, slots=True)
class TextAnd:
    """The text satisfies all."""

    operands: tuple[TextExpression, ...]


@dataclass(frozen=True, slots=True)
class TextOr:
    """The text satisfies at least one."""

    operands: tuple[TextExpression, ...]


TextExpression: TypeAlias = Word | Prefix | Phrase | Near | TextNot | TextAnd | TextOr


# --- terms of a pattern ------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Variable:
    """A variable, without its question mark.

    A hidden one (a blank node of the text, a step of a path) is never selected. Its name starts with a dot, which no
    language allows in a name.
    """

    name: str

    @property
    def hidden(self) -> bool:
        """Was it made by a parser rather than named by the author?"""
        return self.name.startswith(".")


class Any(enum.Enum):
    """The wildcard `*`: matches anything, binds nothing. Each use is a variable of its own."""

    ANY = "*"


ANY = Any.ANY


@dataclass(frozen=True, slots=True)
class Label:
    """A bare word of GQL: any literal with this lexical form, or the IRI that it resolves to where a base is given.

    `iri` is that IRI, or "" without a base.
    """

    text: str
    iri: str = ""


Constant: TypeAlias = IRI | Literal | Label
PatternTerm: TypeAlias = Constant | Variable | Any

# --- parts of a group --------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Pattern:
    """A triple of the publication."""

    subject: PatternTerm
    predicate: PatternTerm
    object: PatternTerm


@dataclass(frozen=True, slots=True)
class And:
    """A conjunction of parts: a SPARQL group graph pattern (SPARQL 1.1, 18.2.2), whose order has a meaning.

    Patterns, Ors, Calls, Values and nested Ands join; Optional, Minus and Bind act on what stands before them; Filter
    and Not act last, on the whole group. `And(())` is the empty group: one empty solution.
    """

    parts: tuple[Where, ...]


@dataclass(frozen=True, slots=True)
class Or:
    """The solutions of any branch (SPARQL UNION)."""

    branches: tuple[Where, ...]


@dataclass(frozen=True, slots=True)
class Not:
    """Keeps a solution of the group when `group`, with the solution's values put in, has none (FILTER NOT EXISTS)."""

    group: Where


@dataclass(frozen=True, slots=True)
class Optional:
    """SPARQL's left join. Filters directly in `group` see the variables of both sides."""

    group: Where


@dataclass(frozen=True, slots=True)
class Minus:
    """SPARQL's MINUS: drops a solution that agrees with one of `group` on at least one shared variable."""

    group: Where


@dataclass(frozen=True, slots=True)
class Filter:
    """Keeps a solution for which the condition's effective boolean value is true; an error counts as false."""

    condition: Expression


@dataclass(frozen=True, slots=True)
class Bind:
    """Gives `variable` the expression's value; on an error the solution stays without it."""

    variable: Variable
    expression: Expression


@dataclass(frozen=True, slots=True)
class Values:
    """Inline data: rows as wide as `variables`; None is UNDEF."""

    variables: tuple[Variable, ...]
    rows: tuple[tuple[IRI | Literal | None, ...], ...]


@dataclass(frozen=True, slots=True)
class Call:
    """An expensive operator as a part of a group. A variable that other parts bind is an input, any other an output."""

    operator: str
    arguments: tuple[Variable | IRI | Literal, ...]


Where: TypeAlias = And | Or | Not | Optional | Minus | Pattern | Filter | Bind | Values | Call

# --- conditions --------------------------------------------------------------------------------------------------


class Coercion(enum.Enum):
    """How two terms compare. Strict: SPARQL's operator mapping. Lenient: nodes are plain labels."""

    STRICT = "strict"
    LENIENT = "lenient"


@dataclass(frozen=True, slots=True)
class Compare:
    """`op` is one of = != < <= > >=. In lenient comparison a constant side decides how both are read."""

    op: str
    left: Expression
    right: Expression
    coercion: Coercion = Coercion.STRICT


class TextRelation(enum.Enum):
    """Relations of a literal's lexical form to a constant."""

    CONTAINS = "contains"
    STARTS = "starts with"
    ENDS = "ends with"
    REGEX = "matches"


@dataclass(frozen=True, slots=True)
class TextTest:
    """A lenient test of a literal's lexical form; false on anything but a literal. Case counts."""

    relation: TextRelation
    operand: Variable
    text: str
    negated: bool = False  # a negated test, too, needs a literal


class Relation(enum.Enum):
    """A relation between a node and a class of the taxonomy (semantics, section 4)."""

    DESCENDANT = "<="  # an instance of the class or of one below it; or a class at or below it
    ANCESTOR = ">="  # a direct instance of the class or of one above it; or a class at or above it
    DIRECT = "="  # a direct instance; or a class whose direct superclass it is
    SUBCLASS = "subclass of"  # the class itself or one below it: SPARQL's rdfs:subClassOf*


@dataclass(frozen=True, slots=True)
class InstanceOf:
    """Is the variable's value in this relation to the class?"""

    variable: Variable
    relation: Relation
    cls: IRI | Label


@dataclass(frozen=True, slots=True)
class FullText:
    """Does the variable's literal satisfy a full-text expression? False on a term without text."""

    variable: Variable
    expression: TextExpression


@dataclass(frozen=True, slots=True)
class Function:
    """A SPARQL 1.1 function by its upper-case name ("STRLEN", "IF", "COALESCE"), an arithmetic operator ("+", "-", "*",
    "/", "NEGATE", "PLUS"), "BOUND", "NUMBER" (the exact decimal that a label reads as in lenient comparison), or a
    cast by its datatype IRI. "IRI" (also for URI; "ISIRI" for isURI) has the
    text's base as its second argument where the text has one."""

    name: str
    arguments: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class AllOf:
    """&&, in SPARQL's three-valued logic."""

    conditions: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class AnyOf:
    """||, in SPARQL's three-valued logic."""

    conditions: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Negate:
    """!"""

    condition: Expression


@dataclass(frozen=True, slots=True)
class In:
    """IN and NOT IN, by strict `=`."""

    operand: Expression
    choices: tuple[Expression, ...]
    negated: bool = False


@dataclass(frozen=True, slots=True)
class Exists:
    """EXISTS inside an expression; NOT EXISTS is its Negate, or a Not where it is a whole filter."""

    group: Where


@dataclass(frozen=True, slots=True)
class Holds:
    """An operator call inside an expression: a test that binds nothing outside. Unknown when the call fails."""

    call: Call


Condition: TypeAlias = Compare | TextTest | InstanceOf | FullText | AllOf | AnyOf | Negate | In | Exists | Holds
Expression: TypeAlias = Variable | Constant | Function | Condition


def conjuncts(condition: Expression) -> Iterator[Expression]:
    """The members of a conjunction, and of those in it, in order: it is true only where all of them are."""
    waiting = [condition]
    while waiting:
        condition = waiting.pop()
        if isinstance(condition, AllOf):
            waiting += reversed(condition.conditions)
        else:
            yield condition


def joined(where: Where) -> Iterator[Where]:
    """The parts of a group, and of the groups that are joined with it, in order."""
    waiting = [where]
    while waiting:
        where = waiting.pop()
        if isinstance(where, And):
            waiting += reversed(where.parts)
        else:
            yield where


def names_bound(part: object) -> Iterator[str]:
    """The names of variables that a part binds by itself, in order. A call in an expression binds nothing outside."""
    terms: Sequence[object] = ()
    if isinstance(part, Pattern):
        terms = (part.subject, part.predicate, part.object)
    elif isinstance(part, Bind):
        terms = (part.variable,)
    elif isinstance(part, Values):
        terms = part.variables
    elif isinstance(part, Call):
        terms = part.arguments
    return (term.name for term in terms if type(term) is Variable)
