"""What many kernels need: how they are compiled, search, sorting, hashing, bytes, ranges of ranks, outcomes."""
