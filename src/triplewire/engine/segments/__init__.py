"""Live subscriptions behind an index.

Read `snapshot` first: it holds `layers` (a `segment` with tombstones), which `merging` puts together. `loading` makes
segments of files, `context` is what all segments of an engine share, `operator_pairs` decides pairs by operators,
`arena` holds match rows, `rehearsal` warms a segment up; `ids` and `texts` are columns of a segment.
"""
