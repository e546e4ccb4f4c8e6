"""Operators on graphs of rdflib: `entails` on owlrl (extra `reasoner`), `conforms` on pySHACL (extra `shapes`).

`entails(subject, predicate, object)`: does a triple follow by OWL 2 RL? It follows from the publication, from the part
of the engine's taxonomy above what publication and call name, and from a file of axioms that the variable
TRIPLEWIRE_ONTOLOGY names (W3C, OWL 2 Profiles, section 4.3). `conforms(shape)`: does the publication conform to SHACL
shapes?
"""

from __future__ import annotations

import logging
import os
import re
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache
from pathlib import Path
from typing import Any

from triplewire.bounded_cache import BoundedCache
from triplewire.ir.entailment import Edges
from triplewire.ir.taxonomy import Taxonomy
from triplewire.model.operator import Argument, Parameter, nothing_to_say
from triplewire.model.publication import Publication
from triplewire.model.terms import (
    IRI,
    RDF_TYPE,
    RDFS,
    XSD_STRING,
    BlankNode,
    Literal,
    Term,
    Triple,
    made_blank,
    made_iri,
)
from triplewire.operators import text_of
from triplewire.operators.families.library import (
    LibraryOperator,
    TaxonomyOperator,
    checked,
    nothing_asked,
    require,
    state_of_file,
)


def graph_of(triples: Iterable[Triple]) -> Any:
    """A graph of these triples. Lexical forms stay as they are written."""
    from rdflib import Graph

    graph = Graph(bind_namespaces="none")
    for subject, predicate, value in triples:
        graph.add((_node(subject), _node(predicate), _node(value)))
    return graph


def _node(term: Term) -> Any:
    import rdflib

    if isinstance(term, IRI):
        return rdflib.URIRef(term.value)
    if isinstance(term, BlankNode):
        return rdflib.BNode(term.label)
    if term.language:
        return rdflib.Literal(term.lexical, lang=term.language)
    # a plain literal and an xsd:string are one term, but two to rdflib
    datatype = None if term.datatype == XSD_STRING else rdflib.URIRef(term.datatype)
    return rdflib.Literal(term.lexical, datatype=datatype, normalize=False)


def triple_of(edge: Any) -> Triple:
    """The triple of three nodes of rdflib, of which only the last may be a literal."""
    return Triple._make(map(_term, edge))


def _term(node: Any) -> Term:
    """The term of a node of rdflib."""
    import rdflib

    if isinstance(node, rdflib.Literal):
        if node.language:
            return Literal.tagged(str(node), node.language)
        return Literal(str(node), str(node.datatype or XSD_STRING))
    return made_blank(str(node)) if isinstance(node, rdflib.BNode) else made_iri(str(node))


def read_graph(text: str, syntax: str) -> Any:
    """A graph of a text in "turtle", "nt" or "xml". Raises `ValueError` where it is none."""
    from rdflib import Graph

    try:
        return Graph(bind_namespaces="none").parse(data=text, format=syntax)
    except RecursionError:
        raise ValueError("it is nested too deep") from None
    except Exception as error:  # parsers of rdflib raise many kinds
        reason = " ".join(str(error).split())
        raise ValueError(f"it cannot be read as {syntax}: {reason:.200}") from None


# --- entails ---------------------------------------------------------------------------------------------------------

LIBRARIES = (("owlrl", "owlrl"), ("rdflib", "rdflib"))
VARIABLE = "TRIPLEWIRE_ONTOLOGY"
MOST_GIVEN = 5_000  # triples that are reasoned over
MOST_ENTAILED = 50_000
MOST_SECONDS = 8.0  # less than `operator_seconds`: the call ends by itself
_KEPT = 4  # publications whose entailed triples are kept, for the next subscription
_SYNTAXES = {".ttl": "turtle", ".nt": "nt", ".owl": "xml", ".rdf": "xml", ".xml": "xml"}
_SUBCLASS, _SUBPROPERTY, _DOMAIN, _RANGE = (
    IRI(RDFS + name) for name in ("subClassOf", "subPropertyOf", "domain", "range")
)


