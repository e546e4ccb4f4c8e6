"""An engine whose index has arrays of all sorts, publications that match a part of it, and its saved files."""

from __future__ import annotations

import random
from pathlib import Path

from triplewire import IRI, Engine, Literal, Publication, Taxonomy, Triple
from triplewire.errors import TriplewireError
from triplewire.model.terms import RDF_TYPE, XSD

EX = "http://example.org/"


def build(many: int) -> Engine:
    """An engine whose index has arrays of all sorts. `many`: how many subscriptions of each sort."""
    taxonomy = Taxonomy.build(
        [(EX + "A", EX + "B"), (EX + "B", EX + "C")], [(EX + "i", EX + "A")], [(EX + "A", "alpha")]
    )
    engine = Engine(taxonomy=taxonomy)
    texts = [
        "SELECT ?t {{ ?s e:title ?t ; e:year ?y FILTER ftcontains(?t, 'w{n}') FILTER(?y > {n}) }}",
        "ASK {{ ?s e:title ?t FILTER ftcontains(?t, 'w{m}*') FILTER ftcontains(?t, 'word' USING STEMMING 'en') }}",
        "SELECT ?s {{ ?s e:title ?t FILTER CONTAINS(?t, 'x{n}') FILTER(LANG(?t) = 'en') }}",
        "SELECT ?a ?b {{ ?a e:p{m} ?b . ?b e:q{m} ?c }}",
        "SELECT ?a ?c {{ ?a e:p{m} ?b . ?b e:back ?a ; ?c ?d }}",
        "SELECT ?a ?d {{ ?a e:p{m} ?b . ?c e:q{m} ?d . ?e e:title ?f }}",
        "ASK {{ ?s e:p{m} {n} }}",
        "SELECT ?s {{ {{ ?s e:p{m} {n} }} UNION {{ ?s e:q{m} 'v{n}' }} }}",
        "SELECT ?s {{ ?s ?p ?o FILTER(?o >= {n}) FILTER(?o < {m}000) }}",
        "SELECT ?s {{ ?s e:day ?d FILTER(?d < '20{k}-01-01T00:00:00Z'^^xsd:dateTime) ; e:p{m} ?x }}",
        "SELECT ?s {{ ?s e:p{m} ?x OPTIONAL {{ ?x e:q{m} ?y }} FILTER(STRLEN(STR(?x)) > {k}) }}",
        "SELECT ?s {{ ?s a e:K{m} ; e:p1 ?x ; e:p2 ?y FILTER(STRSTARTS(?x, 'v{k}')) }}",
    ]
    head = f"PREFIX e: <{EX}> PREFIX xsd: <{XSD}> "
    for n in range(many):
        for number, text in enumerate(texts):
            text = text.format(n=n, m=n % 11, k=10 + n % 90).replace(" ; e:p", " . ?s e:p", 1)
            try:
                engine.subscribe(head + text, id=f"q{number}-{n}")
            except TriplewireError:
                engine.subscribe(head + f"ASK {{ ?s e:r{n} ?o }}", id=f"q{number}-{n}")
        gql = f"SELECT * WHERE ((?a, <{EX}year>, ?c) SUCHTHAT (?c > {n} AND ?a ISA <= <{EX}{'ABC'[n % 3]}>))"
        engine.subscribe(gql, "gql", id=f"g{n}")
        engine.subscribe(f"(x, <{EX}p{n % 11}>, {n})".join(("SELECT * WHERE ", "")), "gql", id=f"h{n}")
        engine.subscribe(f"search <{EX}K{n % 11}> c register c where c.<{EX}p{n % 11}> > {n}", "mdv", id=f"m{n}")
    engine.subscribe(f"search m0 l register l where l.<{EX}year> < 9", "mdv", id="over")
    return engine


def publications() -> list[Publication]:
    """Some that match a part of them."""
    drawn, some = random.Random(1), []
    for number in range(12):
        subject, triples = IRI(f"{EX}s{number}"), []
        for _ in range(12):
            m = drawn.randrange(11)
            triples.append(Triple(subject, IRI(f"{EX}p{m}"), Literal(str(drawn.randrange(60)), XSD + "integer")))
            triples.append(Triple(subject, IRI(f"{EX}q{m}"), Literal(f"v{drawn.randrange(60)}")))
            triples.append(Triple(subject, IRI(f"{EX}p{m}"), IRI(f"{EX}t{m}")))
            triples.append(Triple(IRI(f"{EX}t{m}"), IRI(f"{EX}q{m}"), Literal("end")))
            triples.append(Triple(IRI(f"{EX}t{m}"), IRI(f"{EX}back"), subject))
        title = " ".join(f"w{drawn.randrange(60)} x{drawn.randrange(60)}" for _ in range(5)) + " words"
        triples += [
            Triple(subject, IRI(f"{EX}title"), Literal(title, language="en") if number % 2 else Literal(title)),
            Triple(subject, IRI(f"{EX}year"), Literal(str(drawn.randrange(60)), XSD + "integer")),
            Triple(subject, IRI(f"{EX}day"), Literal("2015-01-01T00:00:00Z", XSD + "dateTime")),
            Triple(subject, RDF_TYPE, IRI(EX + ("A" if number % 3 else f"K{number % 11}"))),
        ]
        some.append(Publication(f"p{number}", tuple(dict.fromkeys(triples))))
    return some


def answers(engine: Engine) -> list[object]:
    """All matches, with their bindings as a set, and refusals."""
    result = engine.match(publications())
    found: list[object] = [
        (one.publication, one.subscription, one.truncated, frozenset(frozenset(b.items()) for b in one.bindings))
        for one in result
    ]
    return found + [str(refusal) for refusal in result.refusals]


def data_files(folder: Path) -> list[Path]:
    """The files of a saved engine, without the lock."""
    return sorted(file for file in folder.iterdir() if not file.name.startswith("."))
