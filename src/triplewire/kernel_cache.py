"""Where compiled kernels lie on disk: a folder for each state of the kernels' sources.

The folder's name holds the version of Python and a key: the SHA-256 of all files in `triplewire.kernels`, with the
versions of Numba, llvmlite and NumPy. So kernels may call helpers of other files: after an edit anywhere, all are
compiled again, into a new folder. Numba itself tells processors apart. This module imports no Numba: to look whether
all kernels are compiled takes a few milliseconds. Who puts them there: `triplewire.kernels.locator`,
`triplewire.engine.tiers`.
"""

from __future__ import annotations

import hashlib
import importlib
import os
import platform
import shutil
import stat
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path

FOLDER = "TRIPLEWIRE_CACHE"
"""The environment variable that names the folder to use before all others."""

KERNELS = Path(__file__).parent / "kernels"
STALE_DAYS = 7  # after so many days without use, folders of other keys are removed where other programs may use them
LOCK = "lock"
_PREFIX = f"kernels-{sys.implementation.cache_tag or platform.python_version()}-"
_COMPLETE, _KEY_DIGITS = "complete-", 16
_PACKAGES = ("numba", "llvmlite", "numpy")


def source_key(sources: Path, versions: Mapping[str, str]) -> str:
    """A key for the names and content of all Python files below a folder, and for the versions of what compiles them.

    `sources` may lie in a zip archive: the key is then that of the whole archive.
    """
    digest = hashlib.sha256(repr(sorted(versions.items())).encode())
    folder = sources if sources.is_dir() else next(path for path in sources.parents if path.exists())
    for path in sorted(folder.rglob("*.py")) if folder.is_dir() else [folder]:
        content = path.read_bytes()
        digest.update(f"{path.relative_to(folder).as_posix()}\0{len(content)}\0".encode() + content)
    return digest.hexdigest()[:_KEY_DIGITS]


@cache
def key() -> str:
    """The key of the kernels as they are installed."""
    from importlib.metadata import version  # only programs that match need it

    versions = {name: version(name) for name in _PACKAGES}
    return source_key(KERNELS, versions)


@cache
def processor() -> str:
    """A name for the kind of processor that code is compiled for, or for what Numba's settings say of it."""
    named = os.environ.get("NUMBA_CPU_NAME", "")
    kind = [platform.system(), platform.machine(), named, os.environ.get("NUMBA_CPU_FEATURES", "")]
    if not named:
        kind += _described() or [platform.processor()]
    return hashlib.sha256("\n".join(kind).encode()).hexdigest()[:_KEY_DIGITS]


def _described() -> list[str]:
    """What Linux says of the first processor."""
    wanted = (b"model name", b"flags", b"Features", b"CPU part")
    try:
        first = Path("/proc/cpuinfo").read_bytes().partition(b"\n\n")[0]
    except OSError:
        return []
    return [line.decode(errors="replace") for line in first.splitlines() if line.startswith(wanted)]


# --- the folder ------------------------------------------------------------------------------------------------------


def named_places(environment: Mapping[str, str]) -> Iterator[Path]:
    """The folders that the user has named, the first choice first."""
    for name in (FOLDER, "NUMBA_CACHE_DIR"):
        if environment.get(name):
            with suppress(FileNotFoundError):  # of a current folder that was removed
                yield Path(environment[name]).absolute()


def import_numba() -> None:
    """Import Numba in a thread of its own, which Ctrl-C does not interrupt: where its import ends half-way, it stays
    broken for as long as the process lives. An error comes again where Numba is imported by name."""

    def work() -> None:
        with suppress(Exception):
            importlib.import_module("numba")

    thread = threading.Thread(target=work, name="triplewire-import")
    thread.start()
    thread.join()


def cache_folders(environment: Mapping[str, str]) -> Iterator[Path]:
    """The other folders that may hold compiled kernels, the first choice first."""
    base = environment.get("XDG_CACHE_HOME") or os.path.join(environment.get("HOME") or "", ".cache")
    if os.path.isabs(base):
        yield Path(base) / "triplewire"
    yield KERNELS / "__pycache__"
    own = _temporary()
    if own is not None and _is_private(own):
        yield own


def _temporary() -> Path | None:
    """A folder of this user among the temporary ones; None where no temporary file can be made."""
    try:
        return Path(tempfile.gettempdir()) / f"triplewire-{os.getuid() if hasattr(os, 'getuid') else 'cache'}"
    except OSError:
        return None


def is_temporary(folder: Path) -> bool:
    """Is it the last resort: a folder that may be gone at the next start?"""
    return folder.parent == _temporary()


def _is_private(folder: Path) -> bool:
    """Is the folder ours alone? Others could put code of theirs into it."""
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        about = folder.lstat()
    except OSError:
        return False
    if not hasattr(os, "getuid"):
        return stat.S_ISDIR(about.st_mode)
    return stat.S_ISDIR(about.st_mode) and about.st_uid == os.getuid() and not about.st_mode & 0o022


def choose(folders: Iterator[Path], key: str) -> Path | None:
    """The first folder for this key that holds all kernels or can be written; None where there is none."""
    for folder in folders:
        own = folder / f"{_PREFIX}{key}"
        if is_complete(own) or _is_writable(own):
            return own
    return None


def _is_writable(folder: Path) -> bool:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder, buffering=0) as file:
            file.write(b"0")  # a full disk lets files be made
    except OSError:
        return False
    return True


@cache
def folder() -> Path | None:
    """The folder of compiled kernels that this process uses: one that is named, else one that holds all kernels, else
    one that can be written. None where there is none."""
    complete = (own for place in cache_folders(os.environ) if is_complete(own := place / f"{_PREFIX}{key()}"))
    return choose(named_places(os.environ), key()) or next(complete, None) or choose(cache_folders(os.environ), key())


# --- what is in it ---------------------------------------------------------------------------------------------------


def _marker(folder: Path) -> Path:
    """A file that is there when all kernels are compiled for this kind of processor."""
    return folder / f"{_COMPLETE}{processor()}"


def is_complete(folder: Path) -> bool:
    """Are all kernels compiled, for this kind of processor?"""
    return _marker(folder).exists()


def mark_complete(folder: Path) -> None:
    """All kernels are compiled. Folders of other keys that nobody uses are removed."""
    _marker(folder).touch()
    sweep(folder)


def used(folder: Path) -> None:
    """Note that the folder is in use, so that it is not swept away."""
    with suppress(OSError):  # it cannot be written, so nobody sweeps it either
        os.utime(folder)


def sweep(folder: Path) -> None:
    """Remove the folders of other keys: at once beside the package, where only this program uses them, and elsewhere
    those that were not used for `STALE_DAYS`."""
    oldest = time.time() - (0 if folder.parent == KERNELS / "__pycache__" else STALE_DAYS * 86_400)
    for other in folder.parent.glob(f"{_PREFIX}*"):
        try:
            if other != folder and other.stat().st_mtime <= oldest:
                shutil.rmtree(other, ignore_errors=True)
        except OSError:
            continue  # somebody else has just removed it
