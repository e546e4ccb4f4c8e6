"""Matches or dead letters as a file of JSON Lines, each row once.

Before rows are appended, the number of their part and the length of the file are written down beside it. A part that
comes again, after a process was killed, takes the place of what its earlier try appended.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from triplewire.errors import Refusal
from triplewire.folders import replace_text
from triplewire.notify.rows import Part, Record, json_text


class JsonLinesSink:
    """A file to which rows are appended, one JSON object a line (`triplewire.notify.rows.json_text`)."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self._begun = file.with_name(f".{file.name}.begun")

    def __str__(self) -> str:
        return str(self.file)

    def check(self, stream: str, stop: threading.Event | None = None) -> None:
        """Make the file where it is not there. Raises `OSError`."""
        self.file.touch()

    def deliver(self, rows: Iterable[Record], part: Part) -> list[Refusal]:
        """Append the rows; with `Part.replaces`, in place of those of an earlier try. Raises `OSError`."""
        name = f"{part.stream} {part.batch}"
        with open(self.file, "ab") as stream:
            length = stream.seek(0, os.SEEK_END)
            if part.replaces and (before := self._length_before(name)) is not None and before < length:
                stream.truncate(before)
                length = before
            replace_text(self._begun, f"{name} {length}\n")
            stream.writelines(json_text(row).encode("utf-8", "replace") + b"\n" for row in rows)
        return []

    def _length_before(self, name: str) -> int | None:
        """The length of the file before the part of this name was appended; None where it was another one, or the file
        has been put elsewhere since."""
        with suppress(OSError, ValueError):
            begun, _, length = self._begun.read_text("utf-8").strip().rpartition(" ")
            return int(length) if begun == name else None
        return None
