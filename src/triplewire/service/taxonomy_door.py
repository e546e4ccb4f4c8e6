"""The door of the taxonomy: read by all owners, changed by the owner of the service, followed by all processes."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request
from pydantic import Field
from starlette.concurrency import run_in_threadpool

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


def _check_owner(request: Request) -> None:
    if owner(request) != settings(request).owner:
        raise Problem(403, "only the owner of the service may change the taxonomy")


def _told(taxonomy: Taxonomy) -> dict[str, Any]:
    return {"classes": len(taxonomy.classes), "instances": len(taxonomy.classes_of), "names": len(taxonomy.names)}


@router.get("/taxonomy")
@allowed(OWNER)
def look_at_taxonomy(request: Request) -> dict[str, Any]:
    """The taxonomy: superclasses of classes, classes of instances, names, and what entailment asks."""
    owner(request)
    return broker(request).taxonomy.to_json()


@router.put("/taxonomy")
@allowed(OWNER)
async def put_taxonomy(request: Request) -> dict[str, Any]:
    """Put the taxonomy of a document, which is RDF in any syntax or two columns, in the place of the one before. It
    holds for publications that come later. One with a cycle is refused, and the cycle is named."""
    body = await request.body()

    def put() -> dict[str, Any]:
        _check_owner(request)
        of = broker(request)
        new = read_taxonomy(body, "", of.settings) if body.strip() else EMPTY
        return _told(of.change_taxonomy(lambda today: new))

    return await run_in_threadpool(put)


@router.patch("/taxonomy")
@allowed(OWNER)
def patch_taxonomy(request: Request, body: TaxonomyChange) -> dict[str, Any]:
    """Change the taxonomy: first what is removed and dropped, then what is added."""
    _check_owner(request)
    of = broker(request)
    add, remove = (
        read_taxonomy(text.encode("utf-8", "surrogatepass"), "", of.settings) if text.strip() else None
        for text in (body.add, body.remove)
    )
    return _told(of.change_taxonomy(lambda today: today.changed(add=add, remove=remove, drop=body.drop)))
