"""What /openapi.json says is asked of each door by Schemathesis, and the answers are as it says."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, settings

from amounts import usually
from triplewire import Engine
from triplewire.broker.broker import Broker, Wanted
from triplewire.service.app import ServiceSettings, service

pytest_plugins = ["schemathesis.pytest.plugin"]  # here alone: it takes 1.5 s to load
TOKEN = "the token of the owner"


@pytest.fixture(scope="module")
def described(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """The doors of a broker that has a subscription and a publication."""
    url = f"sqlite:///{tmp_path_factory.mktemp('described') / 'broker.db'}"
    with Broker.open(url, b"s" * 32, engine=Engine(matcher="reference")) as broker:
        broker.subscribe(Wanted("SELECT ?s { ?s ?p ?o }", id="one"), "owner")
        app = service(broker, ServiceSettings(token=TOKEN, wait_seconds=0.1))
        yield schemathesis.openapi.from_asgi("/openapi.json", app)


doors = schemathesis.pytest.from_fixture("described")


@doors.parametrize()
@settings(
    max_examples=usually(8, 200),
    deadline=None,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
    derandomize=True,
)
def test_no_door_fails_whatever_it_is_asked(case: Any) -> None:
    answer = case.call(headers={"Authorization": f"Bearer {TOKEN}"})
    assert answer.status_code < 500, answer.text
    in_words = case.path.startswith(("/hub", "/websub"))  # WebSub asks for plain text
    if answer.status_code >= 400 and not in_words:
        assert answer.headers["content-type"] == ["application/problem+json"]
        said = answer.json()
        assert said["status"] == answer.status_code
        assert said["title"]
