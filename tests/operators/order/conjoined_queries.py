"""Generated queries whose calls with constants all have to hold, alone and beside all else that a query may ask for."""

from __future__ import annotations

import random
from dataclasses import dataclass

from operators.called_queries import Writer
from operators.scenes import E

CONSTANTS = 12  # of each operator: few, so that subscriptions share calls


@dataclass
class ConjoinedWriter:
    """Writes queries by chance: a language, and the text."""

    chance: random.Random

    def query(self) -> tuple[str, str]:
        """A query. A third asks for calls alone, the others for a pattern and more."""
        kind = self.chance.random()
        calls = [self.call() for _ in range(self.chance.randint(1, 5))]
        if kind < 0.2:
            return "predicates", ", ".join(calls)
        filter_ = f"FILTER({' && '.join(f'op:{call}' for call in self.quoted(calls))})"
        if kind < 0.35:
            return "sparql", f"ASK {{ {filter_} }}"
        writer = Writer(self.chance)
        more = {
            0: "",
            1: writer.pattern(),
            2: f"MINUS {{ {writer.pattern()} {writer.pattern()} }}",
            3: f"{{ {writer.pattern()} }} UNION {{ {writer.pattern()} {writer.filter()} }}",
            4: f"FILTER(op:{self.quoted([self.call()])[0]} || !op:{self.quoted([self.call()])[0]})",
            5: f"CALL b1({writer.variable()}, ?c)",
            6: f"OPTIONAL {{ {writer.pattern()} }}",
            7: writer.parts(2),
        }[self.chance.randrange(8)]
        form = self.chance.choice(("ASK", "SELECT *", "SELECT ?a"))
        return "sparql", f"PREFIX : <{E}> {form} {{ {writer.pattern()} {more} {filter_} }}"

    def call(self) -> str:
        """A call with a constant, in the language of predicates. Small constants are drawn more often."""
        number = min(self.chance.randrange(CONSTANTS), self.chance.randrange(CONSTANTS))
        return f"{self.chance.choice(('t1', 't2', 't3'))}({number})"

    @staticmethod
    def quoted(calls: list[str]) -> list[str]:
        """The same calls in SPARQL: there, a number without quotes is an integer."""
        return [call.replace("(", '("').replace(")", '")') for call in calls]
