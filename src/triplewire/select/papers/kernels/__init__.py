"""The compiled loops of the papers' matchers.

They are hash tables and lists, binding tables and their join, and one file each for the structures.
"""
