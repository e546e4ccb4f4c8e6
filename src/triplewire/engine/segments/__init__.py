"""Live subscriptions behind an index.

Read `snapshot` first: it holds `layers` (a `segment` with tombstones), and merges them. `single_texts` finds templates
of what is registered one at a time, `loading` makes segments of files and warms them up. `operator_pairs` decides pairs
by operators, `arena` holds match rows; `texts` has the texts and the ids of a segment.
"""