@dataclass(frozen=True)
class Entails(TaxonomyOperator):
    """The operator `entails`, with a file of axioms."""

    axioms: str = ""
    cacheable: bool = False  # the file of axioms may change

    @cached_property
    def _closures(self) -> dict[Any, tuple[tuple[Triple, ...], tuple[Triple, ...]]]:
        """A cache: triples and named terms -> the axioms, and what follows by them."""
        return {}

    def check_constants(self, arguments: tuple[Argument, ...]) -> Iterable[str]:
        """No warnings. Raises `ValueError` where a library is absent, no triple can be so, or the axioms cannot be
        read."""
        require(self.extra, self.libraries)
        _refuse(arguments)
        self._axioms()
        return ()

    def evaluate(self, publication: Publication, arguments: tuple[Argument, ...]) -> bool | Iterable[tuple[Term, ...]]:
        """Is there such an entailed triple? With open arguments, a row for each. Raises `ValueError` past the bounds,
        and where the publication contradicts the axioms."""
        require(self.extra, self.libraries)
        _refuse(arguments)
        entailed = self._entailed(publication, arguments)
        matching = (
            triple for triple in entailed if all(a is None or a == t for a, t in zip(arguments, triple, strict=True))
        )
        if None not in arguments:
            return any(True for _ in matching)
        return tuple(dict.fromkeys(tuple(triple) for triple in matching))

    def _axioms(self) -> tuple[Triple, ...]:
        path = self.axioms or os.environ.get(VARIABLE, "")
        return _axioms_of(path) if path else ()

    def _entailed(self, publication: Publication, arguments: tuple[Argument, ...]) -> tuple[Triple, ...]:
        seeds = {term.value for triple in publication.triples for term in triple if isinstance(term, IRI)}
        named = frozenset(term.value for term in arguments if isinstance(term, IRI)) - seeds
        known = self.taxonomy.classes | self.taxonomy.classes_of.keys() | self.taxonomy.properties.above.keys()
        axioms = self._axioms()
        key = publication.triples, named & known
        if (made := self._closures.get(key)) is not None and made[0] is axioms:
            return made[1]
        above = dict.fromkeys(_above(self.taxonomy, seeds | (named & known)))
        premises = dict.fromkeys((*publication.triples, *above, *axioms))
        if len(premises) > MOST_GIVEN:
            raise ValueError(f"publication, taxonomy and axioms have {len(premises)} triples, more than {MOST_GIVEN}")
        closure = _closure(premises)
        while len(self._closures) >= _KEPT:
            self._closures.pop(next(iter(self._closures), None), None)
        self._closures[key] = axioms, closure
        return closure


def _refuse(arguments: tuple[Argument, ...]) -> None:
    """Raises `ValueError` where a constant cannot stand where it does."""
    for argument, name in zip(arguments[:2], ("subject", "predicate"), strict=True):
        if isinstance(argument, Literal):
            raise ValueError(f"{name} is the text {argument.lexical[:80]!r}, but has to be an IRI or a variable")


def _above(taxonomy: Taxonomy, seeds: Iterable[str]) -> Iterator[Triple]:
    """What the taxonomy says of these IRIs, of what is above these, and so on, as triples. Raises `ValueError` where
    it is very much."""
    properties = taxonomy.properties
    tables: tuple[tuple[Edges, IRI], ...] = (
        (taxonomy.superclasses, _SUBCLASS),
        (taxonomy.classes_of, RDF_TYPE),
        (properties.above, _SUBPROPERTY),
        (properties.domains, _DOMAIN),
        (properties.ranges, _RANGE),
    )
    seen, todo, count = set(seeds), sorted(seeds), 0
    while todo:
        lower = todo.pop()
        for edges, predicate in tables:
            for upper in sorted(edges.get(lower, ())):
                count += 1
                if count > MOST_GIVEN:
                    raise ValueError(f"the taxonomy has more than {MOST_GIVEN} triples above the publication")
                yield Triple(made_iri(lower), predicate, made_iri(upper))
                if upper not in seen:
                    seen.add(upper)
                    todo.append(upper)


def _axioms_of(path: str) -> tuple[Triple, ...]:
    """The axioms of a file. Raises `ValueError`."""
    try:
        return _read_axioms(path, state_of_file(path))
    except KeyError:
        raise ValueError(f"the axioms {path} are in no known syntax; known: {', '.join(_SYNTAXES)}") from None
    except (OSError, ValueError) as error:
        raise ValueError(f"the axioms {path} cannot be read: {error}") from None


