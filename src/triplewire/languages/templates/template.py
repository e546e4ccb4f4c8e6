"""A template: the parsed form of all texts that differ in their parameters only.

Also: the parameters, at which texts are split, as `<p>` and `"x"` in `SELECT * { ?s <p> "x" }`. It holds the
subscription and the normal form of a text with example parameters. `Template.normal_form` and `Template.subscription`
put the parameters of another text in their place. `triplewire.clauses.builder` fills the columns of the index from
templates without making these trees.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import count
from typing import Any, NamedTuple, TypeAlias, TypeVar

from triplewire.ir.evaluation.unknown import CallKey
from triplewire.ir.fulltext import analyse
from triplewire.ir.nodes import Analyzer, And, Label, Pattern, Variable, Where, Word
from triplewire.ir.normal_form import Clause, NormalForm, Position
from triplewire.ir.subscription import Subscription
from triplewire.ir.walk import children, rewrite
from triplewire.model.terms import IRI, XSD, Literal, made_iri, made_literal, unescape

Parameters: TypeAlias = tuple[str, ...]
"""Parameters as written: `<IRI>`, a quoted string with its tag or datatype, a blank and a number, `?name`."""

Environment: TypeAlias = tuple[str, str, tuple[tuple[str, str], ...]]
"""What a text is parsed with: language, base, prefixes."""


_STRING = re.compile(r"""(['"])(?:[^\\]|\\.)*?\1""", re.DOTALL)


class SplitText(NamedTuple):
    """A text split at its parameters: `pieces` stand around the parameters, one more than these."""

    pieces: tuple[str, ...]
    parameters: Parameters

    def filled(self, parameters: Sequence[str]) -> str:
        """The text with other parameters."""
        parts = [part for pair in zip(self.pieces, parameters, strict=False) for part in pair]
        return "".join([*parts, self.pieces[-1]])


def content(parameter: str) -> str:
    """What is written between the delimiters, without escapes."""
    if parameter[0] in " ?":
        return parameter[1:]
    return parameter[1:-1] if parameter[0] == "<" else unescape(parameter[1 : _closing(parameter)])


def _closing(parameter: str) -> int:
    """Where the quotation mark is that closes a quoted string."""
    if "\\" not in parameter:
        return parameter.index(parameter[0], 1)
    string = _STRING.match(parameter)
    assert string is not None
    return string.end() - 1


def has_suffix(parameter: str) -> bool:
    """Has the quoted string a language tag or a datatype?"""
    return parameter[-1] != parameter[0]


def is_word(parameter: str) -> bool:
    """Is it a quoted word that the default analyser leaves as it is?"""
    if has_suffix(parameter):
        return False
    text = parameter[1:-1]
    return analyse(text, Analyzer()) == (text,)


def term_of(parameter: str) -> IRI | Literal:
    """The term of a parameter that stands where a term stands."""
    if parameter[0] == "<":
        return made_iri(parameter[1:-1])
    if parameter[0] == " ":
        return Literal(parameter[1:], XSD + ("decimal" if "." in parameter else "integer"))
    text, suffix = content(parameter), parameter[_closing(parameter) + 1 :]
    if not suffix:
        return Literal(text)
    return Literal.tagged(text, suffix[1:]) if suffix[0] == "@" else made_literal(text, suffix[3:-1])


def number_form(parameter: str) -> str:
    """What of a number decides its datatype and its tokens: a sign, a point."""
    return ("-" if parameter[1] == "-" else "") + ("." if "." in parameter else "")


# --- templates -------------------------------------------------------------------------------------------------------

IRI_KIND, LITERAL, WORD, TEXT, NUMBER, VARIABLE, FIXED = "iri", "literal", "word", "text", "number", "variable", "fixed"

T = TypeVar("T")
Positions: TypeAlias = "tuple[Position, Position, Position]"

Replacement: TypeAlias = dict[object, object]
"""From nodes, or texts of a TextTest, to those that stand in their place."""

LEAVES = frozenset([str, IRI, Literal, Word, Label, Variable])
"""The kinds of nodes that a parameter may stand for."""


@dataclass(frozen=True, slots=True)
class Placeholder:
    """The place of a parameter. `kind`: "iri", "literal" (a term), "word" (of the default analyser), "text" (of a
    TextTest), "number" (a Literal or a Label), "variable" (in a part of a `Conjunction`), or "fixed": the template
    holds for this very parameter only."""

    kind: str
    example: str  # the parameter in the tree of the template

    def replacement(self, parameter: str) -> Replacement:
        """The nodes of the example, with those of the parameter."""
        old, new = content(self.example), content(parameter)
        if self.kind == WORD:
            return {Word(old): Word(new)}
        if self.kind == TEXT:
            return {old: new}
        if self.kind == VARIABLE:
            return {old: new, Variable(old): Variable(new)}
        if self.kind == NUMBER:
            return {term_of(self.example): term_of(parameter), Label(old): Label(new)}
        return {} if self.kind == FIXED else {term_of(self.example): term_of(parameter)}


@dataclass(frozen=True, slots=True)
class TemplateText:
    """A text that is a form with parameters; called, it makes the tree."""

    form: ParsedForm
    parameters: Parameters

    def __call__(self) -> Where:
        return self.form.where(self.parameters)


class ParsedForm(ABC):
    """What texts mean that differ in their parameters only."""

    __slots__ = ()
    language: str
    ask: bool
    warnings: tuple[str, ...]

    @abstractmethod
    def parts(self, parameters: Parameters) -> Iterable[tuple[Template, Parameters]]:
        """The templates of which it consists, each with its parameters."""

    @abstractmethod
    def selected(self, parameters: Parameters) -> tuple[str, ...]:
        """The selected variables of the text with these parameters."""

    def rules(self, parameters: Parameters) -> tuple[str, ...]:
        """The ids of rules that the text would name, were they there. Only MDV texts name rules."""
        return ()

    @abstractmethod
    def where(self, parameters: Parameters) -> Where:
        """The tree of the text with these parameters."""

    @abstractmethod
    def normal_form(self, parameters: Parameters) -> NormalForm:
        """The normal form of the text with these parameters."""

    def subscription(
        self, parameters: Parameters, id: str, text: str, prefixes: Mapping[str, str], base: str
    ) -> Subscription:
        """The subscription that parsing the text gives, deferred."""
        return Subscription.deferred(
            TemplateText(self, parameters),
            id=id,
            language=self.language,
            text=text,
            select=self.selected(parameters),
            ask=self.ask,
            prefixes=tuple(sorted(prefixes.items())),
            base=base,
            warnings=self.warnings,
        )


@dataclass(frozen=True, eq=False)
class Template(ParsedForm):
    """The parts of a subscription with example parameters: `stated` is its tree as parsed, `example_form` its normal
    form.

    `named` are the rules that an MDV text may name, were they there: names, or numbers of placeholders. `reserved`:
    contents that no parameter may have, since the tree has them already.
    """

    language: str
    placeholders: tuple[Placeholder, ...]
    select: tuple[str, ...]
    ask: bool
    stated: Where = field(repr=False)
    example_form: NormalForm
    warnings: tuple[str, ...] = ()
    named: tuple[str | int, ...] = ()
    reserved: frozenset[str] = frozenset()

    @cached_property
    def varying(self) -> tuple[int, ...]:
        """The placeholders that are not fixed."""
        return tuple([number for number, placeholder in enumerate(self.placeholders) if placeholder.kind != FIXED])

    @cached_property
    def has_variables(self) -> bool:
        """Are variables parameters?"""
        return any(placeholder.kind == VARIABLE for placeholder in self.placeholders)

    def replacement(self, parameters: Sequence[str]) -> Replacement:
        """The nodes of the examples, with those of the parameters."""
        nodes: Replacement = {}
        for number in self.varying:
            nodes |= self.placeholders[number].replacement(parameters[number])
        return nodes

    @cached_property
    def calls(self) -> tuple[tuple[str, tuple[Any, ...]], ...]:
        """The operator calls that have to hold: names and arguments, of which numbers are those of placeholders."""
        numbers: dict[Any, int] = {}
        for number in self.varying:
            numbers |= dict.fromkeys(self.placeholders[number].replacement(self.placeholders[number].example), number)
        return tuple(
            [
                (call.operator, tuple([numbers.get(argument, argument) for argument in call.arguments]))
                for call in self.example_form.asked
            ]
        )

    def asked(self, parameters: Parameters) -> tuple[CallKey, ...]:
        """The operator calls that have to hold, of the text with these parameters."""
        return tuple(
            [
                CallKey(name, tuple([term_of(parameters[a]) if isinstance(a, int) else a for a in arguments]))
                for name, arguments in self.calls
            ]
        )

    @cached_property
    def _selects(self) -> tuple[str | int, ...]:
        """The selected variables: names, or numbers of placeholders."""
        kinds = enumerate(self.placeholders)
        numbers = {content(holder.example): number for number, holder in kinds if holder.kind == VARIABLE}
        return tuple([numbers.get(name, name) for name in self.select])

    def selected(self, parameters: Parameters) -> tuple[str, ...]:
        """Those of the example, or the parameters that stand for them."""
        if not self.has_variables:
            return self.select
        names = [content(parameters[name]) if isinstance(name, int) else name for name in self._selects]
        return tuple(dict.fromkeys(names))

    def where(self, parameters: Parameters) -> Where:
        """The tree of the example, with these parameters."""
        return replaced(self.stated, self.replacement(parameters))

    def normal_form(self, parameters: Parameters) -> NormalForm:
        """The normal form of the example, with these parameters."""
        return replaced(self.example_form, self.replacement(parameters))

    def rules(self, parameters: Parameters) -> tuple[str, ...]:
        """Those of the example, or the parameters that name them."""
        return tuple([content(parameters[name]) if isinstance(name, int) else name for name in self.named])

    def parts(self, parameters: Parameters) -> Iterable[tuple[Template, Parameters]]:
        """The template itself, as the only part."""
        return ((self, parameters),)


@dataclass(frozen=True, slots=True, eq=False)
class Conjunction(ParsedForm):
    """A conjunction of templates, made by `triplewire.languages.templates.conjunctions`. Its parameters are those of
    the templates, one behind the other. It selects all variables, or those that are named."""

    language: str
    templates: tuple[Template, ...]
    ask: bool = False
    warnings: tuple[str, ...] = ()  # a template with warnings is no part of a conjunction
    names: tuple[str, ...] | None = None

    def parts(self, parameters: Parameters) -> Iterator[tuple[Template, Parameters]]:
        """The templates, each with its parameters."""
        start = 0
        for template in self.templates:
            end = start + len(template.placeholders)
            yield template, parameters[start:end]
            start = end

    def selected(self, parameters: Parameters) -> tuple[str, ...]:
        """Those that are named, or those of the templates, each once."""
        if self.names is not None:
            return self.names
        return tuple(dict.fromkeys(name for part, those in self.parts(parameters) for name in part.selected(those)))

    def normal_form(self, parameters: Parameters) -> NormalForm:
        """One clause, of those of the templates."""
        forms = [part.normal_form(those) for part, those in self.parts(parameters)]
        clauses = [form.clauses[0] for form in forms]
        patterns = _with_own_wildcards(pattern for clause in clauses for pattern in clause.patterns)
        tests = dict.fromkeys(test for clause in clauses for test in clause.tests)
        return NormalForm((Clause(tuple(patterns), tuple(tests)),), all(form.exact for form in forms))

    def where(self, parameters: Parameters) -> Where:
        """The patterns of the templates, then their filters."""
        trees = [part.where(those) for part, those in self.parts(parameters)]
        parts = [part for tree in trees for part in (tree.parts if isinstance(tree, And) else (tree,))]
        return And(tuple(sorted(parts, key=lambda part: not isinstance(part, Pattern))))


def _with_own_wildcards(patterns: Iterable[Positions]) -> tuple[Positions, ...]:
    """The patterns, each once, in which each wildcard has a number of its own."""

    def is_wildcard(term: object) -> bool:
        return isinstance(term, Variable) and term.name.startswith("*")

    numbers = count(1)
    first = {tuple(["*" if is_wildcard(term) else term for term in pattern]): pattern for pattern in patterns}
    return tuple(
        [tuple([Variable(f"*{next(numbers)}") if is_wildcard(term) else term for term in p]) for p in first.values()]  # type: ignore[misc]  # of three terms
    )


def replaced(node: T, replacement: Replacement) -> T:
    """The tree with other leaves."""
    return rewrite(node, LEAVES, lambda leaf: replacement.get(leaf, leaf))


def leaves(root: object, kinds: Container[type] = LEAVES) -> Iterator[object]:
    """The nodes of these types in a tree, by default those that a parameter may stand for; in no particular order."""
    stack = [root]
    while stack:
        node = stack.pop()
        if type(node) in kinds:
            yield node
        else:
            stack.extend(children(node))
