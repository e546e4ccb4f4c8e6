"""The way in to all languages, where it is no matter of one language."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pytest
from outcomes import by_template

from triplewire import Engine
from triplewire.errors import ArgumentError
from triplewire.ir.nodes import Pattern
from triplewire.ir.subscription import Subscription
from triplewire.ir.walk import walk
from triplewire.languages import parse, recognised
from triplewire.languages.templates import Templates
from triplewire.model.terms import IRI


class Live(Mapping[str, Subscription]):
    """Rules that are found by name, but not listed: it looks empty."""

    def __getitem__(self, id: str) -> Subscription:
        if id != "Big":
            raise KeyError(id)
        return parse("search Server s register s where s.memory > 64", "mdv", id=id)

    def __iter__(self) -> Iterator[str]:
        return iter(())

    def __len__(self) -> int:
        return 0


def test_rules_that_look_empty_are_asked() -> None:
    over = parse("search Big b register b", "mdv", id="over", rules=Live())
    predicates = {node.predicate for node in walk(over.where) if isinstance(node, Pattern)}
    assert IRI("http://purl.org/rss/1.0/memory") in predicates


@pytest.mark.parametrize(
    ("family", "name", "nearest"),
    [("language", "sparq", "sparql"), ("language", "Keyword", "keywords"), ("matcher", "tree", "trie")],
)
def test_a_misspelt_name_is_a_wrong_argument(family: str, name: str, nearest: str) -> None:
    use = (lambda: parse("SELECT * { ?s ?p ?o }", name)) if family == "language" else (lambda: Engine(matcher=name))
    with pytest.raises(ArgumentError, match=f"there is no {family} named '{name}'; did you mean {nearest}\\?"):
        use()


RECOGNISED = {
    "sparql": [
        "SELECT ?s { ?s ?p ?o }",
        "PREFIX : <http://e/> ask where { ?s :p 'WHERE (' }",
        "",
        "SELECT",
        "title:a < b",
    ],
    "gql": [
        "SELECT ?x, ?y WHERE (?x, p, ?y)",
        "PREFIX : <http://e/>\nselect * from news where (?x, p, ?y) SUCHTHAT (?y > 5)",
        "WHERE (?x, p, {a})",
    ],
    "mdv": ["search Server s register s where s.memory > 64", "PREFIX : <http://e/> SEARCH :A a, B b REGISTER a"],
    "predicates": ["locIn(1, 2, 3, 4), ?x > 5", "{language(en)}"],
    "keywords": [
        '"dark matter"',
        "climate AND (arctic OR antarctic) -film title:report*",
        'select committees "what? {now}"',
        "search for register",
        "PREFIX ex: <http://e/> ex:p:word",
        "link:https://example.org/a",
    ],
}


@pytest.mark.parametrize(
    ("language", "text"), [(language, text) for language, texts in RECOGNISED.items() for text in texts]
)
def test_the_language_of_a_text_is_recognised(language: str, text: str) -> None:
    assert recognised(text) == language


def test_plain_words_of_keywords_are_parameters() -> None:
    templates = Templates()
    texts = [f"word{n} AND (b{n} OR other) title:re{n}port -f{n}" for n in range(100)]
    found = [by_template(templates, text, "keywords") for text in texts]
    assert sum(one is not None for one in found) == 99
    assert templates.parsed < 10
    template, parameters = found[7] or pytest.fail("it has no template")
    assert template.subscription(parameters, "q", texts[7], {}, "") == parse(texts[7], "keywords", id="q")
