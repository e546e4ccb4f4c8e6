"""Subscription files by the million: rows in chunks, most of them not parsed but recognised by their shape.

The rows, their order and the refusals are those of `triplewire.languages.files.read_subscriptions`; where that has a
subscription, a chunk has its row with the shape and the constants, or the subscription itself where the text has no
shape. What a shape is: `triplewire.languages.shape`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from typing import NamedTuple

from triplewire.config import Settings
from triplewire.errors import Refusal, TriplewireError
from triplewire.ir.subscription import Subscription
from triplewire.languages.files import Reader, Rules, id_is_taken
from triplewire.languages.ids import Ids
from triplewire.languages.masks import Constants
from triplewire.languages.rows import Row
from triplewire.languages.shape import Composed, Shape
from triplewire.languages.shapes import Shapes
from triplewire.model.operator import Operator

CHUNK = 4_096  # rows


class Prepared(NamedTuple):
    """A row that can be registered: with its shape and constants, or with its subscription.

    `shape.subscription_of(constants, row.id, row.query, row.prefixes, row.base)` is what parsing gives. `is_plain`:
    it is what the text gives by itself; a rule that names other rules is not.
    """

    row: Row
    shape: Shape | Composed | None
    constants: Constants
    subscription: Subscription | None
    is_plain: bool = True


def read_prepared(
    paths: Iterable[str | os.PathLike[str]],
    shapes: Shapes,
    *,
    operators: Mapping[str, Operator] | None = None,
    settings: Settings | None = None,
    on_refusal: Callable[[Refusal], None],
) -> Iterator[list[Prepared]]:
    """The subscriptions of files and folders in chunks of up to `CHUNK`, as `read_subscriptions` has them.

    `shapes`, `operators` and `settings` belong together. An id that was met before in these files is refused here;
    whether it was taken before, the caller has to see (`row.refusal` makes the record).
    """
    ids = Ids()
    with Reader(operators, settings or Settings()) as reader:
        rows = reader.rows(paths)
        while chunk := list(islice(rows, CHUNK)):
            prepared = list(_prepared(chunk, shapes, reader, ids, on_refusal))
            if prepared:
                yield prepared
        rules = _prepared_rules(shapes, reader, on_refusal)
        while prepared := list(islice(rules, CHUNK)):
            yield prepared


def _prepared(
    chunk: list[Row | Refusal], shapes: Shapes, reader: Reader, ids: Ids, refuse: Callable[[Refusal], None]
) -> Iterator[Prepared]:
    """The rows of a chunk; MDV rules are set aside."""
    taken = iter(ids.add([row.id for row in chunk if isinstance(row, Row)]))
    find = shapes.find
    for row in chunk:
        if isinstance(row, Refusal):
            refuse(row)
        elif next(taken):
            refuse(row.refusal(id_is_taken(row)))
        elif row.language == "mdv":
            reader.set_aside(row)
        else:
            found = find(row.query, row.language, row.prefixes, row.base)
            if found is not None:
                yield Prepared(row, found[0], found[1], None)
                continue
            try:
                subscription = reader.compile(row, {})
            except TriplewireError as error:
                refuse(row.refusal(error))
            else:
                yield Prepared(row, None, (), subscription)


def _prepared_rules(shapes: Shapes, reader: Reader, refuse: Callable[[Refusal], None]) -> Iterator[Prepared]:
    """The MDV rules, now that all are known. One that names another has no shape: its tree has the other's parts."""
    rules = Rules(reader)
    for id in reader.places:
        row = reader.row(id)
        found = shapes.find(row.query, row.language, row.prefixes, row.base)
        if found is not None and not _names_rules(*found, row, reader):
            yield Prepared(row, *found, None)
            continue
        compiled = rules.compiled(id)
        if isinstance(compiled, Subscription):
            yield Prepared(row, None, (), compiled, is_plain=id not in rules.with_others)
        else:
            refuse(row.refusal(compiled))


def _names_rules(shape: Shape | Composed, constants: Constants, row: Row, reader: Reader) -> bool:
    return any(name != row.id and name in reader.places for name in shape.rules(constants))
