"""Kernels that Python calls are compiled for one type of each argument: each other one takes as long again."""

from __future__ import annotations

import subprocess
import sys

import pytest

LISTED = """
import sys
from numba.core.dispatcher import Dispatcher
from triplewire.engine.tiers.warm_up import run_kernels

run_kernels()
ours = [name for name in sys.modules if name.startswith("triplewire.") and ".kernels." in name]
for module in [sys.modules[name] for name in ours]:
    for name, called in vars(module).items():
        if isinstance(called, Dispatcher) and called.__module__ == module.__name__:
            print(f"{module.__name__}.{name}", len(called.signatures))
"""
"""Each kernel with the number of signatures that it is loaded for. It needs a process that compiles nothing: one that
does also has the signatures for which other kernels call it."""


@pytest.mark.slow
def test_kernels_are_compiled_for_one_type_each(kernels_on_disk: None) -> None:
    done = subprocess.run([sys.executable, "-c", LISTED], capture_output=True, text=True, check=True, timeout=300)
    signatures = {name: int(count) for name, count in map(str.split, done.stdout.splitlines())}
    assert sum(count == 1 for count in signatures.values()) > 50
    assert {name for name, count in signatures.items() if count > 1} == set()
