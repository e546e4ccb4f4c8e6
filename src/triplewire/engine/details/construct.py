"""The graph that a CONSTRUCT query makes of its bindings (SPARQL 1.1, 16.2)."""

from __future__ import annotations

from collections.abc import Iterable

from triplewire.ir.nodes import Label, PatternTerm, Variable
from triplewire.model.match import Binding, term_bytes
from triplewire.model.terms import IRI, BlankNode, Literal, Term, Triple

Template = tuple[tuple[PatternTerm, PatternTerm, PatternTerm], ...]


def construct(template: Template, bindings: Iterable[Binding], most_bytes: int) -> tuple[tuple[Triple, ...], bool]:
    """The template once for each binding, as a set of triples in the order of their making, up to the first with which
    their terms have more than `most_bytes` together; and whether there was one.

    A triple with an unbound variable, a literal subject or a predicate that is no IRI is left out. A hidden variable
    is a blank node of the template: a new one for each binding, of a label that no blank node of the bindings has.
    """
    bindings = tuple(bindings)
    taken = {term.label for binding in bindings for term in binding.values() if isinstance(term, BlankNode)}
    stem = "c"
    while any(label.startswith(stem) for label in taken):
        stem += "c"
    made: dict[Triple, None] = {}
    sizes: dict[Term, int] = {}
    total = 0
    for number, binding in enumerate(bindings):
        for row in template:
            subject, predicate, object_ = (_instance(term, binding, f"{stem}{number}") for term in row)
            if isinstance(subject, IRI | BlankNode) and isinstance(predicate, IRI) and object_ is not None:
                triple = Triple(subject, predicate, object_)
                if triple in made:
                    continue
                for term in triple:
                    if term not in sizes:
                        sizes[term] = term_bytes(term)
                    total += sizes[term]
                if total > most_bytes:
                    return tuple(made), True
                made[triple] = None
    return tuple(made), False


def _instance(term: PatternTerm, binding: Binding, stem: str) -> Term | None:
    if isinstance(term, Variable):
        return BlankNode(stem + term.name.replace(".", "_")) if term.hidden else binding.get(term.name)
    if isinstance(term, Label):
        return IRI(term.iri) if term.iri else Literal(term.text)
    return term if isinstance(term, IRI | Literal) else None
