"""Does a test hold of a node in a publication?"""

from __future__ import annotations

from typing import Any

import numpy as np

from triplewire.kernels.joins.columns import NodeFeatures
from triplewire.kernels.listed import is_listed
from triplewire.kernels.shared.compiled import called_helper, helper
from triplewire.kernels.shared.ranks import range_holds
from triplewire.kernels.shared.search import lower


@called_helper
def is_indexed(test: int, term: int, publication: int, features: NodeFeatures) -> Any:
    """Does an indexed test hold of the term, everywhere or in this publication?"""
    answer = is_listed(test, features.test, features.offset[term], features.offset[term + 1])
    if not answer:
        end, key = features.node_offset[publication + 1], (np.int64(term) << 32) | test
        at = lower(features.node_key, features.node_offset[publication], end, key)
        answer = at < end and features.node_key[at] == key
    return answer


@helper
def is_within(term: int, group: int, op: int, rank: int, features: NodeFeatures) -> Any:
    """Does a range test hold of the term?"""
    return range_holds(op, rank, features.low[group, term], features.high[group, term])
