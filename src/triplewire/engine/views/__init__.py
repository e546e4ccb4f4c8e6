"""Access to an engine's snapshot for other parts of the package.

`subscriptions`: a sequence of its subscriptions; `rules`: its MDV rules by id; `revisions`: a revision without a
compilation; `derived`: engines that share its arrays; `encoded_chunks`: chunks that another engine has encoded;
`compiled`: is it?
"""
