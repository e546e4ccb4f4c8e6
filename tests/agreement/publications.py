"""Small random publications whose terms meet those of `agreement.standing`, and the world around them."""

from __future__ import annotations

import random
from functools import cache

from agreement.graphs import LITERALS, typed
from agreement.queries import Vocabulary
from agreement.standing import CLASSES, TERMS
from triplewire.ir.taxonomy import Taxonomy
from triplewire.model.operator import Argument, Operator
from triplewire.model.origins import CHANNEL
from triplewire.model.publication import Publication
from triplewire.model.terms import IRI, RDF_TYPE, BlankNode, Literal, Node, Term, Triple
from triplewire.operators import built_in_operators, function_operator

GEO = "http://www.w3.org/2003/01/geo/wgs84_pos#"
CLASS_NODES = [IRI(TERMS + name) for name in CLASSES]
NODES: list[Node] = [*(IRI(TERMS + name) for name in "abcd"), BlankNode("n0"), BlankNode("n1")]
PREDICATES = [*(IRI(TERMS + name) for name in "ppqqr"), RDF_TYPE, IRI(GEO + "lat"), IRI(GEO + "long")]
ODD = [
    *map(Literal, ("01", "1.0", "+1", " 1 ", "1e0", ".5", "1.", "-0", "1,000", "٣", "1e400", "0x1", "2020-02-29")),
    *map(Literal, ("2020-02-30", "2020-02-29T10:11:12Z", "C", "D", "http://e/C", "http://e/a", "E", "a", "unknown")),
    *map(
        Literal, ("one two three", "Two one", "the Olympic games, one", "STRASSE strasse Straße", "re\u0301sume\u0301")
    ),
    *(Literal.tagged(text, tag) for text in ("one two", "résumé 1", "C") for tag in ("en", "fr", "en-us")),
    *typed("integer", "01", "+1", "-0", "007", "1000000000000000000001"),
    *typed("decimal", "1.0", "01.50", ".5", "1.0000000000000000000001"),
    *typed("double", "1e0", "1.0E0", "NaN", "INF", "-INF", "-0", "1e400"),
    *typed("float", "0.1", "16777217", "NaN"),
    *typed("boolean", "1", "0", "maybe"),
    *typed("byte", "1", "300"),
    *typed("dateTime", "2020-02-29T10:11:12", "2020-02-29T24:00:00Z", "2020-02-29T10:11:12.000Z", "soon"),
    *typed("date", "2020-02-29Z", "2020-02-30", "2020-02-29+01:00"),
    *typed("gYear", "02020", "2020Z"),
    *typed("anyURI", "http://e/a", "http://e/C"),
]

TAXONOMY = Taxonomy.build(
    [(TERMS + "D", TERMS + "C"), (TERMS + "E", TERMS + "D"), (TERMS + "F", TERMS + "D"), (TERMS + "F", TERMS + "G")],
    [(TERMS + "a", TERMS + "D"), (TERMS + "b", TERMS + "F"), (TERMS + "c", TERMS + "E")],
)


class Scene:
    """A few terms, drawn anew for each batch of publications and subscriptions, so that they meet often."""

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance
        self._nodes = chance.sample(NODES, 4)
        self._predicates = [*chance.sample(PREDICATES, 3), IRI(TERMS + "p"), RDF_TYPE]
        self._literals = chance.sample(ODD, 8) + chance.sample(LITERALS, 5)
        self.vocabulary = Vocabulary(
            tuple(map(str, self._predicates)),
            (*(str(node) for node in self._nodes if isinstance(node, IRI)), "<http://e/C>", "<http://e/D>"),
            tuple(map(str, self._literals)),
        )

    def publication(self, number: int, most: int = 9) -> Publication:
        """Up to `most` triples."""
        chance, triples = self._chance, []
        for _ in range(chance.randint(0 if number % 10 == 0 else 1, most)):
            predicate = chance.choice(self._predicates)
            some: list[Term] = chance.choice((self._nodes, self._literals, self._literals, CLASS_NODES))  # type: ignore[assignment]
            if predicate == RDF_TYPE and chance.random() < 0.8:
                some = CLASS_NODES  # type: ignore[assignment]
            triples.append(Triple(chance.choice(self._nodes), predicate, chance.choice(some)))
        if chance.random() < 0.4:  # an item of a channel
            triples.append(Triple(chance.choice(self._nodes), CHANNEL, IRI(TERMS + chance.choice("abc"))))
        return Publication(f"urn:p:{number:04}", tuple(triples))


# --- operators ------------------------------------------------------------------------------------------------------


def _pick(publication: Publication, arguments: tuple[Argument, ...]) -> list[tuple[Term, ...]]:
    """Subject and object of each triple with the predicate p, where they are those given."""
    triples = publication.graph.find(None, IRI(TERMS + "p"), None)
    rows: list[tuple[Term, ...]] = [(triple.subject, triple.object) for triple in triples]
    return [row for row in rows if all(want in (None, term) for want, term in zip(arguments, row, strict=True))]


def _has(publication: Publication, arguments: tuple[Argument, ...]) -> bool:
    """Is some object a literal of this text?"""
    text = getattr(arguments[0], "lexical", None)
    return any(isinstance(t.object, Literal) and t.object.lexical == text for t in publication.graph.triples)


def _broken(publication: Publication, arguments: tuple[Argument, ...]) -> bool:
    """True, but for publications with the predicate q."""
    if any(triple.predicate == IRI(TERMS + "q") for triple in publication.graph.triples):
        raise ValueError("it has q")
    return True


@cache
def operators() -> dict[str, Operator]:
    """The built-in ones, one that binds, one that tests, and one that fails."""
    own = (
        function_operator("pick", ["subject", "object"], _pick),
        function_operator("has", ["text"], _has),
        function_operator("broken", ["what"], _broken),
    )
    return {**built_in_operators(), **{one.name: one for one in own}}
