"""What others have in a service changes no answer: not matches, counts, prices, reasons, nor results of operators.

Each thing that keeps owners apart is taken away once, and then an answer differs. What is asked stands in
`tests/cases/service/two_owners.toml`. Not the same are numbers that are given to all in turn, as those of events.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from fastapi.testclient import TestClient

from triplewire import Engine, Publication
from triplewire.broker import owners
from triplewire.broker.broker import Broker
from triplewire.broker.publications import window
from triplewire.broker.publications.window import Window
from triplewire.extend import Argument, Parameter
from triplewire.service.app import ServiceSettings, service

FILE = Path(__file__).resolve().parents[1] / "cases" / "service" / "two_owners.toml"
ACTIONS: list[dict[str, Any]] = tomllib.loads(FILE.read_text("utf-8"))["action"]
MARK = "only-for-bob"
OF_ITS_OWN = {"ticket", "feed", "created", "expires", "at", "received", "updated", "microseconds", "calls"}
OF_ITS_OWN |= {"number", "entry", "origin"}
"""What of an answer is an instant, a secret, a measured time, or a number that all get in turn."""


class LongerThan:
    """Has the publication more triples than that?"""

    name = "longerThan"
    parameters = (Parameter("count"),)

    def evaluate(self, publication: Publication, arguments: tuple[Argument, ...]) -> bool:
        (count,) = arguments
        return len(publication.triples) > int(count.lexical)  # type: ignore[union-attr]


class OncePerId(LongerThan):
    """The same with a cache that takes publications of one id for one."""

    def __init__(self) -> None:
        self._known: dict[str, bool] = {}

    def evaluate(self, publication: Publication, arguments: tuple[Argument, ...]) -> bool:
        return self._known.setdefault(publication.id, super().evaluate(publication, arguments))


def compared(value: Any) -> Any:
    """An answer without what is never the same."""
    if isinstance(value, dict):
        return {name: compared(each) for name, each in value.items() if name not in OF_ITS_OWN}
    if isinstance(value, list):
        return len(value) if value and all(type(each) is int for each in value) else [compared(each) for each in value]
    return value


def answers_to_ann(
    folder: Path, *, is_bob_there: bool, operator: LongerThan | None = None
) -> list[tuple[str, int, Any]]:
    """What a new service answers to ann: what was asked, status and content."""
    folder.mkdir()
    engine = Engine(matcher="reference", operators={"longerThan": operator or LongerThan()})
    answers = []
    with Broker.open(f"sqlite:///{folder / 'broker.db'}", b"s" * 32, engine=engine) as broker:
        client = TestClient(service(broker, ServiceSettings(token="the token of the owner", wait_seconds=300.0)))
        heads = {name: {"Authorization": f"Bearer {broker.new_token(name)}"} for name in ("ann", "bob")}
        for action in ACTIONS:
            if action["who"] == "bob" and not is_bob_there:
                continue
            method, _, address = action["ask"].partition(" ")
            kind = {"Content-Type": "application/n-quads"} if "text" in action else {}
            sent = {"content": action["text"]} if "text" in action else {"json": action.get("json")}
            answer = client.request(method, address, headers=heads[action["who"]] | kind, **sent)
            if action["who"] == "bob":
                assert answer.status_code < 300, (action, answer.text)
                continue
            is_lines = "ndjson" in answer.headers.get("content-type", "")
            content = list(map(json.loads, answer.text.splitlines())) if is_lines else answer.text
            content = answer.json() if answer.headers["content-type"].endswith("json") and not is_lines else content
            answers.append((action["ask"], answer.status_code, compared(content)))
    return answers


def differences(folder: Path, operator: Callable[[], LongerThan] = LongerThan) -> list[Any]:
    """Answers to ann that depend on whether bob is there."""
    alone, beside = (
        answers_to_ann(folder / name, is_bob_there=name == "beside", operator=operator())
        for name in ("alone", "beside")
    )
    assert len(alone) == len(beside) > 20
    assert sum(status < 300 for _, status, _ in alone) >= len(alone) - 1, "all but /metrics are answered"
    return [(before, after) for before, after in zip(alone, beside, strict=True) if before != after]


def test_what_others_have_changes_no_answer(tmp_path: Path) -> None:
    assert differences(tmp_path) == []
    told = json.dumps(answers_to_ann(tmp_path / "once more", is_bob_there=True))
    assert '"share": 1.0' in told, "prices are known"
    assert told.count(MARK) == json.dumps(answers_to_ann(tmp_path / "without", is_bob_there=False)).count(MARK)


def _count_all(patch: pytest.MonkeyPatch) -> None:
    wait = Broker.wait
    patch.setattr(Broker, "wait", lambda self, numbers, seconds, owner=None: wait(self, numbers, seconds))


def _show_all(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(window, "may_see", lambda owner, readers: True)


def _one_window(patch: pytest.MonkeyPatch) -> None:
    """All see what whoever came first may see."""
    of, first = Window.of, dict[int, str]()
    patch.setattr(Window, "of", lambda self, owner: of(self, first.setdefault(id(self), owner)))


def _own_all(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(owners, "held_by", lambda column, owner: sa.true())


WEAKENED: dict[str, tuple[Callable[[pytest.MonkeyPatch], None], str]] = {
    "counts of all subscriptions": (_count_all, "POST /publish"),
    "a window without readers": (_show_all, "POST /subscriptions"),
    "one window for all": (_one_window, "POST /try"),
    "everybody has everything": (_own_all, "GET /subscriptions"),
}


@pytest.mark.parametrize("name", WEAKENED)
def test_what_keeps_owners_apart_is_needed(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    weaken, where = WEAKENED[name]
    weaken(monkeypatch)
    assert any(after[0].startswith(where) for _, after in differences(tmp_path))


def test_results_of_operators_that_are_kept_by_id_alone_are_noticed(tmp_path: Path) -> None:
    asked = {after[0] for _, after in differences(tmp_path, OncePerId)}
    assert asked >= {"POST /match", "POST /explain"}
