"""The parsing process without its guard: to prove that the process holds by itself, and that the guard bites."""

from __future__ import annotations

from triplewire.read import guard
from triplewire.read.process import worker
from triplewire.read.rdf import parse


def _unguarded(data: bytes, *_: object) -> bytes:
    return data


if __name__ == "__main__":
    for name in ("check_rdf_xml", "check_turtle"):
        setattr(guard, name, _unguarded)
    parse.plain = _unguarded
    worker.main()
