"""Random subscriptions in all languages over one small vocabulary, as trees that can be made smaller.

SPARQL's groups are those of `agreement.queries`, with what only Triplewire has: `*`, ftcontains, operator calls. They
leave out nothing for the sake of other engines. Publications that they meet: `agreement.publications`.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from agreement.queries import OUTERMOST, Block, Element, Generator, Group, Query, Vocabulary

TERMS = "http://e/"
LANGUAGES = ("sparql", "gql", "rdql", "mdv", "predicates", "keywords")
WORDS = ("one", "two", "three", "Olympic", "games", "Straße", "résumé", "1", "c")
NUMBERS = ("0", "1", "2", "01", "1.0", "1.50", "-1", "+1", ".5", "1e0", "10")
DATES = ("2020-02-29", "2021-01-01", "1999-12-31", "2020-02-29T10:11:12Z", "2020-02-29T12:11:12")
PIECES = ("", "a", "one", "two t", "1", "É", "http", "x\\ny")
CLASSES = ("C", "D", "E", "F")


@dataclass(frozen=True)
class Tree:
    """A text made of pieces; `before` and `after` may be parentheses or a keyword."""

    parts: tuple[Piece, ...]
    between: str = " "
    before: str = ""
    after: str = ""

    def __str__(self) -> str:
        return self.before + self.between.join(map(str, self.parts)) + self.after

    def smaller(self) -> Iterator[Piece]:
        """Every tree with one piece less, and every piece in its place."""
        for at, part in enumerate(self.parts):
            yield replace(self, parts=self.parts[:at] + self.parts[at + 1 :])
            if isinstance(part, Tree):
                for less in part.smaller():
                    yield replace(self, parts=(*self.parts[:at], less, *self.parts[at + 1 :]))
        yield from (part for part in self.parts if len(self.parts) > 1 or self.before)


Piece: TypeAlias = "str | Tree"


@dataclass(frozen=True)
class Standing:
    """A subscription's language and text."""

    language: str
    query: Query | Piece

    @property
    def text(self) -> str:
        """The text; prefixes are declared in it."""
        return self.query.text if isinstance(self.query, Query) else str(self.query)

    def smaller(self) -> Iterator[Standing]:
        """The same with one element less. Not all are texts of the language."""
        if not isinstance(self.query, str):
            yield from (Standing(self.language, less) for less in self.query.smaller())


def full_text(chance: random.Random, depth: int = 2) -> str:
    """A full-text expression."""
    if depth > 0 and chance.random() < 0.45:
        left, right = full_text(chance, depth - 1), full_text(chance, depth - 1)
        if chance.random() < 0.3:
            first, second = chance.choice(WORDS), chance.choice(WORDS)
            near = f'"{first}" ftNEAR[{chance.randrange(2)},{chance.randrange(1, 4)}] "{second}"'
            return f"({near}{chance.choice(('', ' UNORDERED'))})"
        return chance.choice(
            (
                f"({left} ftAND {right})",
                f"({left} ftOR {right})",
                f"(ftNOT {left})",
            )
        )
    words = chance.choices(WORDS, k=chance.choice((1, 1, 1, 2)))
    if chance.random() < 0.2:
        words[-1] = words[-1][:2] + "*"
    option = chance.choice(("",) * 8 + (' USING STEMMING "en"', " USING DIACRITICS INSENSITIVE"))
    return f'"{" ".join(words)}"{option}' if "*" not in words[-1] else f'"{" ".join(words)}"'


