"""The subscriptions of a snapshot as Python's collections: a sequence (`registered`), the rules by id (`rules`)."""
