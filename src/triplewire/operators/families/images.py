"""Pictures in a publication: `imageSize`, `imageHash`, `looksLike`, `imagePosition`, on Pillow (extra `images`).

A picture is a `data:` address (RFC 2397), an xsd:base64Binary or xsd:hexBinary literal, or an attachment. Nothing is
fetched. PNG, JPEG, GIF and WebP are read, the first frame only.
"""

from __future__ import annotations

import base64
import binascii
import io
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any
from urllib.parse import unquote_to_bytes

from triplewire.model.operator import Argument, Parameter, nothing_to_say
from triplewire.model.publication import Publication
from triplewire.model.terms import IRI, XSD, Literal, Term
from triplewire.operators import text_of
from triplewire.operators.families.library import LibraryOperator, checked, double, integer, number_of, rows

LIBRARIES = (("Pillow", "PIL"),)
FORMATS = ("PNG", "JPEG", "GIF", "WEBP")
HASH = re.compile(r"[0-9a-fA-F]{16}")
BITS = 64  # of a hash
MOST_BYTES = 16 * 1024 * 1024  # of one picture, as it is stored
MOST_PIXELS = 40_000_000  # of one picture: 160 MB of memory at most
MOST_IMAGES = 100  # of one publication
_DATA = re.compile(r"data:image/(?!svg)[a-z0-9.+-]+((?:;[^;,]*)*),", re.IGNORECASE)
_STARTS = (b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff", b"GIF87a", b"GIF89a")
_GPS, _SOUTH_OR_NORTH, _LATITUDE, _WEST_OR_EAST, _LONGITUDE = 0x8825, 1, 2, 3, 4  # EXIF 2.32, section 4.6.6
_base64 = partial(base64.b64decode, validate=True)


def image_size(publication: Publication, arguments: tuple[Argument, ...]) -> Iterable[tuple[Term, ...]]:
    """A row for each picture: its width and height in pixels, as xsd:integer."""
    sizes = []
    for data in _images(publication):
        with _opened(data) as image:
            sizes.append((integer(image.width), integer(image.height)))
    return rows(arguments, sizes)


def image_hash(publication: Publication, arguments: tuple[Argument, ...]) -> Iterable[tuple[Term, ...]]:
    """A row for each picture: its hash, 16 hexadecimal digits."""
    hashes = [_hash(data) for data in _images(publication)]
    if arguments[0] is not None:
        return [(arguments[0],)] if hash_of(arguments[0]) in hashes else []
    return rows(arguments, [(Literal(f"{number:016x}"),) for number in hashes])


def looks_like(publication: Publication, arguments: tuple[Argument, ...]) -> bool:
    """Does the hash of a picture differ from this one in at most so many of 64 bits? A broken picture makes it
    unknown, unless another one holds."""
    wanted, most = hash_of(arguments[0]), bits_of(arguments[1])
    broken: ValueError | None = None
    for data in _images(publication):
        try:
            if (_hash(data) ^ wanted).bit_count() <= most:
                return True
        except ValueError as error:
            broken = error
    if broken is not None:
        raise broken
    return False


def image_position(publication: Publication, arguments: tuple[Argument, ...]) -> Iterable[tuple[Term, ...]]:
    """A row for each picture that says where it was taken (EXIF): degrees of latitude and longitude, as xsd:double."""
    positions = []
    for data in _images(publication):
        with _opened(data) as image:
            gps = image.getexif().get_ifd(_GPS)
            latitude = _degrees(gps.get(_LATITUDE), gps.get(_SOUTH_OR_NORTH), "S", 90)
            longitude = _degrees(gps.get(_LONGITUDE), gps.get(_WEST_OR_EAST), "W", 180)
            if latitude is not None and longitude is not None:
                positions.append((double(latitude), double(longitude)))
    return rows(arguments, positions)


def hash_of(argument: Argument) -> int:
    """A hash. Raises `ValueError`."""
    text = text_of(argument, "hash")
    if not HASH.fullmatch(text):
        raise ValueError(f"hash is {text[:40]!r}, which is no 16 hexadecimal digits such as imageHash(?hash) gives")
    return int(text, 16)


def bits_of(argument: Argument) -> int:
    """How many bits may differ. Raises `ValueError`."""
    return int(number_of(argument, "distance", 0, BITS))


# --- reading ---------------------------------------------------------------------------------------------------------


def _images(publication: Publication) -> Iterator[bytes]:
    """The pictures, each once. Raises `ValueError` for very many."""
    seen: set[bytes] = set()
    for data in _stored(publication):
        if data not in seen:
            seen.add(data)
            if len(seen) > MOST_IMAGES:
                raise ValueError(f"the publication has more than {MOST_IMAGES} pictures")
            yield data


def _stored(publication: Publication) -> Iterator[bytes]:
    yield from filter(is_picture, publication.attachments.values())
    for triple in publication.graph.triples:
        for term in (triple.subject, triple.object):
            if isinstance(term, IRI | Literal):
                yield from _embedded(term)


def _embedded(term: IRI | Literal) -> Iterator[bytes]:
    """The picture of a term, if it is one. Raises `ValueError` where a `data:` address is broken."""
    if isinstance(term, Literal) and term.datatype in (XSD + "base64Binary", XSD + "hexBinary"):
        is_hex = term.datatype == XSD + "hexBinary"
        with suppress(ValueError):  # it is of no valid form, and may never have been a picture
            data = bytes.fromhex(term.lexical) if is_hex else _base64("".join(term.lexical.split()))
            if is_picture(data):
                yield data
        return
    text = term.value if isinstance(term, IRI) else term.lexical.strip()
    match = _DATA.match(text)
    if match is None:
        return
    body = unquote_to_bytes(text[match.end() :])
    if not match[1].lower().endswith(";base64"):
        yield body
        return
    try:
        yield _base64(b"".join(body.split()))
    except binascii.Error as error:
        raise ValueError(f"a data: address is no base64: {error}") from None


def is_picture(data: bytes) -> bool:
    """Does it begin as a picture that can be read here?"""
    return data.startswith(_STARTS) or (data[:4] == b"RIFF" and data[8:12] == b"WEBP")


@contextmanager
def _opened(data: bytes) -> Iterator[Any]:
    """The picture; its pixels are not read yet. Raises `ValueError` where it is broken or too large."""
    from PIL import Image

    if len(data) > MOST_BYTES:
        raise ValueError(f"a picture has more than {MOST_BYTES} bytes")
    try:
        image = Image.open(io.BytesIO(data), formats=FORMATS)
    except Exception as error:  # whatever a reader of broken pictures raises
        raise _broken(error) from error
    with image:
        if image.width * image.height > MOST_PIXELS:
            raise ValueError(f"a picture has {image.width} x {image.height} pixels, more than {MOST_PIXELS}")
        try:
            yield image
        except ValueError:
            raise
        except Exception as error:  # as above: most is read only when it is asked for
            raise _broken(error) from error


def _broken(error: Exception) -> ValueError:
    return ValueError(f"a picture cannot be read: {type(error).__name__}: {error}"[:300])


def _hash(data: bytes) -> int:
    """The difference hash: 9 x 8 shades of grey; a bit says that a shade is lighter than the one to its right (N.
    Krawetz, Kind of like that, 2013). Raises `ValueError` where the picture is broken."""
    from PIL import Image

    with _opened(data) as image:
        image.draft("L", (72, 64))  # a JPEG is read at an eighth of its size
        flat = image.convert("RGBA") if "transparency" in image.info or image.mode in ("RGBA", "LA", "PA") else image
        if flat.mode == "RGBA":  # what is transparent is white
            flat = Image.alpha_composite(Image.new("RGBA", flat.size, "white"), flat)
        shades = flat.convert("L").resize((9, 8), Image.Resampling.LANCZOS).tobytes()
    bits = [shades[9 * y + x] > shades[9 * y + x + 1] for y in range(8) for x in range(8)]
    return int("".join("01"[bit] for bit in bits), 2)


def _degrees(value: Any, side: Any, negative: str, most: int) -> float | None:
    """Degrees, minutes and seconds as degrees; None where there are none."""
    try:
        degrees, minutes, seconds = (float(part) for part in value)
    except (TypeError, ValueError, ZeroDivisionError):
        return None
    turned = degrees + minutes / 60 + seconds / 3600
    if not 0 <= turned <= most:
        return None
    return round(-turned if str(side).strip("\0 ").upper() == negative else turned, 7)


def _operator(name: str, parameters: tuple[str, ...], function: Any, check: Any, unit: str = "") -> LibraryOperator:
    formal = tuple(Parameter(parameter, unit) for parameter in parameters)
    return LibraryOperator(name, formal, function, check, "images", LIBRARIES, cost=0.02, isolated=True)


_pixels = partial(number_of, name="width or height", least=1, most=MOST_PIXELS)
IMAGE_SIZE = _operator("imageSize", ("width", "height"), image_size, checked(_pixels, _pixels), "px")
IMAGE_HASH = _operator("imageHash", ("hash",), image_hash, checked(hash_of))
LOOKS_LIKE = _operator("looksLike", ("hash", "distance"), looks_like, checked(hash_of, bits_of))
IMAGE_POSITION = _operator("imagePosition", ("latitude", "longitude"), image_position, nothing_to_say)