class Sparql(Generator):
    """Queries without the oracle's exceptions. `rich`: groups in groups; else a few patterns and filters."""

    def __init__(self, chance: random.Random, vocabulary: Vocabulary, *, rich: bool) -> None:
        super().__init__(chance, vocabulary)
        self.rich = rich

    def query(self) -> Query:
        """A random query."""
        self._bound = 0
        if self.rich:
            return replace(super().query(), group=self.group(OUTERMOST))
        elements: list[Element] = [self.triples()]
        for _ in range(self.chance.choice((0, 1, 1, 2, 2))):
            elements.append(self.pick(self.triples, self.filter, self.filter))
        if self.chance.random() < 0.3:
            elements.append(self.element(1))
        return Query(self.chance.choice(("", "*", "*", "?a", "?a ?b", "?b ?c")), tuple(elements))

    def group(self, depth: int) -> Group:
        """Nothing is left out inside of groups."""
        elements: list[Element] = [self.triples()]
        for _ in range(self.chance.choice((0, 1, 1, 1, 2, 2))):
            self._outermost, self._inverse = True, False
            elements.append(self.element(depth))
        return tuple(elements)

    def inner(self, depth: int) -> Group:
        """So is EXISTS."""
        return self.group(min(depth, 0))

    def object(self) -> str:
        """A variable, a constant or `*`."""
        pick = self.chance.random()
        return self.variable() if pick < 0.6 else self.constant() if pick < 0.93 else "*"

    def triples(self) -> str:
        """Sometimes with `*` or a constant as subject."""
        pick = self.chance.random()
        if pick < 0.06:
            return f"* {self.chance.choice(self.vocabulary.predicates)} {self.object()} ."
        if pick < 0.14:
            return f"{self.chance.choice(self.vocabulary.nodes)} {self.predicate()} {self.object()} ."
        if pick < 0.18:
            cls = self.chance.choice(CLASSES)
            return f"{self.variable()} <{RDF}type>/<{RDFS}subClassOf>* :{cls} ."
        return super().triples()

    def predicate(self) -> str:
        """Sometimes `*`, seldom a path."""
        pick = self.chance.random()
        if pick < 0.06:
            return "*"
        if pick < 0.7:
            return self.chance.choice(self.vocabulary.predicates)
        if pick < 0.74:
            iri = self.chance.choice(self.vocabulary.predicates)
            return self.chance.choice((f"^{iri}", f"(^{iri}|{iri})/{iri}", f"!({iri}|:q)", f"!(^{iri}|:p)"))
        return super().predicate()

    def condition(self, depth: int) -> str:
        """Full text, too; simple ones more often."""
        pick = self.chance.random()
        if pick < 0.15:
            return f"ftcontains({self.variable()}, {full_text(self.chance)})"
        if pick < 0.35:
            op = self.chance.choice(("=", "!=", "<", "<=", ">", ">="))
            return f"{self.variable()} {op} {self.chance.choice((self.constant(), *self.vocabulary.literals[:4], '1'))}"
        if pick < 0.38:
            return self.chance.choice(
                ("op:language('en')", f"op:has({self.variable()})", "op:has('one')", "op:fromSource('http://e/a')")
            )
        return super().condition(depth)

    def element(self, depth: int) -> Element:
        """A call, too."""
        if self.chance.random() < 0.03:
            return f"CALL op:pick({self.variable()}, {self.variable()})"
        found = super().element(depth)
        if isinstance(found, Block) and found.keyword == "FILTER EXISTS" and self.chance.random() < 0.3:
            return replace(found, keyword="FILTER NOT EXISTS")
        return found


RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
RDFS = "http://www.w3.org/2000/01/rdf-schema#"


