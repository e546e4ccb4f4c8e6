"""The matches of a run as columns, put in order at the end, and how they are written to files.

`collected` takes results one by one, and `held` keeps their texts; `rows` is the order; `written` makes the files.
There is no Python object a match, unless it is shown in a table. Tables, and files that nobody sees half of:
`triplewire.cli.output`.
"""
