"""Operators on libraries that are extras of the package: none is imported before an operator needs it.

A module of a family holds its operators and imports its library inside functions. What they share is in `library`.
How they are used: `docs/operator-families.md`.
"""
