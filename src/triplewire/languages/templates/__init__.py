"""Loading by template: texts that differ in their parameters only are parsed once.

`Templates.find_all` splits many texts by a kernel (`splitting`) and looks their templates up, those of all parts of one
form together (`families`). SPARQL queries of triples and conditions and GQL texts are taken part by part
(`conjunctions`), those of operator predicates call by call (`call_lists`), others as a whole. A template is built
and checked (`builder`) once several texts would have it, unless that was done for so many texts already that parsing
all of them in full would have been cheaper. What has no template is parsed in full by `triplewire.languages.parse`,
which also says what is wrong with it: no text that is refused has a template. What a template is: `template`.
"""

from __future__ import annotations

from array import array
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from triplewire.config import Settings
from triplewire.errors import TriplewireError
from triplewire.ir.evaluation.unknown import CallKey
from triplewire.ir.subscription import Subscription
from triplewire.languages import parse
from triplewire.languages.keywords import quoted
from triplewire.languages.templates import conjunctions
from triplewire.languages.templates.builder import Meant, TemplateBuilder
from triplewire.languages.templates.call_lists import LANGUAGE as CALLS
from triplewire.languages.templates.call_lists import CallLists
from triplewire.languages.templates.conjunctions import Head
from triplewire.languages.templates.families import Family, Form
from triplewire.languages.templates.splitting import (
    GQL,
    SPARQL,
    UNSURE,
    WHOLE,
    ParameterPool,
    Pool,
    Queries,
    SplitTexts,
    Texts,
)
from triplewire.languages.templates.template import (
    Conjunction,
    Environment,
    Parameters,
    Template,
    TemplateText,
    content,
    is_word,
)
from triplewire.model.operator import Operator, takes_any_constants
from triplewire.operators import built_in_operators

__all__ = ["Templates", "TextForms"]

T = TypeVar("T")

KEYWORDS = "keywords"
LANGUAGES = frozenset(["gql", "sparql", "mdv", KEYWORDS])
MOST_TEMPLATES = 65_536  # past that, or past so many environments or four times as many forms, all are forgotten
MOST_WORDS = 1_000_000  # parameters that are remembered as words or none
ADVANCE = 20_000  # texts that may be parsed for templates before as many were looked up
_MODES = {"gql": GQL, "sparql": SPARQL}
_NONE = -1
_VARIABLE = ord("?")


