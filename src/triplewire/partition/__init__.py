"""Which subscriptions go to which node of a cluster, and the two stages of filtering there (001; no Spark).

`plan` has the partitioners by name, `containment_partitioner` and `merging` are the paper's two, `cluster` has the two
stages in one process; `triplewire.pipeline.index` has the same on storage and on Spark. What one subscription says of
another: `containment`.
"""
