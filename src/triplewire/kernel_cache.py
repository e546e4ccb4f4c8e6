"""Where compiled kernels lie on disk: a folder for each state of the kernels' sources.

Kernels are in folders named `kernels` anywhere below this package, and where plug-ins say (`register`). The name of the
folder on disk holds the version of Python and a key: the SHA-256 of all these files, with the versions of Numba,
llvmlite and NumPy. So kernels may call helpers of other files: after an edit anywhere, all are compiled again, into a
new folder. The kernels of a plug-in have a folder and a key of their own. Numba itself tells processors apart. This
module imports no Numba: to look whether all kernels are compiled takes a few milliseconds. Who puts them there:
`triplewire.kernels.locator`, `triplewire.engine.tiers`.
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
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

FOLDER = "TRIPLEWIRE_CACHE"
"""The environment variable that names the folder to use before all others."""

PACKAGE, KERNELS = Path(__file__).parent, "kernels"
_CONSTANTS = frozenset([Path("model/packed.py")])  # files with constants that kernels use: they are in machine code
BESIDE = PACKAGE / KERNELS / "__pycache__"
"""Where compiled code lies beside the package, and other programs put none."""
STALE_DAYS = 7  # after so many days without use, folders of other keys are removed where other programs may use them
LOCK = "lock"
_PREFIX = f"{KERNELS}-{sys.implementation.cache_tag or platform.python_version()}-"
_COMPLETE, _KEY_DIGITS = "complete-", 16
_PACKAGES = ("numba", "llvmlite", "numpy")


@dataclass(frozen=True)
class Sources:
    """Files whose kernels have one key and one folder: below a package those in folders named `kernels`, and what
    these take constants from; of a plug-in one file, or all below a folder. `prefix`: how the names of their folders
    on disk begin."""

    root: Path
    prefix: str = _PREFIX
    is_package: bool = True

    def holds(self, file: Path) -> bool:
        """Is it one of these files?"""
        if not file.is_relative_to(self.root):
            return False
        path = file.relative_to(self.root)
        return not self.is_package or KERNELS in path.parts[:-1] or path in _CONSTANTS

    def files(self) -> list[Path]:
        """These files, sorted; where they lie in a zip archive, that archive alone."""
        place = next(path for path in (self.root, *self.root.parents) if path.exists())
        if not place.is_dir():
            return [place]
        below = (Path(folder, name) for folder, _, names in os.walk(place) for name in names if name.endswith(".py"))
        return sorted(filter(self.holds, below))

    def key_with(self, versions: Mapping[str, str]) -> str:
        """A key for the names and content of these files, and for the versions of what compiles them."""
        digest = hashlib.sha256(repr(sorted(versions.items())).encode())
        for path in self.files():
            name = path.relative_to(self.root).as_posix() if path.is_relative_to(self.root) else ""
            content = path.read_bytes()
            digest.update(f"{name}\0{len(content)}\0".encode() + content)
        return digest.hexdigest()[:_KEY_DIGITS]

    @cached_property
    def key(self) -> str:
        """The key of these files as they are installed."""
        from importlib.metadata import version  # only programs that match need it

        versions = {name: version(name) for name in _PACKAGES}
        return self.key_with(versions if self.is_package else versions | {"triplewire": OURS.key})

    @property
    def folder_name(self) -> str:
        """The name of their folder on disk."""
        return f"{self.prefix}{self.key}"


OURS = Sources(PACKAGE)
_registered = [OURS]


def register(path: str | Path) -> None:
    """Say that the kernels of a plug-in are in this file, or below this folder."""
    root = Path(path).absolute()
    name = root.stem if root.suffix else root.parent.name
    sources = Sources(root, f"{name}.{_PREFIX}", is_package=False)
    if sources not in _registered:
        _registered.append(sources)


def registered() -> tuple[Sources, ...]:
    """All sources of kernels that this process knows of, ours first."""
    return tuple(_registered)


@cache
def processor() -> str:
    """A name for the kind of processor that code is compiled for, or for what Numba's settings say of it."""
    named, described = os.environ.get("NUMBA_CPU_NAME", ""), list[str]()
    kind = [platform.system(), platform.machine(), named, os.environ.get("NUMBA_CPU_FEATURES", "")]
    if not named:
        with suppress(OSError):  # what Linux says of the first processor
            first = Path("/proc/cpuinfo").read_bytes().partition(b"\n\n")[0].decode(errors="replace")
            wanted = ("model name", "flags", "Features", "CPU part")
            described = [line for line in first.splitlines() if line.startswith(wanted)]
        kind += described or [platform.processor()]
    return hashlib.sha256("\n".join(kind).encode()).hexdigest()[:_KEY_DIGITS]


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
    yield BESIDE
    temporary = _temporary()
    if temporary is not None and _is_private(temporary):
        yield temporary


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
    is_ours = not hasattr(os, "getuid") or (about.st_uid == os.getuid() and not about.st_mode & 0o022)
    return stat.S_ISDIR(about.st_mode) and is_ours


def choose(folders: Iterator[Path], name: str) -> Path | None:
    """The first folder of this name, in one of the folders, that is complete or can be written; None where there is
    none."""
    places = (folder / name for folder in folders)
    return next((place for place in places if is_complete(place) or _is_writable(place)), None)


def _is_writable(folder: Path) -> bool:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder, buffering=0) as file:
            file.write(b"0")  # a full disk lets files be made
    except OSError:
        return False
    return True


@cache
def folder(sources: Sources = OURS) -> Path | None:
    """The folder of compiled kernels that this process uses: one that is named, else one that holds all kernels, else
    one that can be written. None where there is none."""
    name = sources.folder_name
    complete = (place / name for place in cache_folders(os.environ) if is_complete(place / name))
    return choose(named_places(os.environ), name) or next(complete, None) or choose(cache_folders(os.environ), name)


def is_complete(folder: Path) -> bool:
    """Are all kernels compiled, for this kind of processor? A file says so."""
    return os.path.exists(folder / f"{_COMPLETE}{processor()}")  # False where nobody may look


def mark_complete(folder: Path) -> None:
    """All kernels are compiled. Folders of other keys that nobody uses are removed."""
    (folder / f"{_COMPLETE}{processor()}").touch()
    sweep(folder)


def incomplete() -> list[Path]:
    """The folders where kernels are missing, also those of plug-ins that this process knows of."""
    return [place for place in _folders() if not is_complete(place)]


def mark_all_complete() -> None:
    """All kernels are compiled that this process knows of."""
    for place in incomplete():
        mark_complete(place)


def note_use() -> None:
    """Note that the folders are in use, so that they are not swept away."""
    for place in _folders():
        with suppress(OSError):  # it cannot be written, so nobody sweeps it either
            os.utime(place)


def _folders() -> list[Path]:
    return [place for sources in _registered if (place := folder(sources)) is not None]


def sweep(folder: Path) -> None:
    """Remove the folders that this one's sources had under other keys: at once beside the package, where only this
    program uses them, and elsewhere those that were not used for `STALE_DAYS`."""
    oldest = time.time() - (0 if folder.parent == BESIDE else STALE_DAYS * 86_400)
    for other in folder.parent.glob(f"{folder.name.rpartition('-')[0]}-*"):
        try:
            if other != folder and other.stat().st_mtime <= oldest:
                shutil.rmtree(other, ignore_errors=True)
        except OSError:
            continue  # somebody else has just removed it
