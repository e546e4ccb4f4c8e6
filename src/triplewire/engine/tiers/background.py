"""A process that compiles kernels while another one answers interpreted.

It has the lowest priority. Each kernel is on disk as soon as it is compiled, so it may be ended at any time. It ends
`LINGER_SECONDS` after the process that started it: a command of a second leaves nothing behind for a minute, and the
next command's process goes on where this one stopped.
"""

from __future__ import annotations

import os
import sys
import threading
import time

from triplewire import kernel_cache, plugins
from triplewire.engine.tiers.kernels import TIER
from triplewire.folders import locked

LINGER_SECONDS = 10.0
_LOOK_SECONDS = 0.5


def main(parent: int, linger: float = LINGER_SECONDS) -> int:
    """Compile all kernels that are not on disk, unless another process is at it. Returns the exit code. `linger`:
    seconds that it goes on after the end of its `parent`."""
    os.environ[TIER] = "compiled"
    if hasattr(os, "nice"):
        os.nice(19)
    threading.Thread(target=_end_with, args=(parent, linger), daemon=True).start()
    folder = kernel_cache.folder()
    if folder is None:
        return 1
    with locked(folder / kernel_cache.LOCK) as held:
        if held:
            list(plugins.loaded("matcher"))  # so that their kernels are known
        if held and not kernel_cache.are_complete():
            # it brings Numba along, which the process that finds the lock taken does without
            from triplewire.engine.tiers.warm_up import run_missing

            run_missing()
            kernel_cache.mark_all_complete()
    return 0


def _end_with(parent: int, linger: float) -> None:
    """End this process some time after its parent."""
    while os.getppid() == parent:
        time.sleep(_LOOK_SECONDS)
    time.sleep(linger)
    os._exit(0)


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), *map(float, sys.argv[2:])))
