"""Benchmarks: the papers' workloads as seeded generators, measured through the public interface.

`workloads` generates the data, `experiments` says what is measured and the targets, `run` starts the processes,
`measure` measures, `report` and `plot` show the results. The command: `triplewire.cli.bench`.
"""
