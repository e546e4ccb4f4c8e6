"""Which subscriptions could match a publication? One file or folder an index over clauses; the seam is `index`.

`everything` narrows nothing. `trie` walks tries of atoms. The law of every index: it may name too many, never too few.
What it leaves open is decided by `triplewire.verify`. A new one is named in `triplewire.plugins`, or in the entry
points of a package of its own.
"""
