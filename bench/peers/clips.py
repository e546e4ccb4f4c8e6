"""CLIPS (PyPI: clipspy), a rule engine that shares joins among rules: a rule a query.

Its facts begin with what queries know, as a fact is tested from left to right:

(triple predicate object subject)
(has predicate subject)                  for tuples whose object nothing else asks for
(word predicate word subject literal)    a word of a literal
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from bench.peers.serving import Query, Statement, serve

Pattern = tuple[str, ...]
"""A fact with variables: the kind, and a number, `?name` or `?` a field."""


class Rules:
    """Queries as rules of CLIPS, numbered in their order. Terms and words are numbers."""

    def __init__(self, queries: Sequence[Query]) -> None:
        """Raises `ImportError` without `clipspy`."""
        from clips import Environment  # a package that is no dependency of the engine

        self._environment: Any = Environment()
        self._fired: set[int] = set()
        self._number: dict[str, int] = {}
        self._environment.define_function(self._fired.add, "fired")
        patterns = [self._patterns(query) for query in queries]
        often = Counter(_constants(pattern) for asked in patterns for pattern in asked)
        for number, asked in enumerate(patterns):
            condition = " ".join(f"({' '.join(pattern)})" for pattern in _ordered(asked, often))
            self._environment.build(f"(defrule s{number} {condition} => (fired {number}))")

    def _patterns(self, query: Query) -> list[Pattern]:
        """What a query asks of facts."""
        uses = Counter(term for tuple_ in query for term in tuple_[:3] if term.startswith("?"))
        names: dict[str, str] = {}

        def written(term: str) -> str:
            if term == "*":
                return "?"
            if term.startswith("?"):
                return names.setdefault(term, f"?v{len(names)}") if uses[term] > 1 else "?"
            return self._numbered(term)

        patterns: list[Pattern] = []
        for place, (subject, predicate, value, *words) in enumerate(query):
            of, by, what = written(subject), written(predicate), written(value)
            if words:
                literal = f"?t{place}" if what == "?" else what
                of = f"?s{place}" if of == "?" else of
                patterns.extend(("word", by, self._numbered(word), of, literal) for word in words[0])
            elif what == "?":
                patterns.append(("has", by, of))
            else:
                patterns.append(("triple", by, what, of))
        return list(dict.fromkeys(patterns))

    def _numbered(self, term: str) -> str:
        return str(self._number.setdefault(term, len(self._number)))

    def matching(self, statements: Sequence[Statement]) -> set[int]:
        """The numbers of the queries that a publication satisfies."""
        numbered = self._numbered
        facts: set[str] = set()
        for subject, predicate, value, words in statements:
            of, by, what = numbered(subject), numbered(predicate), numbered(value)
            facts |= {f"(triple {by} {what} {of})", f"(has {by} {of})"}
            facts.update(f"(word {by} {numbered(word)} {of} {what})" for word in words or ())
        self._fired.clear()
        self._environment.load_facts("\n".join(facts))  # as text: facts that Python holds are never freed
        self._environment.run()
        self._environment.eval("(retract *)")
        return set(self._fired)


def _constants(pattern: Pattern) -> Pattern:
    return tuple(field for field in pattern if not field.startswith("?"))


def _ordered(patterns: list[Pattern], often: Counter[Pattern]) -> list[Pattern]:
    """The pattern that fewest queries ask for first, then always one that shares a variable with those before it."""
    remaining = sorted(patterns, key=lambda pattern: ("?" in pattern[1], often[_constants(pattern)], pattern))
    ordered, known = [], set[str]()
    while remaining:
        best = next((one for one in remaining if known.intersection(one)), remaining[0])
        remaining.remove(best)
        ordered.append(best)
        known.update(field for field in best if len(field) > 1 and field.startswith("?"))
    return ordered


if __name__ == "__main__":
    serve(Rules)
