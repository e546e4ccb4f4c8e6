"""A stream that follows an index and is killed with -9: at named points of a commit, and at random moments.

It goes on, nothing is lost, nothing is twice, and a micro-batch that is repeated keeps the version of the index that it
had. Each start of Spark takes ten seconds. So by default only the point after the rename of the matches is tried,
before Spark knows of it, and two workers are killed. `TRIPLEWIRE_DAMAGE=all` in the environment tries all points, and
200 random moments: half of them on this machine, half of them in a standalone cluster.
"""

from __future__ import annotations

import re
import signal
from pathlib import Path

import pytest

from amounts import IN_FULL
from pipeline.faults.campaign import CHILD, GUEST, PATIENCE, ROOT, WORKER, Campaign, random_kills

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("spark")]

ALL = (
    "after the pin",
    "in the ledger",
    "after the ledger",
    "before the commit",
    "between the renames",
    "after the commit",
)
POINTS = ALL if IN_FULL else ALL[-1:]
NOISE = re.compile(r"Traceback|\bWARN|log4j|Exception|incubator")


def test_killed_and_interrupted(tmp_path: Path) -> None:
    """At points; then workers while it watches; in the end Ctrl-C reaches the whole group, as a terminal sends it."""
    campaign = Campaign(tmp_path, seed=1)
    try:
        for number, point in enumerate(POINTS):
            campaign.add_file()
            process = campaign.start(point=point)
            assert process.wait(PATIENCE) == -signal.SIGKILL, f"{point} was not reached: {campaign.said()}"
            seen = campaign.committed()
            first = {("urn:g0-0", ROOT), ("urn:g0-2", ROOT), ("urn:g0-1", CHILD), ("urn:again", ROOT)}
            assert (first <= set(seen)) == (number == len(POINTS) - 1)
            campaign.change()
        campaign.kill_at_random(2, (WORKER,))
        # by the versions that there were when it was first tried, and when it was repeated
        assert {version for _, name, version in campaign.rows("batch=0") if name == ROOT} == {"v1"}
        assert not any(name == GUEST for _, name, _ in campaign.rows("batch=0"))
        campaign.add_file()
        process = campaign.interrupt()
        said = campaign.said()
        assert process.returncode == 1, said  # a line of each file is refused
        assert re.search(r"\d+ matches in \d+ publications, \d+ told before, \d+ refused", said)
        assert not NOISE.search(said), said
        campaign.look()
    finally:
        campaign.close()
    outcome = campaign.outcome
    assert outcome.kills == {WORKER: 2}
    assert outcome.batches >= 2
    assert outcome.wanted > 20
    assert not outcome.wrong(), outcome


@pytest.mark.skipif(not IN_FULL, reason="an hour: TRIPLEWIRE_DAMAGE=all")
@pytest.mark.parametrize("cluster", [False, True], ids=["one machine", "standalone cluster"])
def test_killed_at_random_moments(tmp_path: Path, cluster: bool) -> None:
    outcome = random_kills(tmp_path, 100, 1, cluster)
    assert outcome.kills.total() == 100
    assert not outcome.wrong(), outcome
