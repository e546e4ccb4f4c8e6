"""Unpacks gzip, recognised by its magic number, up to a limit: a small file cannot fill the memory."""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator

import numpy as np
from isal import isal_zlib
from numpy.typing import NDArray

from triplewire.errors import ReadError

MAGIC = b"\x1f\x8b"
_FIRST, _GIVEN = 1 << 10, 1 << 16  # bytes given to the unpacker at once: for a new member, and at most
_STEP = 1 << 18  # bytes that it returns at once, at most
_SIZE = slice(-4, None)  # the size of the last member, modulo 2 ** 32 (RFC 1952, section 2.3.1)
_MOST = 1_032  # bytes that it unpacks from one byte, at most
_ZEROS = re.compile(rb"\x00*+")
_RESERVED = re.compile(MAGIC + rb".[\x20-\xff]", re.DOTALL)  # flags that no member may have (section 2.3.1.2)
_DAMAGED: type[Exception] = isal_zlib.IsalError  # type: ignore[assignment]  # its stub takes the class for an exception


def gunzip(data: bytes, limit: int) -> bytes:
    """`data` itself where it is not gzipped, else its content, all members joined. Raises `ReadError`."""
    return b"".join(_unpacked(data, limit)) if data.startswith(MAGIC) else data


def gunzip_padded(data: bytes, limit: int, pad: bytes) -> NDArray[np.uint8]:
    """The content of `data` as an array that may be changed, with `pad` behind it; it is in memory only once, as
    unpacked pieces are copied to their place at once. Raises `ReadError`."""
    packed, used = data.startswith(MAGIC), 0
    stated = int.from_bytes(data[_SIZE], "little") if packed else len(data)
    text = np.empty(min(stated, limit, _MOST * len(data)) + len(pad), np.uint8)
    for piece in _unpacked(data, limit) if packed else (data,):
        needed = used + len(piece) + len(pad)
        if needed > len(text):  # a file may have several members, or state a wrong size
            longer = np.empty(max(2 * len(text), needed), np.uint8)
            longer[:used] = text[:used]
            text = longer
        text[used : used + len(piece)] = np.frombuffer(piece, np.uint8)
        used += len(piece)
    text[used : used + len(pad)] = np.frombuffer(pad, np.uint8)
    return text[: used + len(pad)]


def _unpacked(data: bytes, limit: int) -> Iterator[bytes]:
    """The content of a gzipped file, in pieces. Raises `ReadError` where it is damaged or longer than `limit` bytes."""
    view, at, size = memoryview(data), 0, 0
    while data.startswith(MAGIC, at):
        if _RESERVED.match(data, at):
            raise ReadError("damaged gzip: reserved flags are set")
        member, given = isal_zlib.decompressobj(zlib.MAX_WBITS | 16), _FIRST
        rest: bytes | memoryview = b""
        while not member.eof:
            if not rest:
                rest = view[at : at + given]  # not all of it: what is unused is copied in each call
                at, given = at + len(rest), min(2 * given, _GIVEN)
            try:
                part = member.decompress(rest, _STEP)
            except _DAMAGED as error:
                raise ReadError(f"damaged gzip: {error}") from None
            rest = member.unconsumed_tail
            if not (part or rest or member.eof) and at == len(data):
                raise ReadError("damaged gzip: it ends too early")
            size += len(part)
            if size > limit:
                raise ReadError(f"it unpacks to more than {limit:,} bytes", remedy="raise max_input_bytes")
            yield part
        behind = _ZEROS.match(data, at - len(member.unused_data))
        at = behind.end() if behind else at
    if at < len(data):
        raise ReadError("damaged gzip: other bytes follow it")
