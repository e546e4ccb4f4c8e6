"""Kernels of the index "trie": atoms of a publication, walks through the tries, and counts that decide clauses."""
