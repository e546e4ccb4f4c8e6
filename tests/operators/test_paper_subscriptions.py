"""The subscriptions S1 to S5 of the operators paper as printed (section 2.1), through the command line.

Places are by name in a file, and what is seen in a picture is told by operators of a file.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cli.runner import triplewire
from triplewire import Engine, Publication, read
from triplewire.operators import built_in_operators

UAV = Path(__file__).parents[1] / "cases" / "operators" / "uav"
GIVEN = "--subscriptions", UAV / "subscriptions.jsonl", "--operators", UAV / "seen.py"
MATCHES = {("e1", "S1"), ("e1", "S2"), ("e1", "S4"), ("e2", "S3"), ("e3", "S5")}


@pytest.fixture(autouse=True)
def places(monkeypatch: pytest.MonkeyPatch) -> None:
    """The gazetteer. Skips where the libraries of places are absent."""
    for library in ("shapely", "geographiclib"):
        pytest.importorskip(library)
    monkeypatch.setenv("TRIPLEWIRE_PLACES", str(UAV / "places.geojson"))


@pytest.mark.parametrize("order", ["greedy", "naive"])
@pytest.mark.parametrize("matcher", ["trie", "reference"])
def test_the_subscriptions_of_the_paper(matcher: str, order: str, tmp_path: Path) -> None:
    stats, events = tmp_path / "stats.json", UAV / "events.trig"
    asked = ("match", *GIVEN, "--publications", events, "--matcher", matcher, "--operator-order", order)
    done = triplewire(*asked, "--format", "jsonl", "--stats", stats)
    assert (done.code, done.err) == (0, "")
    assert {(row["publication"].rpartition("/")[2], row["subscription"]) for row in done.rows} == MATCHES
    (distance,) = [row["bindings"][0]["x"]["value"] for row in done.rows if row["subscription"] == "S5"]
    assert 95 < float(distance) < 101  # metres, from the statue to 40.69 north, 74.045 west
    counted = json.loads(stats.read_text())["operators"]["by_name"]
    # e1 has to be asked; whether e4 is depends on what the calls were measured to cost, unless they go as written
    assert counted["locIn"]["held"] in ({2} if order == "naive" else {1, 2})
    listed = triplewire("operators", "--stats", stats, "--operators", UAV / "seen.py", "--json").rows
    selectivity = {row["name"]: row["selectivity"] for row in listed}
    assert selectivity["locIn"] == pytest.approx(counted["locIn"]["held"] / counted["locIn"]["calls"])


@pytest.mark.parametrize(
    ("call", "event", "holds"),
    [
        ("locIn(The Bronx)", "e1", True),
        ("locIn(40, -75, 41, -73)", "e1", True),
        ("locWithin(TimesSquare, 1 km)", "e2", True),
        ("locWithin(TimesSquare, 900 m)", "e2", False),
        ("locWithin(40.758, -73.9855, 1 km)", "e2", True),
        ("locWithin(Bronx, 0)", "e1", True),
        ("locWithin(Bronx, 9 km)", "e2", True),
        ("locWithin(Bronx, 7 km)", "e2", False),
        ("distanceFrom(Bronx, ?x), ?x < 9 km, ?x > 7 km", "e2", True),
        ("distanceFrom(Times Square, ?x), ?x > 20 km", "e1", False),
    ],
)
def test_places_by_name_and_by_position(call: str, event: str, holds: bool) -> None:
    engine = Engine(operators=built_in_operators())
    engine.subscribe(call, "predicates", id="one")
    publications: list[Publication] = [each for each in read(UAV / "events.trig") if each.id.endswith(event)]
    assert bool(list(engine.match(publications))) == holds


@pytest.mark.parametrize(
    ("call", "said"),
    [
        ("locIn(Bornx)", "did you mean 'Bronx'?; write locIn(south, west, north, east) or locIn(place)"),
        ("locIn(1, 2)", "1:1: the operator 'locIn' takes 4 or 1 arguments, not 2; write locIn(south,"),
        ("locWithin(TimesSquare, 5 kg)", "1:24: 'kg' measures mass, not length"),
        ("locWithin(1, 2 m, 3)", "1:14: the operator takes no unit here, found 'm'"),
    ],
)
def test_what_is_wrong_with_a_call(call: str, said: str, tmp_path: Path) -> None:
    file = tmp_path / "wrong.pred"
    file.write_text(call)
    done = triplewire("match", "--subscriptions", file, "--publications", UAV / "events.trig")
    assert said in done.err
