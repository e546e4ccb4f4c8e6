"""Subscriptions that are registered one at a time, by template: `SingleTexts`.

look up what stands around the constants of the text, and what of these decides between templates
met for the first time: no template; for the second time: find it as for texts of files, which may build it
else: the form that was found then, with the constants of this text
"""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import chain, count
from typing import Any, TypeAlias

from triplewire.engine.compiler import Compiler
from triplewire.engine.segments.advice import TemplateAdvice
from triplewire.forks import new_lock
from triplewire.ir.subscription import Subscription
from triplewire.languages.keywords import quoted
from triplewire.languages.templates import KEYWORDS, LANGUAGES, Templates
from triplewire.languages.templates.splitting import Queries, split_whole
from triplewire.languages.templates.template import (
    FIXED,
    Conjunction,
    Environment,
    Parameters,
    Template,
    content,
    has_suffix,
    is_word,
    number_form,
)

MOST_FORMS = 1 << 16  # past that, all are forgotten

Key: TypeAlias = tuple[object, ...]


@dataclass(frozen=True, slots=True)
class _Known:
    """The form of texts that differ in their constants only. `layout`: of each parameter of the form, the number of a
    constant, or a variable. `reserved`: what no constant may be. `tells`: may there be something to say of all?"""

    form: Template | Conjunction
    layout: tuple[int | str, ...]
    reserved: frozenset[str]
    tells: bool


class SingleTexts:
    """The forms of texts that were registered one at a time. Any number of threads may use it."""

    def __init__(self, compiler: Compiler) -> None:
        self._compiler = compiler
        self._meant = None if compiler.entailment == "none" else compiler.meant
        self._code = lru_cache(MOST_FORMS)(_code)
        self._lock = new_lock()
        self._clear()

    def _clear(self) -> None:
        world = self._compiler.world
        self._templates = Templates(world.settings, world.operators, self._meant)
        self._advice = TemplateAdvice(self._compiler)
        self._fixed: dict[Key, tuple[int, ...]] = {}  # numbers of the constants that are part of the form
        self._known: dict[tuple[Key, Parameters], _Known | None] = {}  # with these constants; None: it has no form
        self._met: set[int] = set()  # hashes of such keys

    def subscription(self, row: Mapping[str, Any], rules: Container[str]) -> Subscription | None:
        """The subscription of a row, with all its warnings; None where its text has to be parsed in full. `rules`: the
        ids of those that it may name."""
        text, language, base, prefixes = row["query"], row["language"], row["base"], row["prefixes"] or {}
        stated = text, language, base, *chain(*prefixes.items())
        if language not in LANGUAGES or any(type(part) is not str for part in stated):
            return None
        with self._lock:
            known, constants = self._form(text, (language, base, tuple(prefixes.items())))
            if known is None or not known.reserved.isdisjoint(map(content, constants)):
                return None
            form = known.form
            parameters = tuple([place if isinstance(place, str) else constants[place] for place in known.layout])
            if any(name in rules for name in form.rules(parameters)):
                return None
            subscription = form.subscription(parameters, row["id"], text, prefixes, base)
            if known.tells or any(map(self._advice.tells_of, constants)):
                subscription = subscription.but(warnings=self._advice.warnings(form, parameters))
            return subscription

    def _form(self, text: str, environment: Environment) -> tuple[_Known | None, Parameters]:
        """The form of a text, None where it has none or is met for the first time; and its constants."""
        try:
            query = (quoted(text) if environment[0] == KEYWORDS else text).encode()
        except UnicodeEncodeError:
            return None, ()
        split = split_whole(query, self._meant is not None)
        if split is None or len(query) > self._compiler.world.settings.max_query_bytes:
            return None, ()
        skeleton, constants = split
        equal = tuple(map(constants.index, constants)) if len(set(constants)) < len(constants) else ()
        key = environment, skeleton, tuple(map(self._code, constants)), equal
        place = key, tuple([constants[number] for number in self._fixed.get(key, ())])
        if place not in self._known:
            if (number := hash(place)) not in self._met:  # two of the same only make a form come early
                self._met = {number} if len(self._met) >= MOST_FORMS else self._met
                self._met.add(number)
                return None, ()
            if len(self._known) >= MOST_FORMS:
                self._clear()
            known, fixed = self._found(text.encode(), environment, constants)
            if self._fixed.setdefault(key, fixed) != fixed:
                known = None
            self._known[key, tuple([constants[number] for number in self._fixed[key]])] = known
            return known, constants
        return self._known[place], constants

    def _found(
        self, query: bytes, environment: Environment, constants: Parameters
    ) -> tuple[_Known | None, tuple[int, ...]]:
        """The form of a text, and the numbers of the constants that are part of it."""
        forms = self._templates.find_all(Queries.of([query] * 2, [environment] * 2))
        if not forms.has_form[0]:
            return None, ()
        form, parameters = forms.form(0)
        parts = [part for part, _ in form.parts(parameters)]
        if tuple([parameter for parameter in parameters if parameter[0] != "?"]) != constants:
            return None, ()
        if any(self._advice.of(part).calls for part in parts):  # which operators may refuse
            return None, ()
        if isinstance(form, Conjunction):  # of texts with the same variables
            form = replace(form, names=form.selected(parameters))
        numbers = count()
        layout = tuple([parameter if parameter[0] == "?" else next(numbers) for parameter in parameters])
        holders = [holder for part in parts for holder in part.placeholders]
        fixed = tuple([n for n, holder in zip(layout, holders, strict=True) if holder.kind == FIXED and type(n) is int])
        reserved = frozenset(chain.from_iterable(part.reserved for part in parts))
        return _Known(form, layout, reserved, bool(self._advice.tells(forms)[0])), fixed


def _code(constant: str) -> object:
    """What of a constant decides between templates (`triplewire.languages.templates.families`)."""
    if constant[0] == "<":
        return None
    return number_form(constant) if constant[0] == " " else (has_suffix(constant), is_word(constant))
