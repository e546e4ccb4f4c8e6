"""Live subscriptions behind an index: segments, the layers of a snapshot, loading, ids and texts."""
