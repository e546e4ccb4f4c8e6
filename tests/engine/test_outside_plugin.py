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
from dataclasses import dataclass
from triplewire.extend import Answer, Matcher, Parameter, Parsed, World, evaluate
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


@dataclass
class FirstLetter:
    """A selector that looks at the first letter of the id: "z..." asks for nothing."""

    subscriptions: list

    def candidates(self, publication):
        return [s for s in self.subscriptions if not s.id.startswith("z")]


class Plain:
    def __init__(self, world):
        self.world = world

    def verify(self, publication, candidates):
        for one in candidates:
            answer = evaluate(one, publication, self.world)
            if answer.bindings:
                yield one, answer


def letters(subscriptions, world):
    return Matcher(FirstLetter(sorted(subscriptions, key=lambda s: s.id)), Plain(world))
'''

ENTRY_POINTS = """
[triplewire.operator]
long = stranger:LONG
[triplewire.language]
property = stranger:property_language
[triplewire.matcher]
letters = stranger:letters
"""

PROGRAM = """
import json
from triplewire import Engine, IRI, Publication, Triple
from triplewire import plugins
engine = Engine(matcher="letters")
engine.subscribe("long(2)", "predicates", id="a")
engine.subscribe("urn:p", "property", id="b")
engine.subscribe("urn:p", "property", id="z")
one = IRI("urn:x")
two = Publication("two", (Triple(one, IRI("urn:p"), one), Triple(one, IRI("urn:q"), one)))
single = Publication("single", two.triples[1:])
result = [(m.publication, m.subscription) for m in engine.match([two, single])]
print(json.dumps([result, plugins.names("matcher"), plugins.names("language")]))
"""


def test_outside_plugin(tmp_path: Path) -> None:
    (tmp_path / "stranger.py").write_text(PLUGIN)
    info = tmp_path / "stranger-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: stranger\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(ENTRY_POINTS)
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env=os.environ | {"PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    result, matchers, languages = json.loads(done.stdout)
    assert result == [["two", "a"], ["two", "b"]]
    assert {"reference", "letters"} <= set(matchers)
    assert "property" in languages
