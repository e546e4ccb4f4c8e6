"""The compiled loops over the terms of a batch: which node tests they satisfy.

`classes` answers class tests by the types that a publication states, `pairs` joins (term, test) pairs, and `few_terms`
looks up all that is asked of the terms of a few publications in one call.
"""
