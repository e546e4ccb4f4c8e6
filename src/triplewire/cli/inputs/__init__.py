"""What a command is given to work on: files, a query on the command line, a taxonomy, operators, contexts.

`groups` lets commands share such options as one object, `files` says what cannot be a file, `resolve` has the options
of `match` and `explain`, `engines` makes engines, subscriptions and publications of them.
"""
