"""The matches of a run as columns, put in order at the end (`rows`, `collected`), and how they are written (`written`).

There is no Python object a match, unless it is shown in a table. Tables, and files that nobody sees half of:
`triplewire.cli.output`.
"""
