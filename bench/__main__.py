"""`python -m bench NAME`, in the project's root: measures matching on the papers' workloads."""

from __future__ import annotations

import os
import sys

from bench.command import BENCH
from triplewire.cli import main

if __name__ == "__main__":
    # processes that are measured have the bytecode of the package, as they have where it is installed
    sys.dont_write_bytecode = False
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    main(BENCH)
