"""Live subscriptions behind an index.

Read `snapshot` first: it holds `layers` (a `segment` with tombstones), which `merging` puts together. `loading` makes
segments of files, `home` is what all segments of an engine share, `called` decides pairs by operators, `arena` holds
match rows, `rehearsal` warms a segment up; `ids` and `texts` are columns of a segment.
"""
