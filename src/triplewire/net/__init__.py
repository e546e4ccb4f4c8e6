"""HTTP to the outside: `addresses` reads what a user names, with its settings and secrets; `guard` says which servers
may be asked; `client` asks them, over the connections of `transport`. No engine, operator or Spark is known here.
"""
