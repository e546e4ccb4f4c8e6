"""Builds a template from one text: parse it with example parameters, see where they stand, check more examples.

A parameter may vary where its example stands in the tree as a whole term, word or text, and nowhere else. Any other
parameter is fixed. Why that is enough: a token ends where a parameter ends, whatever its characters (`parameters` finds
no others), and a parser compares constants with each other, with those of the tree, and with terms of RDF and RDFS, but
looks at them in no other way. Further texts with odd parameters are parsed and must give what the template gives.
A template holds for texts in which the same parameters are equal. The templates of all texts that are the same beside
their parameters: `triplewire.languages.templates.families`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import TypeAlias

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
from triplewire.ir.normal_form import NormalForm, normal_form
from triplewire.ir.subscription import Subscription
from triplewire.ir.walk import children, walk
from triplewire.languages.templates.template import (
    FIXED,
    IRI_KIND,
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
    leaves,
)
from triplewire.model.terms import IRI, RDF, RDFS, XSD_STRING, Literal

_PARTS = frozenset([And, Pattern, Filter])
_CONDITIONS = frozenset([Compare, FullText, TextAnd, Word, Analyzer, TextTest, InstanceOf, AllOf])
_CONJUNCTION = _PARTS | _CONDITIONS | frozenset([Variable, IRI, Literal, Label])
_MOST_PARTS = 64


def is_conjunction(where: Where, form: NormalForm) -> bool:
    """Is it a plain conjunction of patterns and conditions, of a size at which its parts can be compared?"""
    if len(form.clauses) != 1:
        return False
    clause = form.clauses[0]
    return len(clause.patterns) + len(clause.tests) <= _MOST_PARTS and all(type(n) in _CONJUNCTION for n in walk(where))


def _strings(root: object) -> set[str]:
    """All strings in a tree."""
    return {str(text) for text in leaves(root, {str})}


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

    def build(self, text: SplitText, kinds: Sequence[str], fixed: frozenset[int]) -> Template | None:
        """The template of texts in which the same parameters are equal as in this one. None where it has none.

        `fixed`: numbers of parameters that are those of this text for good.
        """
        equal = tuple(map(text.parameters.index, text.parameters))
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
            frozenset(_strings(meant.where).difference(map(content, examples))),
        )
        odd = _odd_examples(placeholders, equal, self.may_have_suffix)
        if not self._agrees(text, template, odd) or not self._agrees(text, template, text.parameters):
            return None
        for term in _VOCABULARY if self._any_term else ():
            with_term = [term if parameter[0] == "<" else parameter for parameter in odd]
            if not self._agrees(text, template, with_term, tree_only=True):
                return None
        return template

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

    def _agrees(
        self, text: SplitText, template: Template, parameters: Sequence[str], *, tree_only: bool = False
    ) -> bool:
        """Is the text with these parameters what the template says?"""
        places = zip(template.placeholders, parameters, strict=True)
        values = tuple([place.example if place.kind == FIXED else parameter for place, parameter in places])
        stated, asked_rules = self._example(text, values) or (None, ())
        if stated is None or asked_rules != template.rules(values):
            return False
        expected = template.subscription(values, stated.id, stated.text, dict(stated.prefixes), stated.base)
        if stated != expected or stated.warnings != expected.warnings:
            return False
        if tree_only or not template.reserved.isdisjoint(map(content, values)):
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
        escapes = rf"\{old[0]}\\n\\" if suffixes else ""
        return f"{old[0]} {number} {quote}<a:b> ?x ,.;)]}}# -- AND * \t=! {escapes}{old[0]}{tag}"

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
