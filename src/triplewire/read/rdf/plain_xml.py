"""Rewrites well-formed RDF/XML that pyoxigraph would read otherwise than Expat does.

pyoxigraph's reader of XML knows neither the line ends of XML 1.0 (2.11), nor the values of attributes (3.3.3), nor
attributes by default, and takes the last of two declarations of an entity, where XML takes the first (4.2). It refuses
texts that a comment or a CDATA section parts. What is written has no document type, comment or CDATA section, and says
the same.

Early RSS 1.0 writes `<rdf:li resource="...">` for `<rdf:li rdf:resource="...">`, which RDF/XML (section 6.1.4) allows
to read. Relative `xml:base`, empty `xml:lang` and values of `rdf:parseType` that are none of its own are RDF/XML too.
An `rdf:langString` has the language around it (RDF 1.1 Concepts, 3.3). Attributes without a prefix are none of RDF/XML
today; papers and programs of its first years write properties so.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from xml.parsers import expat
from xml.sax.saxutils import escape

from triplewire.errors import ReadError
from triplewire.model.references import resolve
from triplewire.model.terms import LANG_STRING, RDF
from triplewire.read.decoded import Problem, warning
from triplewire.read.guard.xml import check_expanded

NO_LANGUAGE = "x-no-language-5c1d93ab"
"""Stands for the empty language tag, which pyoxigraph refuses. No document has it."""

_OWN = "own-5c1d93ab"  # a prefix, which no document has, for attributes without one
_NAMED = 10  # attributes without a prefix that a warning names

_PARSE_TYPES = frozenset({"Literal", "Resource", "Collection"})
_UNQUALIFIED = frozenset({"about", "resource", "ID"})
_ALONE = ("parseType", "datatype")  # a property that has one of them has no other attribute but rdf:ID
_IN_TEXT = {"\r": "&#13;"}
_IN_ATTRIBUTES = {'"': "&quot;", "\n": "&#10;", "\r": "&#13;", "\t": "&#9;"}
_READ_OTHERWISE = re.compile(
    rb"""<!|\r|=\s*+(?:"[^"<\n\t]*+[\n\t]|'[^'<\n\t]*+[\n\t])"""
    rb"""|xml:base\s*=|xml:lang\s*=\s*(?:""|'')|bagID\s*=|parseType\s*=\s*["'](?!(?:Literal|Resource|Collection)["'])"""
    rb"""|\s(?!xmlns|version|encoding|standalone)[A-Za-z_][\w.-]*+\s*+=\s*+["']|\#langString["']"""
    rb"""|["']\s++[\w.-]++:(?:parseType|datatype)\s*+="""
    rb"""|(?:parseType|datatype)\s*+=\s*+(?:"[^"<]*+"|'[^'<]*+')(?:\s++\w|\s*+>\s*+<[^/!?])"""
)


def plain(data: bytes, base: str, problems: list[Problem] | None = None) -> bytes:
    """The well-formed document in UTF-8, as pyoxigraph reads it right: with absolute `xml:base`, `NO_LANGUAGE` for an
    empty `xml:lang`, "Literal" for an unknown `rdf:parseType` (RDF/XML, 7.2.20), and `about`, `resource` and `ID` in
    RDF's namespace. The attributes of a tag stand in the line in which it began.

    Where `problems` are given, other attributes without a prefix are properties of the default namespace, or, without
    one, of their element's, and a warning about them is added.

    Raises `ReadError` for `rdf:bagID`, which RDF/XML has no more, for an `rdf:langString` without a language, for what
    stands beside `rdf:parseType` or `rdf:datatype` (RDF/XML, 7.2.16 to 7.2.20), and where what is declared makes it too
    long.
    """
    if _READ_OTHERWISE.search(data) is None:
        return data
    writer = _Writer(data, base, is_lenient=problems is not None)
    writer.parser.Parse(data, True)
    if problems is not None:
        problems += writer.warnings()
    return writer.written()


