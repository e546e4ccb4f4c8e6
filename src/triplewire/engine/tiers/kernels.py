"""The kernels of this process: are they compiled and loaded, wait for them, or have them compiled in the background.

Three states: loaded; compiled on disk (`triplewire.kernel_cache`), which takes seconds to load; not compiled, which
takes a few minutes. `TRIPLEWIRE_TIER` says what to do until they are loaded: "auto" answers small work interpreted,
"compiled" waits for them, "interpreted" never uses them.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Callable
from contextlib import suppress

from triplewire import kernel_cache, plugins
from triplewire.errors import TriplewireError
from triplewire.folders import locked
from triplewire.forks import forget_in_children, new_lock

TIER, TIERS = "TRIPLEWIRE_TIER", ("auto", "compiled", "interpreted")
BACKGROUND = "from triplewire.engine.tiers import kernels; raise SystemExit(kernels.compile_aside({parent}))"
"""The program of the process that compiles while this one answers interpreted."""
LINGER_SECONDS = 10.0
SMALL_PAIRS = 20_000
"""Publications times subscriptions of a match call that are matched interpreted: about a second of work."""
SMALL_BYTES = 128 * 1024
"""Bytes of subscription files that are loaded interpreted: about 600 short queries, half a second."""
PUBLICATION_BYTES = 1_024
"""What a publication is taken for in a file that is not yet read. Feeds and RDF documents have more."""
LOAD_SECONDS = 1.0
"""Seconds of interpreted matching in this process after which compiled kernels are loaded, which takes as long."""

_LOOK_SECONDS, _ASK_SECONDS = 0.2, 5.0  # between two looks at the disk, and between two background processes
_COMPILE, _LOAD = "triplewire.engine.tiers.warm_up:run_missing", "triplewire.engine.tiers.warm_up:load_kernels"
# by their names: they stand above, as they run a whole engine
NO_FOLDER = "no folder for compiled code can be written: matching is interpreted, which is slower; set TRIPLEWIRE_CACHE"
FULL = "compiled code cannot be put into {folder} ({reason}): matching is interpreted, which is slower"
TEMPORARY = (
    "compiled code is kept in {folder}, as no other folder can be written; set TRIPLEWIRE_CACHE to keep it for good"
)


class Kernels:
    """The state of a process, for any number of threads. `tell` is called when somebody begins to wait for compiling,
    `compiled` with the name of each kernel that this process has compiled meanwhile, `warn` once, where compiled code
    can be kept nowhere or not for long."""

    def __init__(self) -> None:
        self.tell: Callable[[], None] = lambda: None
        self.warn: Callable[[str], None] = lambda text: warnings.warn(text, RuntimeWarning, stacklevel=2)
        self.compiled: Callable[[str], None] = lambda name: None
        self.spent = 0.0  # seconds of interpreted matching
        self.refused: OSError | None = None  # why compiled code could not be put into the folder, as on a full disk
        self._is_loaded = self._is_complete = False
        self._sources = 0  # of kernels, when they were last looked at: a plug-in may have come since
        self._looked = self._asked = float("-inf")
        self._lock = new_lock()  # held by the thread that loads or compiles
        self._loading = threading.local()
        self._child: subprocess.Popen[bytes] | None = None
        self._failed = False
        self._has_warned = False

    @property
    def tier(self) -> str:
        """What `TRIPLEWIRE_TIER` says. Raises `TriplewireError` where that is none of `TIERS`."""
        tier = os.environ.get(TIER) or TIERS[0]
        if tier not in TIERS:
            raise TriplewireError(f"{tier!r} is no tier", source=TIER, remedy=f"known: {', '.join(TIERS)}")
        return tier

    def are_usable(self) -> bool:
        """May they be used at all? Not where they are not wanted, or compiled code can be kept nowhere."""
        if self.tier == "interpreted" or self.refused is not None:
            return False
        if _without_compiler():
            return True
        folder = kernel_cache.folder()
        if not self._has_warned and (folder is None or kernel_cache.is_temporary(folder)):
            self._has_warned = True
            self.warn(NO_FOLDER if folder is None else TEMPORARY.format(folder=folder.parent))
        return folder is not None

    def are_loaded(self) -> bool:
        """Can they be called at once, as far as this thread is concerned?"""
        if self._are_all_loaded():
            return True
        if self.tier == "compiled":
            return self.are_usable()
        return self.tier == "auto" and _without_compiler()

    def _are_all_loaded(self) -> bool:
        """Are they, or is this the thread that loads them? After a plug-in with kernels has come, they are not."""
        if self._sources != (sources := len(kernel_cache.registered())):
            self._sources, self._is_loaded, self._is_complete = sources, False, False
        return self._is_loaded or getattr(self._loading, "now", False)

    def are_compiled(self) -> bool:
        """Are all on disk? The disk is looked at now and then."""
        now = time.monotonic()
        if not self._is_complete and now - self._looked >= _LOOK_SECONDS:
            self._looked = now
            self._is_complete = kernel_cache.folder() is not None and not kernel_cache.incomplete()
        return self._is_complete

    def are_worth_loading(self, subscriptions: int) -> bool:
        """Are they compiled, and has interpreted matching taken long enough, or will the next publication need them?
        For the next publication they are compiled in the background."""
        are_needed = subscriptions > SMALL_PAIRS
        if are_needed:
            self.ask()
        return (are_needed or self.spent >= LOAD_SECONDS) and self.are_usable() and self.are_compiled()

    def wait(self, *, in_advance: bool = True) -> bool:
        """Return when they can be called: load them, compile them, or wait for the process that does. False if they are
        not to be used, or cannot be kept. Those that are compiled are loaded `in_advance`, or else each when it is
        called first, which takes less where the work is done at once."""
        if not self.are_usable():
            return False
        if not (self._are_all_loaded() or _without_compiler()):
            with self._lock:
                if not self._are_all_loaded() and self.refused is None:
                    try:
                        self._obtain(in_advance)
                        self._is_loaded, self._sources = True, len(kernel_cache.registered())
                    except OSError as error:
                        self.refused = error
                        self.warn(FULL.format(folder=kernel_cache.folder(), reason=error.strerror or error))
        return self.refused is None

    def _obtain(self, in_advance: bool) -> None:
        told = False
        while missing := kernel_cache.incomplete():
            if not told:
                self.tell()
                told = True
            child, self._child = self._child, None
            if child is not None and child.poll() is None:
                child.kill()  # its work is kept; here it goes on with the priority of somebody who waits
                child.wait()
            with locked(missing[0] / kernel_cache.LOCK) as held:
                if held:
                    self._run(_COMPILE)
                    kernel_cache.mark_all_complete()
                    return
            time.sleep(_LOOK_SECONDS)
        kernel_cache.note_use()
        if in_advance:
            self._run(_LOAD)
        else:
            kernel_cache.import_numba()

    def _run(self, work: str) -> None:
        """Do it in this thread, with compiled kernels."""
        self._loading.now = True
        try:
            kernel_cache.import_numba()
            plugins.attribute(work)(self.compiled)
        finally:
            self._loading.now = False

    def ask(self) -> None:
        """Have them compiled in the background, unless they are, or somebody is at it."""
        now = time.monotonic()
        if self._are_all_loaded() or self._failed or now - self._asked < _ASK_SECONDS:
            return
        if self.are_loaded() or not self.are_usable() or self.are_compiled():
            return
        self._asked = now
        if self._child is not None:
            code = self._child.poll()
            self._failed = code is not None and code > 0
            if code is None or self._failed:
                return
        path = os.pathsep.join(entry for entry in sys.path if entry)
        with suppress(OSError):  # then there is none; the answers are the same
            self._child = subprocess.Popen(
                [sys.executable, "-P", "-c", BACKGROUND.format(parent=os.getpid())],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env={**os.environ, "PYTHONPATH": path},
                start_new_session=True,
            )

    def forget(self) -> None:
        """In the child of a fork: the background process belongs to the parent, and no thread of it is at work here."""
        if self._child is not None:
            self._child.returncode = 0  # so that nothing waits for the parent's child
        self._child = None


def _without_compiler() -> bool:
    return os.environ.get("NUMBA_DISABLE_JIT", "0") not in ("", "0")


def compile_aside(parent: int, linger: float = LINGER_SECONDS) -> int:
    """Compile all kernels that are not on disk, unless another process is at it: what the background process does.
    Returns its exit code.

    It has the lowest priority. Each kernel is on disk as soon as it is compiled, so it may be ended at any time. It
    ends `linger` seconds after the process that started it, its `parent`: a command of a second leaves nothing behind
    for a minute, and the next command's process goes on where this one stopped.
    """
    os.environ[TIER] = "compiled"
    if hasattr(os, "nice"):
        os.nice(19)

    def end() -> None:
        while os.getppid() == parent:
            time.sleep(_LOOK_SECONDS)
        time.sleep(linger)
        os._exit(0)

    threading.Thread(target=end, daemon=True).start()
    if kernel_cache.folder() is None:
        return 1
    list(plugins.loaded("matcher"))  # so that their kernels are known
    if missing := kernel_cache.incomplete():
        with locked(missing[0] / kernel_cache.LOCK) as held:
            if held and kernel_cache.incomplete():
                plugins.attribute(_COMPILE)()
                kernel_cache.mark_all_complete()
    return 0


KERNELS = Kernels()
"""Those of this process."""

forget_in_children(KERNELS)
