"""Matches with their reasons, for `match --why`: JSON Lines and tables."""

from __future__ import annotations

from typing import IO

import numpy as np
from numpy.typing import NDArray

from triplewire.cli.matches import Table
from triplewire.cli.output import bindings_short, write_json
from triplewire.cli.report import one_line
from triplewire.engine import Engine
from triplewire.engine.explain.why import with_reasons
from triplewire.engine.result import Part


class ReasonedLines:
    """Writes one JSON object a line, as without reasons, and `why`: a list of sentences."""

    def __init__(self, stream: IO[str], engine: Engine, *, bindings: bool) -> None:
        self._stream, self._engine, self._bindings = stream, engine, bindings

    def write(self, part: Part, wanted: NDArray[np.bool_] | None = None) -> None:
        """See `triplewire.cli.matches.Writer`."""
        for match, reasons in with_reasons(self._engine, part, wanted):
            row = match.to_json(bindings=self._bindings) | {"why": reasons}
            write_json(self._stream, row)
        self._stream.flush()


class ReasonedTable(Table):
    """Collects the rows of a table, with the reasons in the last column."""

    def __init__(self, engine: Engine, *, bindings: bool) -> None:
        super().__init__(bindings=bindings)
        self._engine = engine
        self.columns = (*self.columns, "why")

    def write(self, part: Part, wanted: NDArray[np.bool_] | None = None) -> None:
        """See `triplewire.cli.matches.Writer`."""
        for match, reasons in with_reasons(self._engine, part, wanted):
            row = (match.publication, match.subscription, bindings_short(match))[: len(self.columns) - 1]
            self.rows.append((*row, "\n".join(map(one_line, reasons))))
