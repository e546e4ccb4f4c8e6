"""Random SPARQL queries over a vocabulary, as trees that can be made smaller.

A query is a group: a list of elements, each a text (triples, FILTER, BIND, VALUES) or a Block around groups. What is
left out on purpose is listed in `test_sparql_oracle.EXCLUDED`.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TypeAlias

OUTERMOST = 2  # the depth at which a query's group begins
PREFIXES = "PREFIX : <http://e/> PREFIX xsd: <http://www.w3.org/2001/XMLSchema#>\n"


@dataclass(frozen=True)
class Block:
    """`keyword { group }`, or groups with the keyword UNION between them; no keyword: a nested group."""

    keyword: str
    groups: tuple[Group, ...]


Element: TypeAlias = "str | Block"
Group: TypeAlias = "tuple[Element, ...]"


@dataclass(frozen=True)
class Query:
    """`select` is what stands after SELECT, or empty for ASK."""

    select: str
    group: Group

    @property
    def text(self) -> str:
        """The query, one element a line."""
        form = f"SELECT {self.select}" if self.select else "ASK"
        return f"{PREFIXES}{form} WHERE {{\n{written(self.group, 1)}}}"

    def smaller(self) -> Iterator[Query]:
        """Every query with one element less, or with a block replaced by what is in it."""
        for group in _smaller(self.group):
            yield replace(self, group=group)


def written(group: Group, depth: int) -> str:
    """The elements of a group, each on lines of its own."""
    indent = "  " * depth
    out = ""
    for element in group:
        if isinstance(element, str):
            out += f"{indent}{element}\n"
        elif element.keyword == "UNION":
            groups = f"{indent}UNION\n".join(f"{indent}{{\n{written(g, depth + 1)}{indent}}}\n" for g in element.groups)
            out += groups
        else:
            out += f"{indent}{element.keyword} {{\n{written(element.groups[0], depth + 1)}{indent}}}\n"
    return out


def _smaller(group: Group) -> Iterator[Group]:
    for at, element in enumerate(group):
        before, after = group[:at], group[at + 1 :]
        yield before + after
        if isinstance(element, Block):
            for inner in element.groups:
                yield before + inner + after
            for number, inner in enumerate(element.groups):
                for less in _smaller(inner):
                    groups = (*element.groups[:number], less, *element.groups[number + 1 :])
                    yield (*before, replace(element, groups=groups), *after)


@dataclass(frozen=True)
class Vocabulary:
    """Terms in SPARQL's notation, which queries are made of. Literals are in canonical form."""

    predicates: tuple[str, ...]
    nodes: tuple[str, ...]
    literals: tuple[str, ...]


