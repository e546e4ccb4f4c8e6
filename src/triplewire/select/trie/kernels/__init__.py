"""The compiled loops of the trie: stars of atoms are looked up, then a set-trie is walked by what a publication has.

`atoms` finds what the subjects of publications satisfy, `set_trie` walks the tries, `trie_nodes` makes them; `stars`,
`subsets` and `columns` are what these share.
"""
