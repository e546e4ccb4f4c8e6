"""Kernels over bytes: N-Quads to tokens and ids, texts to words and numbers, tables of byte strings, automata."""
