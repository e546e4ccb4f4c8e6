"""pyoxigraph (PyPI): each query asked anew of each publication, as SPARQL.

It has no index of queries, so that its time grows with their number.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count
from typing import Any

from bench.peers.serving import Query, Statement, serve

_WORD = "urn:word"


class Asked:
    """Queries as texts, numbered in their order."""

    def __init__(self, queries: Sequence[Query]) -> None:
        self._texts = [_text(query) for query in queries]

    def matching(self, statements: Sequence[Statement]) -> list[int]:
        """The numbers of the queries that a publication satisfies."""
        import pyoxigraph as ox

        store: Any = ox.Store()
        lines = [f"{s} {p} {o} ." for s, p, o, _ in statements]
        store.load("\n".join(lines).encode(), format=ox.RdfFormat.N_TRIPLES)
        texts = {value: set(words) for _, _, value, words in statements if words}

        def has_word(literal: Any, word: Any) -> Any:
            return ox.Literal(word.value in texts.get(str(literal), ()))

        functions = {ox.NamedNode(_WORD): has_word}
        return [n for n, text in enumerate(self._texts) if store.query(text, custom_functions=functions)]


def _text(query: Query) -> str:
    """The query as ASK."""
    unnamed = count()
    parts: list[str] = []
    for wanted in query:
        subject, predicate, value = (f"?any{next(unnamed)}" if term == "*" else term for term in wanted[:3])
        parts.append(f"{subject} {predicate} {value} .")
        parts += [f'FILTER(<{_WORD}>({value}, "{word}"))' for word in (wanted[3] if len(wanted) > 3 else ())]
    return f"ASK {{ {' '.join(parts)} }}"


if __name__ == "__main__":
    serve(Asked)
