"""Triples of a group or of a CONSTRUCT template (SPARQL 1.1, 19.8, productions 75 to 105).

Blank nodes become hidden variables. Their labels reach as far as one basic graph pattern; `BlankLabels` keeps that.
"""

from __future__ import annotations

from triplewire.ir.nodes import ANY, Pattern, PatternTerm, Variable, Where
from triplewire.languages.grammar.tokens import Token
from triplewire.languages.sparql import paths
from triplewire.languages.sparql.terms import TermReader
from triplewire.model.terms import IRI, RDF

FIRST, REST, NIL = IRI(RDF + "first"), IRI(RDF + "rest"), IRI(RDF + "nil")


class BlankLabels:
    """Which hidden variable a label stands for, and in which basic graph pattern (5.1.1)."""

    def __init__(self, terms: TermReader) -> None:
        self._terms = terms
        self._known: dict[str, tuple[Variable, int]] = {}
        self._last = 0
        self.current = 0

    def end_of_pattern(self) -> None:
        """What follows belongs to another basic graph pattern."""
        self._last += 1
        self.current = self._last

    def variable(self, token: Token) -> Variable:
        """The hidden variable of a label; refuses a label of another basic graph pattern."""
        if token.text not in self._known:
            self._known[token.text] = self._terms.hidden(), self.current
        variable, pattern = self._known[token.text]
        if pattern != self.current:
            self._terms.tokens.fail(
                token, f"the blank node {token.text} is used in two graph patterns", "use a variable instead"
            )
        return variable


class TripleReader:
    """Reads triples at the cursor into `parts`. In a template neither paths nor wildcards are allowed."""

    def __init__(self, terms: TermReader, labels: BlankLabels, parts: list[Where], template: bool = False) -> None:
        self._terms = terms
        self._tokens = terms.tokens
        self._labels = labels
        self._template = template
        self.parts = parts

    def starts(self) -> bool:
        """Can the next token start triples?"""
        token = self._tokens.peek()
        if token.kind in ("symbol", "word"):
            return self._tokens.at("[", "(", "*", "+", "-", "TRUE", "FALSE")
        return token.kind in ("variable", "iri", "name", "blank", "string", "number")

    def same_subject(self) -> None:
        """A subject with its predicates and objects."""
        said = len(self.parts)
        subject = self._node(self.parts)
        # [ ... ] and ( ... ) say something by themselves; [] and (), like any other term, do not
        if len(self.parts) == said or self._starts_predicate():
            self._properties(subject, self.parts)

    def _starts_predicate(self) -> bool:
        tokens = self._tokens
        return paths.starts_path(self._terms) or tokens.peek().kind == "variable" or tokens.at("*")

    def _properties(self, subject: PatternTerm, parts: list[Where]) -> None:
        """Predicates with their objects, semicolons between them; at least one."""
        tokens = self._tokens
        self._predicate(subject, parts)
        while tokens.accept(";"):
            if self._starts_predicate():
                self._predicate(subject, parts)

    def _predicate(self, subject: PatternTerm, parts: list[Where]) -> None:
        """One predicate or path, with its objects, commas between them."""
        tokens = self._tokens
        simple = self._wildcard() if tokens.at("*") else self._terms.accept_variable()
        if simple is None and not paths.starts_path(self._terms):
            tokens.unexpected("a predicate: a variable, an IRI, 'a', a property path or '*'")
        start = tokens.peek()
        path = paths.read_path(self._terms) if simple is None else None
        if self._template and path is not None and not isinstance(path, IRI):
            tokens.fail(start, "a CONSTRUCT template takes no property path")
        while True:
            inner: list[Where] = []
            object_ = self._node(inner)
            if path is not None:
                parts.extend(paths.translate(self._terms, subject, path, object_))
            elif simple is not None:
                parts.append(self._terms.pattern(subject, simple, object_))
            parts.extend(inner)
            if not tokens.accept(","):
                return

    def _wildcard(self) -> PatternTerm:
        token = self._tokens.expect("*")
        if self._template:
            self._tokens.fail(token, "'*' cannot stand in a CONSTRUCT template", "use a variable")
        return ANY

    def _node(self, parts: list[Where]) -> PatternTerm:
        """A term of a triple; what [ ... ] and ( ... ) say goes to `parts`."""
        tokens = self._tokens
        token = tokens.peek()
        if token.kind == "variable":
            return self._terms.variable()
        if token.kind == "blank":
            return self._labels.variable(tokens.next())
        if tokens.at("*"):
            return self._wildcard()
        if tokens.accept("["):
            return self._blank_node(parts)
        if tokens.accept("("):
            return self._collection(parts)
        constant = self._terms.accept_constant()
        if constant is None:
            tokens.unexpected("a variable, an IRI, a literal, a blank node or '*'")
        return constant

    def _blank_node(self, parts: list[Where]) -> Variable:
        """After `[`: the properties of an unnamed node."""
        node = self._terms.hidden()
        if not self._tokens.accept("]"):
            with self._tokens.nested():
                self._properties(node, parts)
            self._tokens.expect("]")
        return node

    def _collection(self, parts: list[Where]) -> PatternTerm:
        """After `(`: an RDF list (4.2.3)."""
        tokens = self._tokens
        if tokens.accept(")"):
            return NIL
        head = node = self._terms.hidden()
        with tokens.nested():
            while True:
                inner: list[Where] = []
                parts.append(Pattern(node, FIRST, self._node(inner)))
                parts.extend(inner)
                if tokens.accept(")"):
                    parts.append(Pattern(node, REST, NIL))
                    return head
                following = self._terms.hidden()
                parts.append(Pattern(node, REST, following))
                node = following
