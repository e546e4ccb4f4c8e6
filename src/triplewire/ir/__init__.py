"""What every subscription becomes, whichever language it was written in, and what that means.

`nodes` and `text` are the tree; `subscription` carries it; `evaluate` is the reference meaning; `normalize` checks
the limits of registration; `show` writes a tree for people. Nothing here knows a language or a file format.
"""
