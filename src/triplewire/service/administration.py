"""The doors of what the owner of a service sees to: the taxonomy, and owners who have gone.

The taxonomy is read by all owners, changed by the owner of the service, and by those whom a namespace was granted as
far as that goes; all processes follow it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fastapi import APIRouter, Request
from pydantic import Field
from starlette.concurrency import run_in_threadpool

from triplewire.broker.events import removal
from triplewire.broker.owners import acts_for, owners_by_namespace
from triplewire.errors import TaxonomyError
from triplewire.ir.taxonomy import EMPTY, Taxonomy
from triplewire.read.taxonomy import read_taxonomy
from triplewire.service.access import OWNER, Body, allowed, broker, owner, settings
from triplewire.service.problems import Problem

router = APIRouter()


class TaxonomyChange(Body):
    """What of a taxonomy is changed; documents are RDF in any syntax, or two columns: class and superclass."""

    remove: str = Field("", description="A document of what is stated no more.")
    drop: list[str] = Field([], description="IRIs about which nothing is stated any more.")
    add: str = Field("", description="A document of what is stated from now on.")


def _checked_namespace(request: Request, namespace: str, dry_run: bool) -> None:
    """Raises `Problem` where who asks may not change the taxonomy, or what it states of this namespace."""
    by = owner(request)
    if dry_run or by == settings(request).owner:
        return
    if not namespace:
        what = "only the owner of the service may change the whole taxonomy"
        raise Problem(403, what, "change what is stated of a namespace of yours: ?namespace=IRI")
    with broker(request).database.reading() as connection:
        granted = owners_by_namespace(connection)
    if not any(namespace.startswith(known) and acts_for(by, whose) for known, whose in granted.items()):
        remedy = "triplewire token create --owner NAME --namespace IRI"
        raise Problem(403, f"the namespace {namespace} was not granted to {by}", remedy)


def _read(request: Request, data: bytes, namespace: str) -> Taxonomy:
    """The taxonomy of a document. Raises `TaxonomyError`, also where it is not about the namespace alone."""
    limits, has_namespace = broker(request).settings, bool(namespace)
    taxonomy = read_taxonomy(data, "", limits, with_equivalents=has_namespace) if data.strip() else EMPTY
    if namespace:
        _check_within(taxonomy, namespace)
    return taxonomy


def _part_in(taxonomy: Taxonomy, namespace: str) -> Taxonomy:
    """What a taxonomy states of the classes and properties of a namespace: what is above them, their names, and which
    instances they have."""
    return taxonomy.restricted(lambda iri: iri.startswith(namespace))


def _check_within(taxonomy: Taxonomy, namespace: str) -> None:
    """Raises `TaxonomyError` where a taxonomy states something of classes or properties outside of a namespace."""
    part, whole = _part_in(taxonomy, namespace).to_json(), taxonomy.to_json()
    for table, rows in whole.items():
        for key, values in rows.items():
            if outside := set(values).difference(part[table].get(key, ())):
                what = f"something is stated outside of the namespace {namespace}: {key}, {min(outside)} ({table})"
                raise TaxonomyError(what, remedy="state it only of classes and properties of the namespace")


def _changed(request: Request, change: Callable[[Taxonomy], Taxonomy], dry_run: bool) -> dict[str, Any]:
    of = broker(request)
    new = change(of.keep_taxonomy()) if dry_run else of.change_taxonomy(change)
    return {"classes": len(new.classes), "instances": len(new.classes_of), "names": len(new.names)}


@router.get("/taxonomy", tags=["taxonomy"])
@allowed(OWNER)
def look_at_taxonomy(request: Request) -> dict[str, Any]:
    """The taxonomy: superclasses of classes, classes of instances, names, and what entailment asks."""
    owner(request)
    return broker(request).taxonomy.to_json()


@router.put("/taxonomy", tags=["taxonomy"])
@allowed(OWNER)
async def put_taxonomy(request: Request, namespace: str = "", dry_run: bool = False) -> dict[str, Any]:
    """Put the taxonomy of a document, which is RDF in any syntax or two columns, in the place of the one before, or of
    what that stated of a namespace. It holds for publications that come later. One with a cycle is refused, and the
    cycle is named. `dry_run=1` changes nothing."""
    body = await request.body()

    def put() -> dict[str, Any]:
        _checked_namespace(request, namespace, dry_run)
        new = _read(request, body, namespace)
        if not namespace:
            return _changed(request, lambda today: new, dry_run)
        return _changed(request, lambda today: today.changed(remove=_part_in(today, namespace), add=new), dry_run)

    return await run_in_threadpool(put)


@router.patch("/taxonomy", tags=["taxonomy"])
@allowed(OWNER)
def patch_taxonomy(
    request: Request, body: TaxonomyChange, namespace: str = "", dry_run: bool = False
) -> dict[str, Any]:
    """Change the taxonomy, or what it states of a namespace: first what is removed and dropped, then what is added.
    `dry_run=1` changes nothing."""
    _checked_namespace(request, namespace, dry_run)
    if outside := [iri for iri in body.drop if not iri.startswith(namespace)]:
        raise Problem(400, f"{outside[0]} is outside of the namespace {namespace}")
    add, remove = (_read(request, text.encode("utf-8", "surrogatepass"), namespace) for text in (body.add, body.remove))
    return _changed(request, lambda today: today.changed(add=add, remove=remove, drop=body.drop), dry_run)


@router.delete("/owners/{name:path}", tags=["owners"])
@allowed(OWNER)
def forget(request: Request, name: str) -> dict[str, int]:
    """Remove all that is of an owner and of its users, for good: subscriptions, events, deliveries, sources, tokens.
    An owner may do so with itself and its users, the owner of the service with everybody else."""
    by, of_service = owner(request), settings(request).owner
    if not name or not (acts_for(by, name) or by == of_service):
        raise Problem(404, f"there is no owner {name!r} for whom you act")
    if name == of_service:
        raise Problem(403, "the owner of the service stays")
    of = broker(request)
    counts = removal.forget(of.database, name)
    of.followed.follow()
    return counts
