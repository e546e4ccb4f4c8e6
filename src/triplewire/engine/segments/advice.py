"""Warnings of subscriptions that are registered by template: those that `Compiler.checked` gives, without the trees."""

from __future__ import annotations

from collections.abc import Container, Iterator
from dataclasses import replace
from functools import lru_cache, partial
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from triplewire.engine.compiler import Compiler, class_warning
from triplewire.ir.advice.conditions import contradictions
from triplewire.ir.advice.places import Placed, feed_type, may_be_misplaced, misplaced, placed_conditions
from triplewire.ir.advice.questions import (
    CONDITIONS,
    Questions,
    conditions_of,
    questions_of,
    schema_of,
    schema_warning,
    term_warning,
)
from triplewire.ir.nodes import Call, Compare, Expression, Filter, In, InstanceOf, Pattern, Values, Variable
from triplewire.ir.walk import walk
from triplewire.languages.templates import TextForms
from triplewire.languages.templates.splitting import with_room
from triplewire.languages.templates.template import (
    LITERAL,
    VARIABLE,
    Conjunction,
    Parameters,
    Template,
    content,
    leaves,
    replaced,
)
from triplewire.model.terms import IRI, Literal

_MOST_KNOWN = 1 << 16  # entries of each cache
_DATATYPE = "^^<"
Form: TypeAlias = "Template | Conjunction"
_UNSEEN, _SILENT, _TOLD = 0, 1, 2
_ASKED, _RESOURCE, _TYPED = 1, 2, 4
"""What a part says of a variable: a condition; that it is a subject or predicate; an object of what has a type."""


class TemplateAdvice:
    """What is said of texts by their templates. For one thread at a time."""

    def __init__(self, compiler: Compiler) -> None:
        self._compiler = compiler
        self.of = lru_cache(_MOST_KNOWN)(_TemplateFacts)
        self._class_warning = lru_cache(_MOST_KNOWN)(partial(class_warning, taxonomy=compiler.world.taxonomy))
        self.tells_of = lru_cache(_MOST_KNOWN)(_tells_of)
        self._state = np.zeros(0, np.uint8)  # parameter -> is there something to be said of its IRI?

    def tells(self, forms: TextForms) -> NDArray[np.bool_]:
        """Of which texts there may be something to say: by one of their templates, by an IRI, or as two parts speak of
        one variable."""
        self._state = with_room(self._state, len(forms.parameters))
        distinct = np.unique(forms.parameter)
        for number in distinct[self._state[distinct] == _UNSEEN].tolist():
            self._state[number] = _TOLD if self.tells_of(forms.parameters.text(number)) else _SILENT
        used, numbers = np.unique(np.where(forms.is_head, -1, forms.template), return_inverse=True)
        facts = [self.of(forms.templates[number]) for number in used[used >= 0].tolist()]
        numbers, row_of_part = numbers - (len(used) - len(facts)), forms.row_of_part  # -1 for a head
        part = np.repeat(np.arange(len(numbers)), np.diff(forms.parameter_offset))
        tells = np.zeros(len(forms.first), np.bool_)
        tells[row_of_part[np.array([of.tells for of in facts] + [False], np.bool_)[numbers]]] = True
        tells[row_of_part[part[self._state[forms.parameter] == _TOLD]]] = True
        roles = np.concatenate([np.zeros(0, np.uint8), *(of.roles for of in facts)])
        begin, has_role = np.cumsum([0, *(len(of.roles) for of in facts)]), numbers[part] >= 0
        place = np.arange(len(part)) - forms.parameter_offset[part]
        part, parameter = part[has_role], forms.parameter[has_role].astype(np.int64)
        role = roles[begin[numbers[part]] + place[has_role]]

        def named(wanted: int) -> NDArray[np.int64]:
            """Row and variable of each part that has one of this role."""
            pair = np.unique((part << 32 | parameter)[role & wanted > 0])
            return np.sort(row_of_part[pair >> 32] << 32 | pair & 0xFFFFFFFF)

        asked, resource, typed = named(_ASKED), named(_RESOURCE), named(_TYPED)
        for named_twice in (asked[1:][asked[1:] == asked[:-1]], typed[1:][typed[1:] == typed[:-1]]):
            tells[named_twice >> 32] = True
        for first, second in ((asked, resource), (asked, typed), (resource, typed)):
            tells[np.intersect1d(first, second) >> 32] = True
        return np.asarray(tells & forms.has_form)

    def warnings(self, form: Form, parameters: Parameters) -> tuple[str, ...]:
        """The warnings that `Compiler.checked` gives the subscription of this text, which it is asked for where their
        order matters."""
        warnings = dict.fromkeys(self._in_any_order(form, parameters))
        if len(warnings) < 2:
            return tuple(warnings)
        return self._compiler.checked(form.subscription(parameters, "", "", {}, "")).warnings

    def _in_any_order(self, form: Form, parameters: Parameters) -> Iterator[str]:
        """The same in any order."""
        yield from form.warnings
        schemas: set[int] = set()
        together: list[Expression] = []  # conditions of all parts of a conjunction
        parts = list(form.parts(parameters))
        asks_places = False
        for part, values in parts:
            facts = self.of(part)
            schemas |= facts.schemas
            yield from facts.fixed
            iris = list(filter(None, (_iri_of(values[number]) for number in facts.iris)))
            schemas.update(map(schema_of, iris))
            asks_places = asks_places or facts.asks_places or any(map(feed_type, iris))
            yield from filter(None, map(term_warning, iris))
            asked = facts.asked if len(parts) == 1 else facts.asked_apart
            if facts.classes or asked or facts.conditions:
                replacement = part.replacement(values)
                classes = (replaced(cls, replacement) for cls in facts.classes)
                yield from filter(None, map(self._class_warning, classes))
                if asked:
                    yield from replaced(asked, replacement).of_conditions()
                if len(parts) > 1:
                    together += replaced(facts.conditions, replacement)
        if asks_places and len(parts) > 1:
            yield from filter(None, map(misplaced, placed_conditions(form.where(parameters))))
        yield from contradictions(together)
        yield from filter(None, [schema_warning(schemas)])


