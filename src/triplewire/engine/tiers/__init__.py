"""Answers before there is machine code: an interpreted tier that takes small work at once, until kernels are compiled.

`kernels` knows whether they are compiled, waits for them and starts `background`, the process that compiles them, one
at a time by `lock`. `snapshots` has the interpreted snapshots and how compiled ones take their place; `matcher` the
matchers that have both tiers. Why: docs/decisions/015.
"""
