"""Documents from files, folders, standard input, bytes and streams."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO, TypeAlias

from triplewire.config import Settings
from triplewire.errors import ReadError, Refusal
from triplewire.read.names import STDIN

Source: TypeAlias = "str | os.PathLike[str] | bytes | BinaryIO"
"""A file, a folder (all files below), `-` (standard input), the bytes of a document, or a binary stream of one."""

_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
_PIECE = 1 << 20  # bytes of a stream that are read at once


def documents(
    *sources: Source, settings: Settings, on_refusal: Callable[[Refusal], None] | None = None
) -> Iterator[tuple[str, bytes]]:
    """The name and the bytes of each document of all sources, gzipped or not, as `triplewire.read` takes them."""
    for source in sources:
        for name, load in _documents(source, settings):
            try:
                data = load()
            except (ReadError, OSError) as error:
                refused = error if isinstance(error, ReadError) else _unreadable(name, error)
                if on_refusal is None:
                    raise refused from None
                on_refusal(Refusal.of("publication", name, refused))
            else:
                yield name, data


def files_below(folder: Path) -> Iterator[Path]:
    """All files below a folder, sorted by path; those whose name begins with a dot are left out."""
    for entry in sorted(folder.rglob("*")):
        if entry.is_file() and not any(part.startswith(".") for part in entry.relative_to(folder).parts):
            yield entry


def _documents(source: Source, settings: Settings) -> Iterator[tuple[str, Callable[[], bytes]]]:
    """Each document of a source: its name, and how to get its bytes."""
    limit = settings.max_input_bytes
    if isinstance(source, bytes):
        yield "", lambda: source
    elif isinstance(source, str | os.PathLike):
        if source == "-":
            yield STDIN, lambda: _bounded(sys.stdin.buffer, STDIN, limit)
            return
        path = Path(source)
        for file in files_below(path) if path.is_dir() else [path]:
            yield str(file if file is not path else source), lambda file=file: _from_file(file, limit)  # type: ignore[misc]  # mypy cannot type the default
    else:
        name = getattr(source, "name", "")
        name = STDIN if source is sys.stdin.buffer else name if isinstance(name, str) else ""
        yield name, lambda: _bounded(source, name, limit)


def _from_file(path: Path, limit: int) -> bytes:
    with path.open("rb") as stream:
        return _bounded(stream, str(path), limit, os.fstat(stream.fileno()).st_size)


def _bounded(stream: BinaryIO, name: str, limit: int, expected: int = 0) -> bytes:
    """All bytes of a stream of about the `expected` size. Room is made for what comes, not for what may come."""
    pieces: list[bytes] = []
    room, wanted = limit + 1, expected + 1
    while room > 0 and (data := stream.read(min(room, wanted))):
        pieces.append(data)
        room, wanted = room - len(data), _PIECE
    if room <= 0:
        raise ReadError(f"it has more than {limit:,} bytes", source=name, remedy="raise max_input_bytes")
    return pieces[0] if len(pieces) == 1 else b"".join(pieces)


def _unreadable(name: str, error: OSError) -> ReadError:
    if _ADDRESS.match(name):
        return ReadError("this is an address, and nothing is fetched", source=name, remedy="hand in what was fetched")
    return ReadError(f"the file cannot be read: {error.strerror or error}", source=name)
