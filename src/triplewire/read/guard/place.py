"""Line and column of a byte offset in a text, for error messages."""

from __future__ import annotations


def line_and_column(data: bytes, offset: int) -> tuple[int, int]:
    """Line and column of the byte at `offset`, both from 1; the column counts characters of UTF-8."""
    start = data.rfind(b"\n", 0, offset) + 1
    return data.count(b"\n", 0, offset) + 1, len(data[start:offset].decode("utf-8", "replace")) + 1
