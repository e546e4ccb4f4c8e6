"""The bindings and graphs of a run as text: the last in memory, those before in a temporary file that is mapped."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import IO

import numpy as np

from triplewire.encode.strings import TextColumn

MOST = 1 << 30  # bytes of texts in memory


class HeldTexts:
    """The bindings of rows, in the order in which they come, and graphs by row.

    The file has no name. It is in the folder of `output`, which will be as large; without it, or where that is no plain
    file, where temporary files are. Raises `OSError` where it cannot be written.
    """

    def __init__(self, output: Path | None = None) -> None:
        self.bindings: list[TextColumn] = []
        self.graphs: dict[int, bytes | memoryview] = {}
        is_plain = output is not None and (output.is_file() or not output.exists())
        self._folder = output.parent if output is not None and is_plain else None
        self._file: IO[bytes] | None = None
        self._written = 0  # of `bindings`
        self._new_graphs: dict[int, bytes] = {}  # that are not written
        self._bytes = 0  # that are not written

    def add(self, bindings: TextColumn, graphs: Mapping[int, bytes]) -> None:
        """The next rows, and the graphs of some of them, by their number among all rows."""
        self.bindings.append(bindings)
        self.graphs.update(graphs)
        self._new_graphs.update(graphs)
        self._bytes += len(bindings.text) + sum(map(len, graphs.values()))
        if self._bytes > MOST:
            try:
                self._write()
            except OSError as error:
                folder = self._folder or tempfile.gettempdir()
                said = f"{error.strerror} for the bindings of this run, which memory is not to hold"
                raise OSError(error.errno, said, str(folder)) from error

    def _write(self) -> None:
        """Write the texts that are in memory to the file, and map them from there."""
        if self._file is None:
            self._file = tempfile.TemporaryFile(prefix="triplewire-", dir=self._folder)  # noqa: SIM115  # until the end
        start = end = self._file.seek(0, os.SEEK_END)
        for column in self.bindings[self._written :]:
            end += self._file.write(column.text.data)
        for graph in self._new_graphs.values():
            end += self._file.write(graph)
        self._file.flush()
        mapped = np.memmap(self._file, np.uint8, "r", start, (end - start,)).view(np.ndarray)
        begin = 0
        for place in range(self._written, len(self.bindings)):
            column = self.bindings[place]
            text = mapped[begin : (begin := begin + len(column.text))]
            self.bindings[place] = TextColumn(text, column.offset, column.number)
        for row, graph in self._new_graphs.items():
            self.graphs[row] = mapped[begin : (begin := begin + len(graph))].data
        self._written, self._bytes = len(self.bindings), 0
        self._new_graphs.clear()
