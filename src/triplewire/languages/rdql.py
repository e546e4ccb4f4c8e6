"""RDQL, the language that the cluster paper builds on (section 1; W3C member submission of 2004-01-09).

    query     := "SELECT" ("*" | variable ","? ...) (("FROM" | "SOURCE") iri ","? ...)? "WHERE" pattern ","? ...
                 ("AND" condition (("," | "AND") condition)*)? ("USING" prefix "FOR" iri ","? ...)?
    pattern   := "(" term ","? term ","? term ")"
    term      := variable | iri | "<" prefixed name ">" | prefixed name | literal
    condition := "||", "&&", "!" and parentheses over side op side, side ("=~" | "~~" | "!~") /regex/flags
    op        := "eq" | "ne" | "==" | "!=" | "<" | "<=" | ">" | ">="
    side      := sum of products over variables and constants

`eq` and `ne` ask for the same RDF term; the other comparisons are lenient, as in GQL. A number or boolean without
quotation marks is the text of a literal, whatever its datatype. Comments: `//` and `/* */`. A prefix also counts within
angle brackets. A variable that is selected need not be bound, as in SPARQL, whose tokens, terms and regexes these are.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from triplewire.ir import nodes as ir
from triplewire.languages.context import Context, Parsed
from triplewire.languages.grammar.bare import bounded
from triplewire.languages.grammar.conditions import FLIPPED, compared, narrowed
from triplewire.languages.grammar.tokens import END, Token, string_value
from triplewire.languages.sparql.expressions import check_regex, deeper
from triplewire.languages.sparql.terms import TERMS, QueryTokens, TermReader
from triplewire.model.namespaces import PREDECLARED
from triplewire.model.references import has_scheme
from triplewire.model.terms import IRI, Literal, made_iri, made_literal

PATTERN = re.compile(
    rf"""
      (?P<skip>\s++|//[^\n\r]*+|/\*(?:[^*]++|\*(?!/))*+\*/)
    | (?P<match>(?:[=~]~|!~)\s*+m?(?:/(?:[^/\\\n\r]++|\\.)*+/|!(?:[^!\\\n\r]++|\\.)*+!
                                  |"(?:[^"\\\n\r]++|\\.)*+"|'(?:[^'\\\n\r]++|\\.)*+')[A-Za-z]*+)
    | (?P<integer>0[xX][0-9a-fA-F]++[lL]?+(?!\w)|[0-9]++[lL](?!\w))
    | {TERMS}
    | (?P<other>[^\W\d]\w*+)   # a prefix that does not begin with an ASCII letter
    | (?P<symbol>\^\^|&&|\|\||[=!<>]=|>{{2,3}}|<<|[=~]~|!~|[(){{}},*/+!<>&|^~%=-])
    """,
    re.VERBOSE | re.DOTALL,
)

COMPARISONS = {"==": "=", "!=": "!=", "<": "<", "<=": "<=", ">": ">", ">=": ">="}
MATCHES = ("=~", "~~", "!~")
REFUSED = ("=", "&", "|", "^", "~", "%", "<<", ">>", ">>>")
IN_BRACKETS = PREDECLARED.keys() - {"geo", "content"}
"""The predeclared prefixes that count within angle brackets, where the others are schemes of IRIs."""

_MATCH = re.compile(r"(..)\s*m?(.)(.*)\2([A-Za-z]*)", re.DOTALL)
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)


def parse(text: str, context: Context) -> Parsed:
    """Compile an RDQL text. Raises `LanguageError`, or `UnsupportedQuery` naming the construct."""
    with bounded(context):
        return _Query(_Tokens(text, context, PATTERN)).read()


class _Tokens(QueryTokens):
    """The tokens of an RDQL text, which are looked through for its prefixes first."""

    def rewind(self) -> None:
        """Back to the first token."""
        self._at = 0


class _Terms(TermReader):
    """Terms as RDQL writes them."""

    def __init__(self, tokens: _Tokens) -> None:
        super().__init__(tokens)
        self._declared = dict.fromkeys((*IN_BRACKETS, *tokens.context.prefixes))

    def using(self) -> None:
        """The declarations after USING, up to the end of the text."""
        tokens = self.tokens
        while tokens.peek().kind != END:
            prefix = tokens.accept_kind("word", "other", "name") or tokens.unexpected("a prefix")
            tokens.expect("FOR")
            namespace = tokens.expect_kind("iri", "an IRI in angle brackets")
            name = prefix.text.removesuffix(":")
            self._prefixes[name], self._declared[name] = self._reference(namespace), None
            tokens.accept(",")

    def iri_of(self, token: Token) -> IRI:
        """The IRI of an iri or name token; `<rdf:type>` is a prefixed name."""
        prefix, colon, local = token.text.strip("<>").partition(":")
        if token.kind == "iri" and colon and prefix in self._declared:
            return made_iri(self._prefixes[prefix] + local)
        return super().iri_of(token)

    def term(self, expected: str) -> IRI | Literal | ir.Label | ir.Variable:
        """A variable, IRI, literal, number or boolean. RDQL escapes any character in a string, and of a literal with
        language and datatype the datatype counts."""
        tokens = self.tokens
        if (read := self.accept_variable() or self.accept_iri()) is not None:
            return read
        if tokens.at("NULL"):
            tokens.unsupported(tokens.peek(), "NULL", "a variable of a pattern always has a value")
        if (token := tokens.accept_kind("integer")) is not None:  # hexadecimal, or with an L behind it
            digits = token.text.rstrip("lL")
            return ir.Label(str(int(digits, 16 if digits[1:2] in ("x", "X") else 10)))
        if (token := tokens.accept_kind("string")) is None:
            bare = self.accept_literal() or tokens.unexpected(expected)
            return ir.Label(bare.lexical)
        plain = _ESCAPE.sub(lambda escape: escape[0] if escape[1] in "tbnrfuU\"'\\" else escape[1], token.text)
        text, tag = string_value(tokens, token._replace(text=plain)), tokens.accept_kind("tag")
        if tokens.accept("^^"):
            datatype = tokens.accept_kind("iri", "name") or tokens.unexpected("a datatype IRI")
            return made_literal(text, self.iri_of(datatype).value)
        return Literal.tagged(text, tag.text[1:]) if tag else Literal(text)


class _Query:
    def __init__(self, tokens: _Tokens) -> None:
        self._tokens = tokens
        self._terms = _Terms(tokens)
        self._parts: list[ir.Where] = []

    def read(self) -> Parsed:
        tokens = self._tokens
        while not tokens.at("USING") and tokens.peek().kind != END:
            tokens.next()
        using = tokens.accept("USING")
        self._terms.using()
        tokens.rewind()
        selected, sources = self._head()
        begin = tokens.peek().offset
        self._pattern()
        while (comma := tokens.accept(",")) or tokens.at("("):
            tokens.note(begin)  # with the comma behind it
            begin = tokens.peek().offset
            self._pattern()
            tokens.note(comma.offset if comma else begin)
        if tokens.accept("AND"):
            for condition in tokens.conjuncts(self._filter, ",", "AND"):
                self._parts += map(ir.Filter, ir.conjuncts(condition))
        if tokens.peek() != (using or tokens.peek(len(tokens.text))):
            tokens.unexpected(f"AND, USING or {END}")
        bound = dict.fromkeys(name for part in self._parts for name in ir.names_bound(part))
        return Parsed(tuple(selected or bound), ir.And((*self._parts, *narrowed(sources))))

    def _head(self) -> tuple[dict[str, None], list[str]]:
        """SELECT and FROM, up to and with WHERE: variables (none is `*`), sources (none: `*`)."""
        tokens = self._tokens
        selected: dict[str, None] = {}
        sources: list[str] = []
        tokens.expect("SELECT")
        if not tokens.accept("*"):
            selected[self._terms.variable().name] = None
            while tokens.accept(",") or tokens.peek().kind == "variable":
                selected[self._terms.variable().name] = None
        if tokens.accept("FROM", "SOURCE"):
            sources.append(self._source())
            while tokens.accept(",") or tokens.peek().kind == "iri":
                sources.append(self._source())
        tokens.expect("WHERE")
        return selected, sources or ["*"]

    def _source(self) -> str:
        token = self._tokens.expect_kind("iri", "an IRI in angle brackets")
        return self._terms.iri_of(token).value if has_scheme(token.text[1:-1]) else token.text[1:-1]

    def _pattern(self) -> None:
        tokens = self._tokens
        tokens.expect("(")
        subject = self._node("a subject")
        tokens.accept(",")
        predicate = self._node("a predicate")
        tokens.accept(",")
        self._parts.append(ir.Pattern(subject, predicate, self._terms.term("an object")))
        tokens.expect(")")

    def _node(self, position: str) -> ir.PatternTerm:
        token = self._tokens.peek()
        node = self._terms.term(position)
        if isinstance(node, Literal | ir.Label):
            self._tokens.fail(token, f"a literal cannot be {position}", "write a variable or an IRI")
        return node

    # --- conditions ------------------------------------------------------------------------------------------------

    def _filter(self) -> ir.Expression:
        token = self._tokens.peek()
        condition = self._condition(token, self._or())
        limit = self._tokens.context.settings.max_query_depth
        if deeper(condition, limit):
            what = f"a condition of more than {limit} levels"
            self._tokens.fail(token, what, "raise max_query_depth, or shorten it")
        return condition

    def _condition(self, token: Token, read: ir.Expression) -> ir.Expression:
        """What was read at `token`, where it is a condition."""
        if not _is_condition(read):
            self._tokens.fail(token, f"found a value at {token}, expected a condition", "compare it with something")
        return read

    def _or(self) -> ir.Expression:
        with self._tokens.nested():
            return self._joined("||", self._and, ir.AnyOf)

    def _and(self) -> ir.Expression:
        return self._joined("&&", self._not, ir.AllOf)

    def _joined(
        self, symbol: str, operand: Callable[[], ir.Expression], join: type[ir.AnyOf | ir.AllOf]
    ) -> ir.Expression:
        """One operand, whatever it is, or several conditions."""
        tokens = self._tokens
        token, read = tokens.peek(), operand()
        if not tokens.at(symbol):
            return read
        begins, conditions = [token.offset], [self._condition(token, read)]
        while tokens.accept(symbol):
            token = tokens.peek()
            begins.append(token.offset)
            conditions.append(self._condition(token, operand()))
        if join is ir.AllOf:
            tokens.note_conjuncts(begins)
        return join(tuple(conditions))

    def _not(self) -> ir.Expression:
        tokens, first, negated = self._tokens, self._tokens.peek(), False
        while tokens.accept("!"):
            negated = not negated
        token = tokens.peek()
        read = self._relation()
        if token != first:
            self._condition(token, read)
        return ir.Negate(read) if negated else read

    def _relation(self) -> ir.Expression:
        """A comparison, a match with a regular expression, or a side alone."""
        tokens, first = self._tokens, self._tokens.peek()
        left = self._sum(("+", "-"), lambda: self._sum(("*", "/"), self._factor))
        token = tokens.peek()
        if tokens.accept_kind("match"):
            return self._match(token, self._side(first, left))
        if tokens.at(*REFUSED):
            tokens.unsupported(token, f"the operator {token.text}", "write == or eq" if token.text == "=" else "")
        if tokens.at(*MATCHES):
            tokens.next()
            tokens.unexpected("a regular expression: /pattern/")
        if not tokens.accept("EQ", "NE", *COMPARISONS):
            return left
        after = tokens.peek()
        right = self._sum(("+", "-"), lambda: self._sum(("*", "/"), self._factor))
        left, right = self._side(first, left), self._side(after, right)
        op = COMPARISONS.get(token.text, "")
        if not isinstance(left, ir.Variable | ir.Function):
            left, right, op = right, left, FLIPPED.get(op, "")
        if not isinstance(left, ir.Variable | ir.Function):
            tokens.fail(first, "a comparison of two constants", "name a variable")
        if op:
            return compared(tokens, first, op, left, right)
        if isinstance(left, ir.Function) or isinstance(right, ir.Function):
            tokens.fail(token, f"{token.text} asks for the same term, which a sum is not", "write == or !=")
        if isinstance(right, ir.Label):
            left, right = ir.Function("STR", (left,)), Literal(right.text)
        same = ir.Function("SAMETERM", (left, right))
        return same if token.text.upper() == "EQ" else ir.Negate(same)

    def _match(self, token: Token, side: ir.Expression) -> ir.Expression:
        """`side =~ /pattern/flags`: a regular expression over the text of a literal or of an IRI."""
        written = _MATCH.fullmatch(token.text)
        assert written is not None  # by the tokens' pattern
        operator, delimiter, pattern, flags = written.groups()
        pattern = pattern.replace("\\" + delimiter, delimiter)
        check_regex(self._tokens, token, pattern, flags)
        matches = ir.Function("REGEX", (ir.Function("STR", (side,)), Literal(pattern), Literal(flags)))
        return ir.Negate(matches) if operator == "!~" else matches

    def _side(self, token: Token, read: ir.Expression) -> ir.Expression:
        """What was read at `token`, where it is no condition."""
        if _is_condition(read):
            self._tokens.fail(token, f"found a condition at {token}, expected a value", "join conditions with && or ||")
        return read

    def _sum(self, operators: tuple[str, ...], operand: Callable[[], ir.Expression]) -> ir.Expression:
        tokens, first, length = self._tokens, self._tokens.peek(), 0
        total = operand()
        while tokens.at(*operators):
            op, token = tokens.next(), tokens.peek()
            total = ir.Function(op.text, (self._side(first, total), self._side(token, operand())))
            length += 1
            if length > tokens.context.settings.max_query_depth:
                tokens.fail(op, f"the sum has more than {length} parts", "raise max_query_depth, or shorten it")
        return total

    def _factor(self) -> ir.Expression:
        tokens = self._tokens
        if tokens.accept("("):
            inner = self._or()
            tokens.expect(")")
            return inner
        token, negative = tokens.peek(), False
        while tokens.at("+", "-") and not self._terms.sign_touches():
            negative ^= tokens.next().text == "-"
        if tokens.peek() != token:
            inner = self._side(tokens.peek(), self._factor())
            return ir.Function("NEGATE", (inner,)) if negative else inner
        return self._terms.term("a variable, a constant, '!' or '('")


def _is_condition(read: ir.Expression) -> bool:
    return isinstance(read, ir.Compare | ir.AllOf | ir.AnyOf | ir.Negate | ir.Function) and (
        not isinstance(read, ir.Function) or read.name in ("SAMETERM", "REGEX")
    )
