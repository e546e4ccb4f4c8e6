"""Solutions of a query in the formats of SPARQL 1.1: JSON, XML, CSV and TSV (W3C Recommendations, 21 March 2013)."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from xml.sax.saxutils import escape, quoteattr

from triplewire.broker.feeds.cleaning import clean
from triplewire.broker.publications.solutions import Answers
from triplewire.model.terms import BlankNode, Literal, Term, term_to_json
from triplewire.service.access import preferences

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
