"""Tells Numba where the machine code of our kernels lies, and when it is out of date: `triplewire.kernel_cache`.

Numba asks a list of locators for each function that is to be cached, and takes the first that answers. Its own ones
look at the function's file alone, and would run old code after an edit of a helper in another file.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from numba.core import caching

from triplewire import kernel_cache


class KernelLocator(caching._CacheLocator):
    """Locates the functions of kernels: those of sources with one key in one folder."""

    def __init__(self, sources: kernel_cache.Sources, folder: Path, file: Path, line: int) -> None:
        self._sources = sources
        self._folder = folder
        self._file = file
        self._line = line

    def get_cache_path(self) -> str:
        """The folder."""
        return str(self._folder)

    def get_source_stamp(self) -> str:
        """What has to be the same for compiled code to be used: the key of all sources."""
        return self._sources.key

    def get_disambiguator(self) -> str:
        """Tells functions of one name apart: files of one name lie in different folders."""
        parts = self._file.relative_to(self._sources.root).parts[:-1]
        return "-".join((*parts, str(self._line)))

    def ensure_cache_path(self) -> None:
        """Make the folder again, should somebody have removed it."""
        os.makedirs(self._folder, exist_ok=True)

    @classmethod
    def from_function(cls, py_func: Callable[..., Any], py_file: str) -> KernelLocator | None:
        """A locator for a kernel; None for other functions, and where no folder can be written."""
        file = Path(py_file).absolute()
        for sources in kernel_cache.registered():
            if sources.holds(file) and (folder := kernel_cache.folder(sources)) is not None:
                return cls(sources, folder, file, py_func.__code__.co_firstlineno)
        return None


def register() -> None:
    """Let Numba ask this locator before its own ones."""
    classes: list[Any] = caching.CacheImpl._locator_classes
    if KernelLocator not in classes:
        classes.insert(0, KernelLocator)
