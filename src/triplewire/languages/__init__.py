"""The query languages. `parse` compiles a text of any of them to the intermediate representation.

To add a language: a function as in `context.Language`, named in `triplewire.plugins`. `grammar` has what several of
them share, `sources` reads subscription files, `templates` parses texts that differ in their constants only once.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from types import NoneType

from triplewire import plugins
from triplewire.argument_checks import expect, expect_text, expect_texts, plain_text
from triplewire.config import Settings
from triplewire.errors import ArgumentError, LanguageError
from triplewire.ir.checks import check
from triplewire.ir.subscription import Subscription
from triplewire.ir.walk import walk
from triplewire.languages.context import Context, Language, Parsed, RecordingRules
from triplewire.model.operator import Operator
from triplewire.model.term_checks import fault_of_term
from triplewire.model.terms import IRI, BlankNode, Literal
from triplewire.operators import built_in_operators

_DEFAULTS = Settings()
_IGNORED = re.compile(r'"(?:[^"\\]|\\.)*+"|PREFIX\s+[\w.-]*\s*:\s*<[^>]*>', re.IGNORECASE)
_RDQL = re.compile(  # conditions that follow AND at once, or prefixes at the end
    r"(?://[^\n]*\s*+)*+SELECT\b(?![^{]*\bSUCHTHAT\b)(?>[^{]*?\bWHERE\s*\()"
    r"[^{]*(?:\)\s*AND\s*[!?]|\bUSING\s+\S+\s+FOR\s*<)",
    re.IGNORECASE,
)
_FORMS = (
    ("rdql", _RDQL),
    ("gql", re.compile(r"(?:SELECT\b[^{]*)?WHERE\s*\(", re.IGNORECASE)),
    ("mdv", re.compile(r"SEARCH\s+\S+\s+\w+\s*(?:,|REGISTER\b)", re.IGNORECASE)),
    ("predicates", re.compile(r"\{?\s*[^\W\d]\w*\(")),
    ("sparql", re.compile(r"\Z|(?:BASE|SELECT|ASK|CONSTRUCT|DESCRIBE)\b|[^{}<>?$]*[{}<>?$]")),
)


def recognised(text: str) -> str:
    """The language that a text without one is taken for: that whose form it has, and keywords where it has none."""
    bare = _IGNORED.sub(lambda ignored: '""' if ignored[0][0] == '"' else "", text).strip()
    return next((language for language, form in _FORMS if form.match(bare)), "keywords")


def parse(
    text: str,
    language: str = "sparql",
    *,
    id: str = "",
    prefixes: Mapping[str, str] | None = None,
    base: str = "",
    operators: Mapping[str, Operator] | None = None,
    rules: Mapping[str, Subscription] | None = None,
    settings: Settings | None = None,
) -> Subscription:
    """Compile a query text of one of the languages "gql", "sparql", "rdql", "mdv", "predicates", "keywords" (or an
    installed plug-in's), in any case of letters.

    `id` names the subscription and stands in error messages. `operators` (default: the built-in ones) are those that
    a call may name; `rules` are other MDV rules, by id, that a search clause may name.

    Raises `LanguageError` with line and column where the text is wrong, `UnsupportedQuery` where it is outside the
    subset, `LimitError` past a limit of `settings`.
    """
    for name, value in {"text": text, "language": language, "id=...": id, "base=...": base}.items():
        expect_text(f"parse({name})", value)
    expect_texts("parse(prefixes=...)", prefixes, "a mapping of prefixes to namespace IRIs (texts)")
    expect("parse(operators=...)", operators, (Mapping, NoneType), "a mapping of names to operators")
    expect("parse(rules=...)", rules, (Mapping, NoneType), "a mapping of ids to subscriptions")
    expect("parse(settings=...)", settings, (Settings, NoneType), "Settings, or None")
    text, id, base = map(plain_text, (text, id, base))
    prefixes = {plain_text(name): plain_text(iri) for name, iri in prefixes.items()} if prefixes else {}
    for name in prefixes:
        if name.endswith(":"):
            raise ArgumentError(f"{name!r} is no prefix", source="parse(prefixes=...)", remedy="leave out the colon")
    seen = RecordingRules({} if rules is None else rules)
    context = Context(
        source=id,
        prefixes=prefixes,
        base=base,
        operators=built_in_operators() if operators is None else operators,
        rules=seen,
        settings=_DEFAULTS if settings is None else settings,
    )
    language = plugins.registered("language", language)
    compile_text: Language = plugins.find("language", language)
    parsed = _checked(compile_text(text, context), language, id)
    subscription = Subscription(
        id=id,
        language=language,
        text=text,
        prefixes=tuple(sorted(context.prefixes.items())),
        base=base,
        rules=tuple(seen.used.values()),
        **vars(parsed),
    )
    try:
        where = check(subscription, context.settings)
        return subscription if where is subscription.where else replace(subscription, where=where)
    except LanguageError as error:
        if not error.line:  # it is said of the whole text
            error.line = error.column = 1
        raise


def _checked(parsed: Parsed, language: str, source: str) -> Parsed:
    """Raises `LanguageError` where a language of a plug-in gives a term that RDF does not have."""
    for node in walk((parsed.where, parsed.construct)) if language not in plugins.BUILT_IN["language"] else ():
        if isinstance(node, IRI | Literal | BlankNode) and (fault := fault_of_term(node)):
            raise LanguageError(fault, source=source, line=1, column=1, remedy="mend the text, or the plug-in")
    return parsed
