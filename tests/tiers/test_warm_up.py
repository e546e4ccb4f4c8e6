"""The warm-up compiles all there is, and what is compiled is only loaded."""

from __future__ import annotations

import ast
import os
import subprocess
import sys

from numba import njit
from numba.core import event

from triplewire.engine.tiers.warm_up import Each, load_kernels, run_kernels


def test_each_kernel_that_is_compiled_is_told() -> None:
    told: list[str] = []

    def added(value: int) -> int:
        return value + 1

    kernel = njit(added)
    with event.install_listener("numba:compile", Each(told.append)):
        assert [kernel(1), kernel(2)] == [2, 3]
    assert len(told) == 1
    assert told[0].endswith("added")


def test_nothing_is_compiled_where_all_is_on_disk(kernels_on_disk: None) -> None:
    told: list[str] = []
    run_kernels(told.append)
    load_kernels(told.append)
    assert not told


CALLED = """
import ast, sys, threading
called = set()
def note(frame, event, argument):
    if event == "call":
        called.add((frame.f_code.co_filename, frame.f_code.co_firstlineno))
threading.setprofile(note)  # operators are called in a thread of their own
sys.setprofile(note)
from triplewire.engine.tiers.warm_up import run_kernels
run_kernels()
sys.setprofile(None)
from triplewire import kernel_cache
seen, left = 0, []
for path in kernel_cache.OURS.files():
    for node in ast.walk(ast.parse(path.read_text())):
        if not isinstance(node, ast.FunctionDef):
            continue
        decorators = " ".join(map(ast.unparse, node.decorator_list))
        if "kernel" in decorators:
            seen += 1
            if not node.name.startswith("_") and (str(path), node.decorator_list[0].lineno) not in called:
                left.append(f"{path.name}:{node.name}")
print(seen, left)
"""


LATER = {"buckets.py:delete", "constraints.py:delete", "edges.py:delete", "forest.py:delete"}
"""Kernels of the papers' matchers that no first match calls: deletion, which only measurements ask for."""


def test_every_kernel_is_run() -> None:
    """A kernel that is left out would be compiled in the middle of somebody's match call."""
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "1"}  # as plain Python, calls can be seen
    done = subprocess.run([sys.executable, "-c", CALLED], env=environment, capture_output=True, text=True, check=True)
    seen, left = done.stdout.split(maxsplit=1)
    assert int(seen) > 20, "hardly any kernel was found: this test is blind"
    assert set(ast.literal_eval(left)) <= LATER
