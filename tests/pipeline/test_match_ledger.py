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

from triplewire.model.same import Same
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


class Clock(dt.datetime):
    """A clock of this machine that a test sets."""

    day = 0.0

    @classmethod
    def now(cls, tz: dt.tzinfo | None = None) -> Clock:
        return cls(2026, 1, 1, tzinfo=tz) + dt.timedelta(days=cls.day)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> type[Clock]:
    Clock.day = 0
    monkeypatch.setattr("triplewire.pipeline.match_ledger.dt.datetime", Clock)
    return Clock


def test_the_horizon_counts_from_the_last_delivery(tmp_path: Path, clock: type[Clock]) -> None:
    """`B` comes each day, `A` on some."""
    ledger = MatchLedger(tmp_path / "told", dt.timedelta(days=10))
    told = {}
    for day in range(60):
        clock.day = day
        if day == 30:
            ledger.begin()
        told[day] = ledger.record({A, B} if day in (0, 8, 16, 30, 35, 50) else {B}, day)
    assert {day: A in of_day for day, of_day in told.items() if day in (0, 8, 16, 30, 35, 50)} == {
        0: False, 8: True, 16: True, 30: False, 35: True, 50: False
    }  # fmt: skip
    assert all(B in told[day] for day in range(1, 60))


def test_what_is_past_the_horizon_is_told_by_its_repetition_too(tmp_path: Path, clock: type[Clock]) -> None:
    ledger = MatchLedger(tmp_path / "told", dt.timedelta(hours=1))
    ledger.record({A}, 0)
    clock.day = 0.5
    for _ in range(2):
        assert ledger.record({A}, 9) == set()
    assert ledger.record({A}, 10) == {A}


@pytest.mark.parametrize("ahead", [40, 400, -40])
@pytest.mark.parametrize("delivers", [False, True])
def test_a_clock_that_is_wrong_for_one_start(tmp_path: Path, clock: type[Clock], ahead: int, delivers: bool) -> None:
    """Nothing is told again: not by that start, nor by those after it."""
    MatchLedger(tmp_path / "told").record({A, B}, 0)
    for number, day in enumerate((ahead, 0.1, 1, 2), 1):
        clock.day = day
        ledger = MatchLedger(tmp_path / "told")
        assert bool(ledger.begin()) is (number == 1), "what was recorded without a rule is of an earlier version"
        if delivers or day != ahead:
            assert ledger.record({A}, number) == {A}
    assert MatchLedger(tmp_path / "told").record({A, B}, 9) == {A, B}


ANOTHER_VERSION = (
    "an earlier version of Triplewire began this stream, for which the channel was a part of each item: items that "
    "come again are told once more"
)


def test_a_stream_begun_before(tmp_path: Path) -> None:
    """Its ledger has the one table. What it told is known, and the rule is another."""
    file = tmp_path / "told"
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.execute("CREATE TABLE told (identity BLOB PRIMARY KEY, batch INTEGER, seen REAL) WITHOUT ROWID")
        connection.execute("INSERT INTO told VALUES (?, 0, ?)", (A, time.time()))
    assert MatchLedger(file).begin() == ANOTHER_VERSION
    assert MatchLedger(file).begin() == ""
    assert MatchLedger(file).record({A, B}, 1) == {A}


def test_another_rule_is_said_once(tmp_path: Path) -> None:
    file = tmp_path / "told"
    assert MatchLedger(file, same=Same.ID).begin() == ""
    MatchLedger(file, same=Same.ID).record({A}, 0)
    assert "by --same id, and now by bindings" in MatchLedger(file, same=Same.BINDINGS).begin()
    assert MatchLedger(file, same=Same.BINDINGS).begin() == ""


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


def test_a_stream_that_runs_for_long_forgets(tmp_path: Path, clock: type[Clock]) -> None:
    ledger = MatchLedger(tmp_path / "told", dt.timedelta(days=2))
    for day in range(6):
        clock.day = day
        ledger.record({bytes([day]) * 16}, day)
    with closing(sqlite3.connect(tmp_path / "told")) as connection:
        assert [batch for (batch,) in connection.execute("SELECT batch FROM told ORDER BY batch")] == [3, 4, 5]