@dataclass
class TextForms:
    """What was found of some texts. `is_joined`: a text is a head and several templates; else it is one template, or,
    where it has no parts, none. `template`: of each part a place in `templates`, or of a head one in `heads`. `calls`:
    those that are all that a text says."""

    templates: Sequence[Template]
    heads: Sequence[Head]
    parameters: ParameterPool
    first: NDArray[np.int32]
    last: NDArray[np.int32]
    is_joined: NDArray[np.bool_]
    template: NDArray[np.int32]
    parameter_offset: NDArray[np.int32]
    parameter: NDArray[np.int32]
    calls: dict[int, tuple[CallKey, ...]]

    @classmethod
    def of(cls, texts: Sequence[TemplateText | None]) -> TextForms:
        """Those of texts whose templates are known already, None for one without."""
        templates: dict[Template, int] = {}
        heads: list[Head] = []
        pool = ParameterPool()
        is_joined = np.zeros(len(texts), np.bool_)
        offset, template, parameters, ends = [0], list[int](), list[str](), [0]
        for row, text in enumerate(texts):
            if text is not None and isinstance(form := text.form, Conjunction):
                is_joined[row] = True
                template.append(len(heads))
                heads.append(Head(form.language, "", form.ask, form.names is not None))
                parameters += [f"?{name}" for name in form.names or ()]
                ends.append(len(parameters))
            for part, its_parameters in text.form.parts(text.parameters) if text is not None else ():
                template.append(templates.setdefault(part, len(templates)))
                parameters += its_parameters
                ends.append(len(parameters))
            offset.append(len(template))
        number = pool.add(Texts.of([written.encode() for written in parameters]))
        columns = offset[:-1], offset[1:], template, ends
        first, last, of_part, end = (np.array(column, np.int32) for column in columns)
        return cls(list(templates), heads, pool, first, last, is_joined, of_part, end, number, {})

    @property
    def has_form(self) -> NDArray[np.bool_]:
        """Which texts have templates?"""
        return self.last > self.first

    def without(self, is_left_out: NDArray[np.bool_]) -> TextForms:
        """The same, where these texts have no template, and no other parts are there."""
        count = np.where(is_left_out, 0, self.last - self.first)
        offset = np.concatenate(([0], np.cumsum(count))).astype(np.int32)
        if offset[-1] == len(self.template):
            return self
        part = np.repeat(self.first - offset[:-1], count) + np.arange(offset[-1])
        lengths = np.diff(self.parameter_offset)[part]
        begin = np.concatenate(([0], np.cumsum(lengths))).astype(np.int32)
        parameter = self.parameter[np.repeat(self.parameter_offset[part] - begin[:-1], lengths) + np.arange(begin[-1])]
        columns = offset[:-1], offset[1:], self.is_joined, self.template[part], begin, parameter
        return TextForms(self.templates, self.heads, self.parameters, *columns, self.calls)

    def but(self, rows: NDArray[np.int64], whole: TextForms) -> TextForms:
        """The same, where these texts, which have no template, have those that they have as a whole."""
        first, last, is_joined = self.first.copy(), self.last.copy(), self.is_joined.copy()
        first[rows], last[rows] = whole.first + len(self.template), whole.last + len(self.template)
        is_joined[rows] = False
        template = np.concatenate((self.template, whole.template))
        offset = np.concatenate((self.parameter_offset[:-1], whole.parameter_offset + self.parameter_offset[-1]))
        columns = first, last, is_joined, template, offset, np.concatenate((self.parameter, whole.parameter))
        return TextForms(self.templates, self.heads, self.parameters, *columns, self.calls)

    @property
    def row_of_part(self) -> NDArray[np.int64]:
        """The text of each part."""
        count, row = self.last - self.first, np.zeros(len(self.template), np.int64)
        part = np.repeat(self.first - (np.cumsum(count) - count), count) + np.arange(count.sum())
        row[part] = np.repeat(np.arange(len(count)), count)
        return row

    @property
    def is_head(self) -> NDArray[np.bool_]:
        """Which parts are heads?"""
        is_head = np.zeros(len(self.template), np.bool_)
        is_head[self.first[self.is_joined & self.has_form]] = True
        return is_head

    def naming(self, ids: Texts, rules: Container[str]) -> NDArray[np.bool_]:
        """Which texts name other rules that are there?"""
        is_naming = np.zeros(len(self.first), np.bool_)
        alone = np.flatnonzero(self.has_form & ~self.is_joined)
        numbers = self.template[self.first[alone]]
        order = np.argsort(numbers, kind="stable")
        used, begins = np.unique(numbers[order], return_index=True)
        for number, texts in zip(used.tolist(), np.split(alone[order], begins[1:]), strict=False):
            begin = self.parameter_offset[self.first[texts]]
            for name in self.templates[number].named:
                if isinstance(name, str):
                    its = texts if name in rules else texts[:0]
                else:
                    parameter = self.parameter[begin + name]
                    distinct, which = np.unique(parameter, return_inverse=True)
                    is_rule = [content(self.parameters.text(its)) in rules for its in distinct.tolist()]
                    its = texts[np.array(is_rule, np.bool_)[which]]
                for row in its.tolist():
                    value = name if isinstance(name, str) else content(next(self.parts(row))[1][name])
                    is_naming[row] |= value.encode() != ids[row]
        return is_naming

    def parts(self, row: int) -> Iterator[tuple[int, Parameters]]:
        """The parts of a text: a template, or a head, and the parameters."""
        for part in range(int(self.first[row]), int(self.last[row])):
            numbers = self.parameter[self.parameter_offset[part] : self.parameter_offset[part + 1]].tolist()
            yield int(self.template[part]), tuple(map(self.parameters.text, numbers))

    def form(self, row: int) -> tuple[Template | Conjunction, Parameters]:
        """A text as a template, or a conjunction of some, and its parameters."""
        parts = list(self.parts(row))
        if not self.is_joined[row]:
            return self.templates[parts[0][0]], parts[0][1]
        (head, selected), *others = parts
        form = self.heads[head].joined([self.templates[number] for number, _ in others], selected)
        return form, tuple(parameter for _, parameters in others for parameter in parameters)


