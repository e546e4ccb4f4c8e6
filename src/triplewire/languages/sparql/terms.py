"""Terms of a SPARQL text: the prologue, IRIs, prefixed names, literals, variables (SPARQL 1.1, 4.1 and 19.8).

`TermReader` holds what all rules share: the tokens, the prefixes and base in force, and the supply of hidden variables.
"""

from __future__ import annotations

import re

from triplewire.errors import LimitError
from triplewire.ir.nodes import Pattern, PatternTerm, Variable
from triplewire.languages.grammar.strings import number, string_literal
from triplewire.languages.grammar.tokens import Token, Tokens
from triplewire.model.namespaces import PREDECLARED
from triplewire.model.references import resolve
from triplewire.model.terms import IRI, RDF_TYPE, XSD, Literal

_LOCAL_ESCAPE = re.compile(r"\\(.)")
_UPDATES = ["INSERT", "DELETE", "LOAD", "CLEAR", "DROP", "CREATE", "ADD", "MOVE", "COPY", "WITH"]


class TermReader:
    """Reads terms at the cursor of `tokens`."""

    def __init__(self, tokens: Tokens) -> None:
        self.tokens = tokens
        self.base = tokens.context.base
        self._prefixes = {**PREDECLARED, **tokens.context.prefixes}
        self._hidden = 0
        self._patterns = 0

    def prologue(self) -> None:
        """BASE and PREFIX declarations, in any number and order."""
        while keyword := self.tokens.accept("BASE", "PREFIX"):
            if keyword.text.upper() == "BASE":
                self.base = self._reference(self.tokens.expect_kind("iri", "an IRI in angle brackets"))
                continue
            name = self.tokens.peek()
            if name.kind != "name" or name.text.find(":") != len(name.text) - 1:
                self.tokens.unexpected("a prefix that ends with a colon")
            self.tokens.next()
            iri = self.tokens.expect_kind("iri", "an IRI in angle brackets")
            self._prefixes[name.text[:-1]] = self._reference(iri)
        if self.tokens.at(*_UPDATES):
            self.tokens.unsupported(self.tokens.peek(), f"{self.tokens.peek().text.upper()} (an update)")

    def hidden(self) -> Variable:
        """A new variable that no author can name."""
        self._hidden += 1
        return Variable(f".{self._hidden}")

    def pattern(self, subject: PatternTerm, predicate: PatternTerm, object_: PatternTerm) -> Pattern:
        """A new pattern. A path before many objects is written out for each: refuses where that outgrows the text."""
        self._patterns += 1
        if self._patterns > max(len(self.tokens.text), self.tokens.context.settings.max_patterns):
            line, column = self.tokens.place(self.tokens.peek().offset)
            raise LimitError(
                "the paths make too many triple patterns",
                source=self.tokens.context.source,
                line=line,
                column=column,
                remedy="use shorter paths, or raise max_patterns",
            )
        return Pattern(subject, predicate, object_)

    def variable(self) -> Variable:
        """`?name` or `$name`."""
        return Variable(self.tokens.expect_kind("variable", "a variable").text[1:])

    def accept_variable(self) -> Variable | None:
        """A variable, if one is next."""
        token = self.tokens.accept_kind("variable")
        return Variable(token.text[1:]) if token else None

    def accept_iri(self) -> IRI | None:
        """`<iri>` or `prefix:name`, if one is next."""
        token = self.tokens.accept_kind("iri", "name")
        return self.iri_of(token) if token else None

    def iri_of(self, token: Token) -> IRI:
        """The IRI that an iri or name token stands for."""
        if token.kind == "iri":
            return IRI(self._reference(token))
        prefix, _, local = token.text.partition(":")
        namespace = self._prefixes.get(prefix)
        if namespace is None:
            self.tokens.fail(
                token, f"the prefix '{prefix}:' is not declared", f"add PREFIX {prefix}: <...> at the start"
            )
        return IRI(namespace + (_LOCAL_ESCAPE.sub(r"\1", local) if "\\" in local else local))

    def _reference(self, token: Token) -> str:
        return resolve(token.text[1:-1], self.base)

    def accept_predicate(self) -> IRI | None:
        """An IRI or `a`, if one is next."""
        return RDF_TYPE if self.tokens.accept("a") else self.accept_iri()

    def accept_constant(self) -> IRI | Literal | None:
        """An IRI or a literal, if one is next; a sign must stand directly before its number."""
        return self.accept_iri() or self.accept_literal()

    def accept_literal(self) -> Literal | None:
        """A string, number or boolean, if one is next."""
        tokens = self.tokens
        token = tokens.peek()
        if token.kind == "string":
            return string_literal(tokens, tokens.next(), self.iri_of)
        if token.kind == "number":
            return number(tokens.next().text)
        if token.kind == "word" and token.text.lower() in ("true", "false"):
            return Literal(tokens.next().text.lower(), XSD + "boolean")
        if token.kind == "symbol" and token.text in "+-" and self.sign_touches():
            return number(tokens.next().text + tokens.next().text)
        return None

    def sign_touches(self) -> bool:
        """Does a number follow the next token without space between? Then both are one number (19.8, 149 to 154)."""
        sign, behind = self.tokens.peek(), self.tokens.peek(1)
        return behind.kind == "number" and behind.offset == sign.offset + 1
