"""Importing the package and asking for help load nothing heavy: no Spark, no feed or RDF parser, no data frames."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

HEAVY = {"pyspark", "pyarrow", "numpy", "feedparser", "pyoxigraph", "pandas", "rdflib", "numba"}
HEAVY |= {"sqlalchemy", "fastapi", "uvicorn", "alembic", "prometheus_client"}  # of the service
HEAVY |= {"shapely", "geographiclib", "py3langid", "ahocorasick", "PIL", "owlrl", "pyshacl"}  # of operators
HEAVIER = HEAVY | {"typer", "pydantic", "regex"}  # than importing and the version may be

COMMAND = """
import sys
sys.argv = ["triplewire", *{arguments!r}]
from triplewire.cli import main
try:
    main()
except SystemExit:
    pass
"""

STARTS = {
    "import": "import sys, triplewire",
    "version": COMMAND.format(arguments=["--version"]),
    "help": COMMAND.format(arguments=["--help"]),
    "pipeline help": COMMAND.format(arguments=["pipeline", "--help"]),
}


@pytest.mark.parametrize("code", STARTS.values(), ids=STARTS.keys())
def test_start_is_light(code: str) -> None:
    script = f"{code}\nimport json\nprint('LOADED', json.dumps(sorted(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    loaded = set(json.loads(done.stdout.rpartition("LOADED ")[2]))
    assert "triplewire.read" in loaded, "nothing of ours was loaded: this test is blind"
    heavy = loaded & (HEAVY if "help" in code else HEAVIER)
    assert not heavy, f"loaded at start: {sorted(heavy)}; import it where it is used, and say why there"
