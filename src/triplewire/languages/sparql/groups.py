"""Group graph patterns, and the query forms around them: SELECT, ASK, CONSTRUCT.

Standard: SPARQL 1.1, sections 5.2, 16 and 19.8, productions 1 to 28 and 53 to 68. Other forms are refused.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from triplewire.ir import nodes as ir
from triplewire.languages.context import Parsed
from triplewire.languages.grammar.tokens import Token, Tokens
from triplewire.languages.sparql.expressions import Expressions, call_part
from triplewire.languages.sparql.terms import TermReader
from triplewire.languages.sparql.triples import BlankLabels, TripleReader
from triplewire.model.terms import IRI, Literal

Scope = dict[str, None]
"""The names of the variables in scope (18.2.1), in order of appearance."""

_MODIFIERS = {
    "GROUP": ("GROUP BY", "select the variables and group what is notified"),
    "HAVING": ("HAVING", "select the variables and group what is notified"),
    "ORDER": ("ORDER BY", "bindings are a set: leave it out"),
    "LIMIT": ("LIMIT", "leave it out; max_bindings caps the bindings of a match"),
    "OFFSET": ("OFFSET", "bindings are a set: leave it out"),
}


class ParsedGroup(NamedTuple):
    """A group as read: its tree, and the visible variables that it may bind."""

    where: ir.And
    scope: Scope


class Groups:
    """Reads groups at the cursor of `terms.tokens`."""

    def __init__(self, terms: TermReader) -> None:
        self._terms = terms
        self._tokens = terms.tokens
        self._labels = BlankLabels(terms)
        self.expressions = Expressions(terms, self._existing)

    def group(self) -> ParsedGroup:
        """`{ ... }`"""
        tokens = self._tokens
        with tokens.nested():
            tokens.expect("{")
            self._labels.end_of_pattern()
            parts: list[ir.Where] = []
            scope: Scope = {}
            triples = TripleReader(self._terms, self._labels, parts)
            may_be_triples = True
            while not tokens.accept("}"):
                seen, begin = len(parts), tokens.peek().offset
                if (tokens.peek().kind != "symbol" and self._element(parts, scope)) or self._braces(parts, scope):
                    tokens.note(begin)
                    if tokens.accept("."):
                        tokens.note(begin)
                    may_be_triples = True
                elif may_be_triples and triples.starts():
                    triples.same_subject()
                    for part in parts[seen:]:
                        _bound_by(part, scope)
                    may_be_triples = tokens.accept(".") is not None
                    tokens.note(begin)
                else:
                    self.refuse_modifiers()
                    expected = (
                        "triples, a filter or another part of a group, or '}'" if may_be_triples else "'.' or '}'"
                    )
                    tokens.unexpected(expected)
            self._labels.end_of_pattern()
            return ParsedGroup(ir.And(tuple(parts)), scope)

    def refuse_modifiers(self) -> None:
        """Refuse, by name, what may follow a query's pattern but has no meaning for a standing query."""
        if self._tokens.at(*_MODIFIERS):
            token = self._tokens.peek()
            self._tokens.unsupported(token, *_MODIFIERS[token.text.upper()])

    def _existing(self) -> ir.Where:
        """The group of EXISTS, within a filter: the basic graph pattern around the filter goes on behind it."""
        around = self._labels.current
        where = self.group().where
        self._labels.current = around
        return where

    def _braces(self, parts: list[ir.Where], scope: Scope) -> bool:
        """A nested group, or several joined by UNION."""
        if not self._tokens.at("{"):
            return False
        branches = self._tokens.separated(self.group, "UNION")
        parts.append(ir.Or(tuple(branch.where for branch in branches)) if len(branches) > 1 else branches[0].where)
        for branch in branches:
            scope.update(branch.scope)
        return True

    def _element(self, parts: list[ir.Where], scope: Scope) -> bool:
        """A part that starts with a keyword; False where the next token is none."""
        tokens = self._tokens
        if tokens.accept("FILTER"):
            match self.expressions.constraint():
                case ir.Negate(ir.Exists(group)):
                    parts.append(ir.Not(group))
                case ir.Holds(call):
                    parts.append(call)
                case condition:
                    parts.append(ir.Filter(condition))
            return True  # a filter does not end a basic graph pattern (5.2.2)
        keyword = tokens.accept("OPTIONAL", "MINUS", "BIND", "VALUES", "CALL")
        if keyword is None:
            if tokens.at("GRAPH", "SERVICE"):  # what would match anything but the publication's own triples
                remedy = "a publication is one graph: write the patterns without it" if tokens.at("GRAPH") else ""
                tokens.unsupported(tokens.peek(), tokens.peek().text.upper(), remedy)
            if tokens.at("SELECT"):
                what = "a subquery (SELECT inside a group)"
                tokens.unsupported(tokens.peek(), what, "write its patterns directly")
            return False
        self._labels.end_of_pattern()
        match keyword.text.upper():
            case "OPTIONAL":
                inner = self.group()
                parts.append(ir.Optional(inner.where))
                scope.update(inner.scope)
            case "MINUS":
                parts.append(ir.Minus(self.group().where))
            case "BIND":
                tokens.expect("(")
                expression = self.expressions.expression()
                tokens.expect("AS")
                token = tokens.peek()
                parts.append(ir.Bind(self.introduce(token, self._terms.variable(), scope), expression))
                tokens.expect(")")
            case "VALUES":
                parts.append(self.values())
                _bound_by(parts[-1], scope)
            case _:
                parts.append(call_part(self._terms))
                _bound_by(parts[-1], scope)
        self._labels.end_of_pattern()
        return True

    def introduce(self, token: Token, variable: ir.Variable, scope: Scope) -> ir.Variable:
        """Bring `variable`, written at `token`, into scope; refuses one that is there already (18.2.1)."""
        if variable.name in scope:
            self._tokens.fail(token, f"{token.text} has a value already", "give the new value another name")
        scope[variable.name] = None
        return variable

    def values(self) -> ir.Values:
        """The data block after VALUES (10.2)."""
        tokens = self._tokens
        start = tokens.peek()
        single = self._terms.accept_variable()
        variables = [single] if single is not None else []
        if single is None:
            tokens.expect("(")
            while variable := self._terms.accept_variable():
                variables.append(variable)
            tokens.expect(")")
        if len(set(variables)) < len(variables):
            tokens.fail(start, "VALUES names a variable twice")
        tokens.expect("{")
        rows: list[tuple[IRI | Literal | None, ...]] = []
        while not tokens.accept("}"):
            first = tokens.peek()
            row = [self._datum()] if single is not None else []
            if single is None:
                tokens.expect("(")
                while not tokens.accept(")"):
                    row.append(self._datum())
            if len(row) != len(variables):
                tokens.fail(first, f"a row of {len(row)} values for {len(variables)} variables")
            rows.append(tuple(row))
        return ir.Values(tuple(variables), tuple(rows))

    def _datum(self) -> IRI | Literal | None:
        if self._tokens.accept("UNDEF"):
            return None
        return self._terms.accept_constant() or self._tokens.unexpected("an IRI, a literal or UNDEF")


