"""Answers before there is machine code: an interpreted tier that takes small work at once, until kernels are compiled.

`kernels` knows whether they are compiled, waits for them and starts the process that compiles them in the background;
`warm_up` runs each once. `interpreted` has the interpreted snapshots and how compiled ones take their place. Why:
docs/decisions/015.
"""