class Bare:
    """Texts of the languages other than SPARQL."""

    def __init__(self, chance: random.Random, vocabulary: Vocabulary, classes: Sequence[str]) -> None:
        self.chance = chance
        self.vocabulary = vocabulary
        self.classes = classes

    def gql(self) -> Tree:
        """Tuples, then conditions on their variables."""
        tuples: list[Piece] = []
        names: list[str] = []
        for _ in range(self.chance.choice((1, 1, 1, 2, 2, 3))):
            s, p, o = self._subject(), self._predicate(), self._object()
            tuples.append(f"({s}, {p}, {o})")
            names += [term for term in (s, p, o) if term[0] == "?"]
        if self.chance.random() < 0.04:
            tuples.append("CALL pick(?a, ?b)")
            names += ["?a", "?b"]
        source = self.chance.choice((*[""] * 9, "FROM http://e/a ", "FROM <http://e/b>, nowhere, http://e/a "))
        text = Tree(tuple(tuples), " AND ", f"PREFIX : <{TERMS}>\nSELECT * {source}WHERE ")
        if not names or self.chance.random() < 0.25:
            return text
        conditions: list[Piece] = [
            self._condition(lambda: self._test(names), 2) for _ in range(self.chance.choice((1, 1, 2)))
        ]
        return Tree((text, Tree(tuple(conditions), " AND ", "SUCHTHAT (", ")")))

    def rdql(self) -> Tree:
        """Patterns, then conditions on their variables."""
        parts: list[Piece] = []
        for _ in range(self.chance.choice((1, 1, 2, 2, 3))):
            subject = self.chance.choice((self._name(), self._name(), *self.vocabulary.nodes[:2]))
            predicate = self.chance.choice((*self.vocabulary.predicates, self._name()))
            objects = (self._name(), self._name(), *self.vocabulary.nodes[:2], *self.vocabulary.literals, "1", "true")
            parts.append(f"({subject} {predicate}, {self.chance.choice(objects)})")
        names = [name for name in ("?a", "?b", "?c", "?d") if any(name in str(part) for part in parts)]
        source = self.chance.choice((*[""] * 9, "FROM <http://e/b>, <http://e/a> "))
        text = Tree(tuple(parts), " ", f"SELECT * {source}WHERE ", "")
        using = f" USING : FOR <{TERMS}>"
        if not names or self.chance.random() < 0.25:
            return Tree((text,), after=using)
        return Tree((text, self._condition(lambda: self._same(names), 2, "||")), " AND ", "", using)

    def _same(self, names: list[str]) -> str:
        """A condition of RDQL."""
        name, pick = self.chance.choice(names), self.chance.random()
        other = self.chance.choice((*names, *self.vocabulary.nodes, *self.vocabulary.literals, *NUMBERS[:4]))
        if pick < 0.3:
            return f"{name} {self.chance.choice(('eq', 'ne'))} {other}"
        if pick < 0.7:
            return f"{name} {self.chance.choice(('==', '!=', '<', '<=', '>', '>='))} {other}"
        if pick < 0.85:
            return f"{name} {self.chance.choice(('=~', '!~'))} /{self.chance.choice(('a', '^o', 'e$', '1', 'C'))}/i"
        return f"{name} + 1 >= {self.chance.choice((*names, '2', '1.5'))}"

    def mdv(self) -> Tree:
        """Classes, a where clause."""
        names = ["a", "b", "c"][: self.chance.choice((1, 1, 1, 2, 3))]
        classes = ", ".join(f"{self.chance.choice(self.classes)} {name}" for name in names)
        head = f"PREFIX : <{TERMS}>\nsearch {classes} register {self.chance.choice(names)}"
        if self.chance.random() < 0.1:
            return Tree((head,))
        return Tree((head, Tree((self._condition(lambda: self._comparison(names), 2, "or"),), " and ", "where ")))

    def predicates(self) -> Tree:
        """Calls, then constraints."""
        calls = ["language(en)", "has(one)", "has(1)", "locIn(0, 0, 10, 10)", "broken(:a)", "locIn(north, 0, 1, 1)"]
        items = self.chance.choices(("pick(?a, ?b)", "pick(?b, ?c)", *calls), (4, 3, 2, 2, 2, 2, 1, 1), k=2)
        names = [name for name in ("?a", "?b", "?c") if any(name in item for item in items)]
        if names:
            for _ in range(self.chance.choice((0, 1, 1, 2))):
                items.append(self._constraint(names))
        return Tree(tuple(items), ", ", f"PREFIX : <{TERMS}>\n")

    # --- GQL

    def _name(self) -> str:
        return "?" + self.chance.choice("aaabbcd")

    def _subject(self) -> str:
        pick = self.chance.random()
        if pick < 0.65:
            return self._name()
        return "*" if pick < 0.75 else self.chance.choice(self.vocabulary.nodes)

    def _predicate(self) -> str:
        pick = self.chance.random()
        if pick < 0.1:
            return self._name()
        return "*" if pick < 0.2 else self.chance.choice(self.vocabulary.predicates)

    def _object(self) -> str:
        pick = self.chance.random()
        if pick < 0.55:
            return self._name()
        return "*" if pick < 0.62 else self._constant()

    def _constant(self) -> str:
        """An IRI, a quoted literal, a number, a date, or a label."""
        of = self.chance.choice((self.vocabulary.nodes, self.vocabulary.literals, NUMBERS, DATES, (*CLASSES, "a", "b")))
        return self.chance.choice(of)

    def _condition(self, leaf: Callable[[], str], depth: int, either: str = "OR") -> Piece:
        both, no = {"OR": ("AND", "NOT"), "or": ("and", "not"), "||": ("&&", "!")}[either]
        pick = self.chance.random()
        if depth == 0 or pick < 0.55:
            return leaf()
        inner = self._condition(leaf, depth - 1, either)
        if pick < 0.7:
            return Tree((inner,), before=f"{no} (", after=")")
        other = self._condition(leaf, depth - 1, either)
        return Tree((inner, other), f" {both if pick < 0.82 else either} ", "(", ")")

    def _operator(self) -> str:
        return self.chance.choice(("=", "=", "!=", "<", "<=", ">", ">="))

    def _test(self, names: list[str]) -> str:
        name, pick = self.chance.choice(names), self.chance.random()
        if pick < 0.3:
            return f"{name} {self._operator()} {self._constant()}"
        if pick < 0.38:
            return f"{name} {self._operator()} {self.chance.choice(names)}"
        if pick < 0.66:
            relation = self.chance.choice(("<=", "<=", "=", ">=", ""))
            cls = self.chance.choice((*self.classes, *self.classes, "<http://e/C>", "<http://e/D>", "unknown"))
            return f"{name} ISA {relation} {cls}"
        if pick < 0.8:
            return f'{name} CONTAINS "{self.chance.choice(PIECES)}"'
        if pick < 0.97:
            return f"{name} FTCONTAINS {full_text(self.chance)}"
        return self.chance.choice(("op:language(en)", f"op:has({name})", f"op:broken({name})"))

    # --- MDV

    def _path(self, names: list[str]) -> str:
        steps = self.chance.choices(self.vocabulary.predicates, k=self.chance.choice((1, 1, 1, 1, 1, 2, 2, 3)))
        if self.chance.random() < 0.1:
            steps[-1] = self.chance.choice(("p", "q?", ":p?"))
        return ".".join([self.chance.choice(names), *steps])

    def _comparison(self, names: list[str]) -> str:
        pick = self.chance.random()
        left = self.chance.choice(names) if pick < 0.12 else self._path(names)
        if pick < 0.35:
            return f"{left} {self._operator()} {self.chance.choice((self._path(names), *names))}"
        if pick < 0.55:
            return f"{left} contains '{self.chance.choice(PIECES)}'"
        quoted = [f"'{one}'" for one in (*WORDS, *NUMBERS, *DATES)]
        constants = [one for one in (*NUMBERS, *self.vocabulary.nodes) if one[0] not in "+-."]
        mine = [one for one in self.vocabulary.literals if one.count('"') == 2 and one[-1] == '"']
        right = self.chance.choice((self.chance.choice(quoted), self.chance.choice(constants), *mine[:4]))
        return f"{left} {self._operator()} {right}"

    # --- keywords

    def keywords(self) -> Piece:
        """Words, phrases and fields, of which the first has to be there."""
        must = Tree((self._keyword(), self._keyword(), self._keyword()), " OR ", "(", ")")
        terms = must, self._keywords(self.chance.choice((0, 1, 2, 3)))
        return Tree(terms, self.chance.choice((" ", " AND ", " AND NOT ")), f"PREFIX : <{TERMS}> ")

    def _keywords(self, depth: int) -> Piece:
        pick = self.chance.random()
        if depth == 0 or pick < 0.35:
            return self._keyword()
        inner = self._keywords(depth - 1)
        if pick < 0.5:
            return Tree((inner,), before="NOT (", after=")")
        return Tree((self._keyword(), inner), self.chance.choice((" ", " AND ", " OR ", " OR ", " -")), "(", ")")

    def _keyword(self) -> str:
        words = self.chance.choice((*WORDS, "o*", "t*", "o*", "e*", "1*", "one two", "two t*", "http"))
        field = self.chance.choice(("", "", "", "", ":p:", ":q:", ":r:", "title:", "link:"))
        return f'{field}"{words}"' if " " in words or self.chance.random() < 0.3 else field + words

    # --- operator predicates

    def _constraint(self, names: list[str]) -> str:
        name, pick = self.chance.choice(names), self.chance.random()
        if pick < 0.5:
            return (
                f"{name} {self._operator()} {self.chance.choice((*NUMBERS, *DATES, ':a', self.chance.choice(names)))}"
            )
        if pick < 0.65:
            return f"{name} + 1 {self._operator()} {self.chance.choice(names)} * 2"
        if pick < 0.75:
            return f"{name} ISA <= {self.chance.choice(CLASSES)}"
        if pick < 0.85:
            return f'{name} CONTAINS "{self.chance.choice(PIECES)}"'
        return f"{name} FTCONTAINS {full_text(self.chance)}"


def standing(
    chance: random.Random,
    language: str,
    vocabulary: Vocabulary,
    *,
    classes: Sequence[str] = (*CLASSES[:2], *CLASSES),
    rich: float = 0.3,
) -> Standing:
    """A random subscription; `rich` is the share of SPARQL's queries that have groups in groups."""
    if language == "sparql":
        return Standing(language, Sparql(chance, vocabulary, rich=chance.random() < rich).query())
    maker = Bare(chance, vocabulary, classes)
    return Standing(language, getattr(maker, language)())
