"""`conforms(shape)`: does the publication conform to SHACL shapes? On pySHACL (extra `shapes`).

The shapes are a text in Turtle, or a file in the folder that the variable TRIPLEWIRE_SHAPES names. SHACL Core only
(W3C, SHACL, sections 2 to 4): what would run a query, a script or an import is refused.
"""

from __future__ import annotations

import logging
import os
import re
from pathlib import Path
from typing import Any

from triplewire.bounded_cache import BoundedCache
from triplewire.model.operator import Argument, Parameter
from triplewire.model.publication import Publication
from triplewire.operators.families.graphs import graph_of, read_graph
from triplewire.operators.families.library import LibraryOperator, checked
from triplewire.operators.function import text_of

LIBRARIES = (("pyshacl", "pyshacl"), ("rdflib", "rdflib"), ("owlrl", "owlrl"))
VARIABLE = "TRIPLEWIRE_SHAPES"
SHACL = "http://www.w3.org/ns/shacl#"
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")
_BEYOND = """
    sparql select ask construct update js jsFunctionName jsLibrary jsLibraryURL rule target expression shapesGraph
    entailment declare parameter validator nodeValidator propertyValidator values
"""
_REFUSED = frozenset(SHACL + name for name in _BEYOND.split()) | {"http://www.w3.org/2002/07/owl#imports"}
"""Predicates beyond SHACL Core, and those that reach out of the text."""
_TARGETS = ("targetClass", "targetNode", "targetSubjectsOf", "targetObjectsOf")
MOST_BYTES = 1024 * 1024  # of a file of shapes
MOST_TRIPLES = 20_000  # of a publication
_MOST_DEEP = 15  # shapes within shapes
_QUIET = logging.getLogger("triplewire.shapes")
_QUIET.addHandler(logging.NullHandler())
_QUIET.propagate = False


class Shapes:
    """The shapes of texts and of the files of a folder."""

    def __init__(self, folder: str | Path = "") -> None:
        """`folder`: where the files are; without it, what TRIPLEWIRE_SHAPES names when it is needed."""
        self._folder = str(folder)

    def __call__(self, publication: Publication, arguments: tuple[Argument, ...]) -> bool:
        """Does the publication conform? Raises `ValueError` for wrong shapes, and where validation fails."""
        from pyshacl import validate

        shapes = self.graph_of(arguments[0])
        if len(publication.graph) > MOST_TRIPLES:
            raise ValueError(f"the publication has more than {MOST_TRIPLES} triples")
        try:
            conforms, _, text = validate(
                graph_of(publication.graph.triples),
                shacl_graph=shapes,
                inference="none",
                advanced=False,
                js=False,
                meta_shacl=False,
                do_owl_imports=False,
                abort_on_first=True,
                inplace=True,
                max_validation_depth=_MOST_DEEP,
                logger=_QUIET,
            )
        except RecursionError:
            raise ValueError("the shapes are nested too deep") from None
        if not isinstance(conforms, bool) or text.startswith("Validation Failure"):
            raise ValueError(f"the validation failed: {' '.join(text.split())[:200]}")
        return conforms

    def graph_of(self, argument: Argument) -> Any:
        """The graph of the shapes. Raises `ValueError`, which says what is wrong."""
        text = text_of(argument, "shape")
        if not _NAME.fullmatch(text):
            return _graph(text, "the text")
        folder = self._folder or os.environ.get(VARIABLE, "")
        if not folder:
            raise ValueError(f"shape is {text!r}, a file, but there is no folder of shapes; name it in {VARIABLE}")
        path = Path(folder, text)
        try:
            with path.open("rb") as file:
                data = file.read(MOST_BYTES + 1)
        except OSError as error:
            raise ValueError(f"shape {text!r} cannot be read: {(error.strerror or 'no such file').lower()}") from None
        if len(data) > MOST_BYTES:
            raise ValueError(f"shape {text!r} has more than {MOST_BYTES} bytes")
        return _graph(data.decode("utf-8", "replace"), text)


_graphs: BoundedCache[tuple[str, str], Any] = BoundedCache()
_MOST_TEXT = 2 << 20  # characters of all shapes that are kept, each of which takes some 75 bytes


def _graph(text: str, name: str) -> Any:
    return _graphs.get_or_make((text, name), lambda: _read(text, name), len(text), _MOST_TEXT)


def _read(text: str, name: str) -> Any:
    try:
        graph = read_graph(text, "turtle")
    except ValueError as error:
        raise ValueError(f"shape cannot be read: {name}: {error}") from None
    predicates = {str(predicate) for predicate in graph.predicates()}
    if refused := sorted(predicates & _REFUSED):
        raise ValueError(f"shape uses {refused[0]}, but only SHACL Core is allowed, without imports")
    classes = {str(node) for node in graph.objects()} & {SHACL + "NodeShape", SHACL + "PropertyShape"}
    if not (classes or predicates & {SHACL + target for target in _TARGETS}):
        raise ValueError(f"shape {name[:80]!r} has no SHACL shape")
    return graph


def conforms(folder: str | Path = "", name: str = "conforms") -> LibraryOperator:
    """The operator `conforms(shape)` on a folder of files."""
    shapes = Shapes(folder)
    check = checked(shapes.graph_of)
    formal = (Parameter("shape"),)
    return LibraryOperator(
        name, formal, shapes, check, "shapes", LIBRARIES, cost=0.05, isolated=True, cacheable=False
    )  # files of shapes may change


CONFORMS = conforms()
