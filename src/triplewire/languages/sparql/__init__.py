"""SPARQL 1.1 for standing queries, with full text, wildcards and operator calls (semantics, section 3).

A recursive descent that writes the intermediate form as it reads. `terms`: tokens, prefixes, IRIs, literals.
`expressions`: conditions, functions, calls. `triples`: triples and property paths. `groups`: { ... }, and SELECT, ASK,
CONSTRUCT around it. What a standing query cannot hold is refused by name.
"""

from __future__ import annotations

from triplewire.languages.context import Context, Parsed
from triplewire.languages.grammar.bare import bounded
from triplewire.languages.sparql.groups import read_query
from triplewire.languages.sparql.terms import QueryTokens


def parse(text: str, context: Context) -> Parsed:
    """Compile a SPARQL text. Raises `LanguageError`, `UnsupportedQuery` or `LimitError`, with line and column."""
    with bounded(context):
        return read_query(QueryTokens(text, context))
