"""Query forms: SELECT, ASK, CONSTRUCT (SPARQL 1.1, 16 and 19.8, productions 1 to 28), and the refusal of the others."""

from __future__ import annotations

from typing import NamedTuple

from triplewire.ir.nodes import And, Bind, Expression, Pattern, PatternTerm, Variable, Where
from triplewire.languages.context import Parsed
from triplewire.languages.grammar.tokens import Token, Tokens
from triplewire.languages.sparql.groups import Groups, ParsedGroup
from triplewire.languages.sparql.terms import TermReader
from triplewire.languages.sparql.triples import BlankLabels, TripleReader

Template = tuple[tuple[PatternTerm, PatternTerm, PatternTerm], ...]


class SelectItem(NamedTuple):
    """One item of a SELECT clause; `expression` is None for a plain variable."""

    token: Token
    variable: Variable
    expression: Expression | None


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
    binds: list[Where] = []
    named: set[str] = set()
    for token, variable, expression in items:
        if expression is not None:
            if variable.name in named:
                tokens.fail(token, f"{token.text} is selected already", "give the new value another name")
            binds.append(Bind(groups.introduce(token, variable, group.scope), expression))
        named.add(variable.name)
    names = tuple(dict.fromkeys(item.variable.name for item in items))
    unbound = [f"?{name} is selected, but nothing binds it" for name in names if name not in group.scope]
    return Parsed(names, _extended(group.where, binds), warnings=tuple(unbound))


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
                following = tokens.peek(1)
                more = f" {following.text}" if following.kind == "variable" else ""
                tokens.fail(token, "found ',' between selected variables", f"did you mean SELECT {written}{more}?")
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
    parts = tuple(Pattern(*row) for row in template)
    scope = {term.name: None for row in template for term in row if isinstance(term, Variable) and not term.hidden}
    group = _ended(groups, tokens, ParsedGroup(And(parts), scope))
    return Parsed(tuple(group.scope), group.where, construct=template)


def _template(terms: TermReader) -> Template:
    """`{ triples }`, with neither paths nor wildcards; a blank node is a hidden variable."""
    tokens = terms.tokens
    parts: list[Where] = []
    triples = TripleReader(terms, BlankLabels(terms), parts, template=True)
    tokens.expect("{")
    while triples.starts():
        triples.same_subject()
        if not tokens.accept("."):
            break
    tokens.expect("}")
    return tuple((part.subject, part.predicate, part.object) for part in parts if isinstance(part, Pattern))


def _pattern(groups: Groups, tokens: Tokens) -> ParsedGroup:
    """The WHERE clause and all that follows it."""
    _refuse_from(tokens)
    tokens.accept("WHERE")
    token = tokens.peek()
    if tokens.at("("):
        tokens.fail(token, "found '(', expected '{'", "a query in GQL is read where its language is named: gql")
    return _ended(groups, tokens, groups.group())


def _refuse_from(tokens: Tokens) -> None:
    token = tokens.peek()
    if tokens.accept("FROM"):
        name = "FROM NAMED" if tokens.at("NAMED") else "FROM"
        tokens.unsupported(token, name, "every publication is the graph: leave it out")


def _ended(groups: Groups, tokens: Tokens, group: ParsedGroup) -> ParsedGroup:
    """The group joined with a VALUES block at the end of the text (10.2.2); refuses anything else there."""
    groups.refuse_modifiers()
    if tokens.accept("VALUES"):
        values = groups.values()
        scope = group.scope | dict.fromkeys(variable.name for variable in values.variables)
        group = ParsedGroup(_extended(group.where, [values]), scope)
    groups.refuse_modifiers()
    tokens.rest_is_empty()
    return group


def _extended(where: And, more: list[Where]) -> And:
    """`more` after the group, out of reach of its filters."""
    return And((where, *more)) if more else where
