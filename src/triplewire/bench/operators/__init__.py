"""What is measured of expensive operators: the figures of the operators paper (`paper`), and the targets (`targets`).

Calls are counted by `simulation`, which runs the orders of `triplewire.operators.order` over known outcomes. Times are
those of an engine. `bound` says how few calls there could be.
"""
