"""Mutated texts: what a template says of one is what the parser says, and no text that is refused has a template.
20,000 texts, in `make full` 1,000,000."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator

import pytest

from agreement.random_texts import VOCABULARY
from amounts import usually
from triplewire.ir.evaluation.unknown import CallKey
from triplewire.ir.nodes import And, Call
from triplewire.ir.subscription import Subscription
from triplewire.languages import parse
from triplewire.languages.templates import Templates
from triplewire.languages.templates.splitting import Queries

LANGUAGES = ("sparql", "gql", "mdv", "keywords", "predicates")
COUNT = usually(20_000, 1_000_000) // len(LANGUAGES)
TOGETHER = 500  # texts that are looked up at once
CONSTANT = re.compile(r"<[^<>\s]*>|\"[^\"\n]*\"|'[^'\n]*'|(?<=[<>=] )-?[0-9.]+|(?<=\()[0-9]+|(?<=, )[0-9]+")
CONSTANTS = (
    "<urn:a>",
    "<urn:b#é>",
    "<x>",
    '"a"',
    '"b c"',
    "'d'",
    '"e"@en',
    '"1"^^<urn:t>',
    "5",
    "-5.50",
    "05",
    "7",
    "",
    "*",
)
PIECES = (*"\"'<>?{}()[].,;:#\\@^*-+=!&| \t\n\0é0a", "@en", "^^", " . ", " AND ", "FILTER", "PREFIX ", "%20", "\u3042")


MORE = {"predicates": ("locIn(10, 20, 30, 40)", "locIn(1.5, 2, 3, 4), locIn(-5, 6.0, 7, 8)")}  # with constants alone


def _mutated(text: str, chance: random.Random) -> str:
    """The text with other constants, perhaps with a few characters left out, doubled or put in."""
    if chance.random() < 0.7:
        text = CONSTANT.sub(lambda old: chance.choice(CONSTANTS) if chance.random() < 0.4 else old[0], text)
    for _ in range(chance.choice((0, 0, 1, 1, 2))):
        begin = chance.randrange(len(text) + 1)
        end = begin + chance.choice((0, 0, 1, 1, 3))
        text = text[:begin] + chance.choice(("", text[begin:end] * 2, chance.choice(PIECES))) + text[end:]
    return text


def _batches(language: str, chance: random.Random) -> Iterator[list[str]]:
    """Texts of a few forms together, so that forms come again."""
    valid = (*VOCABULARY[language].valid, *MORE.get(language, ()))
    for _ in range(COUNT // TOGETHER):
        forms = chance.sample(valid, min(4, len(valid)))
        yield [_mutated(chance.choice(forms), chance) for _ in range(TOGETHER)]


def _calls_of(subscription: Subscription) -> tuple[CallKey, ...]:
    """The calls of a subscription that is nothing else, and of which nothing is warned."""
    assert isinstance(subscription.where, And)
    calls = [part for part in subscription.where.parts if isinstance(part, Call)]
    assert (len(calls), subscription.select, subscription.warnings) == (len(subscription.where.parts), (), ())
    return tuple([CallKey(call.operator, call.arguments) for call in calls])  # type: ignore[arg-type]  # constants


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_template_says_what_the_parser_says(language: str) -> None:
    templates, with_template = Templates(), 0
    for texts in _batches(language, random.Random(language)):
        queries = Queries.of([text.encode() for text in texts], [(language, "", ())] * len(texts))
        forms = templates.find_all(queries)
        for number, text in enumerate(texts):
            if number not in forms.calls and not forms.has_form[number]:
                continue
            stated = parse(text, language, id="q")  # and it is not refused
            with_template += 1
            if (calls := forms.calls.get(number)) is not None:
                assert _calls_of(stated) == calls, text
                continue
            form, parameters = forms.form(number)
            said = form.subscription(parameters, "q", text, {}, "")
            assert (said, said.warnings) == (stated, stated.warnings), text
    assert with_template > COUNT // 20
