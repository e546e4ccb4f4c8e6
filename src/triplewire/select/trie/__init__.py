"""The index "trie": a set-trie over atoms, and one over stars. `build` makes it, `walk` selects.

An example: `docs/matching.md`, section 1.
"""
