"""Pictures for the cases of `tests/cases/operators/families.toml`: what stands in braces there."""

from __future__ import annotations

import base64
import io
import struct
import zlib
from typing import Any


def drawn(text: str) -> str:
    """What a text stands for: KIND FORMAT WIDTH HEIGHT, "hash of" KIND, "position base64", "broken", "bomb" SIDE."""
    kind, *how = text.split()
    if kind == "hash":
        from triplewire.operators.families.images import _hash

        return f"{_hash(_bytes(_picture(how[1], 100, 80), 'PNG')):016x}"
    if kind == "position":
        return base64.b64encode(_with_position()).decode()
    if kind == "broken":
        return _address(_bytes(_picture("wave", 64, 48), "PNG")[:200], "png")
    if kind == "bomb":
        return _address(_bomb(int(how[0])), "png")
    form, width, height = how
    return _address(_bytes(_picture(kind, int(width), int(height)), form.upper()), form)


def _address(data: bytes, form: str) -> str:
    return f"data:image/{form};base64,{base64.b64encode(data).decode()}"


def _picture(kind: str, width: int, height: int) -> Any:
    """A picture of smooth greys: a wave from left to right, or a slope."""
    from PIL import Image

    shades = Image.new("L", (width, height))
    for x in range(width):
        for y in range(height):
            part, down = x / width, y / height
            wave = 255 * abs(((2 * part + down) % 1) * 2 - 1)
            shades.putpixel((x, y), int(wave if kind == "wave" else 255 * (1 - part)))
    return shades


def _bytes(picture: Any, form: str, **how: Any) -> bytes:
    stream = io.BytesIO()
    picture.save(stream, form, **how)
    return stream.getvalue()


def _with_position() -> bytes:
    """57 degrees 30' north, 2 degrees 15' west."""
    from PIL import Image

    picture = Image.new("RGB", (8, 8))
    exif = picture.getexif()
    exif.get_ifd(0x8825).update({1: "N", 2: (57.0, 30.0, 0.0), 3: "W", 4: (2.0, 15.0, 0.0)})
    return _bytes(picture, "JPEG", exif=exif)


def _bomb(side: int) -> bytes:
    """A PNG whose head names very many pixels."""

    def chunk(name: bytes, body: bytes) -> bytes:
        return struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))

    head = struct.pack(">IIBBBBB", side, side, 8, 0, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(b"\0" * 100)) + chunk(b"IEND", b"")
    )
