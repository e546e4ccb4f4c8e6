"""Who may change what of the taxonomy: the owner of the service all of it, others what is stated of classes in a
namespace that was granted to them. A namespace is the beginning of IRIs, as `https://site.example/terms#`."""

from __future__ import annotations

import json

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from triplewire.errors import SubscriptionError, TaxonomyError
from triplewire.ir.taxonomy import Taxonomy
from triplewire.model.terms import IRI
from triplewire.store.tables import facts

_FACT = "namespaces"


def owners_by_namespace(connection: Connection) -> dict[str, str]:
    """Namespaces and the owners whom they were granted to."""
    text = connection.execute(sa.select(facts.c.value).where(facts.c.name == _FACT)).scalar()
    return dict(json.loads(text)) if text else {}


def grant(connection: Connection, namespace: str, owner: str) -> None:
    """Grant a namespace to an owner. Raises `ArgumentError` for what is no IRI, and `SubscriptionError` where another
    owner has it, or a part of it."""
    IRI(namespace)
    granted = owners_by_namespace(connection)
    for other, whose in granted.items():
        if whose != owner and (other.startswith(namespace) or namespace.startswith(other)):
            raise SubscriptionError(f"the namespace {other} was granted to {whose}", remedy="choose another")
    _keep(connection, {**granted, namespace: owner})


def give_up(connection: Connection, owner: str) -> None:
    """Take the namespaces of an owner back. What is stated of their classes stays."""
    granted = owners_by_namespace(connection)
    if owner in granted.values():
        _keep(connection, {name: whose for name, whose in granted.items() if whose != owner})


def _keep(connection: Connection, granted: dict[str, str]) -> None:
    connection.execute(facts.delete().where(facts.c.name == _FACT))
    connection.execute(facts.insert().values(name=_FACT, value=json.dumps(granted)))


def part_in(taxonomy: Taxonomy, namespace: str) -> Taxonomy:
    """What a taxonomy states of the classes and properties of a namespace: what is above them, their names, and which
    instances they have."""
    return taxonomy.restricted(lambda iri: iri.startswith(namespace))


def check_within(taxonomy: Taxonomy, namespace: str) -> None:
    """Raises `TaxonomyError` where a taxonomy states something of classes or properties outside of a namespace."""
    part, whole = part_in(taxonomy, namespace).to_json(), taxonomy.to_json()
    for table, rows in whole.items():
        for key, values in rows.items():
            if outside := set(values).difference(part[table].get(key, ())):
                what = f"something is stated outside of the namespace {namespace}: {key}, {min(outside)} ({table})"
                raise TaxonomyError(what, remedy="state it only of classes and properties of the namespace")
