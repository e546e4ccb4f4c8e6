"""Warnings of subscriptions that are registered by template: those that `Compiler.checked` gives, without the trees."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache, partial
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from triplewire.engine.compiler import class_warning
from triplewire.ir.advice.conditions import contradictions
from triplewire.ir.advice.places import FEED_TYPES, may_be_misplaced, misplaced, placed_conditions
from triplewire.ir.advice.questions import (
    CONDITIONS,
    Questions,
    conditions_of,
    questions_of,
    schema_of,
    schema_warning,
    term_warning,
)
from triplewire.ir.nodes import Call, Expression, Filter, In, InstanceOf
from triplewire.ir.taxonomy import Taxonomy
from triplewire.ir.walk import walk
from triplewire.languages.templates import TextForms
from triplewire.languages.templates.splitting import with_room
from triplewire.languages.templates.template import LITERAL, Conjunction, Parameters, Template, content, replaced

_MOST_KNOWN = 1 << 16  # entries of each cache
_DATATYPE = "^^<"
Form: TypeAlias = "Template | Conjunction"
_UNSEEN, _SILENT, _TOLD = 0, 1, 2


class TemplateAdvice:
    """What is said of texts by their templates. For one thread at a time."""

    def __init__(self, taxonomy: Taxonomy) -> None:
        self.of = lru_cache(_MOST_KNOWN)(_TemplateFacts)
        self._class_warning = lru_cache(_MOST_KNOWN)(partial(class_warning, taxonomy=taxonomy))
        self._state = np.zeros(0, np.uint8)  # parameter -> is there something to be said of its IRI?

    def tells(self, forms: TextForms) -> NDArray[np.bool_]:
        """Of which texts there may be something to say."""
        self._state = with_room(self._state, len(forms.parameters))
        distinct = np.unique(forms.parameter)
        for number in distinct[self._state[distinct] == _UNSEEN].tolist():
            iri = _iri_of(forms.parameters.text(number))
            tells = iri in FEED_TYPES or (iri and (schema_of(iri) or term_warning(iri)))
            self._state[number] = _TOLD if tells else _SILENT
        facts = [self.of(template) for template in forms.templates]
        numbers = np.where(forms.is_head, -1, forms.template)
        of_template = np.array([of.tells for of in facts] + [False], np.bool_)[numbers]
        counts = np.array([of.talks_with_others for of in facts] + [False], np.bool_)[numbers]
        told = np.concatenate(([0], np.cumsum(self._state[forms.parameter] == _TOLD)))
        before = np.concatenate(([0], np.cumsum(of_template)))
        others = np.concatenate(([0], np.cumsum(counts)))
        first, last, offset = forms.first, forms.last, forms.parameter_offset
        tells = (told[offset[last]] > told[offset[first]]) | (before[last] > before[first])
        tells |= (last - first > 2) & (others[last] > others[first])
        return np.asarray(tells & (last > first))

    def warnings(self, form: Form, parameters: Parameters) -> dict[str, None]:
        """The warnings that `Compiler.checked` gives the subscription of this text."""
        warnings = dict.fromkeys(form.warnings)
        schemas: set[int] = set()
        together: list[Expression] = []  # conditions of all parts of a conjunction
        parts, asks_places = list(form.parts(parameters)), False
        for part, values in parts:
            facts = self.of(part)
            schemas |= facts.schemas
            warnings |= facts.fixed
            for iri in filter(None, (_iri_of(values[number]) for number in facts.iris)):
                schemas.add(schema_of(iri))
                if warning := term_warning(iri):
                    warnings[warning] = None
            if facts.classes or facts.asks or facts.conditions:
                replacement = part.replacement(values)
                for cls in facts.classes:
                    if warning := self._class_warning(replaced(cls, replacement)):
                        warnings[warning] = None
                if facts.asks:
                    warnings |= dict.fromkeys(replaced(facts.asked, replacement).of_conditions())
                if len(parts) > 1:
                    together += replaced(facts.conditions, replacement)
            asks_places |= facts.asks_places
        if asks_places and len(parts) > 1:
            warnings |= dict.fromkeys(filter(None, map(misplaced, placed_conditions(form.where(parameters)))))
        warnings |= dict.fromkeys(contradictions(together))
        if warning := schema_warning(schemas):
            warnings[warning] = None
        return warnings


def _iri_of(parameter: str) -> str:
    """The IRI of a parameter, or that of its datatype; "" where it has none."""
    return content(parameter) if parameter[0] == "<" else parameter.partition(_DATATYPE)[2][:-1]


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
        placed = tuple([condition for condition in questions.placed if may_be_misplaced(condition, varying)])
        self.asked = replace(questions, unbound=(), iris=(), empty=(), placed=placed)
        self.asks = bool(questions.comparisons or questions.scopes or placed or questions.texts_for_classes)
        always = any(may_be_misplaced(condition, ()) for condition in placed)  # else for some predicates only
        self.asks_always = bool(questions.comparisons or questions.scopes or always or questions.texts_for_classes)
        self.asks_places = any(type(node) in CONDITIONS or isinstance(node, In) for node in nodes)
        self.conditions = conditions_of(template.stated)
        self.calls = any(isinstance(node, Call) for node in nodes)
        self.classes = [node.cls for node in nodes if isinstance(node, InstanceOf)]
        self.tells = bool(template.warnings or self.fixed or self.schemas - {0} or self.classes or self.asks_always)
        self.talks_with_others = bool(self.conditions) or self.asks_places
