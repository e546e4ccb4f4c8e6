"""Does a candidate match? The exact answer, for what an index of `triplewire.select` leaves open.

`batch_verifier` joins them all: `counts` decides by counting, `solve` joins, `operators` makes calls. `rows`, `objects`
and `json_texts` are the bindings of matches.
"""
