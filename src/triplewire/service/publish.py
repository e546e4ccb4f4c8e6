"""The doors that take publications: `/publish` for good, `/match` and `/explain` as dry runs.

A request may bring CloudEvents 1.0 (HTTP protocol binding, section 3): binary, structured and batched. Their data are
documents; source and id of an event say which request is the same as one before (specification, section 3.1.1). What is
not known of an event is passed over, as extensions are.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from email.message import Message
from email.parser import BytesHeaderParser
from typing import Annotated, Any, NamedTuple
from urllib.parse import unquote

from fastapi import APIRouter, Query, Request
from fastapi.responses import JSONResponse, Response
from pydantic import BaseModel, Field
from sqlalchemy.engine import Row
from starlette.concurrency import run_in_threadpool

from triplewire.broker.broker import Broker
from triplewire.broker.incoming.intake import Intake, take
from triplewire.broker.owners import reader_named
from triplewire.broker.publications.accepted import Once, Revision, Taken
from triplewire.broker.publications.kept_contents import Came, read_body
from triplewire.broker.publications.window import results_within
from triplewire.config import Settings
from triplewire.errors import LimitError, ReadError, TriplewireError
from triplewire.model.match import bindings_to_json
from triplewire.model.publication import Publication
from triplewire.model.terms import IRI
from triplewire.service.access import OWNER, PUBLISHER, Body, allowed, bearer, broker, owner, settings, subscription
from triplewire.service.openapi import RAW_BODY
from triplewire.service.problems import Problem, ProblemDetails, details, details_of, status_of
from triplewire.service.rates import DRY_RUN
from triplewire.service.source_doors import publisher

router = APIRouter(tags=["publications"])

_MOST_PARTS, _LONGEST_NAME = 1_000, 500  # of attachments, and characters
_OF_NAME = 1_000  # bytes that an attachment takes beside its own
_MOST_EVENTS = 5_000  # of a batch


@dataclass(frozen=True)
class Taking:
    """Who publishes, where it comes from, who may read it, and which revision of which page it is."""

    by: str
    told_of: str | None  # whose subscriptions it is told to match: those of an owner, "" nobody's, None all
    rows: Sequence[Row[Any]] = ()
    source: str = ""
    readers: Sequence[str] | None = None
    page: str = ""
    revision: Revision | None = None

    @classmethod
    def of(
        cls, request: Request, source: str, readers: Iterable[str] | None, page: str, revision: int | None
    ) -> Taking:
        """That of a request. Raises `Problem` and `ArgumentError`."""
        by, row = publisher(request, source)
        if revision is not None and not page:
            raise Problem(400, "a revision is one of a page", "name the page")
        if page:
            IRI(page)
        owner = by if row is None else row.owner
        named = None if readers is None else [reader_named(owner, name) for name in readers if name]
        newest = None if revision is None else Revision(owner, page, revision)
        if row is not None and by == f"source {row.id}":  # its ticket, which its owner has given away; or anybody
            told_of = owner if bearer(request) else ""
        else:
            told_of = None if by == settings(request).owner else by
        return cls(by, told_of, [] if row is None else [row], source, named, page, newest)

    def counts(self, request: Request, taken: Iterable[Taken]) -> dict[int, int]:
        """Wait until what is new is matched; by how many subscriptions each is, as far as who publishes may know."""
        new, seconds = [entry.number for entry in taken if entry.is_new], settings(request).wait_seconds
        counts = broker(request).wait(new, seconds, self.told_of)
        return {} if self.told_of == "" else counts

    def take(self, of: Broker, came: Came, once: Once | None = None) -> Intake:
        """Take over a document. Raises what `take` raises, and `Problem` where it is not the page alone."""
        ids = {publication.id for publication in came.publications}
        if self.page and ids != {self.page}:
            what = f"the document is not the page {self.page} alone: {', '.join(sorted(ids)[:3]) or 'nothing'}"
            raise Problem(400, what, "give its item the page's IRI as id")
        readers, revision = self.readers, self.revision
        return take(of, came, self.rows, source=self.source, readers=readers, once=once, revision=revision)

    def away(self, of: Broker) -> Intake:
        """Take the page away: nobody may read it any more, and who was told of it is told so. Raises `Problem`."""
        if not self.page:
            raise Problem(400, "no page is named")
        gone = Came([Publication(self.page, ())], [])
        return take(of, gone, self.rows, source=self.source, readers=(), revision=self.revision)


class Published(BaseModel):
    """What became of a publication: its id, whether it was new, and how many subscriptions it matched."""

    publication: str
    new: bool
    matched: int | None = None


@router.post(
    "/publish",
    status_code=202,
    openapi_extra=RAW_BODY,
    responses={202: {"model": Published | list[Published | ProblemDetails]}},
)
@allowed(PUBLISHER)
async def publish(
    request: Request,
    wait: int = 0,
    readers: str | None = None,
    source: str = "",
    page: str = "",
    revision: Annotated[int | None, Query(ge=0, le=2**62)] = None,
) -> Response:
    """Publish a document in any syntax: RDF, a feed, `multipart/related` with attachments, or CloudEvents of such
    documents. With `wait=1` the answer says how many subscriptions each publication matches: those of who publishes,
    and all for the owner of the service. `readers` are the owners
    who may see it; `source` is the id of the source, or names where it comes from; `revision` is that of the `page`
    which it is, and passed over where it is not newer than what was taken. A request that is sent again with the same
    header `Idempotency-Key` is accepted once."""
    body = await request.body()

    def published() -> Response:
        names = None if readers is None else readers.split(",")
        return _published(request, Taking.of(request, source, names, page, revision), body, bool(wait))

    return await run_in_threadpool(published)


@router.delete("/publish", status_code=202)
@allowed(PUBLISHER)
def take_away(
    request: Request, page: str, source: str = "", revision: Annotated[int | None, Query(ge=0, le=2**62)] = None
) -> dict[str, Any]:
    """Take a page away: nobody may read it any more, and who was told of it is told so."""
    (taken,) = Taking.of(request, source, None, page, revision).away(broker(request)).taken
    return _told(taken, {}, False)


def _published(request: Request, taking: Taking, body: bytes, wait: bool) -> Response:
    of = broker(request)
    events = events_in(request.headers, body)
    key = request.headers.get("idempotency-key", "")
    parts = events or [CloudEvent("", key, request.headers.get("content-type", ""), body)]
    taken: list[Taken] = []
    answers: list[Any] = []
    for part in parts:
        if isinstance(part, ReadError):
            answers.append(details_of(part))
            continue
        once = Once.of(taking.by, part.key if events else key, part.data) if events or key else None
        try:
            came = came_in(part.data, part.content_type, of.settings)
            done = taking.take(of, came, once)
        except (Problem, TriplewireError) as error:
            if events is None or (isinstance(error, TriplewireError) and status_of(error) >= 500):
                raise
            answers.append(details_of(error))
            continue
        taken += done.taken
        answers += done.taken
        answers += ({"subscription": id} for id in done.subscribed)
        wrong = [refusal for refusal in done.refusals if not (refusal.is_warning and (done.taken or done.subscribed))]
        answers += (details(400, refusal.reason, refusal.remedy, where=refusal.where) for refusal in wrong)
    counts = taking.counts(request, taken) if wait else {}
    said = [_told(answer, counts, wait) if isinstance(answer, Taken) else answer for answer in answers]
    if all("status" in answer for answer in said):
        return JSONResponse(said[0] if len(said) == 1 else {**said[0], "errors": said}, said[0]["status"],
                            media_type="application/problem+json")  # fmt: skip
    return JSONResponse(said[0] if len(said) == 1 else said, 202)


def _told(taken: Taken, counts: dict[int, int], wait: bool) -> dict[str, Any]:
    """What is said of a publication: by how many subscriptions it was matched now."""
    is_counted = wait and (not taken.is_new or taken.number in counts)
    matched = counts.get(taken.number, 0) if is_counted else None
    return Published(publication=taken.id, new=taken.is_new, matched=matched).model_dump(exclude_none=True)


def came_in(body: bytes, content_type: str, limits: Settings) -> Came:
    """The publications of a body. Of `multipart/related` (RFC 2387) the first part is the document, and the others are
    attachments by their Content-ID or Content-Location. Raises `ReadError` and `LimitError`."""
    if not content_type.lower().startswith("multipart/"):
        return read_body(body, "", limits)
    document, *others = _parts(body, content_type)
    came = read_body(_content(document), "", limits)
    attached = {_name(part, number): _content(part) for number, part in enumerate(others, 1)}
    size = sum(map(len, attached.values())) + len(attached) * _OF_NAME
    if size * len(came.publications) > limits.max_document_bytes:
        what = f"{len(attached):,} attachments of each of {len(came.publications):,} publications are too many"
        raise LimitError(what, remedy="send publications with attachments one by one")
    for publication in came.publications:
        publication.attachments.update(attached)  # type: ignore[attr-defined]  # of its own
    return came


def _parts(body: bytes, content_type: str) -> list[Message]:
    """The parts of a multipart body (RFC 2046, section 5.1.1), each as it is: parts in a part are not looked for."""
    head = b"Content-Type: " + content_type.encode("latin-1", "replace") + b"\r\n\r\n"
    boundary = BytesHeaderParser().parsebytes(head).get_boundary() or ""
    line = rb"(?:\A|\r?\n)--" + re.escape(boundary.encode("utf-8", "replace"))
    within = re.split(line + rb"--[ \t]*(?=\r?\n|\Z)", body, maxsplit=1)[0]
    parts = re.split(line + rb"[ \t]*(?=\r?\n|\Z)", within, maxsplit=_MOST_PARTS + 1)[1:]
    if not (boundary and parts):
        raise ReadError("the body has no parts", remedy="multipart/related: the document first, then attachments")
    if len(parts) > _MOST_PARTS:
        raise LimitError(f"the body has more than {_MOST_PARTS:,} parts", remedy="send fewer attachments together")
    return [BytesHeaderParser().parsebytes(re.sub(rb"\A\r?\n", b"", part)) for part in parts]


def _name(part: Message, number: int) -> str:
    """The name of an attachment."""
    named = part.get("Content-ID", part.get("Content-Location", part.get_filename() or f"attachment-{number}"))
    name = str(named).strip("<> ")
    if len(name) > _LONGEST_NAME:
        raise LimitError(f"attachment {number} has a name of more than {_LONGEST_NAME} characters")
    return name


def _content(part: Message) -> bytes:
    content = part.get_payload(decode=True)
    return content if isinstance(content, bytes) else b""


class _Tried(Body):
    """A publication that is kept nowhere."""

    publication: str
    content_type: str = ""

    def read(self, limits: Settings) -> Sequence[Publication]:
        """What is in it. Raises `ReadError` where there is nothing."""
        came = came_in(self.publication.encode("utf-8", "surrogatepass"), self.content_type, limits)
        if not came.publications:
            raise ReadError(came.refusals[0].reason, remedy=came.refusals[0].remedy)
        return came.publications


class DryRun(_Tried):
    """The same, and a query that is kept nowhere."""

    query: str
    language: str = "sparql"
    prefixes: dict[str, str] = Field({})


class Matched(BaseModel):
    """What a query finds in publications."""

    matched: bool
    bindings: list[dict[str, Any]]


@router.post("/match", dependencies=[DRY_RUN], responses={200: {"model": Matched}})
@allowed(OWNER)
def match(request: Request, body: DryRun) -> dict[str, Any]:
    """Does a query match a publication? Nothing is kept."""
    owner(request)
    of = broker(request)
    publications = body.read(of.settings)
    engine = of.probe(body.query, body.language, body.prefixes or None)
    results = list(results_within(engine, publications))
    matches = [match for result in results for match in result]
    bindings = [binding for match in matches for binding in bindings_to_json(match.bindings)]
    refused = [str(refusal) for result in results for refusal in result.refusals]
    return {"matched": bool(matches), "bindings": bindings, "refused": refused}


class WhyNot(_Tried):
    """The same, and a subscription."""

    subscription: str


@router.post("/explain", dependencies=[DRY_RUN])
@allowed(OWNER)
def explain(request: Request, body: WhyNot) -> dict[str, Any]:
    """Why a subscription matches a publication, or not: its parts, and for a miss the nearest query that matches.
    Nothing is kept."""
    row: Any = subscription(request, body.subscription)
    of = broker(request)
    explanation = of.explain(row, body.read(of.settings)[0]).to_dict()
    said = {"matched": explanation["matched"], "reasons": explanation["parts"], "unknown": explanation["unknown"]}
    return said | {name: explanation[name] for name in ("nearest", "solution", "calls") if explanation.get(name)}


# --- CloudEvents -----------------------------------------------------------------------------------------------------

_STRUCTURED, _BATCH = "application/cloudevents+json", "application/cloudevents-batch+json"
_REQUIRED = ("specversion", "id", "source", "type")


class CloudEvent(NamedTuple):
    """An event: its identity, and the document that it brings."""

    source: str
    id: str
    content_type: str
    data: bytes

    @property
    def key(self) -> str:
        """What is the same for the same event."""
        return json.dumps(["cloudevent", self.source, self.id])


def events_in(headers: Mapping[str, str], body: bytes) -> Iterator[CloudEvent | ReadError] | None:
    """The events of a request, and in place of each that is wrong, why; None where there is none in it, but a document.
    The names of `headers` are in lower case. Raises `ReadError` for a body that is no list of events, and `LimitError`
    for a long one."""
    content_type = headers.get("content-type", "")
    kind = content_type.partition(";")[0].strip().lower()
    if kind in (_STRUCTURED, _BATCH):
        try:
            given = json.loads(body)
        except (ValueError, RecursionError) as error:
            raise ReadError(f"this is no JSON: {error}") from None
        if kind == _BATCH and not (isinstance(given, list) and given):
            raise ReadError("a batch of CloudEvents is a JSON array of at least one")
        if kind == _BATCH and len(given) > _MOST_EVENTS:
            raise LimitError(f"a batch has more than {_MOST_EVENTS:,} CloudEvents", remedy="send it in parts")
        return map(_structured, given if kind == _BATCH else [given])
    if "ce-specversion" not in headers:
        return None
    stated = {name[3:]: unquote(value) for name, value in headers.items() if name.startswith("ce-")}
    return iter([_event(stated, content_type, body)])


def _structured(given: Any) -> CloudEvent | ReadError:
    if not isinstance(given, dict):
        return ReadError("a CloudEvent is a JSON object")
    content_type = given.get("datacontenttype", "application/json")
    data = given.get("data")
    if "data_base64" in given:
        try:
            content = base64.b64decode(given["data_base64"], validate=True)
        except (binascii.Error, TypeError, ValueError) as error:
            return ReadError(f"data_base64 of the CloudEvent cannot be read: {error}")
    else:
        content = (data if isinstance(data, str) else json.dumps(data)).encode("utf-8", "surrogatepass")
    return _event(given, str(content_type), content)


def _event(stated: Mapping[str, Any], content_type: str, data: bytes) -> CloudEvent | ReadError:
    missing = [name for name in _REQUIRED if not (isinstance(stated.get(name), str) and stated[name])]
    if missing:
        return ReadError(f"the CloudEvent has no {' and no '.join(missing)}", remedy=f"needed: {', '.join(_REQUIRED)}")
    if stated["specversion"] != "1.0":
        return ReadError(f"CloudEvents of version {stated['specversion']!r} are not known here", remedy="send 1.0")
    if not data or data == b"null":
        return ReadError("the CloudEvent brings no data", remedy="data is the document: RDF in any syntax, or a feed")
    return CloudEvent(stated["source"], stated["id"], content_type, data)
