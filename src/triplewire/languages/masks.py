"""Texts cut into a mask and its constants: `SELECT * { ?s <p> "x" }` into `SELECT * { ?s # # }` and `<p>`, `"x"`.

Which constants are told apart, how they are written, and what term each is. A cut is a guess at the tokens, made by one
regular expression for all languages; whether it is right for a mask is proven by `triplewire.languages.proofs`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

from triplewire.ir.analysis import analyse
from triplewire.ir.nodes import Label
from triplewire.ir.text import Analyzer, Word
from triplewire.model.terms import IRI, XSD, XSD_STRING, Literal

Constants: TypeAlias = tuple[str, ...]
"""Constants as written: `<IRI>`, a quoted string with the tag or datatype behind it, a blank and a number, `?name`."""

HOLE = "\0"  # stands for a constant in a mask

_SCHEME = r"[A-Za-z][A-Za-z0-9+.-]*+:"
_CHARACTERS = r'[^<>"{}|^`\\\x00-\x20]*+'
_VOCABULARIES = r"(?!http://www\.w3\.org/(?:1999/02/22-rdf-syntax-ns|2000/01/rdf-schema)#)"
_TAG = r"@[A-Za-z]++(?:-[A-Za-z0-9]++)*+"
_LOWER_TAG = r"@[a-z]++(?:-[a-z0-9]++)*+"  # capitals are another way to write the same term: left in the mask
# the type xsd:string is as well
_STRING = r"(?!http://www\.w3\.org/2001/XMLSchema#string>)"


def _pattern(reserved: str, tag: str = _TAG, more: str = "") -> re.Pattern[str]:
    """Each branch begins with its character, which is what makes the search fast.

    Not taken: the namespace of a declaration, the name of a function, a string beside another quotation mark, a number
    elsewhere than behind a blank and `<`, `>` or `=`.
    """
    suffix = rf"(?:{tag}(?![\w-])|\^\^<{_STRING}{_SCHEME}{_CHARACTERS}>)?"
    return re.compile(
        rf"(<(?<![:^]<)(?<!: <){reserved}{_SCHEME}{_CHARACTERS}>(?!\s*\()"
        rf'|"(?<!"")[^"\\\n\r]++"(?!"){suffix}'
        rf"|'(?<!'')[^'\\\n\r]++'(?!'){suffix}"
        r"| (?<=[<>=] )-?[0-9]++(?:\.[0-9]++)?(?![\w.:+%°'\"-])"
        rf"{more})"
    )


PLAIN = _pattern("")
WITHOUT_VOCABULARIES = _pattern(_VOCABULARIES)  # leaves the terms of RDF and RDFS in the mask
WITH_VARIABLES = _pattern("", _LOWER_TAG, r"|\?\w++")
_CAPITALS = re.compile(r"[\"']@[a-z0-9-]*+[A-Z]")
_UNUSUAL = re.compile("[\x00\ud800-\udfff]")


class Cut(NamedTuple):
    """A text in pieces: `pieces` stand around the constants, one more than these."""

    pieces: tuple[str, ...]
    constants: Constants

    def filled(self, constants: Sequence[str]) -> str:
        """The text with other constants."""
        parts = [part for pair in zip(self.pieces, constants, strict=False) for part in pair]
        return "".join([*parts, self.pieces[-1]])


def is_usual(text: str) -> bool:
    """Can the text be cut? Not where it holds a NUL or a lone surrogate."""
    return (text.isascii() and HOLE not in text) or not _UNUSUAL.search(text)


def content(constant: str) -> str:
    """What is written between the delimiters."""
    if constant[0] in " ?":
        return constant[1:]
    return constant[1:-1] if constant[0] == "<" else constant[1 : constant.index(constant[0], 1)]


def has_suffix(constant: str) -> bool:
    """Has the quoted string a language tag or a datatype?"""
    return constant[-1] != constant[0]


def one_quoting(constants: Constants) -> Constants:
    """The constants with quotation marks in place of apostrophes, so that equal ones are written alike."""
    return tuple(['"' + one[1:].replace("'", '"', 1) if one[0] == "'" else one for one in constants])


def with_lower_tags(text: str, constants: Constants) -> Constants:
    """The constants of this text with language tags in lower case, so that equal ones are written alike."""
    if "@" not in text or not _CAPITALS.search(text):
        return constants
    return tuple([_with_lower_tag(one) if one[0] in "\"'" and has_suffix(one) else one for one in constants])


def _with_lower_tag(constant: str) -> str:
    end = constant.index(constant[0], 1) + 1
    return constant[:end] + constant[end:].lower() if constant[end] == "@" else constant


def is_mixed(constants: Sequence[str]) -> bool:
    """Are some quoted by quotation marks, some by apostrophes?"""
    return {'"', "'"} <= {one[0] for one in constants}


def is_word(constant: str) -> bool:
    """Is it a quoted word that the default analyser leaves as it is?"""
    if has_suffix(constant):
        return False
    text = constant[1:-1]
    return analyse(text, Analyzer()) == (text,)


def term_of(constant: str) -> IRI | Literal:
    """The term of a constant that stands where a term stands."""
    if constant[0] == "<":
        return IRI(constant[1:-1])
    if constant[0] == " ":
        return Literal(constant[1:], XSD + ("decimal" if "." in constant else "integer"))
    end = constant.index(constant[0], 1)
    text, suffix = constant[1:end], constant[end + 1 :]
    if not suffix:
        return Literal(text)
    return Literal.tagged(text, suffix[1:]) if suffix[0] == "@" else Literal(text, suffix[3:-1])


def number_form(constant: str) -> str:
    """What of a number decides its datatype and its tokens: a sign, a point."""
    return ("-" if constant[1] == "-" else "") + ("." if "." in constant else "")


def written(node: object, delimiter: str) -> str | None:
    """A node as a constant that begins with the delimiter; None where it cannot be that."""
    if isinstance(node, IRI):
        return f"<{node.value}>" if delimiter == "<" else None
    if delimiter == " ":
        text = node.text if isinstance(node, Label) else node.lexical if isinstance(node, Literal) else None
        return None if text is None else f" {text}"
    if isinstance(node, str):
        return delimiter + node + delimiter
    if isinstance(node, Word):
        return delimiter + node.word + delimiter
    if not isinstance(node, Literal) or delimiter == "<":
        return None
    plain = node.datatype == XSD_STRING and not node.language
    suffix = "" if plain else f"@{node.language}" if node.language else f"^^<{node.datatype}>"
    return delimiter + node.lexical + delimiter + suffix
