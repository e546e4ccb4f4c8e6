"""Benchmarks: the papers' workloads as seeded generators, measured through the doors that users come in by.

`workloads` has them by name, `experiments` what is measured and the targets, `run` the processes, `report` and `plot`
the results. The command: `triplewire.cli.bench`.
"""
