"""The compiled loops of verification. Components of clauses are decided together: what several share is solved once.

`decide` is the entry of the join network: of each `publication` it asks `direct` nodes by look-ups, `trees` by
semijoins, and cycles by joins; `listing` gives solutions. `make_trees` and `make_network` build it, `columns` are its
arrays. `search` solves what the network cannot hold; `rows` puts rows of solutions together.

An example: `docs/matching.md`, section 2. Why: `docs/decisions/020-the-join-network.md`.
"""
