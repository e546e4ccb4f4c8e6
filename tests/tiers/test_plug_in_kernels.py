"""The kernels of a matcher from outside: compiled in the background and kept under a key of their own, as ours are."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from triplewire import kernel_cache
from triplewire.engine.tiers.kernels import TIER

KERNELS = """
from typing import Any
from triplewire.extend import helper, kernel

@helper
def is_edge(held: Any, wanted: Any) -> Any:
    return held == wanted

@kernel
def count(predicates: Any, wanted: Any) -> Any:
    found = 0
    for place in range(len(predicates)):
        if is_edge(predicates[place], wanted):
            found += 1
    return found
"""
SAME_NAME = """
from typing import Any
from triplewire.extend import helper, kernel

@helper
def is_edge(held: Any, wanted: Any) -> Any:
    return held == wanted

@kernel
def count(predicates: Any, wanted: Any) -> Any:
    return -1
"""
MAKER = """
from pathlib import Path
import numpy as np
from triplewire.extend import Selected, WarmUp, kernels

kernels(Path(__file__).parent / "kernels")

class Index:
    order, proves_constants = None, False
    def __init__(self, clauses):
        from edges.kernels import counting
        from edges.kernels.below import counting as other
        self.count, self.other, self.clauses = counting.count, other.count, clauses
    def prepare(self, view): return None
    def arrays(self): return {}
    def select(self, view, prepared, most, space):
        \"\"\"Checks every clause, of publications that have any triple with the predicate of its first.\"\"\"
        checks, b = [], view.batch
        predicate = self.clauses.table.pattern[:, 1]
        for p in range(len(b)):
            held = view.features.term[b.predicate[b.offset[p] : b.offset[p + 1]]].astype(np.int32)
            assert self.other(held, 0) == -1
            checks.append([c for c in range(self.clauses.count) if self.count(held, int(predicate[c]))])
        none = np.zeros(len(b) + 1, np.int64), np.zeros(0, np.int32)
        return Selected(*none, np.cumsum([0, *map(len, checks)]), np.array(sum(checks, []), np.int32))

class Maker:
    name, version = "edges", 1
    warm_up = WarmUp((("sparql", "SELECT * { ?s <urn:p> ?o }"),), (b"<urn:s> <urn:p> <urn:o> <urn:g> .",))
    def build(self, clauses): return Index(clauses)
    def open(self, clauses, arrays): return Index(clauses)

MAKER = Maker()
"""
PROGRAM = """
import json, time
import numpy as np
from triplewire import Engine, IRI, Publication, Triple, kernel_cache
s, p = IRI("urn:s"), IRI("urn:p")
publication = Publication("urn:g", (Triple(s, p, s),))

def told(engine):
    result = engine.match(publication)
    return [m.subscription for m in result], [tier for tier, count in result.stats.tiers.items() if count]

engine = Engine(matcher="edges")
for name in "pq":
    engine.subscribe(f"SELECT * {{ ?s <urn:{name}> ?o }}", id=name)
first = told(engine)
started = time.monotonic()
while kernel_cache.incomplete() and time.monotonic() - started < 240:
    time.sleep(0.1)
engine.settle()
second = told(engine)
from edges.kernels import counting
compiled_here = sum(counting.count.stats.cache_misses.values())
print(json.dumps([first, second, compiled_here, int(counting.count(np.zeros(1, np.int32), 5))]))
"""


def test_kernels_of_a_plug_in(kernels_on_disk: None, tmp_path: Path) -> None:
    package, info = tmp_path / "edges", tmp_path / "edges-1.0.dist-info"
    for folder in (package / "kernels/below", info):
        folder.mkdir(parents=True)
    for file, text in {
        package / "__init__.py": "",
        package / "maker.py": MAKER,
        package / "kernels/__init__.py": "",
        package / "kernels/counting.py": KERNELS,
        package / "kernels/below/__init__.py": "",
        package / "kernels/below/counting.py": SAME_NAME,
        info / "METADATA": "Metadata-Version: 2.1\nName: edges\nVersion: 1.0\n",
        info / "entry_points.txt": "[triplewire.matcher]\nedges = edges.maker:MAKER\nbroken = edges.nowhere:MAKER\n",
    }.items():
        file.write_text(text)
    ours = kernel_cache.folder()
    assert ours is not None
    shutil.copytree(ours, tmp_path / "cache" / ours.name)
    paths = os.pathsep.join([str(tmp_path), *filter(None, [os.environ.get("PYTHONPATH")])])
    environment = os.environ | {"PYTHONPATH": paths, kernel_cache.FOLDER: str(tmp_path / "cache"), TIER: "auto"}

    def run() -> list[object]:
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        told: list[object] = json.loads(done.stdout)
        return told

    assert run() == [[["p"], ["interpreted"]], [["p"], ["compiled"]], 0, 0], "compiled by the background process"
    (folder,) = (entry for entry in (tmp_path / "cache").iterdir() if entry.name != ours.name)
    assert folder.name.startswith("edges.kernels-")
    assert not list(package.rglob("*.nbi"))
    (package / "kernels/counting.py").write_text(KERNELS.replace("found = 0", "found = 7"))
    assert run() == [[["p"], ["interpreted"]], [["p"], ["compiled"]], 0, 7], "an edit compiles them again"
    (package / "kernels/counting.py").write_text(KERNELS.replace("found = 0", "found = 9"))
    done = subprocess.run(
        [sys.executable, "-m", "triplewire", "warm-up"], env=environment, capture_output=True, text=True, check=False
    )
    assert "the matcher 'broken' is left out" in done.stderr
    assert re.search(r"^[1-9] kernels compiled", done.stderr, re.MULTILINE), "of the plug-in, and none of ours"
    folders = [entry for entry in (tmp_path / "cache").iterdir() if entry.name.startswith("edges.kernels-")]
    assert len(folders) == 3
    assert all(map(kernel_cache.is_complete, folders))
