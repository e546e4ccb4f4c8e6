"""Kernels of the operator stage: which call comes next (`triplewire.operators.order`)."""
