"""A subscription index on storage: versions in a directory, which streams follow without a restart. No Spark here.

`versions` is the layout (manifests, publishing, removal), `build` makes a version of subscription files, `changes`
adds and removes single subscriptions, `open_version` opens versions by memory map, `pins` says which version a
micro-batch has. For users: `docs/cluster.md`.
"""
