"""Subscriptions in normal form as flat arrays, whatever matcher indexes them.

`clauses` has the arrays, and makes them of other clauses; `builder` makes them of subscriptions and of templates.
`node_tests` are conditions on one node; `view` says which of them the terms of a batch satisfy.
"""
