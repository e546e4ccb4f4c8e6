"""CLIPS (PyPI: clipspy), a rule engine that shares joins among rules: a rule a query, a fact a statement."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count
from typing import Any

from bench.peers.serving import Query, Statement, serve


class Rules:
    """Queries as rules of CLIPS, numbered in their order. Terms and words are numbers."""

    def __init__(self, queries: Sequence[Query]) -> None:
        """Raises `ImportError` without `clipspy`."""
        from clips import Environment  # a package that is no dependency of the engine

        self._environment: Any = Environment()
        self._fired: set[int] = set()
        self._number: dict[str, int] = {}
        self._environment.define_function(self._fired.add, "fired")
        for number, query in enumerate(queries):
            self._environment.build(f"(defrule s{number} {self._condition(query)} => (fired {number}))")

    def _condition(self, query: Query) -> str:
        """The left side of a rule. A variable gets another name, and each `*` is a wildcard."""
        names: dict[str, str] = {}
        unnamed = count()

        def written(term: str) -> str:
            if term == "*":
                return "?"
            if term.startswith("?"):
                return names.setdefault(term, f"?v{len(names)}")
            return self._numbered(term)

        patterns: list[str] = []
        for subject, predicate, value, *words in query:
            place = f"?t{next(unnamed)}" if words and value == "*" else written(value)
            patterns.append(f"(triple {written(subject)} {written(predicate)} {place})")
            for word in words[0] if words else ():
                patterns.append(f"(word {place} {self._numbered(word)})")
        return f"(exists {' '.join(patterns)})"

    def _numbered(self, term: str) -> str:
        return str(self._number.setdefault(term, len(self._number)))

    def matching(self, statements: Sequence[Statement]) -> set[int]:
        """The numbers of the queries that a publication satisfies."""
        numbered = self._numbered
        facts = {f"(triple {numbered(s)} {numbered(p)} {numbered(o)})" for s, p, o, _ in statements}
        for _, _, value, words in statements:
            text = numbered(value)
            facts.update(f"(word {text} {numbered(word)})" for word in words or ())
        self._fired.clear()
        self._environment.load_facts("\n".join(facts))  # as text: facts that Python holds are never freed
        self._environment.run()
        self._environment.eval("(retract *)")
        return set(self._fired)


if __name__ == "__main__":
    serve(Rules)