def _bound_by(part: ir.Where, scope: Scope) -> None:
    """Adds the visible variables of what triples, VALUES and CALL make. (Groups bring their own scope.)"""
    terms: Iterable[object] = ()
    match part:
        case ir.Pattern(subject, predicate, object_):
            terms = (subject, predicate, object_)
        case ir.Values(terms, _) | ir.Call(_, terms):
            pass
        case ir.And(inner) | ir.Or(inner):  # made by a property path
            for below in inner:
                _bound_by(below, scope)
    scope.update((term.name, None) for term in terms if isinstance(term, ir.Variable) and not term.hidden)


# --- query forms -----------------------------------------------------------------------------------------------------

Template = tuple[tuple[ir.PatternTerm, ir.PatternTerm, ir.PatternTerm], ...]


class SelectItem(NamedTuple):
    """One item of a SELECT clause; `expression` is None for a plain variable."""

    token: Token
    variable: ir.Variable
    expression: ir.Expression | None


def read_query(tokens: Tokens) -> Parsed:
    """The whole text, from the prologue to its end."""
    terms = TermReader(tokens)
    terms.prologue()
    groups = Groups(terms)
    if tokens.accept("SELECT"):
        return _select(terms, groups)
    if tokens.accept("ASK"):
        return Parsed((), _pattern(groups, tokens).where, ask=True)
    if tokens.accept("CONSTRUCT"):
        return _construct(terms, groups)
    if tokens.at("DESCRIBE"):
        tokens.unsupported(tokens.peek(), "DESCRIBE", "use CONSTRUCT with the triples that you want")
    tokens.unexpected("SELECT, ASK or CONSTRUCT")


