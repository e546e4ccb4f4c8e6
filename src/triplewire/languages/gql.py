"""GQL, the tuple language of G-ToPSS and CMS-ToPSS (G-ToPSS paper, section 3; semantics, section 3).

    query  := ("PREFIX" name ":" iri)* ("SELECT" ("*" | variable ","? ...) from?)? "WHERE" tuples
    from   := "FROM" source ("," source)*, a source being an iri, a quoted string, or bare text
    tuples := item (("AND" | ",") item)*
    item   := ("(" term "," term "," term ")" | "(" tuples ")" | "CALL" call) ("SUCHTHAT" condition)?
    term   := variable | "*" | iri | prefixed name | quoted literal | bare text

Keywords in any case. Bare text runs to the next delimiter. It and calls: `languages.grammar.bare`; conditions:
`languages.grammar.conditions`.
"""

from __future__ import annotations

from triplewire.ir.nodes import ANY, And, Filter, Holds, Label, Pattern, PatternTerm, Variable, Where
from triplewire.languages.context import Context, Parsed
from triplewire.languages.grammar.bare import (
    BareTokens,
    NamesInForce,
    bounded,
    call_ahead,
    literal,
    read_call,
    read_raw,
)
from triplewire.languages.grammar.conditions import ConditionReader, narrowed
from triplewire.languages.grammar.tokens import END, Token, string_value
from triplewire.model.namespaces import label_iri
from triplewire.model.references import has_scheme
from triplewire.model.terms import IRI, made_iri

_SUBJECT, _PREDICATE, _OBJECT = "a subject", "a predicate", "an object"


def parse(text: str, context: Context) -> Parsed:
    """Compile a GQL text. Raises `LanguageError`."""
    with bounded(context):
        return _Query(text, context).read()


class _Query:
    def __init__(self, text: str, context: Context) -> None:
        self._tokens = BareTokens(text, context)
        self._names = NamesInForce(self._tokens)
        self._conditions = ConditionReader(self._names)
        self._selected: list[Token] | None = None  # None is `*`
        self._bound: dict[str, None] = {}  # in order of appearance
        self._parts: list[Where] = []
        self._filters: list[Where] = []
        self._warnings: dict[str, None] = {}

    def read(self) -> Parsed:
        tokens = self._tokens
        self._names.prologue()
        self._head()
        self._tuples()
        if tokens.at("OR", "NOT"):
            keyword = tokens.peek()
            tokens.fail(keyword, f"{keyword.text} joins conditions, not tuples", "put it behind SUCHTHAT")
        if tokens.peek().kind != END:
            tokens.unexpected(f"AND, ',' or {END}")
        for token in (self._selected or []) + self._conditions.used:
            if token.text[1:] not in self._bound:
                what = f"no tuple binds the variable ?{token.text[1:]}"
                tokens.fail(token, what, "use it in a tuple or a CALL, or leave it out")
        selected = self._bound if self._selected is None else dict.fromkeys(t.text[1:] for t in self._selected)
        return Parsed(tuple(selected), And((*self._parts, *self._filters)), warnings=tuple(self._warnings))

    def _head(self) -> None:
        """SELECT and FROM, up to and with WHERE."""
        tokens = self._tokens
        if tokens.expect("SELECT", "WHERE").text.upper() == "WHERE":
            return
        if not tokens.accept("*"):
            self._selected = [tokens.expect_kind("variable", "a variable or '*'")]
            while tokens.accept(",") or tokens.peek().kind == "variable":
                self._selected.append(tokens.expect_kind("variable", "a variable"))
        if tokens.expect("FROM", "WHERE").text.upper() == "FROM":
            self._filters += narrowed(tokens.separated(self._source, ","))
            tokens.expect("WHERE")

    def _source(self) -> str:
        """An address, a file, a channel or its title: in angle brackets, in quotation marks, or bare."""
        tokens, names = self._tokens, self._names
        if (token := tokens.accept_kind("string")) is not None:
            return string_value(tokens, token)
        if (token := tokens.accept_kind("iri")) is not None:
            return token.text[1:-1] if not has_scheme(token.text[1:-1]) else names.reference(token).value
        raw = read_raw(tokens, ("WHERE", ","), "the name of a source", "WHERE")
        prefix, colon, _ = raw.text.partition(":")
        return names.expand(raw.first, raw.text).value if colon and prefix in names.prefixes else raw.text

    def _tuples(self) -> None:
        with self._tokens.nested():
            self._tokens.conjuncts(self._item, "AND", ",")

    def _item(self) -> None:
        tokens, begin = self._tokens, self._tokens.peek().offset
        if tokens.at("CALL"):
            tokens.next()
            call, _ = read_call(self._names)
            self._parts.append(call)
            self._bind(*call.arguments)
        elif not tokens.at("("):
            tokens.unexpected("a tuple (subject, predicate, object) or CALL")
        elif tokens.peek(1).text == "(" or (tokens.peek(1).text.upper() == "CALL" and call_ahead(self._names, 2)):
            tokens.next()
            self._tuples()
            tokens.expect(")")
        else:
            tokens.next()
            subject = self._term(_SUBJECT)
            tokens.expect(",")
            predicate = self._term(_PREDICATE)
            tokens.expect(",")
            object_ = self._term(_OBJECT)
            tokens.expect(")")
            self._parts.append(Pattern(subject, predicate, object_))
            self._bind(subject, predicate, object_)
        tokens.note(begin)
        such_that = tokens.accept("SUCHTHAT")
        if such_that is not None:
            for condition in self._conditions.suchthat():
                self._filters.append(condition.call if isinstance(condition, Holds) else Filter(condition))
            tokens.note(such_that.offset)

    def _bind(self, *terms: PatternTerm) -> None:
        self._bound.update((term.name, None) for term in terms if isinstance(term, Variable))

    def _term(self, position: str) -> PatternTerm:
        tokens, names = self._tokens, self._names
        token = tokens.peek()
        if tokens.accept_kind("variable"):
            return Variable(token.text[1:])
        if tokens.accept_kind("iri"):
            return names.reference(token, names.vocabulary if position == _PREDICATE else "")
        if tokens.accept_kind("string"):
            if position != _OBJECT:
                tokens.fail(token, f"a literal cannot be {position}", "write a variable, an IRI or a bare label")
            return literal(names, token)
        if token.text == "*" and tokens.peek(1).text in (",", ")"):
            tokens.next()
            return ANY
        raw = read_raw(tokens, (",",), position, "')'" if position == _OBJECT else "','")
        word = names.bare(raw)
        if isinstance(word, IRI):
            # an absolute IRI without angle brackets is a bare name, too
            return Label(raw.text, word.value) if position == _OBJECT and word.value == raw.text else word
        if position == _PREDICATE:
            return made_iri(label_iri(word, names.vocabulary))
        label = names.label(word)
        if position == _SUBJECT and not label.iri:
            what = f"the subject {label.text!r} can match nothing without a base: a subject is never a literal"
            self._warnings[what] = None
        return label
