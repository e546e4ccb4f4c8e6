"""The dictionary of terms: IRIs, literals and blank nodes as numbers, with the keys that they are compared by."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from functools import cache
from typing import Any, TypeVar

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from triplewire.metadata.keys import compared_by
from triplewire.metadata.tables import terms
from triplewire.metadata.working import fill, in_order, wanted
from triplewire.model.terms import BlankNode, Term
from triplewire.store.database import insert_rows

T = TypeVar("T", bound=Term)


def numbers_of(connection: Connection, wanted_terms: Iterable[T]) -> dict[T, int]:
    """The number of each term; new ones are added. Those of IRIs and literals are above 0, of blank nodes below."""
    digests = {term: digest_of(str(term)) for term in wanted_terms}
    fill(connection, wanted, ((digest,) for digest in set(digests.values())))
    known: dict[str, int] = {row[0]: row[1] for row in connection.execute(_known()).all()}
    new = [term for term, digest in digests.items() if digest not in known]
    if new:
        ends = (sa.select(end(terms.c.number)).scalar_subquery() for end in (sa.func.min, sa.func.max))
        least, most = connection.execute(sa.select(*ends)).one()  # SQLite reads the whole table for both in one query
        down, up = min(least or 0, 0), max(most or 0, 0)
        rows = []
        for term in new:
            is_blank = isinstance(term, BlankNode)
            down, up = (down - 1, up) if is_blank else (down, up + 1)
            digest = digests[term]
            known[digest] = down if is_blank else up
            rows.append((known[digest], digest, str(term), *compared_by(term)))
        insert_rows(connection, terms, rows)
    return {term: known[digest] for term, digest in digests.items()}


@cache
def _known() -> sa.Select[Any]:
    return sa.select(terms.c.digest, terms.c.number).select_from(
        in_order(wanted, (terms, terms.c.digest == wanted.c.digest))
    )


def digest_of(text: str) -> str:
    """What a text of any length is found by."""
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()
