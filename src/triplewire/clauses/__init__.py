"""Subscriptions in normal form as flat arrays, whatever matcher indexes them.

`clauses` joins the arrays: `table` (patterns and tests), `calls` (of operators), `facts` (what follows from these).
They are made by `builder` from subscriptions, by `template_rows` from files of many similar texts, both through
`growing`, and by `merge` from other clauses. `node_tests` are conditions on one node; `view` and `features` say which
of them the terms of a batch satisfy. `mapped_zeros` has arrays of zeros.
"""