def _select(terms: TermReader, groups: Groups) -> Parsed:
    tokens = terms.tokens
    tokens.accept("DISTINCT", "REDUCED")  # bindings are distinct anyway
    items = None if tokens.accept("*") else _selected(terms, groups)
    group = _pattern(groups, tokens)
    if items is None:
        return Parsed(tuple(group.scope), group.where)
    binds: list[ir.Where] = []
    named: set[str] = set()
    for token, variable, expression in items:
        if expression is not None:
            if variable.name in named:
                tokens.fail(token, f"{token.text} is selected already", "give the new value another name")
            binds.append(ir.Bind(groups.introduce(token, variable, group.scope), expression))
        named.add(variable.name)
    names = tuple(dict.fromkeys(item.variable.name for item in items))
    unbound = [f"?{name} is selected, but nothing binds it" for name in names if name not in group.scope]
    where = ir.And((group.where, *binds)) if binds else group.where  # out of reach of the group's filters
    return Parsed(names, where, warnings=tuple(unbound))


def _selected(terms: TermReader, groups: Groups) -> list[SelectItem]:
    tokens = terms.tokens
    items: list[SelectItem] = []
    while True:
        token = tokens.peek()
        if tokens.accept("("):
            expression = groups.expressions.expression()
            tokens.expect("AS")
            token = tokens.peek()
            items.append(SelectItem(token, terms.variable(), expression))
            tokens.expect(")")
        elif variable := terms.accept_variable():
            items.append(SelectItem(token, variable, None))
        elif items:
            groups.expressions.refuse_aggregate(token)
            if token.text == ",":
                written = " ".join(f"?{item.variable.name}" for item in items)
                if tokens.peek(1).kind == "variable":
                    written += f" {tokens.peek(1).text}"
                tokens.fail(token, "found ',' between selected variables", f"did you mean SELECT {written}?")
            return items
        else:
            groups.expressions.refuse_aggregate(token)
            tokens.unexpected("'*', a variable or '(expression AS ?variable)'")


def _construct(terms: TermReader, groups: Groups) -> Parsed:
    tokens = terms.tokens
    if tokens.at("{"):
        template = _template(terms)
        group = _pattern(groups, tokens)
        return Parsed(tuple(group.scope), group.where, construct=template)
    _refuse_from(tokens)
    tokens.expect("WHERE")
    template = _template(terms)
    parts = tuple(ir.Pattern(*row) for row in template)
    scope = {term.name: None for row in template for term in row if isinstance(term, ir.Variable) and not term.hidden}
    group = _ended(groups, tokens, ParsedGroup(ir.And(parts), scope))
    return Parsed(tuple(group.scope), group.where, construct=template)


def _template(terms: TermReader) -> Template:
    """`{ triples }`, with neither paths nor wildcards; a blank node is a hidden variable."""
    tokens = terms.tokens
    parts: list[ir.Where] = []
    triples = TripleReader(terms, BlankLabels(terms), parts, template=True)
    tokens.expect("{")
    while triples.starts():
        triples.same_subject()
        if not tokens.accept("."):
            break
    tokens.expect("}")
    return tuple((part.subject, part.predicate, part.object) for part in parts if isinstance(part, ir.Pattern))


def _pattern(groups: Groups, tokens: Tokens) -> ParsedGroup:
    """The WHERE clause and all that follows it."""
    _refuse_from(tokens)
    tokens.accept("WHERE")
    if tokens.at("("):
        tokens.fail(tokens.peek(), "found '(', expected '{'", "a query in GQL is read where its language is named: gql")
    return _ended(groups, tokens, groups.group())


def _refuse_from(tokens: Tokens) -> None:
    token = tokens.peek()
    if tokens.accept("FROM"):
        name = "FROM NAMED" if tokens.at("NAMED") else "FROM"
        remedy = 'every publication is the graph: leave it out, or write FILTER op:fromSource("...")'
        tokens.unsupported(token, name, remedy)


def _ended(groups: Groups, tokens: Tokens, group: ParsedGroup) -> ParsedGroup:
    """The group joined with a VALUES block at the end of the text (10.2.2); refuses anything else there."""
    groups.refuse_modifiers()
    if tokens.accept("VALUES"):
        values = groups.values()
        scope = group.scope | dict.fromkeys(variable.name for variable in values.variables)
        group = ParsedGroup(ir.And((group.where, values)), scope)  # out of reach of the group's filters
    groups.refuse_modifiers()
    tokens.rest_is_empty()
    return group
