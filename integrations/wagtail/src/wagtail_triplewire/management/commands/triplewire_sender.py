"""`manage.py triplewire_sender`: talks to the service until it is stopped. Any number may run; one of them works."""

from __future__ import annotations

import signal
import threading
from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from wagtail_triplewire import sender


class Command(BaseCommand):
    """Sends what the outbox has, sets up and renews subscriptions, fetches what was lost."""

    help = "Send what is in the outbox, set up and renew subscriptions, and fetch notifications that were lost."

    def add_arguments(self, parser: CommandParser) -> None:
        """`--once`: end when nothing is left to do."""
        parser.add_argument("--once", action="store_true", help="end when nothing can be done any more")

    def handle(self, *args: Any, **options: Any) -> None:
        """Runs until SIGTERM or SIGINT."""
        if options["once"]:
            looks = sender.Looks()
            while looks.look():
                pass
            return
        stopping = threading.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: stopping.set())
        sender.run(stopping)
