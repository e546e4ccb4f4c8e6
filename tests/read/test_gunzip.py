"""Gzip is unpacked whole, up to a limit, whatever a file says about itself."""

from __future__ import annotations

import gzip
import random
import struct

import numpy as np
import pytest

from triplewire.errors import ReadError
from triplewire.read.gunzip import gunzip, gunzip_padded

PAD = b"\n" * 8
LIMIT = 1 << 24


def _stating(packed: bytes, size: int) -> bytes:
    return packed[:-4] + struct.pack("<I", size)


def _random(size: int) -> bytes:
    return random.Random(size).randbytes(size)


@pytest.mark.parametrize("size", [0, 1, 1023, 1024, 1 << 16, (1 << 18) - 1, 1 << 18, (1 << 18) + 1, 3_000_000])
@pytest.mark.parametrize("make", [_random, bytes], ids=["noise", "zeros"])
def test_whole(make: type[bytes], size: int) -> None:
    content = make(size)
    packed = gzip.compress(content)
    for data in (content, packed, packed + bytes(70_000), packed + gzip.compress(b"")):
        expected = data if data is content else content
        assert gunzip(data, LIMIT) == expected
        padded = gunzip_padded(data, LIMIT, PAD)
        assert padded.tobytes() == expected + PAD
        assert padded.flags.writeable
        assert not np.shares_memory(padded, np.frombuffer(data + b"x", np.uint8))


def test_members() -> None:
    parts = [_random(size) for size in (5, 0, 300_000, 1, 70_000, *range(200))]
    data = (bytes(3)).join(map(gzip.compress, parts)) + bytes(1)
    assert gunzip(data, LIMIT) == b"".join(parts)
    assert gunzip_padded(data, LIMIT, PAD).tobytes() == b"".join(parts) + PAD


def test_many_members_take_no_square_time() -> None:
    data = gzip.compress(b"x") * 50_000
    assert gunzip_padded(data, LIMIT, PAD).tobytes() == b"x" * 50_000 + PAD


def test_a_member_that_states_a_wrong_size_is_damaged() -> None:
    packed = gzip.compress(_random(100_000))
    for size in (0, 99_999, 100_001, 0xFFFFFFFF):
        for unpack in (lambda data: gunzip(data, LIMIT), lambda data: gunzip_padded(data, LIMIT, PAD)):
            with pytest.raises(ReadError, match="damaged gzip"):
                unpack(_stating(packed, size))


REFUSED = {
    "ends": (gzip.compress(_random(200_000))[:-9], "it ends too early"),
    "ends in the head": (gzip.compress(b"x")[:5], "it ends too early"),
    "ends between": (gzip.compress(b"x") + gzip.compress(b"y")[:-1], "it ends too early"),
    "more": (gzip.compress(b"x") + b"\0\0y", "other bytes follow it"),
    "noise": (b"\x1f\x8b" + _random(100), "damaged gzip"),
    "reserved flags": (gzip.compress(b"x")[:3] + b"\x20" + gzip.compress(b"x")[4:], "reserved flags are set"),
    "bomb": (gzip.compress(bytes(LIMIT + 1)), "more than 16,777,216 bytes"),
    "many small": (gzip.compress(bytes(1 << 20)) * 17, "more than 16,777,216 bytes"),
}


# named, since data with the second in which it was made would differ from worker to worker
@pytest.mark.parametrize(("data", "said"), REFUSED.values(), ids=REFUSED)
def test_refused(data: bytes, said: str) -> None:
    with pytest.raises(ReadError, match=said):
        gunzip(data, LIMIT)
    with pytest.raises(ReadError, match=said):
        gunzip_padded(data, LIMIT, PAD)
