"""The frames between this process and that of an isolated operator: a length and so many bytes."""

from __future__ import annotations

import struct

LENGTH = struct.Struct(">Q")
MOST_BYTES = 64 << 20  # of an answer
