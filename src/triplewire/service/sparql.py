"""The door of SPARQL (`/sparql`): read-only, over the publications that are kept (SPARQL 1.1 Protocol, section 2.1).

A query is one of those that a subscription may have, and each publication is a graph of its own: what it finds is what
all publications give, taken together. Updates, SERVICE and other data sets are refused.
"""

from __future__ import annotations

from urllib.parse import parse_qsl

from fastapi import APIRouter, Request
from fastapi.responses import Response
from starlette.concurrency import run_in_threadpool

from triplewire.broker.publications.solutions import answer
from triplewire.service.access import OWNER, allowed, broker, owner
from triplewire.service.problems import Problem
from triplewire.service.sparql_results import WRITERS, chosen

router = APIRouter(tags=["SPARQL"])

QUERY, FORM = "application/sparql-query", "application/x-www-form-urlencoded"
_DATA_SET = ("default-graph-uri", "named-graph-uri")
_MOST_FIELDS = 64


_TEXT = {"type": "string"}
_PARAMETER = {"name": "query", "in": "query", "required": True, "schema": _TEXT}
_FORM_SCHEMA = {"type": "object", "required": ["query"], "properties": {"query": _TEXT}}
_BODY = {"required": True, "content": {QUERY: {"schema": _TEXT}, FORM: {"schema": _FORM_SCHEMA}}}


@router.get("/sparql", response_class=Response, openapi_extra={"parameters": [_PARAMETER]})
@allowed(OWNER)
async def by_address(request: Request) -> Response:
    """A query as the parameter `query`: SELECT or ASK, answered as JSON, XML, CSV or TSV."""
    return await run_in_threadpool(_answered, request, request.url.query, None)


@router.post("/sparql", response_class=Response, openapi_extra={"requestBody": _BODY})
@allowed(OWNER)
async def by_body(request: Request) -> Response:
    """A query as a form, or as `application/sparql-query`."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    try:
        text = (await request.body()).decode()
    except UnicodeDecodeError as error:
        raise Problem(400, f"the query is no UTF-8: byte {error.start}") from None
    if kind == FORM:
        return await run_in_threadpool(_answered, request, text, None)
    if kind == "application/sparql-update":
        raise Problem(400, "updates are refused: what is kept is what was published", "POST /publish")
    if kind != QUERY:
        raise Problem(415, f"a query does not come as {kind[:80]!r}", f"{QUERY} or {FORM}")
    return await run_in_threadpool(_answered, request, request.url.query, text)


router.add_api_route("/sparql", by_body, methods=["QUERY"], include_in_schema=False)  # RFC 10008, of SPARQL 1.2


def _answered(request: Request, fields: str, text: str | None) -> Response:
    """The answer to the query of a form, or to a text beside one."""
    by = owner(request)
    try:
        given = parse_qsl(fields, keep_blank_values=True, errors="strict", max_num_fields=_MOST_FIELDS)
    except ValueError as error:
        raise Problem(400, f"the parameters cannot be read: {error}") from None
    names = [name for name, _ in given]
    if "update" in names:
        raise Problem(400, "updates are refused: what is kept is what was published", "POST /publish")
    if any(name in _DATA_SET for name in names):
        raise Problem(400, "the data set is what is kept, and no other", f"leave out {' and '.join(_DATA_SET)}")
    queries = [value for name, value in given if name == "query"] + ([] if text is None else [text])
    if len(queries) != 1:
        raise Problem(400, f"there are {len(queries)} queries", "one, as the parameter query or as the body")
    answers = answer(broker(request), queries[0], by)
    kind = chosen(request.headers.get("accept", ""), answers.is_true is not None)
    if kind is None:
        raise Problem(406, "the answer has no form that Accept takes", f"one of {', '.join(WRITERS)}")
    reasons = [answers.cut] if answers.cut else []
    if answers.undecided:
        reasons.append(f"{answers.undecided:,} publications passed a limit")
    headers = {"Triplewire-Truncated": "; ".join(reasons)} if reasons else {}
    body = WRITERS[kind](answers).encode("utf-8", "replace")
    return Response(body, 200, {**headers, "Vary": "Accept"}, f"{kind}; charset=utf-8" if kind[:4] == "text" else kind)
