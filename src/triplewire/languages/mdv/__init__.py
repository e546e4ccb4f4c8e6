"""MDV rules: `rules` reads a text, `form` is what it says, `branches` makes the intermediate form of that."""

from __future__ import annotations

from triplewire.languages.mdv.form import Path, Rule, Searched, Side, Step, Test
from triplewire.languages.mdv.rules import parse, parse_rule

__all__ = ["Path", "Rule", "Searched", "Side", "Step", "Test", "parse", "parse_rule"]
