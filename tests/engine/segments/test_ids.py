"""Ids of subscriptions come back as they were given."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from triplewire.engine.segments.texts import IdTable


@pytest.mark.parametrize(
    "ids",
    [["a"], [""], ["", "a"], ["a\nb", "c"], ["\n"], ["\r\n", "\u2028", "\x00"], ["\u00e9", "\ud800", "\U0001f600"]],
)
def test_ids_are_read_as_they_were_given(ids: list[str]) -> None:
    table = IdTable.of(ids)
    for numbers in ([], [0], list(range(len(ids))), [len(ids) - 1, 0, 0]):
        assert table.texts(np.array(numbers, np.int32)) == [ids[number] for number in numbers]


def test_reading_ids_does_not_import_pandas() -> None:
    code = (
        "import sys; import numpy as np; from triplewire.engine.segments.texts import IdTable; "
        "IdTable.of(['a', 'b']).texts(np.array([1], np.int32)); assert 'pandas' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
