"""`python -m bench NAME`, in the project's root: measures matching on the papers' workloads."""

from __future__ import annotations

from bench.command import BENCH
from triplewire.cli import main

if __name__ == "__main__":
    main(BENCH)
