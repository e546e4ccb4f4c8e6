"""`triplewire --version`, without the parser of options, which takes a quarter of a second to load."""

from __future__ import annotations

from importlib.metadata import version


def show_version() -> None:
    """The version on standard output."""
    print(f"triplewire {version('triplewire')}")
