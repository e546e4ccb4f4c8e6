"""Compile the kernels, or load them compiled: a few matches in an engine of their own, before time is of the essence.

Without it the first publications of a process wait for it.
"""

from __future__ import annotations

from collections.abc import Callable

from numba.core import event

from triplewire import plugins
from triplewire.engine.engine import Engine
from triplewire.matchers import MakeSnapshot

QUERIES = (
    "SELECT * { ?s <urn:p> ?o ; <urn:q> ?n FILTER ftcontains(?o, 'one two') FILTER(?n > 1) }",
    "SELECT * { ?s ?p ?o FILTER ftcontains(?o, 'one') FILTER(STRSTARTS(?o, 'one')) }",
    "SELECT * { ?a <urn:p> ?b . ?b <urn:p> ?c }",
    "SELECT ?a { { ?a <urn:p> ?b } UNION { ?a <urn:q> ?b } }",
    "ASK { ?a <urn:p> <urn:s> ; <urn:q> ?b }",
)
DATA = b"""<urn:s> <urn:p> "one two" <urn:g> .
<urn:s> <urn:p> <urn:s> <urn:g> .
<urn:s> <urn:q> "2"^^<http://www.w3.org/2001/XMLSchema#integer> <urn:g> .
"""


class Once(event.Listener):
    """Calls `compiling` when the first kernel has to be compiled."""

    def __init__(self, compiling: Callable[[], None]) -> None:
        self._compiling = compiling
        self._called = False

    def on_start(self, event: event.Event) -> None:
        """A kernel is about to be compiled."""
        if not self._called:
            self._called = True
            self._compiling()

    def on_end(self, event: event.Event) -> None:
        """It is compiled."""


def warm_up(matcher: str, compiling: Callable[[], None] = lambda: None) -> None:
    """Run once what a matcher needs compiled, where it has kernels. They stay on disk: the next process only loads
    them. `compiling` is called where they are not there yet, which takes a minute or two."""
    if not isinstance(plugins.find("matcher", matcher), MakeSnapshot):
        return
    with event.install_listener("numba:compile", Once(compiling)):
        engine = Engine(matcher=matcher)
        for query in QUERIES:
            engine.subscribe(query)
        for result in engine.match_files(DATA):
            list(result)
