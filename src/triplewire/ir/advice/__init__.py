"""What may be a mistake in a subscription: warnings at registration, for queries that are right but cannot match.

`questions` picks out of a tree what has to be looked at, once for all texts of a template, and knows the terms of known
vocabularies; `conditions` looks at the conditions on one variable. A warning is never wrong: where it is not
certain that something cannot be, nothing is said. Classes that the taxonomy lacks: `triplewire.engine.compiler`.
"""