class Generator:
    """Makes queries. `plain`: filters are in the outermost group,
    filters compare with IRIs only, there is no VALUES, and nothing is computed."""

    def __init__(self, chance: random.Random, vocabulary: Vocabulary, *, plain: bool = False) -> None:
        self.chance = chance
        self.vocabulary = vocabulary
        self.plain = plain
        self._bound = 0  # how many names were made
        self._outermost = True  # is what is made next no part of a group inside a group?
        self._inverse = False  # may a path start against the arrow, so that its subject may be a literal?

    def query(self) -> Query:
        """A random query with at least one triple pattern."""
        self._bound = 0
        self._inverse = self.chance.random() < 0.15
        group = self.group(OUTERMOST)
        form = self.chance.random()
        if form < 0.08:
            return Query("", group)
        if form < 0.6:
            return Query("*", group)
        names = self.chance.sample("abcdef", self.chance.randint(1, 3))
        return Query(" ".join(f"?{name}" for name in names), group)

    def group(self, depth: int) -> Group:
        """Triples, then other elements."""
        elements: list[Element] = [self.triples()]
        for _ in range(self.chance.choice((0, 1, 1, 1, 2, 2, 3))):
            self._outermost = depth == OUTERMOST
            elements.append(self.element(depth))
        return tuple(elements)

    def element(self, depth: int) -> Element:
        """One element of a group."""
        simple: list[Callable[[], Element]] = [self.triples]
        if self._outermost or not self.plain:
            simple += [self.filter, self.filter]
        if not self.plain:
            simple.append(self.values)
        if not self.plain and not self._inverse:
            simple.append(self.bind)
        nested: list[Callable[[], Element]] = [
            lambda: Block("OPTIONAL", (self.group(depth - 1),)),
            lambda: Block("OPTIONAL", (self.group(depth - 1),)),
            lambda: Block("UNION", tuple(self.group(depth - 1) for _ in range(self.chance.choice((2, 2, 3))))),
            lambda: Block("", (self.group(depth - 1),)),
        ]
        if self._outermost:
            nested += [
                lambda: Block("MINUS", (self.group(depth - 1),)),
                lambda: Block("FILTER NOT EXISTS", (self.inner(depth - 1),)),
                lambda: Block("FILTER EXISTS", (self.inner(depth - 1),)),
            ]
        return self.chance.choice(simple + nested if depth > 0 else simple)()

    def inner(self, depth: int) -> Group:
        """A group for EXISTS: without MINUS, BIND and VALUES."""
        elements: list[Element] = [self.triples()]
        choices: list[Callable[[], Element]] = [self.triples, self.filter]
        if depth > 0:
            choices += [
                lambda: Block("OPTIONAL", (self.inner(depth - 1),)),
                lambda: Block("UNION", (self.inner(depth - 1), self.inner(depth - 1))),
                lambda: Block("FILTER NOT EXISTS", (self.inner(depth - 1),)),
            ]
        for _ in range(self.chance.choice((0, 0, 1, 2))):
            elements.append(self.chance.choice(choices)())
        return tuple(elements)

    # --- leaves ----------------------------------------------------------------------------------------------------

    def variable(self) -> str:
        """One of a few variables, so that they meet."""
        return "?" + self.chance.choice("aaabbbcccddeeff")

    def constant(self) -> str:
        """Any term of the vocabulary."""
        return self.chance.choice(self.chance.choice((self.vocabulary.nodes, self.vocabulary.literals)))

    def triples(self) -> str:
        """One to three triples that share variables more often than not."""
        rows = []
        subject = self.variable()
        for _ in range(self.chance.choice((1, 1, 1, 1, 2, 3))):
            rows.append(f"{subject} {self.predicate()} {self.object()} .")
            if self.chance.random() < 0.4:
                node = self.chance.choice(self.vocabulary.nodes)
                subject = self.chance.choice((self.variable(), self.variable(), self.variable(), node, "_:n", "[]"))
        if "_:n" in (text := " ".join(rows)):  # a label stands for one node in one basic graph pattern only
            self._bound += 1
            text = text.replace("_:n", f"_:n{self._bound}")
        return text

    def object(self) -> str:
        """What stands in the third place."""
        pick = self.chance.random()
        return self.variable() if pick < 0.9 else self.constant()

    def predicate(self) -> str:
        """An IRI, a variable, or a path."""
        pick = self.chance.random()
        iri = self.chance.choice(self.vocabulary.predicates)
        if pick < 0.65:
            return iri
        if pick < 0.82:
            return self.variable()
        other = self.chance.choice(self.vocabulary.predicates)
        paths = [f"{iri}/{other}", f"{iri}|{other}", f"{iri}/^{other}", f"{iri}/({other}|^{iri})"]
        if self._inverse:
            paths += [f"^{iri}", f"^{iri}/{other}", f"({iri}|^{other})/{iri}"]
        return self.chance.choice(paths)

    def values(self) -> str:
        """Inline data of one or two variables, with UNDEF; a quarter has more rows than become branches."""
        names = self.chance.sample("abcdef", self.chance.choice((1, 1, 2)))
        most, undefined = ((5, 0.25), (5, 0.25), (5, 0.25), (24, 0.01))[self.chance.randrange(4)]
        rows = []
        for _ in range(self.chance.randint(max(most - 7, 1), most)):
            row = ("UNDEF" if self.chance.random() < undefined else self.constant() for _ in names)
            rows.append(f"({' '.join(row)})")
        return f"VALUES ({' '.join('?' + n for n in names)}) {{ {' '.join(rows)} }}"

    def filter(self) -> str:
        """A filter over an expression."""
        return f"FILTER ({self.condition(2)})"

    def bind(self) -> str:
        """A new variable for a value."""
        self._bound += 1
        return f"BIND ({self.any(2)} AS ?v{self._bound})"

    # --- expressions -----------------------------------------------------------------------------------------------

    def pick(self, *makers: Callable[[], str]) -> str:
        """One of them."""
        return self.chance.choice(makers)()

    def compared(self, depth: int) -> str:
        """Two values and an operator between them."""
        left = self.pick(lambda: self.any(depth), lambda: self.number(depth), lambda: self.text(depth), self.variable)
        pick = self.chance.random()
        if pick < 0.5:
            right = self.pick(self.variable, lambda: self.chance.choice(self.vocabulary.literals), self.constant)
            return f"{left} {self.chance.choice(('=', '!='))} {right}"
        op = self.chance.choice(("<", ">", "<=", ">="))
        if pick < 0.8:
            return f"{left} {op} {self.chance.choice(ORDERED)}"
        of = self.chance.choice(("STR", "ABS", "STRLEN", "YEAR"))
        return f"{of}({self.variable()}) {op} {of}({self.variable()})"

    def condition(self, depth: int) -> str:
        """An expression that is true, false or an error."""
        if self._inverse:
            return f"BOUND({self.variable()})"
        if self.plain:
            node = self.chance.choice(self.vocabulary.nodes)
            return self.pick(lambda: f"{self.variable()} = {node}", lambda: f"BOUND({self.variable()})")
        leaves: list[Callable[[], str]] = [
            lambda: self.compared(depth - 1),
            lambda: self.compared(depth - 1),
            lambda: self.compared(0),
            lambda: f"BOUND({self.variable()})",
            lambda: f"{self.chance.choice(('isIRI', 'isBlank', 'isLiteral', 'isNumeric'))}({self.any(depth - 1)})",
            lambda: (
                f"{self.chance.choice(('CONTAINS', 'STRSTARTS', 'STRENDS'))}({self.text(depth - 1)}, {self.text(0)})"
            ),
            lambda: f"REGEX({self.text(depth - 1)}, {self.chance.choice(PATTERNS)}{self.chance.choice(FLAGS)})",
            lambda: f"LANGMATCHES(LANG({self.variable()}), {self.chance.choice(RANGES)})",
            lambda: f"SAMETERM({self.any(depth - 1)}, {self.any(0)})",
            lambda: self.member(depth),
            lambda: f"STRLEN({self.text(depth - 1)})",
        ]
        if depth <= 0:
            return self.chance.choice(leaves)()
        trees: list[Callable[[], str]] = [
            lambda: f"({self.condition(depth - 1)}) && ({self.condition(depth - 1)})",
            lambda: f"({self.condition(depth - 1)}) || ({self.condition(depth - 1)})",
            lambda: f"!({self.condition(depth - 1)})",
            lambda: f"!({self.condition(depth - 1)})",
            lambda: f"IF({self.condition(depth - 1)}, {self.condition(0)}, {self.condition(0)})",
            lambda: f"COALESCE({self.condition(depth - 1)}, {self.condition(0)})",
        ]
        if self._outermost:
            trees.append(lambda: f"EXISTS {{ {self.triples()} }} || {self.condition(0)}")
        return self.chance.choice(leaves + trees)()

    def member(self, depth: int) -> str:
        """IN or NOT IN."""
        choices = ", ".join(self.any(0) for _ in range(self.chance.randint(1, 3)))
        return f"{self.any(depth - 1)} {self.chance.choice(('IN', 'NOT IN'))} ({choices})"

    def any(self, depth: int) -> str:
        """An expression of any type."""
        leaves = [self.variable, self.variable, self.constant]
        if depth <= 0:
            return self.chance.choice(leaves)()
        trees: list[Callable[[], str]] = [
            lambda: self.number(depth),
            lambda: self.text(depth),
            lambda: f"DATATYPE({self.any(depth - 1)})",
            lambda: f'IRI(CONCAT("http://e/", ENCODE_FOR_URI({self.text(depth - 1)})))',
            lambda: f'STRLANG({self.text(depth - 1)}, "en")',
            lambda: f"STRDT({self.text(depth - 1)}, :t)",
            lambda: f"IF({self.condition(depth - 1)}, {self.any(depth - 1)}, {self.any(0)})",
            lambda: f"COALESCE({self.any(depth - 1)}, {self.any(depth - 1)})",
            lambda: f"xsd:{self.chance.choice(CASTS)}({self.any(0)})",
        ]
        return self.chance.choice(leaves + trees)()

    def number(self, depth: int) -> str:
        """An expression that is mostly a number."""
        constant = self.chance.choice(("2", "3", "-1", "0.5", "10", '"1.5"^^xsd:double', '"0.25"^^xsd:float'))
        if depth <= 0:
            return self.pick(self.variable, lambda: constant)
        return self.pick(
            lambda: f"({self.number(depth - 1)} {self.chance.choice('+-*')} {constant})",
            lambda: f"({constant} {self.chance.choice('+-*')} {self.number(depth - 1)})",
            lambda: f"(ABS({self.variable()}) {self.chance.choice('+-*')} ABS({self.variable()}))",
            lambda: f"((ABS({self.variable()}) + 1) / {constant})",
            lambda: f"{self.chance.choice(('ABS', 'CEIL', 'FLOOR', 'ROUND'))}({self.number(depth - 1)})",
            lambda: f"(-ABS({self.variable()}))",
            lambda: f"STRLEN({self.text(depth - 1)})",
            lambda: f"{self.chance.choice(('YEAR', 'MONTH', 'DAY', 'HOURS', 'MINUTES', 'SECONDS'))}({self.variable()})",
        )

    def text(self, depth: int) -> str:
        """An expression that is mostly a string."""
        constant = self.chance.choice(('"a"', '"b"', '""', '"ab"', '"c"@en', '"http"', '"1"'))
        if depth <= 0:
            return self.pick(self.variable, lambda: f"STR({self.variable()})", lambda: constant)
        return self.pick(
            lambda: f"STR({self.any(depth - 1)})",
            lambda: f"{self.chance.choice(('UCASE', 'LCASE', 'ENCODE_FOR_URI'))}({self.text(depth - 1)})",
            lambda: (
                f"SUBSTR({self.text(depth - 1)}, {self.chance.choice(('1', '2', '0', '-1', '2, 2', '0, 2', '3, -1'))})"
            ),
            lambda: f"CONCAT({self.text(depth - 1)}, {self.text(0)})",
            lambda: f"{self.chance.choice(('STRBEFORE', 'STRAFTER'))}({self.text(depth - 1)}, {constant})",
            lambda: f"REPLACE({self.text(depth - 1)}, {self.chance.choice(REPLACED)})",
            lambda: f"{self.chance.choice(('LANG', 'TZ'))}({self.variable()})",
            lambda: f"STR(TIMEZONE({self.variable()}))",
            lambda: f"{self.chance.choice(('MD5', 'SHA1', 'SHA256', 'SHA384', 'SHA512'))}({self.text(0)})",
            lambda: f"STR({self.variable()} + 1)",
        )


ORDERED = ("1", "0.5", '"b"', '"2020-02-29"^^xsd:date', '"2020-01-01T00:00:00Z"^^xsd:dateTime')
CASTS = ("integer", "decimal", "double", "float", "boolean", "dateTime")
PATTERNS = (
    '"ab|bc"',
    '"[ab]b+c?"',
    '"a"',
    '"^a"',
    '"b$"',
    '"a.c"',
    '"[0-9]+"',
    '"A|B"',
    '"^$"',
    '"a b"',
    '"(a|b)+c?"',
    '"\\\\d"',
)
FLAGS = ("", "", ', "i"', ', "s"', ', "x"', ', "q"', ', "im"')
RANGES = ('"*"', '"en"', '"fr"', '"EN-gb"', '""')
REPLACED = ('"a", "z"', '"(a)(b)", "$2$1"', '"[0-9]", "#"', '"A", "-", "i"', '".", "x", "q"')
