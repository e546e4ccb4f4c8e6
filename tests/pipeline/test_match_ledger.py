"""The ledger of a stream: told once within the horizon, and a micro-batch that is repeated gets what it got before."""

from __future__ import annotations

import datetime as dt
import os
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest

from triplewire.pipeline.match_ledger import MatchLedger

A, B, C = b"a" * 16, b"b" * 16, b"\x00" * 16


def test_told_once(tmp_path: Path) -> None:
    assert MatchLedger(tmp_path / "told").record({A, B}, 0) == set()
    assert MatchLedger(tmp_path / "told").record({B, C}, 1) == {B}
    assert MatchLedger(tmp_path / "told").record({A, B, C}, 2) == {A, B, C}
    assert MatchLedger(tmp_path / "told").record(set(), 3) == set()


def test_a_repeated_micro_batch(tmp_path: Path) -> None:
    ledger = MatchLedger(tmp_path / "told")
    ledger.record({A}, 0)
    for _ in range(3):
        assert ledger.record({A, B}, 1) == {A}
    # this time it has less: what it does not tell now may be told later
    assert ledger.record({A}, 1) == {A}
    assert ledger.record({A, B}, 2) == {A}


def test_the_horizon_counts_from_the_last_delivery(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Clock(dt.datetime):
        day = 0

        @classmethod
        def now(cls, tz: dt.tzinfo | None = None) -> dt.datetime:
            return dt.datetime(2024, 1, 1, tzinfo=tz) + dt.timedelta(days=cls.day)

    monkeypatch.setattr("triplewire.pipeline.match_ledger.dt.datetime", Clock)
    ledger = MatchLedger(tmp_path / "told", dt.timedelta(days=10))
    told = {}
    for batch, day in enumerate((0, 8, 16, 30, 35)):
        Clock.day = day
        if day == 30:
            ledger.forget()
        told[day] = ledger.record({A}, batch)
    assert told == {0: set(), 8: {A}, 16: {A}, 30: set(), 35: {A}}
    # without forgetting, what is past the horizon is told all the same, and its repetition tells it again
    Clock.day = 60
    for _ in range(2):
        assert ledger.record({A}, 9) == set()
    assert ledger.record({A}, 10) == {A}


@pytest.mark.slow
def test_a_process_that_is_killed_leaves_all_or_nothing(tmp_path: Path) -> None:
    """At any moment of a record of 100,000 matches."""
    script = (
        "import sys; from pathlib import Path; from triplewire.pipeline.match_ledger import MatchLedger\n"
        "given = {number.to_bytes(16) for number in range(100_000)}\n"
        "print('ready', flush=True)\n"
        "MatchLedger(Path(sys.argv[1])).record(given, 0)\n"
    )
    outcomes = set()
    for round_ in range(4):
        file = tmp_path / f"told{round_}"
        process = subprocess.Popen([sys.executable, "-c", script, str(file)], stdout=subprocess.PIPE)
        assert process.stdout is not None
        process.stdout.readline()
        time.sleep(0.03 * round_)
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        process.stdout.close()
        told = MatchLedger(file).record({number.to_bytes(16) for number in range(0, 100_000, 1_000)}, 1)
        outcomes.add(len(told))
    assert outcomes <= {0, 100}


def test_a_stream_that_runs_for_long_forgets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Clock(dt.datetime):
        day = 0

        @classmethod
        def now(cls, tz: dt.tzinfo | None = None) -> Clock:
            return cls(2026, 1, 1, tzinfo=tz) + dt.timedelta(days=cls.day)

    monkeypatch.setattr("triplewire.pipeline.match_ledger.dt.datetime", Clock)
    ledger = MatchLedger(tmp_path / "told", dt.timedelta(days=2))
    for Clock.day in range(6):
        ledger.record({bytes([Clock.day]) * 16}, Clock.day)
    with closing(sqlite3.connect(tmp_path / "told")) as connection:
        assert [batch for (batch,) in connection.execute("SELECT batch FROM told ORDER BY batch")] == [3, 4, 5]
