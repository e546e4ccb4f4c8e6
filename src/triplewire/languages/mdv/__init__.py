"""MDV rules: `rules` reads a text, `branches` makes the intermediate form of it."""

from __future__ import annotations

from triplewire.languages.mdv.rules import parse

__all__ = ["parse"]
