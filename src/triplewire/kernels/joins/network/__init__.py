"""The join network: components of clauses are decided together. What is common to several is solved once.

An example: `docs/matching.md`, section 2. Why: `docs/decisions/039-join-network.md`.
"""
