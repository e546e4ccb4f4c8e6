"""Texts split at their parameters: `SELECT * { ?s <p> "x" }` into `SELECT * { ?s # # }` and `<p>`, `"x"`.

A parameter is a constant of the text as it is written: an IRI, a string, a number, and for GQL a variable. One regular
expression for all languages finds them, which is a guess at the tokens. `triplewire.languages.templates.builder` checks
the guess by parsing.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

from triplewire.ir.fulltext.analysis import analyse
from triplewire.ir.fulltext.nodes import Analyzer
from triplewire.model.terms import IRI, XSD, Literal

Parameters: TypeAlias = tuple[str, ...]
"""Parameters as written: `<IRI>`, a quoted string with its tag or datatype, a blank and a number, `?name`."""

Environment: TypeAlias = tuple[str, str, tuple[tuple[str, str], ...]]
"""What a text is parsed with: language, base, prefixes."""

MARK = "\0"  # stands for a parameter in the text of a template

_SCHEME = r"[A-Za-z][A-Za-z0-9+.-]*+:"
_CHARACTERS = r'[^<>"{}|^`\\\x00-\x20]*+'
_VOCABULARIES = r"(?!http://www\.w3\.org/(?:1999/02/22-rdf-syntax-ns|2000/01/rdf-schema)#)"
_TAG = r"@[a-z]++(?:-[a-z0-9]++)*+"  # in lower case only, so that equal terms are written alike
_STRING = r"(?!http://www\.w3\.org/2001/XMLSchema#string>)"  # for the same reason


def _pattern(reserved: str, more: str = "") -> re.Pattern[str]:
    """The expression that finds parameters. Each branch begins with a literal character, which makes the search fast.

    Not found: the namespace of a declaration, the name of a function, a string beside another quotation mark, a number
    elsewhere than behind a blank and `<`, `>` or `=`.
    """
    suffix = rf"(?:{_TAG}(?![\w-])|\^\^<{_STRING}{_SCHEME}{_CHARACTERS}>)?"
    return re.compile(
        rf"(<(?<![:^]<)(?<!: <){reserved}{_SCHEME}{_CHARACTERS}>(?!\s*\()"
        rf'|"(?<!"")[^"\\\n\r]++"(?!"){suffix}'
        rf"|'(?<!'')[^'\\\n\r]++'(?!'){suffix}"
        r"| (?<=[<>=] )-?[0-9]++(?:\.[0-9]++)?(?![\w.:+%°'\"-])"
        rf"{more})"
    )


CONSTANTS = _pattern("")
WITHOUT_VOCABULARIES = _pattern(_VOCABULARIES)  # terms of RDF and RDFS are no parameters
WITH_VARIABLES = _pattern("", r"|\?\w++")
_UNUSUAL = re.compile("[\x00\ud800-\udfff]")


class SplitText(NamedTuple):
    """A text split at its parameters: `pieces` stand around the parameters, one more than these."""

    pieces: tuple[str, ...]
    parameters: Parameters

    def filled(self, parameters: Sequence[str]) -> str:
        """The text with other parameters."""
        parts = [part for pair in zip(self.pieces, parameters, strict=False) for part in pair]
        return "".join([*parts, self.pieces[-1]])


def can_be_split(text: str) -> bool:
    """False of a text with a NUL or a lone surrogate."""
    return (text.isascii() and MARK not in text) or not _UNUSUAL.search(text)


def content(parameter: str) -> str:
    """What is written between the delimiters."""
    if parameter[0] in " ?":
        return parameter[1:]
    return parameter[1:-1] if parameter[0] == "<" else parameter[1 : parameter.index(parameter[0], 1)]


def has_suffix(parameter: str) -> bool:
    """Has the quoted string a language tag or a datatype?"""
    return parameter[-1] != parameter[0]


def is_word(parameter: str) -> bool:
    """Is it a quoted word that the default analyser leaves as it is?"""
    if has_suffix(parameter):
        return False
    text = parameter[1:-1]
    return analyse(text, Analyzer()) == (text,)


def term_of(parameter: str) -> IRI | Literal:
    """The term of a parameter that stands where a term stands."""
    if parameter[0] == "<":
        return IRI(parameter[1:-1])
    if parameter[0] == " ":
        return Literal(parameter[1:], XSD + ("decimal" if "." in parameter else "integer"))
    end = parameter.index(parameter[0], 1)
    text, suffix = parameter[1:end], parameter[end + 1 :]
    if not suffix:
        return Literal(text)
    return Literal.tagged(text, suffix[1:]) if suffix[0] == "@" else Literal(text, suffix[3:-1])


def number_form(parameter: str) -> str:
    """What of a number decides its datatype and its tokens: a sign, a point."""
    return ("-" if parameter[1] == "-" else "") + ("." if "." in parameter else "")
