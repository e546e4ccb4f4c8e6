"""Access to an engine's snapshot for other parts of the package.

`registered`: its subscriptions as a sequence; `rules`: its MDV rules by id; `revised`: a revision without compiling;
`forked`: engines that share its arrays; `handed`: chunks that another engine has encoded; `readied`: is it compiled?
"""
