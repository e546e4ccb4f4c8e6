"""Does a candidate match? The exact answer, for what an index of `triplewire.select` leaves open.

`batch_verifier` joins them all. `network` and `shared_joins` decide clauses by what they share, `solve` searches
clauses one by one. `answers` and `searches` ask tests that no index answers; `evaluated` keeps what the reference
evaluated. `conjunctions` and `operators` decide pairs by operator calls, several publications at once with
`threaded_map`. `rows` are the bindings of matches as ids, which become `objects` (by `steps`) or `json_texts`; `cut`
chooses those to keep.
"""
