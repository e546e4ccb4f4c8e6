"""Reads taxonomies from files: RDFS and OWL, SKOS, or two columns. What one answers: `triplewire.ir.taxonomy`."""

from __future__ import annotations

import csv
import io
import os
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from triplewire.argument_checks import expect, expect_path
from triplewire.config import Settings
from triplewire.errors import ReadError, TaxonomyError
from triplewire.folders import entries_of
from triplewire.ir.taxonomy import Taxonomy
from triplewire.model.namespaces import PREDECLARED, RSS
from triplewire.model.terms import IRI, RDF_TYPE, RDFS, Literal, Triple
from triplewire.read.documents import file_bytes, read_document
from triplewire.read.gunzip import gunzip

SKOS = "http://www.w3.org/2004/02/skos/core#"
_ITEM = RSS + "item"
_PAIRS = {
    RDFS + "subClassOf": "subclasses",
    SKOS + "broader": "subclasses",
    RDF_TYPE.value: "instances",
    RDFS + "subPropertyOf": "superproperties",
    RDFS + "domain": "domains",
    RDFS + "range": "ranges",
}
"""Predicate -> the argument of `Taxonomy.build` to which its triples belong."""
_SAME = {PREDECLARED["owl"] + "equivalentClass", SKOS + "exactMatch"}
_DOWN = {SKOS + "narrower"}
_NAMES = {RDFS + "label", SKOS + "prefLabel", SKOS + "altLabel"}
_RDF = re.compile(
    r"""[;,\[\]{(]$ | [<:"].*\.$                       # how a line of Turtle ends
    | ^\s*@?(?:prefix\s+\S*:|base)\s+< | ^\s*<[^>]*[\s=?!]  # a directive; a tag""",
    re.IGNORECASE | re.VERBOSE,
)
_QUERIES = re.compile(
    r"""\A"?id"?[,\t](?:[^\n]*[,\t])?"?(?:query|text|subscription)"?[ ]*[,\t\r\n]  # the heads of columns
    | (?:^|[\t,"])\s*(?:PREFIX\s+\S*:\s*<[^>]*>\s*)*                        # where a cell begins
      (?:(?:SELECT|CONSTRUCT|ASK)\b[^\n]*?[{(]|search\s+\S+\s+\w+[^\n]*\sregister\s)""",
    re.IGNORECASE | re.VERBOSE | re.MULTILINE,
)
_BRACKETS = re.compile(r"\A<(.*)>\Z", re.DOTALL)  # those of an IRI
_SAMPLE = 20  # lines that decide whether a file is two columns


def load_taxonomy(
    paths: str | os.PathLike[str] | Iterable[str | os.PathLike[str]], settings: Settings | None = None
) -> Taxonomy:
    """The taxonomy in a file, in the files below a folder, or in several of these together; gzipped or not.

    RDF in any syntax: rdfs:subClassOf, skos:broader and skos:narrower between IRIs make the hierarchy, rdf:type the
    instances, rdfs:label, skos:prefLabel and skos:altLabel the names. rdfs:subPropertyOf, rdfs:domain and rdfs:range
    serve entailment.

    Two columns, separated by a tab, or by a comma in a file named .csv: class and superclass, each an IRI (with or
    without <>) or a plain name. `#` starts a comment.

    Raises `TaxonomyError` naming the file and the line, or the cycle.
    """
    if settings is not None:
        expect("load_taxonomy(settings)", settings, Settings, "Settings, or None")
    named = list(paths) if isinstance(paths, Iterable) and not isinstance(paths, str) else [paths]
    for path in named:
        expect_path("load_taxonomy(path)", path)
    files: list[Path] = []
    for path in map(Path, named):
        for file, left_out in entries_of(path):
            if left_out:
                raise TaxonomyError(left_out, source=str(file))
            files.append(file)
    if not files:
        raise TaxonomyError("the folder holds no file", source=", ".join(map(str, named)))
    pairs: dict[str, Any] = defaultdict(list)  # the arguments of `Taxonomy.build`
    for file in files:
        for table, rows in _statements(file, settings or Settings()).items():
            pairs[table] += rows
    subclasses = pairs.pop("subclasses", [])
    pairs.pop("equivalents", None)  # see `read_taxonomy`
    try:
        return Taxonomy.build(subclasses, **pairs)
    except TaxonomyError as error:
        error.source = error.source or ", ".join(map(str, named))
        raise


def read_taxonomy(
    data: bytes, source: str, settings: Settings | None = None, *, with_equivalents: bool = False
) -> Taxonomy:
    """The taxonomy in the bytes of a file, read as `load_taxonomy` does. `with_equivalents`: two classes between which
    owl:equivalentClass or skos:exactMatch stands are one; large ontologies say so of what is not quite the same, so
    that their classes would form cycles. Raises `TaxonomyError`."""
    settings = settings or Settings()
    pairs: dict[str, Any] = {"subclasses": [], **_stated(lambda: data, source, settings)}
    if not with_equivalents:
        pairs.pop("equivalents", None)
    return Taxonomy.build(**pairs)


