"""The small changes of a query's text that relax it: what `nearest` chooses from.

A part may be left out: a condition, a triple pattern, an operand of ftAND, a word of a phrase. A constant may become
one that the publication has: a number or a text that is near, a similar name, a class above it, or the wildcard. Edits
are made on the text, where the parser has noted its parts (`triplewire.languages.context.Written`), so every language
has them, and what is left of the text stays as its author wrote it. Whether an edited text can be parsed, and matches,
is asked afterwards.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import combinations

from triplewire.ir.nodes import Label
from triplewire.ir.subscription import Subscription
from triplewire.ir.taxonomy import Taxonomy
from triplewire.ir.walk import walk
from triplewire.languages.context import Written
from triplewire.model.publication import Publication
from triplewire.model.terms import IRI, Literal, shortened

_MOST_VALUES = 6  # of the publication, that are tried in the place of one constant
_ALIKE = 0.6  # similarity (Ratcliff and Obershelp) from which a name may have been meant
_WORDS = 4  # of a phrase of which each selection is tried; of a longer one, each run of words
_GAPS = (5, 10, 20, 50, 100)
_NUMBER = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)")
_OR_EQUAL = {"<": "<=", ">": ">="}
_LONGEST = 200  # characters of a text of the publication that is tried, or compared
_NEAREST, _WIDER, _LOOSER, _WILDCARD, _LEFT_OUT = range(5)  # what is tried first among edits of the same cost


@dataclass(frozen=True, slots=True)
class Edit:
    """Replace the characters from `begin` to `end` by `text`. `cost`: how many parts change. `rank`: see above.
    `place`: list and item in `Written.conjuncts`, of one that is left out with its separator."""

    begin: int
    end: int
    text: str
    cost: int
    rank: int
    said: str
    place: tuple[int, int] | None = None

    def overlaps(self, other: Edit) -> bool:
        """Do they change the same characters?"""
        return self.begin < other.end and other.begin < self.end

    def within(self, other: Edit) -> bool:
        """Is what it changes a part of what the other one changes?"""
        return other.begin <= self.begin and self.end <= other.end


def edited(written: Written, edits: Iterable[Edit]) -> str:
    """The text with these edits, which do not overlap; "" where they leave out all parts of a list."""
    spans: list[tuple[int, int, str]] = []
    left_out: dict[int, set[int]] = {}
    for edit in edits:
        if edit.place is None:
            spans.append((edit.begin, edit.end, edit.text))
        else:
            left_out.setdefault(edit.place[0], set()).add(edit.place[1])
    for number, items in left_out.items():
        places = _items(written, number)
        first = next((item for item in range(len(places)) if item not in items), None)
        if first is None:
            return ""
        if first:
            spans.append((places[0][0], places[first][0], ""))
        spans += [(places[item - 1][1], places[item][1], "") for item in items if item > first]
    text, at, out = written.text, 0, []
    for begin, end, new in sorted(spans):
        if begin > at:
            out.append(text[at:begin])
        out.append(new)
        at = max(at, end)
    return "".join([*out, text[at:]])


def _items(written: Written, number: int) -> list[tuple[int, int]]:
    """Begin and end of each item of a list of conjuncts, without separators."""
    begins, end = written.conjuncts[number]
    offsets = [offset for _, _, offset in written.tokens]
    ends = []
    for begin in begins[1:]:
        _, text, offset = written.tokens[offsets.index(begin) - 2]  # before the separator
        ends.append(offset + len(text))
    return list(zip(begins, [*ends, end], strict=True))


class Edits:
    """All edits of a text that can help it match a publication, the cheapest first."""

    def __init__(
        self, written: Written, subscription: Subscription, publication: Publication, taxonomy: Taxonomy
    ) -> None:
        self._written = written
        self._and = " AND " if subscription.language == "keywords" else " ftAND "
        self._wildcard = subscription.language in ("sparql", "gql")
        self._taxonomy = taxonomy
        self._named = [node for node in walk(subscription.where) if isinstance(node, IRI | Label)]
        terms = {term for triple in publication.triples for term in (triple.predicate, triple.object)}
        self._iris = sorted({term.value for term in terms if isinstance(term, IRI) and len(term.value) < _LONGEST})
        texts = {term.lexical for term in terms if isinstance(term, Literal) and len(term.lexical) < _LONGEST}
        self._numbers = sorted(text for text in texts if _NUMBER.fullmatch(text))
        self._texts = sorted(texts)
        self.left_out = sorted(self._parts(), key=lambda edit: (edit.begin - edit.end, edit.begin))
        """Those that leave a part out, the longest first."""
        everything = [*self._phrases(), *self._gaps(), *self._constants(), *self.left_out]
        self.all = sorted(everything, key=lambda e: (e.cost, e.rank, e.end - e.begin, e.begin))

    def _parts(self) -> Iterator[Edit]:
        written = self._written
        places: list[tuple[int, int, tuple[int, int] | None]] = []
        for number in range(len(written.conjuncts)):
            items = _items(written, number)
            for item, (begin, end) in enumerate(items):
                places.append((begin, end, (number, item) if len(items) > 1 else None))
        places += [(begin, end, None) for begin, end in written.parts]
        leaves = self._leaves([(begin, end) for begin, end, _ in places])
        for begin, end, place in places:
            cost = sum(begin <= first and last <= end for first, last in leaves)
            said = f"leave out {shortened(' '.join(written.text[begin:end].split()), 80)}"
            if place is not None or (begin, end) in written.parts:
                yield Edit(begin, end, "", max(cost, 1), _LEFT_OUT, said, place)

    def _leaves(self, places: Sequence[tuple[int, int]]) -> set[tuple[int, int]]:
        """The places that hold no other one; each word of a phrase is one."""
        words = [
            (begin + match.start(), begin + match.end())
            for begin, end in self._written.words
            for match in re.finditer(r"[^\s\"']+", self._written.text[begin:end])
        ]
        every = {*places, *words}
        trimmed = {(begin, begin + len(self._written.text[begin:end].rstrip(". \t\r\n"))) for begin, end in every}
        return {
            (begin, end)
            for begin, end in trimmed
            if not any((begin, end) != (b, e) and begin <= b and e <= end for b, e in trimmed)
        }

    def _phrases(self) -> Iterator[Edit]:
        """Fewer words of a phrase, or all of them in any order."""
        for begin, end in self._written.words:
            quoted = self._written.text[begin:end]
            quote = quoted[:3] if quoted[:3] in ('"""', "'''") else quoted[:1]
            words = quoted[len(quote) : -len(quote)].split()
            if len(words) < 2:
                continue
            joined = self._and.join(f"{quote}{word}{quote}" for word in words)
            yield Edit(begin, end, f"({joined})", 1, _LOOSER, f"the words of {quoted} in any order")
            yield from self._fewer(begin, end, quote, words)

    def _fewer(self, begin: int, end: int, quote: str, words: Sequence[str]) -> Iterator[Edit]:
        places = range(len(words))
        if len(words) <= _WORDS:
            chosen = [some_places for count in places for some_places in combinations(places, count)]
        else:
            chosen = [tuple(range(first, last)) for first in places for last in range(first + 1, len(words) + 1)]
        for selected in chosen:
            if selected and len(selected) < len(words):
                gone = " ".join(words[place] for place in places if place not in selected)
                text = f"{quote}{' '.join(words[place] for place in selected)}{quote}"
                yield Edit(begin, end, text, len(words) - len(selected), _LOOSER, f"without the words {gone!r}")

    def _gaps(self) -> Iterator[Edit]:
        """Wider gaps of ftNEAR, in any order, and ftAND in its place."""
        tokens = self._written.tokens
        for number, (_, text, begin) in enumerate(tokens[:-5]):
            if text.upper() != "FTNEAR" or tokens[number + 5][1] != "]":
                continue
            most = tokens[number + 4][1]
            end = tokens[number + 5][2] + 1
            if number + 6 < len(tokens) and tokens[number + 6][1].upper() == "UNORDERED":
                end = tokens[number + 6][2] + len("UNORDERED")
            was = self._written.text[begin:end]
            for gap in _GAPS:
                if most.isdigit() and gap > int(most):
                    for order in ("", " UNORDERED"):
                        new = f"ftNEAR[0,{gap}]{order}"
                        yield Edit(begin, end, new, 1, _WIDER, f"{new} in the place of {was}")
            yield Edit(begin, end, "ftAND", 1, _LOOSER, f"ftAND in the place of {was}")

    def _constants(self) -> Iterator[Edit]:
        """Constants of the publication in the place of those of the text."""
        written, words = self._written, {begin for begin, _ in self._written.words}
        inside = {offset for b, e in written.bare for _, _, offset in written.tokens if b <= offset < e}
        for number, (kind, text, begin) in enumerate(written.tokens):
            if kind == "field":
                yield Edit(begin, begin + len(text), "", 1, _WILDCARD, f"anywhere, not only in {text[:-1]}")
            if begin in inside or begin in words or kind not in ("number", "string", "iri", "name"):
                continue
            before = written.tokens[number - 1]
            if kind == "name" and before[1].upper() == "PREFIX":
                continue
            end = begin + len(text)
            if kind == "number":
                if before[1] in ("[", ",") and written.tokens[number + 1][1] in (",", "]"):
                    continue
                yield from self._other_numbers(number, begin, end, text)
            elif kind == "string":
                values = _alike(text.strip("\"'"), self._texts)
                yield from self._others(begin, end, text, [str(Literal(value)) for value in values])
                yield from self._fewer(begin, end, text[0], text.strip("\"'").split())
            else:
                yield from self._other_iris(begin, end, text)
        for begin, end in written.bare:
            text = written.text[begin:end]
            if _NUMBER.fullmatch(text):
                number = next(place for place, token in enumerate(written.tokens) if token[2] == begin)
                yield from self._other_numbers(number, begin, end, text)
                continue
            values = [str(Literal(value)) for value in _alike(text, self._texts)]
            yield from self._others(begin, end, text, values)
            yield from self._other_iris(begin, end, text)

    def _other_numbers(self, number: int, begin: int, end: int, text: str) -> Iterator[Edit]:
        """Numbers of the publication, the nearest first; behind < or >, with the bound itself."""
        tokens = self._written.tokens
        if tokens[number - 1][1] in ("+", "-") and tokens[number - 1][2] == begin - 1:
            number, begin, text = number - 1, begin - 1, tokens[number - 1][1] + text
        _, op, at = tokens[number - 1]
        near = sorted(self._numbers, key=lambda value: (abs(float(value) - float(text)), value))[:_MOST_VALUES]
        yield from self._others(begin, end, text, near)
        if op in _OR_EQUAL:
            was = self._written.text[at:end]
            yield from self._others(at, end, was, [f"{_OR_EQUAL[op]} {value}" for value in near])

    def _other_iris(self, begin: int, end: int, text: str) -> Iterator[Edit]:
        """Classes above the one that is named, the nearest first; names of the publication that are like it."""
        name = re.split(r"[/#:]", text.strip("<>"))[-1]
        above: dict[str, int] = {}
        for node in self._named:
            named = node.value if isinstance(node, IRI) else node.text
            if name and named.endswith(name):
                for cls in self._taxonomy.resolve(node):
                    for step, upper in enumerate(_by_distance(self._taxonomy, cls)):
                        above.setdefault(upper, step)
        values = [*sorted(above, key=lambda cls: (above[cls], cls)), *_alike(name, self._iris, _local)]
        yield from self._others(begin, end, text, [f"<{value}>" for value in values])
        if self._wildcard:
            yield Edit(begin, end, "*", 1, _WILDCARD, f"anything in the place of {text}")

    @staticmethod
    def _others(begin: int, end: int, was: str, values: Iterable[str]) -> Iterator[Edit]:
        for value in values:
            if value != was:
                yield Edit(begin, end, value, 1, _NEAREST, f"{value} in the place of {was}")


def _local(iri: str) -> str:
    return re.split(r"[/#:]", iri)[-1]


def _alike(text: str, known: Iterable[str], of: Callable[[str], str] = str) -> list[str]:
    """The known texts of which this part is like the text, the most alike first."""
    ratios = []
    matcher = SequenceMatcher(b=text.casefold()[:_LONGEST], autojunk=False)
    for value in known:
        matcher.set_seq1(of(value).casefold())
        if matcher.quick_ratio() >= _ALIKE and (ratio := matcher.ratio()) >= _ALIKE:
            ratios.append((-ratio, value))
    return [value for _, value in sorted(ratios)[:_MOST_VALUES]]


def _by_distance(taxonomy: Taxonomy, cls: str) -> Iterator[str]:
    """The classes above one, those that are the fewest steps away first."""
    seen, level = {cls}, [cls]
    while level:
        level = sorted({up for low in level for up in taxonomy.superclasses.get(low, ()) if up not in seen})
        seen.update(level)
        yield from level
