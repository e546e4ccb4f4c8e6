"""Random documents, rules and sequences of calls over few names, so that they meet."""

from __future__ import annotations

import random
from itertools import pairwise

from triplewire.metadata.messages import Change, Put, RuleText, Withdraw

SPACE = "http://metadata.example/"
PREFIXES = {"": SPACE}
CLASSES, PROPERTIES = ("A", "B"), ("p", "q", "r", "s")
STRONG = frozenset({SPACE + "s"})
SCHEMA = f"""PREFIX : <{SPACE}> PREFIX mdv: <urn:triplewire:metadata:> PREFIX rdfs: <http://www.w3.org/2000/01/rdf-schema#>
:A a rdfs:Class . :B a rdfs:Class .
:p mdv:setValued true . :q mdv:setValued true . :r mdv:setValued true .
:s mdv:setValued true ; mdv:reference mdv:strong .
"""
"""All that the documents below may say; only `s` is a strong reference."""

_DOCUMENTS = 4
_VALUES = (
    *("1", "2", "2.0", "-0.5", "1e3", "'10'", "'010'", "'abc'", "'abcd'@en", "'bc'", "''", "'NaN'", "'ä'", "'b\\nc'"),
    *("'2020-01-01'", "'2020-01-01T00:00:00Z'", "'2019-12-31T23:59:59.9Z'", "'-0044-03-15'", "'NaN 1'", "' 2 '"),
)
_CONSTANTS = ("1", "2", "-0.5", "10", "'abc'", "'b'", "'bc'", "'abcd'", "''", "'2020-01-01'", "'NaN'", "'ä'", "' 2'")
_OPERATORS = ("=", "!=", "<", "<=", ">", ">=", "contains")


def _resource(chance: random.Random) -> str:
    return f":d{chance.randrange(_DOCUMENTS)}_{chance.randrange(3)}"


def document(chance: random.Random, number: int, *, typed: bool) -> bytes:
    """A document in Turtle that says something of its own resources, and now and then of others'. Where all is `typed`,
    each resource has a class."""
    parts = [f"PREFIX : <{SPACE}>"]
    for place in range(chance.randrange(4)):
        name = f":d{number}_{place}" if chance.random() < 0.85 else _resource(chance)
        classes = chance.sample(CLASSES, chance.choice((1, 1, 1, 2) if typed else (0, 1, 1, 2)))
        pairs = [f"a :{class_}" for class_ in classes]
        for _ in range(chance.randrange(5)):
            pairs.append(f":{chance.choice(PROPERTIES)} {_value(chance, typed=typed)}")
        if pairs:
            parts.append(f"{name} {' ; '.join(pairs)} .")
    return "\n".join(parts).encode()


def _value(chance: random.Random, *, typed: bool) -> str:
    pick = chance.random()
    if pick < 0.45:
        return chance.choice(_VALUES)
    if pick < 0.9:
        return _resource(chance)
    inner = f":{chance.choice(PROPERTIES)} {chance.choice((*_VALUES, _resource(chance)))}"
    return f"[ a :A ; {inner} ]" if typed or chance.random() < 0.5 else f"[ {inner} ]"


def change(chance: random.Random, *, typed: bool) -> Change:
    """A new version of a document, mostly; one that cannot be read, or none."""
    number = chance.randrange(_DOCUMENTS)
    pick, name = chance.random(), f"{SPACE}d{number}"
    if pick < 0.15:
        return Withdraw(name)
    if pick < 0.2:
        return Put(name, b"PREFIX : <http://metadata.example/> :a :b")
    return Put(name, document(chance, number, typed=typed))


def rule(chance: random.Random, id: str, known: list[str], *, typed: bool) -> RuleText:
    """A rule; it may search rules that are known. With a schema each step is marked, as all properties are sets."""
    mark = "?" if typed else ""
    names = ["a", "b", "c"][: chance.choice((1, 1, 1, 2, 2, 3))]
    searched = [chance.choice((*CLASSES, *CLASSES, *known[-2:])) for _ in names]
    head = f"search {', '.join(map(' '.join, zip(searched, names, strict=True)))} register {names[0]}"
    tests = [_test(chance, names, mark) for _ in range(chance.choice((0, 1, 1, 2, 2, 3)))]
    for one, other in pairwise(names):  # mostly variables have to do with each other
        if chance.random() < 0.85:
            left, right = chance.sample((one, other), 2)
            tests.append(f"{left}.{chance.choice(PROPERTIES)}{mark} = {right}")
    chance.shuffle(tests)
    where = tests[0] if tests else ""
    for test in tests[1:]:
        where += f" {chance.choice(('and', 'and', 'and', 'or'))} {test}"
    return RuleText(id, f"{head} where {where}" if where else head, PREFIXES)


def _test(chance: random.Random, names: list[str], mark: str) -> str:
    pick, path = chance.random(), _path(chance, names, mark, least=0)
    negated = "not " if chance.random() < 0.15 else ""
    if pick < 0.12:
        return f"{negated}exists {_path(chance, names, mark, least=1)}"
    if pick < 0.24:
        return f"{path} {chance.choice(('=', '=', '!='))} <{SPACE}{_resource(chance)[1:]}>"
    if pick < 0.34:
        return f"{negated}{path} {chance.choice(_OPERATORS)} {_path(chance, names, mark, least=1)}"
    if pick < 0.4:
        return f"{negated}{chance.choice(_CONSTANTS)} {chance.choice(_OPERATORS)} {path}"
    return f"{negated}{path} {chance.choice(_OPERATORS)} {chance.choice(_CONSTANTS)}"


def _path(chance: random.Random, names: list[str], mark: str, *, least: int) -> str:
    steps = max(least, chance.choice((0, 1, 1, 1, 2, 2, 3)))
    return ".".join([chance.choice(names), *(f"{chance.choice(PROPERTIES)}{mark}" for _ in range(steps))])
