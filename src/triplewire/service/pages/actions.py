"""What forms change beside what the broker's own methods do. Each change is only of what an owner has."""

from __future__ import annotations

from triplewire.broker.broker import Broker
from triplewire.errors import ArgumentError
from triplewire.store.database import now
from triplewire.store.tables import tokens


def settle(of: Broker, owner: str, number: int, *, again: bool) -> None:
    """Have a dead delivery of an owner tried again from the beginning, or give it up for good."""
    if of.owed.is_dead(number, owner):
        (of.owed.resend if again else of.owed.drop)(number)


def accept_again(of: Broker, number: int) -> None:
    """Have a refused publication matched after all."""
    if of.owed.accept_again(number):
        of.matching.wake.set()


def remove_target(of: Broker, subscription: int, number: int) -> None:
    """Deliver the events of a subscription there no more. Raises `ArgumentError` for a target of another."""
    if number not in {target.number for target in of.targets.of(subscription)}:
        raise ArgumentError(f"the subscription has no target {number}")
    of.targets.end(number)


def remove_source(of: Broker, owner: str, number: int) -> None:
    """Take a source away. What came from it stays. Raises `ArgumentError` for another's."""
    if number not in {source.number for source in of.sources.of_owner(owner)}:
        raise ArgumentError(f"there is no source {number}")
    of.sources.remove(number)


def revoke(of: Broker, owner: str, digest: str) -> None:
    """End a token of an owner."""
    here = tokens.update().where(tokens.c.owner == owner, tokens.c.digest == bytes.fromhex(digest))
    of.database.write(lambda connection: connection.execute(here.values(revoked=now())))