def _iri_of(parameter: str) -> str:
    """The IRI of a parameter, or that of its datatype; "" where it has none."""
    return content(parameter) if parameter[0] == "<" else parameter.partition(_DATATYPE)[2][:-1]


def _tells_of(parameter: str) -> bool:
    """Is there something to be said of its IRI? Of a literal with a datatype there may be: its template was made of one
    that may have none."""
    iri, is_typed = _iri_of(parameter), parameter[0] != "<"
    return bool(iri and (is_typed or feed_type(iri) or schema_of(iri) or term_warning(iri)))


def _asks_literal(placed: Placed, varying: Container[str]) -> bool:
    """Is it a pattern whose object is a literal that other texts of the template may give a datatype?"""
    compared = placed.condition
    if not placed.is_pattern or not isinstance(compared, Compare) or not isinstance(compared.right, Literal):
        return False
    return compared.right.lexical in varying


class _TemplateFacts:
    """What a template calls, asks and selects, looked up once."""

    def __init__(self, template: Template) -> None:
        nodes = list(walk(template.stated))
        questions = questions_of(template.stated, nodes)
        varying = {content(template.placeholders[number].example): number for number in template.varying}
        fixed = [iri for iri in questions.iris if iri.value not in varying]
        self.iris = [varying[iri.value] for iri in questions.iris if iri.value in varying]
        self.iris += [n for n, holder in enumerate(template.placeholders) if holder.kind == LITERAL]  # its datatype
        self.schemas = {schema_of(iri.value) for iri in fixed}
        self.fixed = dict.fromkeys(filter(None, (term_warning(iri.value) for iri in fixed)))
        unbound = () if isinstance(template.stated, Filter) else questions.unbound  # other parts bind those
        self.fixed |= dict.fromkeys(Questions(unbound, (), (), (), questions.empty).warnings())
        placed = tuple(
            [
                condition
                for condition in questions.placed
                if may_be_misplaced(condition, varying) or _asks_literal(condition, varying)
            ]
        )
        apart = replace(questions, unbound=(), iris=(), empty=(), placed=())
        self.asked_apart = apart if apart.comparisons or apart.scopes or apart.texts_for_classes else None
        """What is asked of conditions by themselves."""
        self.asked = replace(apart, placed=placed) if placed else self.asked_apart
        always = bool(self.asked_apart)
        always |= any(may_be_misplaced(condition, ()) for condition in placed)  # others for some predicates only
        self.conditions = conditions_of(template.stated)
        self.calls = any(isinstance(node, Call) for node in nodes)
        self.classes = [node.cls for node in nodes if isinstance(node, InstanceOf)]
        self.tells = bool(template.warnings or self.fixed or self.schemas - {0} or self.classes or always)
        self.roles = np.zeros(len(template.placeholders), np.uint8)
        asking = [node for node in nodes if type(node) in CONDITIONS or isinstance(node, In | Values)]
        self.asks_places = bool(asking) or any(may_be_misplaced(condition, ()) for condition in placed)
        asked = {leaf for node in asking for leaf in leaves(node)}
        patterns = [node for node in nodes if isinstance(node, Pattern)]
        resources = {term for pattern in patterns for term in (pattern.subject, pattern.predicate)}
        typed = {p.object for p in patterns if isinstance(p.predicate, IRI) and feed_type(p.predicate.value)}
        for number, holder in enumerate(template.placeholders):
            if holder.kind == VARIABLE:
                variable = Variable(content(holder.example))
                self.roles[number] = (
                    _ASKED * (variable in asked) + _RESOURCE * (variable in resources) + _TYPED * (variable in typed)
                )
