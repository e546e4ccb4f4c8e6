"""Builds a template from one text: parse it with example parameters, see where they stand, check more examples.

A parameter may vary where its example stands in the tree as a whole term, word or text, and nowhere else. Any other
parameter is fixed. Why that is enough: a token ends where a parameter ends, whatever its characters (`parameters` finds
no others), and a parser compares constants with each other, with those of the tree, and with terms of RDF and RDFS, but
looks at them in no other way. Further texts with odd parameters are parsed and must give what the template gives.
For which equal parameters a template must not be used: `Guard`. The templates of all texts that are the same beside
their parameters: `Variants`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from operator import itemgetter
from typing import Any, TypeAlias

from triplewire.errors import TriplewireError
from triplewire.ir.nodes import (
    AllOf,
    Analyzer,
    And,
    Bind,
    Call,
    Compare,
    Filter,
    FullText,
    Function,
    InstanceOf,
    Label,
    Pattern,
    TextAnd,
    TextRelation,
    TextTest,
    Variable,
    Where,
    Word,
)
from triplewire.ir.normal_form import Clause, NormalForm, normal_form
from triplewire.ir.subscription import Subscription
from triplewire.ir.walk import children, walk
from triplewire.languages.templates.template import (
    FIXED,
    IRI_KIND,
    LEAVES,
    LITERAL,
    NUMBER,
    TEXT,
    VARIABLE,
    WORD,
    Parameters,
    Placeholder,
    SplitText,
    Template,
    content,
    has_suffix,
    leaves,
    number_form,
)
from triplewire.model.terms import IRI, RDF, RDFS, XSD_STRING, Literal

_PARTS = frozenset([And, Pattern, Filter])
_CONDITIONS = frozenset([Compare, FullText, TextAnd, Word, Analyzer, TextTest, InstanceOf, AllOf])
_CONJUNCTION = _PARTS | _CONDITIONS | frozenset([Variable, IRI, Literal, Label])
_MOST_PARTS = 64

Part: TypeAlias = tuple[object, ...]
"""The kinds of nodes and the leaves of a pattern or a test in order; a placeholder is a `_Number`."""


@dataclass(frozen=True, slots=True)
class Guard:
    """What keeps a template from holding.

    `reserved`: contents that no parameter may have, since the tree has them already. `alike`: groups of parts that
    differ in their parameters only; each function takes those of one part. `compares`: the template holds for one
    pattern of equal parameters only.
    """

    reserved: frozenset[str]
    alike: tuple[tuple[Callable[[Parameters], Any], ...], ...] = ()
    compares: bool = False

    def allows(self, parameters: Parameters) -> bool:
        """Does the template hold for these parameters?"""
        if self.reserved and not self.reserved.isdisjoint(map(content, parameters)):
            return False
        if not self.alike or len(set(parameters)) == len(parameters):
            return True
        return all(len({key(parameters) for key in group}) == len(group) for group in self.alike)


@dataclass(frozen=True, slots=True)
class _Number:
    """A placeholder in a part, by its number; -1 for any."""

    number: int


def is_conjunction(where: Where, form: NormalForm) -> bool:
    """Is it a plain conjunction of patterns and conditions, of a size at which its parts can be compared?"""
    if len(form.clauses) != 1:
        return False
    clause = form.clauses[0]
    return len(clause.patterns) + len(clause.tests) <= _MOST_PARTS and all(type(n) in _CONJUNCTION for n in walk(where))


def guard_of_conjunction(clause: Clause, placeholders: tuple[Placeholder, ...]) -> Guard:
    """The guard of a plain conjunction."""
    numbers: dict[object, _Number] = {}
    for number, placeholder in enumerate(placeholders):
        for node in placeholder.replacement(placeholder.example):
            numbers[node] = _Number(number)
    alike: dict[Part, list[Callable[[Parameters], Any]]] = {}
    for item in (*clause.patterns, *clause.tests):
        part = tuple(_flattened(item, numbers))
        if used := [leaf.number for leaf in part if isinstance(leaf, _Number)]:
            anonymous = tuple([_Number(-1) if isinstance(leaf, _Number) else leaf for leaf in part])
            alike.setdefault(anonymous, []).append(itemgetter(*used))
    parts = (clause.patterns, tuple([test for _, test in clause.tests]))
    constants = [leaf for leaf in leaves(parts) if not isinstance(leaf, Variable) and leaf not in numbers]
    reserved = frozenset(_strings(tuple(constants)))
    return Guard(reserved, tuple([tuple(group) for group in alike.values() if len(group) > 1]))


def _strings(root: object) -> set[str]:
    """All strings in a tree."""
    return {str(text) for text in leaves(root, {str})}


def _flattened(node: object, numbers: dict[object, _Number]) -> Iterator[object]:
    """The members of a `Part`."""
    kind = type(node)
    if kind in LEAVES:
        yield numbers.get(node, node)
        return
    parts = children(node)
    yield kind if parts or kind is tuple else node
    if kind is tuple:
        yield len(parts)
    for part in parts:
        yield from _flattened(part, numbers)


# --- building --------------------------------------------------------------------------------------------------------

MOST_PARAMETERS = 256

Meant: TypeAlias = Callable[[Subscription], Subscription]
"""What is evaluated of a subscription."""

Compile: TypeAlias = Callable[[str, Mapping[str, Subscription]], Subscription]
"""Text and rules to subscription, as `triplewire.languages.parse` does with everything else given."""

_VOCABULARY = (f"<{RDF}type>", f"<{RDFS}subClassOf>")
_REGEX = ("REGEX", "REPLACE")
_POSSIBLE = {"<": (IRI_KIND,), " ": (NUMBER,), "?": (VARIABLE,)}
_CONTENTS = {  # the fields that hold a parameter; that of a number is one of a Literal or of a Label
    IRI_KIND: ["value"],
    LITERAL: ["lexical"],
    WORD: ["word"],
    TEXT: ["text"],
    VARIABLE: ["name"],
    NUMBER: ["lexical", "text"],
}


class _NoRules(dict[str, Subscription]):
    """An empty set of rules that records which ones were asked for."""

    def __init__(self) -> None:
        self.names: dict[str, None] = {}

    def __missing__(self, name: str) -> Subscription:
        self.names[name] = None
        raise KeyError(name)


_Example: TypeAlias = tuple[Subscription, tuple[str, ...]]
"""A text that was parsed, and the rules that it asked for."""

Equal: TypeAlias = tuple[int, ...]
"""For each parameter, the number of the first one that is equal to it."""


class TemplateBuilder:
    """Builds templates of one language. `compile` parses; `meant` makes of a subscription what is evaluated (RDFS
    entailment); `most` limits the clauses of the normal form; `any_term`: terms of RDF and RDFS may be parameters;
    `takes_any`: does an operator take any constants?"""

    def __init__(
        self,
        language: str,
        compile: Compile,
        meant: Meant,
        most: int,
        any_term: bool,
        takes_any: Callable[[str], bool],
    ) -> None:
        self._language = language
        self._compile = compile
        self._meant = meant
        self._most = most
        self._any_term = any_term
        # the arguments of other languages may have units
        self._takes_any = takes_any if language == "sparql" else (lambda operator: False)
        self.may_have_suffix = language not in ("mdv", "keywords")  # whose literals have no tag and no datatype
        self._last: tuple[str, _Example | None] = ("", None)

    def kinds(self, text: SplitText, equal: Equal | None) -> tuple[str, ...] | None:
        """The kind of each placeholder where no parameters are equal beyond `equal`; None where such texts have no
        template."""
        if len(text.parameters) > MOST_PARAMETERS:
            return None
        examples = _examples(text, frozenset(), equal)
        example = self._example(text, examples)
        return None if example is None else _kinds(example[0], examples, frozenset(), self._takes_any)

    def build(
        self, text: SplitText, kinds: Sequence[str], fixed: frozenset[int], equal: Equal | None
    ) -> tuple[Template, Guard] | None:
        """The template of a text, and for which parameters it holds; None where it has none.

        `fixed`: numbers of parameters that are those of this text for good. `equal`: None where all parameters are
        different, or where it does not matter.
        """
        examples = _examples(text, fixed, equal)
        example = self._example(text, examples)
        if example is None:
            return None
        stated, asked_rules = example
        wanted = tuple([FIXED if number in fixed else kind for number, kind in enumerate(kinds)])
        if _kinds(stated, examples, fixed, self._takes_any) != wanted:
            return None
        placeholders = tuple([Placeholder(*pair) for pair in zip(wanted, examples, strict=True)])
        meant = self._meant(stated)
        by_name = {content(p.example): number for number, p in enumerate(placeholders) if p.kind == IRI_KIND}
        template = Template(
            self._language,
            placeholders,
            stated.select,
            stated.ask,
            stated.where,
            normal_form(meant, most=self._most),
            stated.warnings,
            tuple([by_name.get(name, name) for name in asked_rules]),
        )
        if self._language != "mdv" and is_conjunction(meant.where, template.example_form):
            guard = guard_of_conjunction(template.example_form.clauses[0], placeholders)
        else:
            guard = Guard(frozenset(_strings(meant.where).difference(map(content, examples))), compares=True)
        odd = _odd_examples(placeholders, equal, self.may_have_suffix)
        if not self._agrees(text, template, guard, odd) or not self._agrees(text, template, guard, text.parameters):
            return None
        for term in _VOCABULARY if self._any_term else ():
            with_term = [term if parameter[0] == "<" else parameter for parameter in odd]
            if not self._agrees(text, template, None, with_term):
                return None
        return template, guard

    def _example(self, text: SplitText, parameters: Sequence[str]) -> _Example | None:
        """The parsed text with these parameters; the last one is remembered."""
        filled = text.filled(parameters)
        if self._last[0] != filled:
            rules, example = _NoRules(), None
            with suppress(TriplewireError):
                stated = self._compile(filled, rules)
                example = (stated, tuple(rules.names)) if stated.construct is None else None
            self._last = filled, example
        return self._last[1]

    def _agrees(self, text: SplitText, template: Template, guard: Guard | None, parameters: Sequence[str]) -> bool:
        """Is the text with these parameters what the template says? Without a guard, its tree only."""
        places = zip(template.placeholders, parameters, strict=True)
        values = tuple([place.example if place.kind == FIXED else parameter for place, parameter in places])
        stated, asked_rules = self._example(text, values) or (None, ())
        if stated is None or asked_rules != template.rules(values):
            return False
        expected = template.subscription(values, stated.id, stated.text, dict(stated.prefixes), stated.base)
        if stated != expected or stated.warnings != expected.warnings:
            return False
        if guard is None or not guard.allows(values):
            return True
        return normal_form(self._meant(stated), most=self._most) == template.normal_form(values)


def _examples(text: SplitText, fixed: frozenset[int], equal: Equal | None) -> Parameters:
    """Example parameters of the same form as those of the text, with contents that the text does not hold."""
    whole = text.filled(text.parameters)
    mark = next(mark for mark in (f"zq{number}k" for number in range(len(whole) + 1)) if mark not in whole)
    start = next(n for n in range(100_000, 101_000 + len(whole)) if str(n) not in whole)

    def example(number: int, parameter: str) -> str:
        if parameter[0] == "<":
            return f"<urn:{mark}{number:04}x>"
        if parameter[0] == " ":
            sign, point = "-" if parameter[1] == "-" else "", ".5" if "." in parameter else ""
            return f" {sign}{start}{number:04}{point}"
        return f"{parameter[0]}{mark}{number:04}x{'' if parameter[0] == '?' else parameter[0]}"

    return _all_examples(text.parameters, fixed, equal, example)


def _odd_examples(placeholders: Sequence[Placeholder], equal: Equal | None, suffixes: bool) -> Parameters:
    """Other parameters, with whatever characters may be in them."""

    def example(number: int, old: str) -> str:
        kind = placeholders[number].kind
        if kind == IRI_KIND:
            return f"<HTTP+x.1://Ü@h:8/a//./..//b's,(c)*~!$&;=%C3?q={number}&--#r_/[\u4e2d]:>"
        if kind == VARIABLE:
            return f"?V{number}_é0"
        if kind == WORD:
            return f"{old[0]}żó{number}łć{old[0]}"
        if kind == NUMBER:
            sign, point = "-" if old[1] == "-" else "", "0.500" if "." in old else ""
            return f" {sign}00{number}0{point}"
        quote = "'" if old[0] == '"' else '"'
        tag = ("@x-y1", "^^<urn:type:a#b>", "")[number % 3] if suffixes and kind == LITERAL else ""
        return f"{old[0]} {number} {quote}<a:b> ?x ,.;)]}}# -- AND * \t=! {old[0]}{tag}"

    fixed = {number for number, placeholder in enumerate(placeholders) if placeholder.kind == FIXED}
    return _all_examples([placeholder.example for placeholder in placeholders], fixed, equal, example)


def _all_examples(
    parameters: Sequence[str], fixed: Collection[int], equal: Equal | None, example: Callable[[int, str], str]
) -> Parameters:
    """An example for each parameter, but for those that are fixed; equal ones get the same."""
    examples: list[str] = []
    for number, parameter in enumerate(parameters):
        if number in fixed:
            examples.append(parameter)
        elif equal is not None and equal[number] != number:
            examples.append(examples[equal[number]])
        else:
            examples.append(example(number, parameter))
    return tuple(examples)


def _kinds(
    stated: Subscription, examples: Parameters, fixed: frozenset[int], takes_any: Callable[[str], bool]
) -> tuple[str, ...] | None:
    """The kind of each placeholder; None where an example stands in what must not vary."""
    kinds = {content(example): set[str]() for number, example in enumerate(examples) if number not in fixed}
    if not kinds:
        return (FIXED,) * len(examples)
    variables = {content(example) for example in examples if example[0] == "?"}
    others = [text for text in (*stated.select, *stated.warnings) if text not in variables]
    if any(example in text for text in others for example in kinds):
        return None
    for text, kind in _texts(stated.where, takes_any):
        if text in kinds:
            kinds[text].add(kind)
        else:
            for example in kinds:
                if example in text:
                    kinds[example].add(FIXED)
    kind_of = []
    for example in examples:
        its_kinds = tuple(kinds.get(content(example), ()))
        is_possible = len(its_kinds) == 1 and its_kinds[0] in _POSSIBLE.get(example[0], (LITERAL, WORD, TEXT))
        kind_of.append(its_kinds[0] if is_possible else FIXED)
    return tuple(kind_of)


def _texts(root: object, takes_any: Callable[[str], bool]) -> Iterator[tuple[str, str]]:
    """The texts of a tree, each with the kind of placeholder that it may be, or FIXED."""
    stack: list[tuple[object, bool]] = [(root, False)]
    while stack:
        node, blocked = stack.pop()
        kind = FIXED if blocked else _kind_of_node(node)
        contents = [getattr(node, name, None) for name in _CONTENTS.get(kind, ())]
        blocked = blocked or isinstance(node, Bind) or (isinstance(node, Function) and node.name in _REGEX)
        blocked = blocked or (isinstance(node, Call) and not takes_any(node.operator))
        for part in children(node):
            if isinstance(part, str):
                yield part, kind if any(part is text for text in contents) else FIXED
            else:
                stack.append((part, blocked))


def _kind_of_node(node: object) -> str:
    if isinstance(node, IRI):
        return IRI_KIND
    if isinstance(node, Variable):
        return VARIABLE
    if isinstance(node, Literal):
        return (LITERAL if node.datatype == XSD_STRING else NUMBER) if not node.language else FIXED
    if isinstance(node, Label):
        return FIXED if node.iri else NUMBER
    if isinstance(node, Word):
        return WORD if node.analyzer == Analyzer() else FIXED
    if isinstance(node, TextTest):
        return FIXED if node.relation is TextRelation.REGEX else TEXT
    return FIXED


# --- variants --------------------------------------------------------------------------------------------------------

Built: TypeAlias = tuple[Template, Guard] | None

Key: TypeAlias = tuple[tuple[tuple[int, str], ...], tuple[str, ...], Equal | None]
"""What of the parameters decides between the templates: those that are fixed here, each with its number; the forms of
the numbers; which parameters are equal, where that matters."""

USUAL: Key = ((), (), None)


class Variants:
    """The templates of the texts that are the same beside their parameters, by key.

    `built` has None for a key without a template; `kinds` is None where no key has one. `compares`: each pattern of
    equal parameters has a template of its own. `equal` says which variables are equal, if variables are parameters.
    """

    def __init__(
        self, builder: TemplateBuilder, text: SplitText, equal: Equal | None, is_word: Callable[[str], bool]
    ) -> None:
        self._builder = builder
        self._equal = equal
        self._is_word = is_word
        self.compares = False
        self.built: dict[Key, Built] = {}
        self.kinds = builder.kinds(text, equal)
        plain = (TEXT,) if builder.may_have_suffix else (TEXT, LITERAL)
        of_kinds = ((WORD,), plain, (FIXED,), (NUMBER,))  # plain: strings without tag and datatype
        self.words, self.plain, self.fixed, self.numeric = (
            tuple([number for number, kind in enumerate(self.kinds or ()) if kind in kinds]) for kinds in of_kinds
        )
        self._is_simple = not (self.words or self.plain or self.fixed or self.numeric)
        if any(text.parameters[number][0] == "?" for number in self.fixed):
            self.kinds = None

    def key(self, parameters: Parameters) -> Key:
        """The key of a text with these parameters."""
        if self._is_simple and not self.compares:
            return USUAL
        fixed = [(number, parameters[number]) for number in self.words if not self._is_word(parameters[number])]
        fixed += [(number, parameters[number]) for number in self.plain if has_suffix(parameters[number])]
        fixed += [(number, parameters[number]) for number in self.fixed]
        forms = [number_form(parameters[number]) for number in self.numeric]
        compares = self.compares and len(set(parameters)) < len(parameters)
        return tuple(fixed), tuple(forms), equal_to(parameters) if compares else None

    def build(self, key: Key, text: SplitText) -> Built:
        """Build the template of a text for its key. `compares` may become true; then all keys change."""
        assert self.kinds is not None
        fixed = frozenset([number for number, _ in key[0]])
        built = self._builder.build(text, self.kinds, fixed, key[2] or self._equal)
        if built is not None and built[1].compares and not self.compares:
            self.compares = True
            self.built.clear()
            if key[2] is None and len(set(text.parameters)) < len(text.parameters):
                built = self._builder.build(text, self.kinds, fixed, equal_to(text.parameters))
        return built


def equal_to(parameters: Parameters) -> Equal:
    """For each parameter, the number of the first one that is equal to it."""
    return tuple(map(parameters.index, parameters))
