"""Does a candidate match? The exact answer, for what an index of `triplewire.select` leaves open.

`verifier` is the seam; `batch_verifier`, the default, has the list of steps. `network` decides clauses by what they
share, `solve` searches them one by one, `residual_tests` are tests that no index answers. `operators` decides pairs by
operator calls. `rows` are the bindings of matches as ids, of which `bindings` makes objects or JSON text.
"""
