"""Compiled loops over flat arrays (Numba). They know numpy and numba, and nothing of ours.

Each file stands alone: the compiled code is cached by file, and a change in another file would not be seen. The one
exception is `prefetch`, which is a single instruction and generated with `llvmlite`, the compiler of Numba. Without a
compiler (`NUMBA_DISABLE_JIT=1`) they run as plain Python, with the same results.
"""
