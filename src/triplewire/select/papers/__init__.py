"""The matchers of the papers behind this project, each as its paper says.

They are there to be compared with each other and with "trie". `makers` names them, one file holds each (`naive`,
`edges`, `constraint_tables`, `tries`, `chains`), their loops are in `kernels`. `growing` is what they share: which
clauses a matcher accepts by itself, and memory to which subscriptions are added one by one.
"""
