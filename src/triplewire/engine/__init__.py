"""The engine joins everything: subscriptions in, publications in, matches and their reasons out.

`engine` is the flow; `result` what a match call returns; `explain` why a pair matched or did not; `construct` the
graphs of CONSTRUCT queries; `store` saves an engine to a directory.
"""

from __future__ import annotations

from triplewire.engine.engine import Engine
from triplewire.engine.explain import Explanation
from triplewire.engine.result import MatchResult

__all__ = ["Engine", "Explanation", "MatchResult"]