class _Writer:
    """An Expat parser whose handlers write the document. The attributes of XML literals stay as they are."""

    def __init__(self, data: bytes, base: str, *, is_lenient: bool = False) -> None:
        self._data = data
        self._is_lenient = is_lenient
        self._parts: list[str] = []
        self._size = 0
        self._lines = 1  # the number of the line that is written
        self._bases = [base]
        self._languages = [""]
        self._namespaces: list[Mapping[str, str]] = [{}]  # by prefix
        self._literal = 0  # open elements of an XML literal, the property around it among them
        self._typed = 0  # the depth of the property that has a datatype, and so no element in it
        self._unprefixed: dict[str, int] = {}  # attributes that are read as properties, and the lines of the first ones
        self.parser = expat.ParserCreate("utf-8")
        self.parser.buffer_text = True
        self.parser.StartElementHandler = self._start
        self.parser.EndElementHandler = self._end
        self.parser.CharacterDataHandler = self._text

    def warnings(self) -> list[Problem]:
        """What is to be said of attributes without a prefix."""
        if not self._unprefixed:
            return []
        named = ", ".join(f"{name} in line {line}" for name, line in list(self._unprefixed.items())[:_NAMED])
        what = f"attributes without a prefix are read as properties of the namespace around them: {named}"
        return [warning(what, min(self._unprefixed.values()))]

    def written(self) -> bytes:
        """The document."""
        return "".join(self._parts).encode("utf-8")

    def _write(self, text: str) -> None:
        self._parts.append(text)
        self._size += len(text)
        check_expanded(self._size, self._data)

    def _text(self, text: str) -> None:
        self._lines += text.count("\n")
        self._write(escape(text, _IN_TEXT))

    def _missing_lines(self) -> str:
        """The line ends that the document has up to here, and that are not written, as within a comment."""
        missing = max(self.parser.CurrentLineNumber - self._lines, 0)
        self._lines += missing
        return "\n" * missing

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        declared = {key[6:]: value for key, value in attributes.items() if key == "xmlns" or key.startswith("xmlns:")}
        self._namespaces.append({**self._namespaces[-1], **declared} if declared else self._namespaces[-1])
        self._bases.append(self._bases[-1])
        self._languages.append(attributes.get("xml:lang", self._languages[-1]))
        if self._literal:
            self._literal += 1
        else:
            self._check_alone(attributes)
            own = self._own_namespace(name, attributes)
            attributes = {key: value for pair in attributes.items() for key, value in self._changed(*pair, own)}
            if own:
                attributes[f"xmlns:{_OWN}"] = own
        written = "".join([f' {name}="{escape(value, _IN_ATTRIBUTES)}"' for name, value in attributes.items()])
        self._write(f"<{name}{self._missing_lines()}{written}>")

    def _check_alone(self, attributes: Mapping[str, str]) -> None:
        """Raises `ReadError` for an attribute or an element that may not be beside a parse type or a datatype."""
        depth, beside = len(self._bases), ""
        alone = [key for key in attributes if self._is_of_rdf(key) and key.rpartition(":")[2] in _ALONE]
        if alone:
            others = (key for key in attributes if key != alone[0] and not key.startswith("xml"))
            beside = next(
                (key for key in others if key != "ID" and not (self._is_of_rdf(key) and key[-3:] == ":ID")), ""
            )
        elif self._typed == depth - 1:
            alone, beside = ["rdf:datatype"], "an element"
        if beside:
            line, column = self.parser.CurrentLineNumber, self.parser.CurrentColumnNumber + 1
            what = f"{alone[0]} and {beside} are not both allowed in a property"
            raise ReadError(what, line=line, column=column, remedy="leave one of them out")
        self._typed = depth if alone and alone[0].endswith(":datatype") else 0

    def _is_of_rdf(self, name: str) -> bool:
        prefix = name.rpartition(":")[0]
        return bool(prefix) and self._namespaces[-1].get(prefix) == RDF

    def _own_namespace(self, name: str, attributes: Mapping[str, str]) -> str:
        """The namespace that attributes without a prefix are of, where the element has such; "" for none."""
        namespaces = self._namespaces[-1]
        unprefixed = [key for key in attributes if ":" not in key and key != "xmlns" and key not in _UNQUALIFIED]
        namespace = namespaces.get("") or namespaces.get(name.rpartition(":")[0], "")
        if not (unprefixed and self._is_lenient and namespace not in ("", RDF)):
            return ""
        for key in unprefixed:
            self._unprefixed.setdefault(key, self.parser.CurrentLineNumber)
        return namespace

    def _changed(self, name: str, value: str, own: str) -> Iterator[tuple[str, str]]:
        """The attribute of an element as it is written, if it is. `own` is the namespace of those without a prefix."""
        namespaces = self._namespaces[-1]
        prefix, _, local = name.rpartition(":")
        is_of_rdf = self._is_of_rdf(name)
        line, column = self.parser.CurrentLineNumber, self.parser.CurrentColumnNumber + 1
        if name == "xml:base":
            value = self._bases[-1] = resolve(value, self._bases[-1])
        elif name == "xml:lang" and not value:
            value = NO_LANGUAGE
        elif name in _UNQUALIFIED:
            prefixes = [prefix for prefix, namespace in namespaces.items() if prefix and namespace == RDF]
            name = f"{min(prefixes)}:{name}" if prefixes else name
        elif not prefix and own and name != "xmlns":
            name = f"{_OWN}:{name}"
        elif is_of_rdf and local == "bagID":
            raise ReadError("rdf:bagID is no RDF/XML any more", line=line, column=column, remedy="leave it out")
        elif is_of_rdf and local == "datatype" and value == LANG_STRING:
            if not self._languages[-1]:
                what = "an rdf:langString has a language, and there is none here"
                raise ReadError(what, line=line, column=column, remedy="add xml:lang, or leave rdf:datatype out")
            return
        elif is_of_rdf and local == "parseType":
            value = value if value in _PARSE_TYPES else "Literal"
            self._literal = int(value == "Literal")
        yield name, value

    def _end(self, name: str) -> None:
        self._literal = max(self._literal - 1, 0)
        self._bases.pop()
        self._languages.pop()
        self._namespaces.pop()
        self._write(f"</{name}{self._missing_lines()}>")
