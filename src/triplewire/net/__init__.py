"""HTTP to the outside. No engine, operator or Spark is known here.

`addresses` reads what a user names, with its settings and secrets; `guard` says which servers may be asked; `client`
asks them, over the connections of `transport`.
"""
