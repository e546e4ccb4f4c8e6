"""How calls of operators are made: at once, isolated, with a fuse and a budget. The entry is `caller`."""
