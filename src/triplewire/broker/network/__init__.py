"""A network of brokers: a broker that subscribes at others, its *upstreams*, and publishes what it gets from them.

`roots` says which of its subscriptions stand for all; `links` keeps these at an upstream and gets what matches;
`upstream` asks the doors of one; `crossing` is what passes: the documents of events. `docs/network.md` says the rules.
"""
