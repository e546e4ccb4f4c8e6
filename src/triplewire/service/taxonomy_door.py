"""The door of the taxonomy: read by all owners, changed by the owner of the service, and by those whom a namespace was
granted as far as that goes; followed by all processes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fastapi import APIRouter, Request
from pydantic import Field
from starlette.concurrency import run_in_threadpool

from triplewire.broker.granted_namespaces import check_within, owners_by_namespace, part_in
from triplewire.broker.users import acts_for
from triplewire.ir.taxonomy import EMPTY, Taxonomy
from triplewire.read.taxonomy import read_taxonomy
from triplewire.service.access import OWNER, Body, allowed, broker, owner, settings
from triplewire.service.problems import Problem

router = APIRouter(tags=["taxonomy"])


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
    if not any(namespace.startswith(known) and acts_for(whose, by) for known, whose in granted.items()):
        remedy = "triplewire token create --owner NAME --namespace IRI"
        raise Problem(403, f"the namespace {namespace} was not granted to {by}", remedy)


def _read(request: Request, data: bytes, namespace: str) -> Taxonomy:
    """The taxonomy of a document. Raises `TaxonomyError`, also where it is not about the namespace alone."""
    limits, has_namespace = broker(request).settings, bool(namespace)
    taxonomy = read_taxonomy(data, "", limits, with_equivalents=has_namespace) if data.strip() else EMPTY
    if namespace:
        check_within(taxonomy, namespace)
    return taxonomy


def _changed(request: Request, change: Callable[[Taxonomy], Taxonomy], dry_run: bool) -> dict[str, Any]:
    of = broker(request)
    new = change(of.keep_taxonomy()) if dry_run else of.change_taxonomy(change)
    return {"classes": len(new.classes), "instances": len(new.classes_of), "names": len(new.names)}


@router.get("/taxonomy")
@allowed(OWNER)
def look_at_taxonomy(request: Request) -> dict[str, Any]:
    """The taxonomy: superclasses of classes, classes of instances, names, and what entailment asks."""
    owner(request)
    return broker(request).taxonomy.to_json()


@router.put("/taxonomy")
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
        return _changed(request, lambda today: today.changed(remove=part_in(today, namespace), add=new), dry_run)

    return await run_in_threadpool(put)


@router.patch("/taxonomy")
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
