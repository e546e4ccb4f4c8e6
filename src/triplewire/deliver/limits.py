"""How deliveries are made: the settings, and how many a minute a host gets."""

from __future__ import annotations

from dataclasses import dataclass

from triplewire.config import ServiceSettings
from triplewire.store.database import DAY

SCHEDULE = (0.0, 5.0, 300.0, 1_800.0, 7_200.0, 18_000.0, 36_000.0, 50_400.0, 72_000.0, DAY)
"""Seconds before each try, from the one before (Standard Webhooks, section "Deliverability and reliability")."""

_MOST_PER_MINUTE = 6_000.0  # whatever a receiver allows


@dataclass(frozen=True)
class DeliverySettings(ServiceSettings):
    """How deliveries are made: the settings of the service, and what is the same for all."""

    schedule: tuple[float, ...] = SCHEDULE
    jitter: float = 0.2  # of each pause, that it is longer at most
    without_rate: frozenset[str] = frozenset({"127.0.0.1", "localhost", "::1"})  # hosts: this machine
    workers: int = 64  # deliveries to all hosts at once
    quick: float = 1.0  # seconds: a host that answers in less does not wait for those that do not


class Allowance:
    """How much there may be of something, as deliveries to a host: so many a minute, and after a pause as many as in a
    minute at once."""

    def __init__(self, per_minute: float, at: float) -> None:
        self.per_minute = per_minute
        self._left, self._at = per_minute, at

    def allow(self, per_minute: float) -> None:
        """Have this rate from now on."""
        per_minute = min(max(per_minute, 1.0), _MOST_PER_MINUTE)
        if per_minute != self.per_minute:
            self._left += per_minute - self.per_minute
            self.per_minute = per_minute

    def seconds_until(self, at: float) -> float:
        """How long the next one has to wait; 0 for now."""
        passed = max(at - self._at, 0.0)  # a clock may be set back
        self._left, self._at = min(self._left + passed * self.per_minute / 60, self.per_minute), at
        return 0.0 if self._left >= 1 else (1 - self._left) * 60 / self.per_minute

    def take(self) -> None:
        """Count one."""
        self._left -= 1
