"""Named points at which a test ends the process, as a kill or a power cut would.

`TRIPLEWIRE_CRASH_AT=matching.found:3` ends it when the point is reached for the third time. Without the variable, a
point is one look at an empty text.
"""

from __future__ import annotations

import os
import signal

_AT, _, _TIMES = os.environ.get("TRIPLEWIRE_CRASH_AT", "").partition(":")
_left = {_AT: int(_TIMES or 1)}


def point(name: str) -> None:
    """End the process here where the environment says so."""
    if name != _AT:
        return
    _left[name] -= 1
    if _left[name] == 0:
        os.kill(os.getpid(), signal.SIGKILL)