def _statements(file: Path, settings: Settings) -> dict[str, list[tuple[str, str]]]:
    """What a file states, as the arguments of `Taxonomy.build`."""
    return _stated(lambda: file_bytes(file, settings.max_input_bytes), str(file), settings)


def _stated(load: Callable[[], bytes], source: str, settings: Settings) -> dict[str, list[tuple[str, str]]]:
    """The same of the bytes that `load` gives."""
    data = b""
    try:
        data = gunzip(load(), settings.max_input_bytes)
        if separator := _separator(data, source):
            _refuse_queries(data)
            return {"subclasses": list(_two_columns(data, separator, source))}
        most = settings.max_input_bytes  # a taxonomy may be far larger than a publication
        parts = read_document(data, source, settings=replace(settings, max_triples=most, max_document_bytes=most))
        return _of_triples(triple for part in parts for triple in part.triples)
    except TaxonomyError as error:
        error.source = error.source or source
        raise
    except ReadError as error:
        _refuse_queries(data)
        raise TaxonomyError(
            error.what, source=source, line=error.line, column=error.column, remedy=error.remedy
        ) from error
    except OSError as error:
        raise TaxonomyError(f"the file cannot be read: {error.strerror or error}", source=source) from error


def _refuse_queries(data: bytes) -> None:
    """Raise where what is no RDF begins with queries, or a column of them."""
    sample = data[:65_536].decode("utf-8-sig", "replace")
    query = _QUERIES.search(sample)
    if query is not None:
        raise TaxonomyError(
            "it holds queries: were subscriptions meant?",
            line=sample.count("\n", 0, query.end()) + 1 - query[0].endswith("\n"),
            remedy='write them as JSON Lines, {"id", "language", "query"} a line in *.jsonl, or one a file in *.rq',
        )


def _of_triples(triples: Iterable[Triple]) -> dict[str, list[tuple[str, str]]]:
    """What triples state; others are ignored. Raises `TaxonomyError` for a feed."""
    pairs: dict[str, list[tuple[str, str]]] = defaultdict(list)
    for subject, predicate, value in triples:
        if not isinstance(subject, IRI):
            continue
        if isinstance(value, IRI):
            if value.value == _ITEM and predicate == RDF_TYPE:
                raise TaxonomyError("it is a feed: were publications meant?", remedy="name a file of classes")
            if predicate.value in _DOWN:
                pairs["subclasses"].append((value.value, subject.value))
            elif predicate.value in _SAME:
                pairs["equivalents"].append((subject.value, value.value))
            elif predicate.value in _PAIRS:
                pairs[_PAIRS[predicate.value]].append((subject.value, value.value))
        elif isinstance(value, Literal) and predicate.value in _NAMES:
            pairs["names"].append((subject.value, value.lexical))
    return pairs


def _separator(data: bytes, source: str) -> str:
    """The separator of a two-column file; "" for anything else."""
    sample = data[:65_536].decode("utf-8-sig", "replace").splitlines()
    rows = [line for line in sample if line.strip() and not line.startswith("#")][:_SAMPLE]
    if 2 * sum(map(_is_pair, rows)) > len(rows):  # a malformed line among them is reported with its number
        return "\t"
    named_csv = source.lower().removesuffix(".gz").endswith(".csv")
    return "," if rows and named_csv else ""


def _is_pair(line: str) -> bool:
    """Is the line two cells with a tab between them, and neither a statement of Turtle nor a line of XML?"""
    return line.count("\t") == 1 and not _RDF.search(line.rstrip())


def _two_columns(data: bytes, separator: str, source: str) -> Iterator[tuple[str, str]]:
    """The (class, superclass) pairs of a file of two columns. Raises `TaxonomyError` with the line."""
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise TaxonomyError("the text is no UTF-8", source=source, line=line, remedy="save it as UTF-8") from error
    for number, row in _rows(text, separator, source):
        if not row[0].startswith("#"):
            cells = [_BRACKETS.sub(r"\1", cell.strip()) for cell in row]
            if len(cells) != 2:
                what = f"found {len(cells)} column{'s' * (len(cells) > 1)}, expected a class and its superclass"
                raise TaxonomyError(what, source=source, line=number)
            if not all(cells):
                raise TaxonomyError("a cell is empty", source=source, line=number, remedy="name both classes")
            yield cells[0], cells[1]


def _rows(text: str, separator: str, source: str) -> Iterator[tuple[int, list[str]]]:
    """The number and the cells of each line that is not blank."""
    if separator == "\t":
        for number, line in enumerate(io.StringIO(text), 1):
            if line.strip():
                yield number, line.rstrip("\r\n").split("\t")
        return
    reader = csv.reader(io.StringIO(text), strict=True)
    try:
        for row in reader:
            if any(cell.strip() for cell in row):
                yield reader.line_num, row
    except csv.Error as error:
        raise TaxonomyError(f"this is no CSV ({error})", source=source, line=reader.line_num) from error
