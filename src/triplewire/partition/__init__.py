"""Which subscriptions go to which node of a cluster (001; no Spark).

`plan` has the partitioners by name, `containment` and `merging` are the paper's two, `placement` says where each
subscription is. The two stages of filtering: `triplewire.pipeline.tasks`; in one process, as the bench measures them:
`bench/cluster.py`.
"""
