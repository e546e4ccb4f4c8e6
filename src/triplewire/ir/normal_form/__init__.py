"""Subscriptions in disjunctive normal form: `clauses` of patterns and tests; `conditions` become tests on single
nodes."""
