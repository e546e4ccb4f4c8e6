"""What no index decides is evaluated once a pair, also where its bindings are asked for.

The publication is made once, however many subscriptions and segments ask for it.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from triplewire import Engine, Publication, read
from triplewire.encode.decode import Decoder
from triplewire.verify import batch_verifier
from triplewire.verify import operators as evaluated

EX = "http://example.org/"
FORMS = (
    "OPTIONAL { ?x :n ?n }",
    "FILTER NOT EXISTS { ?x :n 3 }",
    "FILTER EXISTS { ?x :n ?n }",
    "MINUS { ?x :n 3 }",
    "?x :n ?n BIND(?n * 2 AS ?twice)",
    "?x :n ?n ; :m ?m FILTER(?n < ?m)",
)
PUBLICATIONS = 70  # more than are matched together at first, so that the last ones are a part of their own


@pytest.fixture
def engine() -> Engine:
    """A hundred and fifty subscriptions: more than a delta has, so that there are two segments."""
    engine = Engine()
    for number in range(150):
        form = FORMS[number % len(FORMS)]
        query = f"PREFIX : <{EX}> SELECT * {{ ?x :p :t{number % 5} {'.' if form.startswith('?') else ''} {form} }}"
        engine.subscribe(query, id=f"s{number}", language="sparql")
    return engine


@pytest.fixture
def file(tmp_path: Path) -> Path:
    lines = []
    for number in range(PUBLICATIONS):
        for node in range(3):
            subject, graph = f"<{EX}x{node}>", f"<{EX}g{number}>"
            lines.append(f"{subject} <{EX}p> <{EX}t{(number + node) % 5}> {graph} .")
            for name, value in (("n", node + number % 3), ("m", 3)):
                lines.append(f'{subject} <{EX}{name}> "{value}"^^<http://www.w3.org/2001/XMLSchema#integer> {graph} .')
    path = tmp_path / "publications.nq"
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.fixture
def counts(monkeypatch: pytest.MonkeyPatch) -> Counter[tuple[str, str]]:
    """How often each pair was evaluated, and each publication made of its columns."""
    counts: Counter[tuple[str, str]] = Counter()
    evaluate, decoded = batch_verifier.evaluate, Decoder.publication

    def counted(subscription: Any, publication: Publication, *args: Any, **options: Any) -> Any:
        counts[subscription.id, publication.id] += 1
        return evaluate(subscription, publication, *args, **options)

    def counted_decoding(decoder: Decoder, number: int) -> Publication:
        publication = decoded(decoder, number)
        counts["decoded", publication.id] += 1
        return publication

    monkeypatch.setattr(batch_verifier, "evaluate", counted)
    monkeypatch.setattr(Decoder, "publication", counted_decoding)
    return counts


def _rows(matches: Any) -> list[tuple[str, str, set[tuple[tuple[str, Any], ...]]]]:
    return [
        (match.publication, match.subscription, {tuple(sorted(row.items())) for row in match.bindings})
        for match in matches
    ]


def test_a_file(engine: Engine, file: Path, counts: Counter[tuple[str, str]]) -> None:
    matches = [match for result in engine.match_files(file) for match in result]
    assert len(matches) > 10 * PUBLICATIONS
    assert set(counts.values()) == {1}
    assert sum(name == "decoded" for name, _ in counts) == PUBLICATIONS
    reference = Engine(matcher="reference")
    for subscription in engine.subscriptions:
        reference.subscribe(subscription.text, id=subscription.id, language="sparql")
    assert _rows(matches) == _rows(reference.match(read(file)))


def test_one_publication_after_the_other(engine: Engine, file: Path, counts: Counter[tuple[str, str]]) -> None:
    for publication in read(file):
        assert len([match.bindings for match in engine.match(publication)]) > 10
    assert set(counts.values()) == {1}


def test_a_table(engine: Engine, file: Path, counts: Counter[tuple[str, str]]) -> None:
    from triplewire.encode.schema import to_batch

    table = engine.match_batch(to_batch(list(read(file))))
    assert table.num_rows > 10 * PUBLICATIONS
    assert set(counts.values()) == {1}


def test_what_is_not_kept_is_evaluated_again(
    engine: Engine, file: Path, counts: Counter[tuple[str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    before = [match for result in engine.match_files(file) for match in result]
    counts.clear()
    monkeypatch.setattr(evaluated, "_MOST_ROWS", 10)
    assert _rows(match for result in engine.match_files(file) for match in result) == _rows(before)
    assert Counter(counts.values())[2] > len(before) // 2
