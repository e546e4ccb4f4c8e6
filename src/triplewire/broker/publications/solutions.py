"""A query over the publications that are kept: each is a graph of its own, as it is for a subscription."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

import sqlalchemy as sa

from triplewire.broker.broker import Broker
from triplewire.broker.publications.kept_contents import restored
from triplewire.broker.publications.window import CAN_BE_MATCHED, TOGETHER, may_see
from triplewire.errors import UnsupportedQuery
from triplewire.model.publication import Publication
from triplewire.model.terms import BlankNode, Term
from triplewire.store.tables import current, publications

MOST_ROWS = 10_000
MOST_SECONDS = 20.0
_AT_ONCE = 200  # publications that are read together

Solution = Mapping[str, Term]


class Answers(NamedTuple):
    """What a query finds. `is_true`: of an ASK, None for a SELECT. `cut`: why there may be more, "" where there is
    none; `undecided`: of how many publications it could not be said."""

    variables: tuple[str, ...]
    rows: list[Solution]
    is_true: bool | None
    cut: str
    undecided: int


def answer(
    broker: Broker,
    query: str,
    owner: str,
    *,
    most_rows: int = MOST_ROWS,
    seconds: float = MOST_SECONDS,
    clock: Callable[[], float] = time.monotonic,
) -> Answers:
    """Ask a SPARQL query of what an owner may see of the newest content of each publication: the distinct solutions of
    all of them, those of the newest publications first. A blank node has another label for each publication. Raises
    `LanguageError`, with line and column."""
    end, undecided, rows = clock() + seconds, 0, dict[tuple[Term | None, ...], Solution]()
    engine = broker.probe(query, "sparql")
    compiled = engine.get("query")
    assert compiled is not None
    if compiled.construct is not None:
        raise UnsupportedQuery("CONSTRUCT is not answered here", remedy="use SELECT or ASK")
    names = compiled.select
    for numbers, given in _portions(broker, owner):
        result = engine.match(given)
        undecided += len({refusal.subject for refusal in result.refusals if not refusal.is_warning})
        if compiled.ask and len(result):
            return Answers((), [], True, "", undecided)
        for match in result:
            if match.truncated:
                undecided += 1
            for binding in match.bindings:
                row = {name: _apart(term, numbers[match.publication]) for name, term in binding.items()}
                rows.setdefault(tuple(row.get(name) for name in names), row)
                if len(rows) > most_rows:
                    first = list(rows.values())[:most_rows]
                    return Answers(names, first, None, f"there are more than {most_rows:,} solutions", undecided)
        if clock() > end:
            cut = f"not all publications were looked at within {seconds:g} s"
            return Answers(names, list(rows.values()), False if compiled.ask else None, cut, undecided)
    return Answers(names, list(rows.values()), False if compiled.ask else None, "", undecided)


def _apart(term: Term, number: int) -> Term:
    return BlankNode(f"p{number}-{term.label}") if isinstance(term, BlankNode) else term


def _portions(broker: Broker, owner: str) -> Iterator[tuple[dict[str, int], list[Publication]]]:
    """The newest contents that an owner may see, the newest first, with the number of each by its id."""
    table, before = publications, 2**62
    newest = sa.select(table).join(current, current.c.publication == table.c.number)
    while True:
        here = newest.where(table.c.number < before, CAN_BE_MATCHED)
        contents = broker.database.rows(here.order_by(table.c.number.desc()).limit(_AT_ONCE))
        if not contents:
            return
        before = contents[-1].number
        seen = [row for row in contents if may_see(owner, row.readers)]
        for begin in range(0, len(seen), TOGETHER):
            part = seen[begin : begin + TOGETHER]
            yield {row.id: row.number for row in part}, [restored(row.body, row.id, row.source) for row in part]
