"""Gzip, recognised by its magic number and unpacked up to a limit, so that a bomb stays small."""

from __future__ import annotations

import zlib

from triplewire.errors import ReadError

MAGIC = b"\x1f\x8b"
_STEP = 1 << 20


def gunzip(data: bytes, limit: int) -> bytes:
    """`data` itself where it is not gzipped, else its content, all members joined. Raises `ReadError`."""
    return b"".join(_unpacked(data, limit)) if data.startswith(MAGIC) else data


def gunzip_padded(data: bytes, limit: int, pad: bytes) -> bytearray:
    """The same as a copy that may be changed, with `pad` behind it: what scans it copies nothing more."""
    return bytearray().join([*(_unpacked(data, limit) if data.startswith(MAGIC) else [data]), pad])


def _unpacked(data: bytes, limit: int) -> list[bytes]:
    """The content, in pieces."""
    parts, size, rest = [], 0, data
    while rest.startswith(MAGIC):
        member = zlib.decompressobj(zlib.MAX_WBITS | 16)
        while not member.eof:
            try:
                part = member.decompress(rest, _STEP)
            except zlib.error as error:
                raise ReadError(f"damaged gzip: {error}") from None
            if not part and not member.unconsumed_tail and not member.eof:
                raise ReadError("damaged gzip: it ends too early")
            rest = member.unconsumed_tail
            size += len(part)
            if size > limit:
                raise ReadError(f"it unpacks to more than {limit:,} bytes", remedy="raise max_input_bytes")
            parts.append(part)
        rest = member.unused_data.lstrip(b"\x00")
    if rest:
        raise ReadError("damaged gzip: other bytes follow it")
    return parts
