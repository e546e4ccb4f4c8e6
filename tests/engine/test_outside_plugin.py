"""A package of somebody else adds an operator, a language and a matcher, with nothing of ours but `triplewire.extend`.

It is installed for real: an entry-points file beside a module on the path of a new process.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

PLUGIN = '''
import numpy as np
from triplewire.extend import Clauses, Index, IndexMaker, Parameter, Parsed, Selected, View
from triplewire.ir.nodes import ANY, Pattern, Variable
from triplewire import IRI


class Long:
    """long(n): at least n triples."""

    name = "long"
    parameters = (Parameter("n"),)

    def evaluate(self, publication, arguments):
        return len(publication.triples) >= int(arguments[0].lexical)


LONG = Long()


def property_language(text, context):
    """A text is the IRI of a property that must be there."""
    return Parsed(("value",), Pattern(ANY, IRI(text.strip()), Variable("value")))


class ByPredicate:
    """An index that looks at constant predicates: a clause is checked where the publication has all of them."""

    order = None
    proves_constants = False

    def __init__(self, clauses: Clauses) -> None:
        self.clauses = clauses

    def prepare(self, view: View) -> None:
        return None

    def select(self, view: View, prepared: None, most: int, space: object) -> Selected:
        table, batch, checks = self.clauses.table, view.batch, []
        for first, last in zip(batch.offset, batch.offset[1:]):
            has = set(view.features.term[batch.predicate[first:last]].tolist())
            checks.append([
                clause
                for clause, (a, b) in enumerate(zip(table.pattern_offset, table.pattern_offset[1:]))
                if all(predicate < 0 or predicate in has for predicate in table.pattern[a:b, 1].tolist())
            ])
        offset = np.cumsum([0, *map(len, checks)])
        none = np.zeros(len(batch) + 1, np.int64), np.zeros(0, np.int32)
        return Selected(*none, offset, np.array(sum(checks, []), np.int32))

    def arrays(self) -> dict:
        return {}


class ByPredicateMaker:
    name = "by-predicate"
    version = 1

    def build(self, clauses: Clauses) -> Index:
        return ByPredicate(clauses)

    def open(self, clauses: Clauses, arrays: dict) -> Index:
        return self.build(clauses)


MAKER = ByPredicateMaker()
'''

ENTRY_POINTS = """
[triplewire.operator]
long = stranger:LONG
[triplewire.language]
property = stranger:property_language
[triplewire.matcher]
by-predicate = stranger:MAKER
"""

PROGRAM = """
import json, sys
from triplewire import Engine, IRI, Publication, Triple
from triplewire import plugins
engine = Engine(matcher="by-predicate")
engine.subscribe("long(2)", "predicates", id="a")
engine.subscribe("urn:p", "property", id="b")
engine.subscribe("SELECT ?o { ?s <urn:p> ?o ; <urn:r> ?r }", id="c")
one = IRI("urn:x")
two = Publication("two", (Triple(one, IRI("urn:p"), one), Triple(one, IRI("urn:q"), one)))
single = Publication("single", two.triples[1:])
matched = engine.match([two, single])
result = [(m.publication, m.subscription) for m in matched]
engine.save(sys.argv[1])
loaded = Engine.load(sys.argv[1])
engine.unsubscribe("b")
again = [(m.publication, m.subscription) for m in engine.match([two, single])]
saved = [(m.publication, m.subscription) for m in loaded.match([two, single])]
stats = matched.stats
names = [plugins.names("matcher"), plugins.names("language")]
print(json.dumps([result, again, saved, stats.verified, stats.operators.calls, *names]))
"""


def test_outside_plugin(tmp_path: Path) -> None:
    (tmp_path / "stranger.py").write_text(PLUGIN)
    info = tmp_path / "stranger-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: stranger\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(ENTRY_POINTS)
    paths = os.pathsep.join([str(tmp_path), *filter(None, [os.environ.get("PYTHONPATH")])])
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(tmp_path / "saved")],
        env=os.environ | {"PYTHONPATH": paths},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    result, again, saved, verified, calls, matchers, languages = json.loads(done.stdout)
    assert result == saved == [["two", "a"], ["two", "b"]]
    assert again == [["two", "a"]]
    assert verified == 1  # "b" is checked for one publication, "c" for none
    assert calls == 2  # "a" asks its operator of both publications
    assert {"reference", "everything", "trie", "by-predicate"} <= set(matchers)
    assert "property" in languages
