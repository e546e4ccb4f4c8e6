"""The intermediate representation of subscriptions, the same for all query languages, and its meaning.

`nodes` is the tree, which `subscription` carries. `evaluation` is the reference meaning,
`normal_form` the disjunctive normal form, `checks` the limits of registration, and `show` writes a tree for people.
Nothing here knows a language or a file format.
"""
