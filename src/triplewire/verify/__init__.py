"""Does a candidate match? The exact answer, for what an index of `triplewire.select` leaves open.

`verifier` is the seam; `batch_verifier`, the default, has the list of steps. `network` and `shared_joins` decide
clauses by what they share, `solve` searches clauses one by one. `answers` and `searches` ask tests that no index
answers; `evaluated` keeps what the reference evaluated. `conjunctions` and `operators` decide pairs by operator calls,
several publications at once with `threaded_map`. `rows` are the bindings of matches as ids, which become `objects` or
`json_texts`; `truncated` chooses those to keep.
"""
