"""Ctrl-C while Numba is imported: the process can match as before."""

from __future__ import annotations

import signal

import pytest

from tiers.test_processes import run

INTERRUPTED = """
import importlib.abc, os, signal, sys
from triplewire import Engine, read

class Interrupts(importlib.abc.MetaPathFinder):
    done = False

    def find_spec(self, name, path, target=None):
        if name == "numba.core.types" and not self.done:
            self.done = True
            os.kill(os.getpid(), signal.SIGINT)
        return None

interrupts = Interrupts()
sys.meta_path.insert(0, interrupts)
try:
    Engine().settle()
except KeyboardInterrupt:
    print("interrupted")
engine = Engine()
engine.subscribe("SELECT * { ?s ?p ?o }")
engine.settle()
result = engine.match(read(b"<urn:a> <urn:b> 1 ."))
print(len(result), result.stats.tiers, interrupts.done)
"""


@pytest.mark.usefixtures("kernels_on_disk")
@pytest.mark.parametrize("tier", ["auto", "compiled"])
@pytest.mark.skipif(signal.getsignal(signal.SIGINT) is signal.SIG_IGN, reason="Ctrl-C is ignored here")
def test_an_import_of_numba_ends(tier: str) -> None:
    done = run(code=INTERRUPTED, tier=tier)
    assert done.stdout.splitlines() == ["interrupted", "1 {'interpreted': 0, 'compiled': 1} True"], done.stderr
