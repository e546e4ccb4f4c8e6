"""Attachments of a publication that was read from a file of this machine: the files beside that one that it names.

    <report> :photo <photo.png> ; :plan "plans/harbour.png" .

Names are IRIs (relative ones are resolved against the file) and literals that look like the path of a file. A file
counts that lies in the folder of the publication's own file, or below; nothing is fetched. Files are looked for and
read when an operator asks for them, not before.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any
from urllib.parse import unquote

from triplewire.errors import ReadError
from triplewire.model.packed import Packed, unpack
from triplewire.model.terms import IRI, Literal, Term, Triple

MOST_FILES = 100
MOST_BYTES, MOST_TOGETHER = 16 << 20, 64 << 20  # of one, of all of a publication
_FILE = re.compile(r"file:(?://(?:localhost)?)?(/[^?#]+)")
_PATH = re.compile(r"(?!/)[^\x00-\x1f\\:*?\"<>|]{1,240}\.[A-Za-z0-9]{1,8}")  # with a suffix, as names of files have


class FilesBeside(Mapping[str, bytes]):
    """The files beside a file that triples name: the path of each from the folder on, and what it holds.

    Left out are hidden files and those outside of the folder. Raises `ReadError` where one is asked for that cannot be
    read, is too large, or is a link that leads out of the folder, and where there are too many.
    """

    def __init__(self, file: str, content: Packed | tuple[Triple, ...]) -> None:
        self.file = file
        self._content = content

    def __reduce__(self) -> tuple[Any, ...]:
        return FilesBeside, (self.file, self._content)

    @cached_property
    def _files(self) -> dict[str, str]:
        """Name -> what it leads to; "" where that is outside of the folder."""
        folder = os.path.dirname(os.path.abspath(self.file))
        inside, own = os.path.join(os.path.realpath(folder), ""), os.path.realpath(self.file)
        triples = unpack(self._content) if isinstance(self._content, Packed) else self._content
        files: dict[str, str] = {}
        together = 0
        for term in dict.fromkeys(term for triple in triples for term in (triple.subject, triple.object)):
            name = _name_in(folder, term)
            leads_to = os.path.realpath(os.path.join(folder, name))
            if name and name not in files and leads_to != own and os.path.isfile(leads_to):
                files[name] = leads_to if leads_to.startswith(inside) else ""
                together += os.path.getsize(leads_to)
        if len(files) > MOST_FILES or together > MOST_TOGETHER:
            what = f"the publication names {len(files)} files beside it with {together:,} bytes together"
            raise self._error(f"{what}; at most {MOST_FILES} with {MOST_TOGETHER:,} are read")
        return files

    def __iter__(self) -> Iterator[str]:
        return iter(self._files)

    def __len__(self) -> int:
        return len(self._files)

    def __getitem__(self, name: str) -> bytes:
        leads_to = self._files[name]
        if not leads_to:
            raise self._error(f"its attachment {name!r} is a link that leads out of the folder", "copy the file there")
        try:
            number = os.open(leads_to, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
            with open(number, "rb") as stream:
                data = stream.read(MOST_BYTES + 1) if stat.S_ISREG(os.fstat(number).st_mode) else b""
        except OSError as error:
            raise self._error(f"its attachment {name!r} cannot be read: {error.strerror or error}") from None
        if len(data) > MOST_BYTES:
            raise self._error(f"its attachment {name!r} has more than {MOST_BYTES:,} bytes")
        return data

    def _error(self, what: str, remedy: str = "") -> ReadError:
        return ReadError(what, source=self.file, remedy=remedy)


def _name_in(folder: str, term: Term) -> str:
    """The path that a term names, from the folder on; "" where it names none there, or what is hidden."""
    if isinstance(term, IRI):
        match = _FILE.fullmatch(term.value.partition("#")[0])
        path = unquote(match[1], errors="surrogateescape") if match else ""
    else:
        is_path = isinstance(term, Literal) and term.has_text and _PATH.fullmatch(term.lexical)
        path = os.path.join(folder, term.lexical) if isinstance(term, Literal) and is_path else ""
    if not path or "\0" in path:
        return ""
    name = os.path.relpath(path, folder)  # without "..", but at its beginning
    return "" if any(part.startswith(".") for part in name.split(os.sep)) else name
