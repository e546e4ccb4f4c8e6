"""The join network: components of clauses are decided together. What is common to several is solved once.

`decide` is the entry: of each publication (`publication`) it asks `direct` nodes by look-ups, trees by `semijoin`, and
cycles by `join`; `selected` bounds how many answers differ. `listing` gives solutions, by `levels` and `walk`.
`columns` are the arrays of a network, `checks` looks at saved ones.

An example: `docs/matching.md`, section 2. Why: `docs/decisions/020-the-join-network.md`.
"""
