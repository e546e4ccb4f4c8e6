"""A process that waits for kernels as the workers of a cluster do, and says how many it has compiled.

All kernels take minutes to compile, so two of them stand for all: the lock, the folder and the compiler are the real
ones.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

import numpy as np


def run(compiled: Callable[[str], None]) -> None:
    """Run two kernels; `compiled` gets the name of each that had to be compiled."""
    from numba.core import event

    from triplewire.engine.tiers.warm_up import Each
    from triplewire.kernels.shared.columns import fixed_array
    from triplewire.kernels.text import json_strings
    from triplewire.kernels.text.names import copy_strings

    with event.install_listener("numba:compile", Each(compiled)):
        text, start, offset = np.frombuffer(b"text", np.uint8), np.array([0]), np.array([0, 4])
        copy_strings(fixed_array(text), fixed_array(start), fixed_array(offset), np.empty(4, np.uint8))
        json_strings.escaped_offsets(text, start, offset[1:], np.empty(2, np.int64))


def main() -> None:
    """Wait for the kernels."""
    from triplewire.engine.tiers import kernels

    kernels._COMPILE = kernels._LOAD = "obtained:run"
    names: list[str] = []
    kernels.KERNELS.compiled = names.append
    assert kernels.KERNELS.wait()
    print(len(names))


if __name__ == "__main__":
    sys.modules["obtained"] = sys.modules["__main__"]
    main()
