"""A saved engine: its `directory`, the `rows` of its subscriptions, and the index as `arrays`."""
