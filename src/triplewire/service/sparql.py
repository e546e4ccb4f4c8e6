"""The door of SPARQL (`/sparql`): read-only, over the publications that are kept.

Standard: SPARQL 1.1 Protocol, section 2.1, with the results as JSON, XML, CSV and TSV (W3C Recommendations, 21 March
2013). A query is one of those that a subscription may have, and each publication is a graph of its own: what it finds
is what all publications give, taken together. Updates, SERVICE and other data sets are refused.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from urllib.parse import parse_qsl
from xml.sax.saxutils import escape, quoteattr

from fastapi import APIRouter, Request
from fastapi.responses import Response
from starlette.concurrency import run_in_threadpool

from triplewire.broker.feeds.cleaning import clean
from triplewire.broker.publications.solutions import Answers, answer
from triplewire.model.terms import BlankNode, Literal, Term, term_to_json
from triplewire.service.access import OWNER, allowed, broker, owner, preferences
from triplewire.service.problems import Problem
from triplewire.service.rates import DRY_RUN

router = APIRouter(tags=["SPARQL"], dependencies=[DRY_RUN])

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


# --- results ---------------------------------------------------------------------------------------------------------

JSON, XML = "application/sparql-results+json", "application/sparql-results+xml"
CSV, TSV = "text/csv", "text/tab-separated-values"
_ALSO = {"application/json": JSON, "application/xml": XML, "text/xml": XML}
_NAMESPACE = "http://www.w3.org/2005/sparql-results#"


def to_json(answers: Answers) -> str:
    """The results as JSON."""
    if answers.is_true is not None:
        return json.dumps({"head": {}, "boolean": answers.is_true})
    rows = [{name: term_to_json(term) for name, term in row.items()} for row in answers.rows]
    head = {"vars": list(answers.variables)}
    return json.dumps({"head": head, "results": {"bindings": rows}}, ensure_ascii=False)


def to_xml(answers: Answers) -> str:
    """The results as XML. What XML cannot hold is left out."""
    names = "".join(f"<variable name={quoteattr(name)}/>" for name in answers.variables)
    parts = [f'<?xml version="1.0"?>\n<sparql xmlns="{_NAMESPACE}"><head>{names}</head>']
    if answers.is_true is not None:
        return "".join([*parts, f"<boolean>{str(answers.is_true).lower()}</boolean></sparql>\n"])
    parts.append("<results>\n")
    for row in answers.rows:
        cells = (f"<binding name={quoteattr(name)}>{_xml_term(term)}</binding>" for name, term in row.items())
        parts.append(f"<result>{''.join(cells)}</result>\n")
    return clean("".join([*parts, "</results></sparql>\n"]))


def _xml_term(term: Term) -> str:
    said = term_to_json(term)
    attributes = "".join(f" {name}={quoteattr(said[name])}" for name in ("xml:lang", "datatype") if name in said)
    # a parser turns a carriage return into the end of a line
    return f"<{said['type']}{attributes}>{escape(said['value'], {chr(13): '&#13;'})}</{said['type']}>"


def to_csv(answers: Answers) -> str:
    """The results as CSV: values without their kinds."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\r\n")
    writer.writerow(answers.variables)
    for row in answers.rows:
        writer.writerow([_value(row.get(name)) for name in answers.variables])
    return out.getvalue()


def _value(term: Term | None) -> str:
    if term is None:
        return ""
    return str(term) if isinstance(term, BlankNode) else term.lexical if isinstance(term, Literal) else term.value


def to_tsv(answers: Answers) -> str:
    """The results as TSV: terms as in Turtle."""
    lines = ["\t".join(f"?{name}" for name in answers.variables)]
    for row in answers.rows:
        terms = (row.get(name) for name in answers.variables)
        lines.append("\t".join("" if term is None else str(term) for term in terms).replace("\r", "\\r"))
    return "\n".join(lines) + "\n"


WRITERS: dict[str, Callable[[Answers], str]] = {JSON: to_json, XML: to_xml, CSV: to_csv, TSV: to_tsv}


def chosen(accept: str, is_ask: bool) -> str | None:
    """The media type that a header Accept prefers (RFC 9110, section 12.5.1); None where it takes none. The answer to
    an ASK has no form in CSV and TSV."""
    offered = [JSON, XML] if is_ask else list(WRITERS)
    best: tuple[float, int, int, str] | None = None
    for place, (kind, weight) in enumerate(preferences(accept if accept.strip() else "*/*")):
        for offer in offered:
            names = {offer, *(name for name, known in _ALSO.items() if known == offer)}
            exactness = 2 if kind in names else 1 if kind == f"{offer.partition('/')[0]}/*" else 0
            if weight > 0 and (exactness or kind == "*/*"):
                rank = (weight, exactness, -place, offer)
                best = rank if best is None or rank[:3] > best[:3] else best
    return best[3] if best else None
