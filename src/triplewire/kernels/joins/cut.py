"""The first solutions of some patterns in the order in which the reference finds them, for matches that are cut.

It is the search of `triplewire.ir.evaluation.patterns` over numbers: next comes the pattern with the fewest candidates,
the first of equal ones, and triples come in order. Used through `triplewire.verify.cut`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from triplewire.kernels.shared.compiled import allocating_kernel, called_helper, helper
from triplewire.kernels.shared.hashing import is_new_row

PATTERN, HOW, NEXT, END, MASK, LEFT = 0, 1, 2, 3, 4, 5  # columns of `frame`, by depth
FRAME = 6
IN_TURN, BY_OBJECT, BY_PREDICATE = 0, 1, 2  # HOW the candidates lie: in the triples, or in a row of `order`
OVER = -1


@called_helper
def _opened(depth: Any, code: Any, value: Any, used: Any, triple: Any, offset: Any, frame: Any) -> Any:
    """Take the pattern that has the fewest candidates of those not used. False: one has none."""
    best, fewest = -1, triple.shape[0] + 1
    for a in range(code.shape[0]):
        if used[a] or fewest == 0:
            continue
        how, begin, end = IN_TURN, 0, triple.shape[0]
        for place in range(3):
            k = 0 if place == 0 else 3 - place  # subject, object, predicate: of equally long lists the first
            term = code[a, k] if code[a, k] >= 0 else value[-1 - code[a, k]]
            if term >= 0 and offset[k, term + 1] - offset[k, term] < end - begin:
                how, begin, end = place, offset[k, term], offset[k, term + 1]
        if end - begin < fewest:
            best, fewest = a, end - begin
            frame[depth, PATTERN], frame[depth, HOW], frame[depth, NEXT], frame[depth, END] = a, how, begin, end
    frame[depth, MASK] = 0
    if fewest > 0:
        used[best] = True
    return fewest > 0


@called_helper
def _released(depth: Any, code: Any, value: Any, frame: Any) -> None:
    """Take back the values that a pattern gave."""
    for k in range(3):
        if frame[depth, MASK] & (1 << k):
            value[-1 - code[frame[depth, PATTERN], k]] = -1
    frame[depth, MASK] = 0


@helper
def _advanced(depth: Any, left: Any, width: Any, code: Any, value: Any, triple: Any, order: Any, allowed: Any,
              frame: Any) -> bool:  # fmt: skip
    """Go to the next candidate that fits. `left`: how many of the first `width` variables had no value before."""
    a, how = frame[depth, PATTERN], frame[depth, HOW]
    _released(depth, code, value, frame)
    x, y, z = code[a, 0], code[a, 1], code[a, 2]
    s, p, o = (x if x >= 0 else value[-1 - x]), (y if y >= 0 else value[-1 - y]), (z if z >= 0 else value[-1 - z])
    i, end, fits = frame[depth, NEXT], frame[depth, END], False
    while i < end and not fits:
        t = order[how - 1, i] if how else i
        i += 1
        if (s >= 0 and triple[t, 0] != s) or (p >= 0 and triple[t, 1] != p) or (o >= 0 and triple[t, 2] != o):
            continue
        fits, now_left = True, left
        for k in range(3):
            v, term = -1 - code[a, k], triple[t, k]
            if fits and v >= 0 and value[v] < 0:
                fits = allowed[v, term] != 0
                value[v] = term
                frame[depth, MASK] |= 1 << k
                now_left -= v < width
            fits = fits and (v < 0 or value[v] == term)
        frame[depth, LEFT] = now_left
        if not fits:
            _released(depth, code, value, frame)
    frame[depth, NEXT] = i
    return fits


@allocating_kernel
def search(code: Any, needed: int, most: int, most_steps: int, triple: Any, offset: Any, order: Any, allowed: Any,
           count: int, rows: Any, slots: Any) -> int:  # fmt: skip
    """Put the distinct solutions behind the `count` rows, until there are `most`; returns how many there are then, or
    OVER where that takes too many steps.

    A position of a pattern in `code` is a term, or -1 - v for variable v; a row is the first variables, -1 where one
    has no value; `needed` of them stand in these patterns. `triple` is in order, with an `order` of it by object and
    one by predicate; offset[k, term] is where those begin that have the term as subject, predicate, object. A variable
    v may have a term where allowed[v, term]. `slots`: 0 at first, a power of two, and more than there may be rows.
    """
    size, width, flat = code.shape[0], rows.shape[1], rows.reshape(-1)
    value, used = np.empty(allowed.shape[0], np.int32), np.empty(size, np.bool_)
    frame, steps = np.zeros((size, FRAME), np.int64), 0
    value[:], used[:] = -1, False
    depth = 0 if _opened(0, code, value, used, triple, offset, frame) else -1
    while depth >= 0 and count < most:
        left, before = frame[depth - 1, LEFT] if depth > 0 else needed, frame[depth, NEXT]
        more = _advanced(depth, left, width, code, value, triple, order, allowed, frame)
        steps += frame[depth, NEXT] - before + size - depth
        if steps > most_steps:
            return OVER
        if more and depth + 1 < size:
            depth += _opened(depth + 1, code, value, used, triple, offset, frame)
            continue
        if more:
            for k in range(width):
                rows[count, k] = value[k]
            count += is_new_row(flat, 0, count * width, width, slots)
        while depth >= 0 and (not more or (frame[depth - 1, LEFT] if depth > 0 else needed) == 0):
            _released(depth, code, value, frame)
            used[frame[depth, PATTERN]] = False
            depth -= 1
            if not more:
                break  # else: what follows the last needed variable only had to exist
    return count
