"""FROM in a segment: of what its index names, the pairs whose publication comes from the subscription's source.

It is asked once for each publication and source that the index names together, and never where no subscription of a
segment has a FROM. Subscriptions that call operators besides are left to these, as all their calls are.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from triplewire.clauses.clauses import CALLS, Clauses
from triplewire.encode.batch import Ids
from triplewire.engine.chunk import Chunk
from triplewire.model.operator import Operator
from triplewire.operators.order.learned import key_of
from triplewire.select.index import Selected, owners, staying


@dataclass(frozen=True, slots=True)
class Narrowing:
    """`source`: subscription -> the number of the call in `clauses.asked` that its FROM is; -1 where it has none."""

    clauses: Clauses
    source: Ids

    @classmethod
    def of(cls, clauses: Clauses) -> Narrowing | None:
        """That of a segment; None where no subscription has a FROM."""
        asked = clauses.asked
        if not len(asked.call):
            return None
        narrowed = np.flatnonzero((np.diff(asked.offset) > 0) & ((clauses.table.flags & CALLS) == 0))
        source = np.full(len(clauses), -1, np.int32)
        source[narrowed] = asked.call[asked.offset[narrowed]]
        return cls(clauses, source) if len(narrowed) else None

    def narrowed(self, selected: Selected, owner: Ids, chunk: Chunk, operator: Operator) -> Selected:
        """What stays of the accepted subscriptions and of the clauses to check. `owner`: place -> subscription;
        `operator`: `fromSource`."""
        known: dict[int, bool] = {}
        stays = self._stays(owners(selected.offset), selected.subscription, chunk, operator, known)
        offset, subscription = staying(selected.offset, selected.subscription, stays)
        stays = self._stays(owners(selected.check_offset), owner[selected.check_place], chunk, operator, known)
        check_offset, check_place = staying(selected.check_offset, selected.check_place, stays)
        return replace(
            selected, offset=offset, subscription=subscription, check_offset=check_offset, check_place=check_place
        )

    def _stays(
        self, publication: Ids, subscription: Ids, chunk: Chunk, operator: Operator, known: dict[int, bool]
    ) -> NDArray[np.bool_]:
        """Does each pair stay? `known`: what has been asked, by publication and call in one number."""
        stays = np.ones(len(subscription), np.bool_)
        source = self.source[subscription]
        at = np.flatnonzero(source >= 0)
        if len(at):
            keys, inverse = np.unique(publication[at].astype(np.int64) << 32 | source[at], return_inverse=True)
            for key in keys.tolist():
                if key not in known:
                    call = key_of(self.clauses.asked.names[key & 0xFFFFFFFF])
                    known[key] = bool(operator.evaluate(chunk.publication(key >> 32), call.arguments))
            stays[at] = np.array([known[key] for key in keys.tolist()], np.bool_)[inverse]
        return stays
