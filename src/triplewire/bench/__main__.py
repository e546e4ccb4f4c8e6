"""The process of one step of an experiment. `triplewire.bench.run` starts it, with the job as its argument."""

from __future__ import annotations

import sys

from triplewire.bench.run import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
