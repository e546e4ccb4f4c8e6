"""The reasons of matches as a few sentences, beside them: `match --why`, `watch --why`, `pipeline run --why`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import compress, islice
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from triplewire.errors import TriplewireError
from triplewire.model.match import Match
from triplewire.model.publication import Publication

if TYPE_CHECKING:
    import pyarrow as pa

    from triplewire.engine.engine import Engine
    from triplewire.engine.result import Part


def reasons_of(engine: Engine, match: Match, publication: Publication | None = None) -> list[str]:
    """Why it is a match (`Explanation.reasons`), or why that cannot be said, as where a limit is passed. `publication`:
    as for `Engine.explain`."""
    try:
        return list(engine.explain(match, publication).reasons)
    except TriplewireError as error:
        return [f"it cannot be explained: {error}"]


def with_reasons(
    engine: Engine, part: Part, wanted: NDArray[np.bool_] | None = None
) -> Iterator[tuple[Match, list[str]]]:
    """The matches of a part, or the `wanted` of them, with their reasons."""
    rows = zip(part, part.publication.tolist(), strict=True)
    for match, number in rows if wanted is None else compress(rows, wanted.tolist()):
        yield match, reasons_of(engine, match, part.chunk.given(number))


def batches_with_reasons(engine: Engine, part: Part) -> Iterator[pa.RecordBatch]:
    """`Part.batches` with the column `encode.schema.WHY`."""
    import pyarrow as pa  # as in `Engine.match_batch`

    from triplewire.encode.schema import WHY

    reasons = (json.dumps(each, ensure_ascii=False) for _, each in with_reasons(engine, part))
    for batch in part.batches():
        texts = [text.encode("utf-8", "replace").decode() for text in islice(reasons, batch.num_rows)]
        yield batch.append_column(WHY, pa.array(texts, WHY.type))
