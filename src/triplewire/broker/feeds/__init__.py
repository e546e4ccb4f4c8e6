"""Every subscription as an address that programs people have can read.

`entries` says what is in its feed, the other files write it, one or a few formats each. What comes from strangers goes
through `cleaning`.
"""
