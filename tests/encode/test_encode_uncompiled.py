"""The kernels as plain Python: the same batches, without overflow or arrays that are too short."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

SCRIPT = """
import random, sys, warnings
warnings.simplefilter("error")
sys.path.insert(0, sys.argv[1])
from decoded import check, encoded, said, said_by
from documents import Documents
from triplewire.config import Settings
from triplewire.encode.publications import encode_arrow
from triplewire.encode.publications import encode
from triplewire.encode.schema import to_batch
from triplewire.kernels.text import scan
from triplewire.read import read_document
from triplewire.read.names import document_iri

assert type(scan.scan).__name__ == "function"
plain = 0
for number in range(60):
    data = Documents(random.Random(number), (0.0, 0.2)[number % 2]).document()
    batch = encoded(data, document_iri("x.nq"), Settings())
    if batch is None:
        continue
    plain += 1
    publications = read_document(data, "x.nq")
    assert said_by(batch) == said(publications)
    check(batch)
    for other in (encode(publications), encode_arrow(to_batch(publications))):
        assert other is None or said_by(other) == said(publications)
    for publication in publications:
        one = encode([publication])
        assert said_by(one) == said([publication])
        check(one)
print("PLAIN", plain)
"""


def test_without_compiler() -> None:
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(Path(__file__).parent)],
        env={**os.environ, "NUMBA_DISABLE_JIT": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout.split()[-1]) > 20