class Numbered(list[T]):
    """Things that are numbered as they come, each once."""

    def __init__(self) -> None:
        super().__init__()
        self._numbers: dict[T, int] = {}

    def number(self, thing: T) -> int:
        """The number of a thing, which is added where it is new."""
        number = self._numbers.setdefault(thing, len(self))
        if number == len(self):
            self.append(thing)
        return number


class Templates:
    """The templates of the texts that were met. For one thread at a time.

    `operators` and `settings` as for `triplewire.languages.parse`. `meant` makes of a subscription what is evaluated,
    if it differs (RDFS entailment). `parsed` counts the texts that were parsed in full to build and check templates.
    """

    def __init__(
        self,
        settings: Settings | None = None,
        operators: Mapping[str, Operator] | None = None,
        meant: Meant | None = None,
    ) -> None:
        self.settings = settings or Settings()
        self.parsed = 0
        self.parameters = ParameterPool()
        self._operators = operators
        self._meant = meant
        self._is_word = lru_cache(MOST_WORDS)(is_word)
        self._looked_up = 0
        known = built_in_operators() if operators is None else operators
        self._takes_any = lambda operator: operator in known and takes_any_constants(known[operator])
        self._call_lists = CallLists(self._parse, known, self.settings)
        self._clear()

    def _clear(self) -> None:
        """Forget all templates; then a form has to come twice again to have one."""
        self._skeletons = Pool()
        self._environments = Numbered[Environment]()
        self._scopes = Numbered[tuple[int, str | None]]()  # what parts are parsed with: environment, prologue of a head
        self._families: dict[int, Family] = {}
        self._head_places: dict[tuple[int, int], int] = {}  # environment, skeleton -> place, -1 for none
        self.templates: list[Template] = []
        self.heads: list[Head] = []
        self.patterns = array("i")  # of the first clause of each template
        self.trusted: dict[Template | Head, bool] = {}  # may it stand with others?

    def let_go(self) -> None:
        """End: forget all at once. Templates and those who build them refer to each other, and would stay until Python
        looks for garbage."""
        vars(self).clear()

    def find_all(self, queries: Queries) -> TextForms:
        """The templates and parameters of texts.

        A template is built when a second such text comes behind the first text of its form, or two come at once: many
        texts are the only one of their kind.
        Building takes several parses, and not more for all templates than texts came, beside an advance (`ADVANCE`):
        however many kinds of texts come in whatever order, they take at most twice as long as when parsed in full.
        """
        if max(len(self.templates), len(self._families) // 4, len(self._environments)) > MOST_TEMPLATES:
            self._clear()
        self._looked_up += len(queries)
        used, which = np.unique(queries.environment, return_inverse=True)
        stated = [queries.environments[number] for number in used.tolist()]
        languages = [language for language, _, _ in stated]
        modes = [_MODES.get(language, WHOLE) if language in LANGUAGES else UNSURE for language in languages]
        if self._meant is not None:
            modes = [mode if mode == UNSURE else WHOLE for mode in modes]
        mode = np.array(modes, np.uint8)[which]
        texts = self._with_quotes(queries.texts, np.array([its == KEYWORDS for its in languages], np.bool_)[which])
        mode[texts.lengths > self.settings.max_query_bytes] = UNSURE
        forms = self._looked_up_in(texts, mode, np.array(list(map(self._environments.number, stated)), np.int32)[which])
        for number in np.flatnonzero(np.array([language == CALLS for language in languages], np.bool_)[which]).tolist():
            if calls := self._call_lists.find(texts[number].decode(), stated[which[number]]):
                forms.calls[number] = calls
        return forms

    def _looked_up_in(self, texts: Texts, modes: NDArray[np.uint8], environment: NDArray[np.int32]) -> TextForms:
        """Each as `modes` says; what has no template in parts, as a whole."""
        split = SplitTexts(texts, modes, self._meant is not None)
        lookup = _Lookup(self, split, environment, texts)
        forms = lookup.forms.without(~lookup.good)
        again = np.flatnonzero(~lookup.good & (split.mode != WHOLE) & (split.mode != UNSURE))
        if not len(again):
            return forms
        whole = self._looked_up_in(texts.take(again), np.full(len(again), WHOLE, np.uint8), environment[again])
        return forms.but(again, whole)

    @staticmethod
    def _with_quotes(texts: Texts, is_keywords: NDArray[np.bool_]) -> Texts:
        """The texts, those of keywords with quotation marks around each word."""
        if not is_keywords.any():
            return texts
        each = zip(map(texts.__getitem__, range(len(texts))), is_keywords.tolist(), strict=True)
        return Texts.of([quoted(text.decode()).encode() if its else text for text, its in each])

    # --- what `_Lookup` asks for

    def skeletons(self, split: SplitTexts) -> NDArray[np.int32]:
        """The numbers of the skeletons of all parts."""
        return self._skeletons.add(split.skeletons)

    def head(self, environment: int, skeleton: int) -> int:
        """The place of a head, -1 where it is none of a conjunction."""
        place = self._head_places.get((environment, skeleton))
        if place is None:
            head = conjunctions.head_of(self._environments[environment][0], self._skeletons[skeleton])
            place = _NONE
            if head is not None:
                place = len(self.heads)
                self.heads.append(head)
            self._head_places[environment, skeleton] = place
        return place

    def scope(self, environment: int, head: int) -> int:
        """The number of what parts are parsed with: an environment and, with a head, its prologue."""
        return self._scopes.number((environment, None if head == _NONE else self.heads[head].prologue))

    def family(self, scope: int, skeleton: int) -> Family:
        """All parts of one form."""
        key = scope << 32 | skeleton
        family = self._families.get(key)
        if family is None:
            number, prologue = self._scopes[scope]
            environment = self._environments[number]
            form = Form.of(self._skeletons[skeleton], environment[0], prologue)
            builder = TemplateBuilder(
                environment[0],
                lambda text, rules: self._parse(text, environment, rules),
                self._meant or (lambda subscription: subscription),
                self.settings.max_branches,
                self._meant is None,
                self._takes_any,
            )
            family = self._families[key] = Family(
                form, builder, self.parameters, self._is_word, self._may_build, self._registered_template
            )
        return family

    def _registered_template(self, template: Template) -> int:
        clauses = template.example_form.clauses
        self.templates.append(template)
        self.patterns.append(len(clauses[0].patterns) if clauses else 0)
        return len(self.templates) - 1

    def _may_build(self) -> bool:
        """Is there no more work in templates than texts that they might have spared it?"""
        return self.parsed <= self._looked_up + ADVANCE

    def _parse(
        self, text: str, environment: Environment, rules: Mapping[str, Subscription] | None = None
    ) -> Subscription:
        """The subscription of a text, parsed in full."""
        self.parsed += 1
        language, base, prefixes = environment
        return parse(
            text,
            language,
            prefixes=dict(prefixes),
            base=base,
            operators=self._operators,
            rules=rules,
            settings=self.settings,
        )

    def trust(self, text: str, number: int, head: Head, form: Conjunction, parameters: Parameters) -> bool:
        """Compare a conjunction with its text parsed in full, and trust or refuse its parts from now on. `number`: of
        the environment."""
        environment = self._environments[number]
        try:
            stated = self._parse(text, environment)
        except TriplewireError:
            return False
        if conjunctions.says(form, parameters, stated, environment, self.settings.max_branches):
            self.trusted |= dict.fromkeys((head, *form.templates), True)
            return True
        new: list[Template | Head] = [part for part in form.templates if part not in self.trusted]
        self.trusted |= dict.fromkeys(new or [head], False)
        return False


class _Lookup:
    """The templates of the parts of some texts. `good`: which texts have templates that may stand together."""

    def __init__(self, templates: Templates, split: SplitTexts, environment: NDArray[np.int32], texts: Texts) -> None:
        self._templates, self._texts, self._environment = templates, texts, environment
        self.forms = TextForms(
            templates.templates,
            templates.heads,
            templates.parameters,
            split.part_offset[:-1],
            split.part_offset[1:],
            split.mode != WHOLE,
            np.full(split.parts, _NONE, np.int32),
            split.parameter_offset,
            templates.parameters.add(split.parameters),
            {},
        )
        self.good = self.forms.has_form
        skeleton, is_head, row_of_part = templates.skeletons(split), self.forms.is_head, self.forms.row_of_part
        key = self._scopes(environment, skeleton)[row_of_part] << 32 | skeleton
        key[is_head] = _NONE
        self._find(key)
        lacks = np.zeros(len(texts), np.bool_)
        lacks[row_of_part[self.forms.template < 0]] = True
        self.good &= ~lacks
        self._trust(is_head, row_of_part)
        self._bind(is_head, row_of_part)

    def _scopes(self, environment: NDArray[np.int32], skeleton: NDArray[np.int32]) -> NDArray[np.int64]:
        """The scope of each text; those whose head is none are not good. Heads get their places."""
        has_head = self.good & self.forms.is_joined
        heads = self.forms.first[has_head]
        skeleton_of_head = np.full(len(environment), _NONE, np.int32)
        skeleton_of_head[has_head] = skeleton[heads]
        pairs, which = np.unique(np.stack((environment, skeleton_of_head)), axis=1, return_inverse=True)
        which = which.reshape(-1)
        places, scopes = [], []
        for its_environment, its_skeleton in pairs.T.tolist():
            place = _NONE if its_skeleton < 0 else self._templates.head(its_environment, its_skeleton)
            places.append(place)
            scopes.append(self._templates.scope(its_environment, place))
        place_of_row = np.array(places, np.int32)[which]
        self.forms.template[heads] = place_of_row[has_head]
        self.good &= ~has_head | (place_of_row >= 0)
        return np.array(scopes, np.int64)[which]

    def _find(self, key: NDArray[np.int64]) -> None:
        """The templates of all parts, those with one key together."""
        if not len(key):
            return
        order = np.argsort(key, kind="stable")
        keys, begins = np.unique(key[order], return_index=True)
        offset = self.forms.parameter_offset
        for its_key, begin, end in zip(keys.tolist(), begins, [*begins[1:], len(order)], strict=True):
            if its_key == _NONE:
                continue
            parts = order[begin:end]
            count = int(offset[parts[0] + 1] - offset[parts[0]])
            numbers = self.forms.parameter[offset[parts][:, None] + np.arange(count)]
            family = self._templates.family(its_key >> 32, its_key & 0xFFFFFFFF)
            self.forms.template[parts] = family.templates(numbers)

    def _trust(self, is_head: NDArray[np.bool_], row_of_part: NDArray[np.int64]) -> None:
        """Texts whose parts may not stand together are no good."""
        template = self.forms.template
        is_asked = (self.good & self.forms.is_joined)[row_of_part] & (template >= 0)
        names = np.where(is_head, -1 - template, template)
        used, which = np.unique(names[is_asked], return_inverse=True)
        known, templates, all_heads = self._templates.trusted, self._templates.templates, self._templates.heads
        parts = [templates[name] if name >= 0 else all_heads[-1 - name] for name in used.tolist()]
        row = row_of_part[is_asked]
        is_new = np.array([part not in known for part in parts], np.bool_)
        new, rows = set(np.flatnonzero(is_new).tolist()), np.unique(row[is_new[which]])
        begins, ends = row.searchsorted(rows), row.searchsorted(rows, "right")
        for number, begin, end in zip(rows.tolist(), begins, ends, strict=True):
            its_parts = which[begin:end].tolist()
            if new.isdisjoint(its_parts) or any(known.get(parts[part]) is False for part in its_parts):
                continue
            text, environment = self._texts[number].decode(), int(self._environment[number])
            form, parameters = self.forms.form(number)
            assert isinstance(form, Conjunction)
            head = all_heads[template[self.forms.first[number]]]
            self.good[number] = self._templates.trust(text, environment, head, form, parameters)
            new.difference_update([part for part in its_parts if parts[part] in known])
        self.good[row[np.array([known.get(part) is False for part in parts], np.bool_)[which]]] = False

    def _bind(self, is_head: NDArray[np.bool_], row_of_part: NDArray[np.int64]) -> None:
        """Texts in which nothing binds a variable of the head or a condition, or with too many patterns, are none."""
        forms, joined = self.forms, self.good & self.forms.is_joined
        count = np.array([*self._templates.patterns, 0], np.int32)
        patterns = count[np.where(is_head | ~joined[row_of_part], _NONE, forms.template)]
        most = self._templates.settings.max_patterns
        self.good &= ~joined | (np.bincount(row_of_part, patterns, len(joined)) <= most)
        part = np.repeat(np.arange(len(forms.template)), np.diff(forms.parameter_offset))
        is_variable = (forms.parameters.first[forms.parameter] == _VARIABLE) & joined[row_of_part[part]]
        name = (row_of_part[part] << 32) | forms.parameter
        binds = is_variable & (patterns > 0)[part]
        unbound = is_variable & ~binds
        unbound[unbound] = ~np.isin(name[unbound], name[binds])
        self.good[row_of_part[part[unbound]]] = False