@lru_cache(maxsize=4)
def _read_axioms(path: str, _state: tuple[int, int]) -> tuple[Triple, ...]:
    syntax = _SYNTAXES[Path(path).suffix.lower()]
    graph = read_graph(Path(path).read_text(encoding="utf-8"), syntax)
    return tuple(triple_of(triple) for triple in sorted(graph))


def _closure(premises: Iterable[Triple]) -> tuple[Triple, ...]:
    """All that follows. Raises `ValueError` past the bounds and for contradictions."""
    from rdflib.term import IdentifiedNode as Identified

    graph = graph_of(premises)
    rules = _rules()(graph, time.monotonic() + MOST_SECONDS)
    rules.closure()
    if rules.error_messages:
        raise ValueError(f"the publication contradicts the axioms: {rules.error_messages[0]}")
    return tuple(triple_of(triple) for triple in sorted(graph) if isinstance(triple[0], Identified))


@cache
def _rules() -> Any:
    """The rules of owlrl, with bounds."""
    from owlrl import OWLRL_Semantics

    class Bounded(OWLRL_Semantics):  # type: ignore[misc]  # the library has no types
        def __init__(self, graph: Any, deadline: float) -> None:
            super().__init__(graph, axioms=False, daxioms=False)
            self._deadline = deadline

        def rules(self, t: Any, cycle_num: int) -> None:
            self._look_at_clock()
            super().rules(t, cycle_num)

        def store_triple(self, t: Any) -> None:
            self._look_at_clock()
            super().store_triple(t)
            if len(self.added_triples) + len(self.graph) > MOST_ENTAILED:
                raise ValueError(f"more than {MOST_ENTAILED} triples follow")

        def _look_at_clock(self) -> None:
            if time.monotonic() > self._deadline:
                raise ValueError(f"what follows was not known within {MOST_SECONDS:g} s")

    return Bounded


def entails(axioms: str | Path = "", name: str = "entails") -> Entails:
    """The operator with a file of axioms of its own: Turtle, N-Triples or RDF/XML, told apart by the suffix."""
    formal = Parameter("subject"), Parameter("predicate"), Parameter("object")
    options: dict[str, Any] = {"cost": 0.5, "isolated": True, "axioms": str(axioms)}
    return Entails(name, formal, nothing_asked, nothing_to_say, "reasoner", LIBRARIES, **options)


ENTAILS = entails()


# --- conforms --------------------------------------------------------------------------------------------------------

SHAPE_LIBRARIES = (("pyshacl", "pyshacl"), ("rdflib", "rdflib"), ("owlrl", "owlrl"))
SHAPES_VARIABLE = "TRIPLEWIRE_SHAPES"
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


@dataclass(frozen=True)
class Shapes:
    """The shapes of texts and of the files of a folder; without one, of that which TRIPLEWIRE_SHAPES names when it is
    needed."""

    folder: str

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
        folder = self.folder or os.environ.get(SHAPES_VARIABLE, "")
        if not folder:
            what = "a file, but there is no folder of shapes"
            raise ValueError(f"shape is {text!r}, {what}; name it in {SHAPES_VARIABLE}")
        try:
            with Path(folder, text).open("rb") as file:
                data = file.read(MOST_BYTES + 1)
        except OSError as error:
            raise ValueError(f"shape {text!r} cannot be read: {(error.strerror or 'no such file').lower()}") from None
        if len(data) > MOST_BYTES:
            raise ValueError(f"shape {text!r} has more than {MOST_BYTES} bytes")
        return _graph(data.decode("utf-8", "replace"), text)


_graphs: BoundedCache[tuple[str, str], Any] = BoundedCache()
_MOST_TEXT = 2 << 20  # characters of all shapes that are kept, each of which takes some 75 bytes


def _graph(text: str, name: str) -> Any:
    return _graphs.get_or_make((text, name), lambda: _read_shapes(text, name), len(text), _MOST_TEXT)


def _read_shapes(text: str, name: str) -> Any:
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
    shapes, formal = Shapes(str(folder)), (Parameter("shape"),)
    options: dict[str, Any] = {"cost": 0.05, "isolated": True, "cacheable": False}  # files of shapes may change
    return LibraryOperator(name, formal, shapes, checked(shapes.graph_of), "shapes", SHAPE_LIBRARIES, **options)


CONFORMS = conforms()
