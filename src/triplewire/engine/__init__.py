"""The engine joins everything: subscriptions in, publications in, matches and their reasons out.

`engine` is the public class and the flow; `compiler` makes subscriptions of texts, `loading` registers files of them;
`current_snapshot` replaces snapshots, whose subscriptions lie in `segments` (or in `reference`); `incoming` gives
publications chunk by chunk; `result` is what a match call returns, with `stats`; `explain` says why a pair matched or
did not; `store` saves an engine to a directory; `tiers` answers before kernels are compiled; `views` is what other
packages ask of an engine; `arguments` checks what callers hand in.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from triplewire.engine.engine import Engine
    from triplewire.engine.explain.explanation import Explanation
    from triplewire.engine.result import MatchResult

__all__ = ["Engine", "Explanation", "MatchResult"]

# imported when first asked for: the process that compiles kernels and `triplewire warm-up` need none to begin
_LATE = {
    "Engine": "triplewire.engine.engine",
    "Explanation": "triplewire.engine.explain.explanation",
    "MatchResult": "triplewire.engine.result",
}


def __getattr__(name: str) -> Any:
    if name not in _LATE:
        raise AttributeError(f"module 'triplewire.engine' has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(_LATE[name]), name)
    return value
