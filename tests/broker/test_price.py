"""The price that is told at registration: from the last publications, and none that its owner may not see."""

from __future__ import annotations

import json

from broker.items import item, opened, publish
from triplewire.broker.broker import Made, Wanted

QUERY = 'SELECT ?t {{ ?i rss:title ?t FILTER ftcontains(?t, "{word}") }}'


def test_it_says_how_much_would_have_matched(database_url: str) -> None:
    with opened(database_url) as broker:
        assert broker.subscribe(Wanted(QUERY.format(word="red")), "ann").price == {}
        publish(broker, [item(number, "red" if number % 4 == 0 else "blue") for number in range(80)])
        made = broker.subscribe(Wanted(QUERY.format(word="red"), id="red"), "ann")
        assert set(made.price) == {"matches_a_day", "share", "microseconds", "of"}
        assert made.price["of"] == 80
        assert made.price["share"] == 0.25
        assert made.price["matches_a_day"] == 480  # 20 within an hour, the shortest time that counts
        assert made.price["microseconds"] > 0
        row = broker.find("red", owner="ann")
        assert row is not None
        assert json.loads(row.price) == made.price
        broker.change(row.number, query=QUERY.format(word="blue"))
        changed = broker.find("red", owner="ann")
        assert changed is not None
        assert json.loads(changed.price)["share"] == 0.75


def test_many_are_priced_together(database_url: str) -> None:
    words = ["red", "blue", "green"] * 10
    with opened(database_url) as broker:
        publish(broker, [item(number, "red" if number % 2 == 0 else "blue") for number in range(20)])
        wanted = [Wanted(QUERY.format(word=word)) for word in words]
        made = broker.subscribe_all([*wanted, Wanted("SELECT")], "ann")
    shares = [each.price["share"] for each in made if isinstance(each, Made)]
    assert shares == [{"red": 0.5, "blue": 0.5, "green": 0.0}[word] for word in words]


def test_what_an_owner_may_not_read_is_in_no_price(database_url: str) -> None:
    with opened(database_url) as broker:
        publish(broker, [item(1, "red secret")], readers=["bob"])
        publish(broker, [item(2, "blue")])
        assert broker.subscribe(Wanted(QUERY.format(word="secret")), "ann").price["of"] == 1
        assert broker.subscribe(Wanted(QUERY.format(word="secret")), "ann").price["share"] == 0
        assert broker.subscribe(Wanted(QUERY.format(word="secret")), "bob").price["share"] == 0.5


def test_calls_and_hard_queries_do_not_hold_up_registration(database_url: str) -> None:
    many = " ".join(f"?a{n} ?b{n} ?c{n} ." for n in range(9))
    with opened(database_url) as broker:
        publish(broker, [item(number, f"red {number}") for number in range(20)])
        calling = "SELECT ?t { ?i rss:title ?t CALL locIn(58, 4, 71, 31) }"
        assert broker.subscribe(Wanted(calling), "ann").price == {}
        hard = broker.subscribe(Wanted(f"SELECT * {{ {many} FILTER(?a0 != ?a0) }}"), "ann")
        assert hard.price["share"] == 0
