"""`python -m bench NAME --operators --operator-order`: engines that are measured have them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bench import measure
from bench.measure import Operators
from triplewire import Publication
from triplewire.errors import SubscriptionError

EVEN = """
from triplewire.extend import Parameter
class Even:
    name, parameters = "even", (Parameter("x"),)
    def evaluate(self, publication, arguments): return int(arguments[0].lexical) % 2 == 0
operators = (Even(),)
"""


def test_measured_engines_have_them(tmp_path: Path) -> None:
    (tmp_path / "even.py").write_text(EVEN)
    rows = [{"id": str(n), "language": "predicates", "query": f"even({n})"} for n in range(4)]
    file = tmp_path / "subscriptions.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    with pytest.raises(SubscriptionError, match="even"):
        measure.load("trie", file)
    measure.use(Operators((str(tmp_path / "even.py"),), "sequential"))
    try:
        engine = measure.load("trie", file)
    finally:
        measure.use(Operators())
    assert engine.operator_order == "sequential"
    assert [match.subscription for match in engine.match(Publication("urn:p", ()))] == ["0", "2"]
