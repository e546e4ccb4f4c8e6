"""RDF 1.1 terms and triples, their N-Triples notation, and their form in SPARQL 1.1 JSON results.

Terms are equal if they are written alike: `"1"^^xsd:integer` and `"01"^^xsd:integer` are two terms. Comparison
by value is in `triplewire.ir.values.compare`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from operator import attrgetter
from typing import TYPE_CHECKING, NamedTuple, Self, TypeAlias

from triplewire.argument_checks import expect_plain, refuse
from triplewire.errors import ArgumentError
from triplewire.model.namespaces import PREDECLARED

if TYPE_CHECKING:
    from triplewire.model.values import PythonValue

RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
RDFS = "http://www.w3.org/2000/01/rdf-schema#"
XSD = "http://www.w3.org/2001/XMLSchema#"
_IRI_UNSAFE = re.compile(r'[\x00-\x20<>"{}|^`\\\ud800-\udfff]')
_IRI = re.compile(r'[A-Za-z][A-Za-z0-9+.-]*+:[^\x00-\x20<>"{}|^`\\]*+')
_LABEL = re.compile(r'[^\s<>"]++')
_LANGUAGE = re.compile(r"[A-Za-z]+(?:-[A-Za-z0-9]+)*")
XSD_STRING = XSD + "string"
LANG_STRING = RDF + "langString"


@dataclass(frozen=True, slots=True, repr=False, init=False)
class IRI:
    """An absolute IRI, without the angle brackets. Raises `ArgumentError` where `value` is no text, is relative, or
    holds what no IRI holds, such as a space."""

    value: str

    def __init__(self, value: str) -> None:
        if type(value) is not str:
            value = expect_plain("IRI(value)", value)
        if _IRI.fullmatch(value) is None:
            raise refuse("IRI(value)", _WANTED, value, _MAKE_ABSOLUTE)
        _set_value(self, value)

    def __repr__(self) -> str:
        return f"IRI({shortened(self.value)!r})"

    def __str__(self) -> str:
        return f"<{_escape_iri(self.value)}>"


@dataclass(frozen=True, slots=True, repr=False, init=False)
class BlankNode:
    """A blank node. Its label is local to its publication. Raises `ArgumentError` where it is no text, is empty, or
    holds white space, <, > or a quotation mark."""

    label: str

    def __init__(self, label: str) -> None:
        if type(label) is not str:
            label = expect_plain("BlankNode(label)", label)
        if _LABEL.fullmatch(label) is None:
            raise refuse("BlankNode(label)", 'a label without white space, <, > and ", such as b1', label)
        _set_label(self, label)

    def __repr__(self) -> str:
        return f"BlankNode({shortened(self.label)!r})"

    def __str__(self) -> str:
        return f"_:{self.label}"


@dataclass(frozen=True, slots=True, repr=False, init=False)
class Literal:
    """A literal: lexical form, datatype IRI, and the language tag (lower case) of an rdf:langString.

    `Literal("chat", language="fr")` is a language-tagged string, as `Literal.tagged("chat", "fr")`. Raises
    `ArgumentError` where one of the three is no text, where the datatype is no absolute IRI, or a prefixed name, the
    tag is none, and where there is a tag beside a datatype other than rdf:langString, or that datatype without a tag.
    """

    lexical: str
    datatype: str = XSD_STRING
    language: str = ""

    def __init__(self, lexical: str, datatype: str = XSD_STRING, language: str = "") -> None:
        if language or not (type(lexical) is str and type(datatype) is str and type(language) is str):
            lexical, datatype, language = _checked(lexical, datatype, language)
        elif datatype is not XSD_STRING:
            _check_datatype(datatype)
        _set_lexical(self, lexical)
        _set_datatype(self, datatype)
        _set_language(self, language)

    @classmethod
    def tagged(cls, lexical: str, language: str) -> Literal:
        """A language-tagged string. Tags are case-insensitive (RDF 1.1, 3.3), so they are stored in lower case."""
        return cls(lexical, LANG_STRING, language)

    @property
    def has_text(self) -> bool:
        """Is it plain, xsd:string or language-tagged? Only these have words (semantics, section 5)."""
        return self.datatype == XSD_STRING or bool(self.language)

    def to_python(self) -> PythonValue:
        """The value as Python's: `int`, `Decimal`, `float`, `bool`, `datetime`, `date`, `time`, `timedelta`, `bytes`.

        The text where the datatype has no Python type, and where the lexical form is not valid for it or Python cannot
        hold it (the year 10000). See `triplewire.model.values`.
        """
        if not self.datatype.startswith(XSD):
            return self.lexical
        # few programs need it, and it brings decimal and datetime along
        from triplewire.model.values import python_value

        return python_value(self.lexical, self.datatype.removeprefix(XSD))

    def __repr__(self) -> str:
        text = f"Literal({shortened(self.lexical)!r}"
        if self.language:
            return f"{text}, language={self.language!r})"
        return f"{text})" if self.datatype == XSD_STRING else f"{text}, {shortened(self.datatype)!r})"

    def __str__(self) -> str:
        quoted = f'"{_escape_string(self.lexical)}"'
        if self.language:
            return f"{quoted}@{self.language}"
        return quoted if self.datatype == XSD_STRING else f"{quoted}^^<{_escape_iri(self.datatype)}>"


# the constructors fill slots through these, in half the time that those of `dataclass` take
_set_value = IRI.__dict__["value"].__set__
_set_label = BlankNode.__dict__["label"].__set__
_set_lexical, _set_datatype, _set_language = (
    Literal.__dict__[name].__set__ for name in ("lexical", "datatype", "language")
)

# the same under names that all terms have, so that C reads them (`text_of`)
for _kind, _parts in (
    (IRI, (IRI.__dict__["value"], 0, "")),
    (BlankNode, (BlankNode.__dict__["label"], 1, "")),
    (Literal, tuple(Literal.__dict__[name] for name in ("lexical", "datatype", "language"))),
):
    for _name, _part in zip(("_text", "_sort", "_tag"), _parts, strict=True):
        setattr(_kind, _name, _part)

text_of: Callable[[Term], str] = attrgetter("_text")
sort_of: Callable[[Term], str | int] = attrgetter("_sort")
"""The datatype of a literal; 0 of an IRI, and 1 of a blank node."""
tag_of: Callable[[Term], str] = attrgetter("_tag")
"""The language. A term that has one has the datatype `LANG_STRING`."""


def _checked(lexical: object, datatype: object, language: object) -> tuple[str, str, str]:
    """The three parts of a literal as plain texts. Raises `ArgumentError` where one of them is no text, and where there
    is another datatype beside a language."""
    lexical = expect_plain("Literal(lexical)", lexical, "write the value as text, as in Literal(str(5), datatype)")
    datatype = expect_plain("Literal(datatype=...)", datatype, "an IRI has its text as .value")
    language = expect_plain("Literal(language=...)", language)
    if not language:
        _check_datatype(datatype)
        return lexical, datatype, ""
    if _LANGUAGE.fullmatch(language) is None:
        raise refuse("Literal(language=...)", "a language tag, such as en or pt-BR", language)
    if datatype not in (LANG_STRING, XSD_STRING):
        raise ArgumentError(
            f"a literal has a language or a datatype, not both, got {language[:40]!r} and <{datatype[:80]}>",
            source="Literal(language=...)",
            remedy="leave one of them out",
        )
    return lexical, LANG_STRING, language.lower()


@lru_cache(maxsize=1024)
def _check_datatype(datatype: str) -> None:
    """Raises `ArgumentError` for what is no absolute IRI, for a prefixed name, as prefixes are known in query texts
    only, and for the datatype of texts that have a language."""
    prefix, _, local = datatype.partition(":")
    is_prefixed = prefix in PREDECLARED and local and not local.startswith("//")
    if is_prefixed or _IRI.fullmatch(datatype) is None:
        whole = PREDECLARED[prefix] + local if is_prefixed else XSD + datatype
        remedy = f"write {whole!r}" if is_prefixed or datatype.isalpha() else ""
        raise refuse("Literal(datatype=...)", "the whole IRI of a datatype", datatype, remedy)
    if datatype == LANG_STRING:
        raise refuse("Literal(language=...)", "the language of an rdf:langString", "", "state it, or no datatype")


def made_iri(value: str) -> IRI:
    """The IRI of a text that is one, or stands for one, without a check: for readers, kernels and parsers."""
    made = _new(IRI)
    _set_value(made, value)
    return made


def made_blank(label: str) -> BlankNode:
    """The blank node of a label that is one, or stands for one, without a check, as `made_iri`."""
    made = _new(BlankNode)
    _set_label(made, label)
    return made


def made_literal(lexical: str, datatype: str = XSD_STRING, language: str = "") -> Literal:
    """The literal of parts that are right, without a check, as `made_iri`; a language is in lower case, and beside
    rdf:langString."""
    made = _new(Literal)
    _set_lexical(made, lexical)
    _set_datatype(made, datatype)
    _set_language(made, language)
    return made


_new = object.__new__

Term: TypeAlias = IRI | BlankNode | Literal
Node: TypeAlias = IRI | BlankNode


class _Edge(NamedTuple):
    subject: Node
    predicate: IRI
    object: Term


class Triple(_Edge):
    """One edge of a publication's graph: subject, predicate, object.

    Raises `ArgumentError` where one of them is no term of its place. `Triple._make` does not look at them: readers use
    it for terms that they have made.
    """

    __slots__ = ()

    def __new__(cls, subject: Node, predicate: IRI, object: Term) -> Self:
        if not isinstance(subject, _NODES):
            raise refuse("Triple(subject)", "a term (IRI or BlankNode)", subject, _MAKE_TERMS)
        if not isinstance(predicate, IRI):
            raise refuse("Triple(predicate)", "a term (IRI)", predicate, _MAKE_TERMS)
        if not isinstance(object, _TERMS):
            raise refuse("Triple(object)", "a term (IRI, BlankNode or Literal)", object, _MAKE_TERMS)
        return tuple.__new__(cls, (subject, predicate, object))

    def __repr__(self) -> str:
        return f"Triple({self.subject!r}, {self.predicate!r}, {self.object!r})"

    def __str__(self) -> str:
        return f"{self.subject} {self.predicate} {self.object} ."


_NODES = (IRI, BlankNode)
_TERMS = (IRI, BlankNode, Literal)
_WANTED = "an absolute IRI, in which no space, <, >, quotation mark or the like stands"
_MAKE_ABSOLUTE = "write it whole, as http://example.org/a or urn:example:a"
_MAKE_TERMS = "IRI(text), BlankNode(label) and Literal(text) make terms"


def shortened(text: str, most: int = 120) -> str:
    """The text, or its begin and end with three dots between them: for `repr`."""
    return text if len(text) <= most else f"{text[: most - most // 4 - 3]}...{text[-(most // 4) :]}"


RDF_TYPE = IRI(RDF + "type")

_STRING_ESCAPES = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\b": "\\b", "\f": "\\f"}
_STRING_UNSAFE = re.compile(r'["\\\n\r\t\b\f\x00-\x1f\x7f\ud800-\udfff]')


def _escape_string(text: str) -> str:
    return _STRING_UNSAFE.sub(lambda m: _STRING_ESCAPES.get(m[0]) or f"\\u{ord(m[0]):04X}", text)


def _escape_iri(text: str) -> str:
    return _IRI_UNSAFE.sub(lambda m: f"\\u{ord(m[0]):04X}", text)


_NOTATION = re.compile(
    r'<(?P<iri>[^<>"\x00-\x20]*)>'
    r"|_:(?P<blank>[^\s<>\"]+)"
    r'|"(?P<text>(?:[^"\\]|\\.)*)"(?:@(?P<tag>[A-Za-z0-9-]+)|\^\^<(?P<type>[^<>"\x00-\x20]*)>)?',
    re.DOTALL,
)
_ESCAPE = re.compile(r"\\(?:u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|(.))", re.DOTALL)
_UNESCAPED = {"t": "\t", "b": "\b", "n": "\n", "r": "\r", "f": "\f", '"': '"', "'": "'", "\\": "\\"}


def unescape(text: str) -> str:
    """Resolve the escapes of N-Triples and Turtle strings. Raises `ValueError` on any other escape."""

    def character(match: re.Match[str]) -> str:
        code, char = match[1] or match[2], match[3]
        if code:
            return chr(int(code, 16))
        if char not in _UNESCAPED:
            raise ValueError(f"\\{char} is no escape")
        return _UNESCAPED[char]

    return _ESCAPE.sub(character, text) if "\\" in text else text


def parse_term(text: str) -> Term:
    """The term of a text in N-Triples notation, as `str(term)` writes it. Raises `ValueError`."""
    match = _NOTATION.fullmatch(text)
    if match is None:
        raise ValueError(f"{text[:80]!r} is no term in N-Triples notation")
    if match["iri"] is not None:
        return made_iri(unescape(match["iri"]))
    if match["blank"] is not None:
        return made_blank(match["blank"])
    lexical = unescape(match["text"])
    if match["tag"]:
        return made_literal(lexical, LANG_STRING, match["tag"].lower())
    return made_literal(lexical, unescape(match["type"]) if match["type"] else XSD_STRING)


def term_to_json(term: Term) -> dict[str, str]:
    """The term as in SPARQL 1.1 Query Results JSON Format, section 3.2.2."""
    if isinstance(term, IRI):
        return {"type": "uri", "value": term.value}
    if isinstance(term, BlankNode):
        return {"type": "bnode", "value": term.label}
    out = {"type": "literal", "value": term.lexical}
    if term.language:
        out["xml:lang"] = term.language
    elif term.datatype != XSD_STRING:
        out["datatype"] = term.datatype
    return out
