"""Work of the site in a process of its own, which may be killed: `KilledSite` for the tests, a program below it.

The tests' process is not forked itself: its threads serve the site, and a lock of SQLite that one of them holds at
that moment would stay locked in the child for ever. The program loads Wagtail once and forks for each work.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from running import ROOT, until

HERE = Path(__file__).parent


class KilledSite:
    """Lets the program work with the settings of the moment."""

    def __init__(self, program: subprocess.Popen[str]) -> None:
        self._program = program
        self._child = 0

    def is_killed(self, work: str) -> bool:
        """Do a work of `WORKS`. Returns whether its process was killed."""
        from django.conf import settings
        from django.db import connection, connections

        connections.close_all()
        changed = {name: getattr(settings, name) for name in ("TRIPLEWIRE", "WAGTAILADMIN_BASE_URL")}
        order = {"work": work, "database": connection.settings_dict["NAME"], "settings": changed}
        print(json.dumps(order, default=str), file=self._program.stdin, flush=True)
        self._child = self._number()
        status = self._number()
        self._child = 0
        assert status in (0, -signal.SIGKILL), f"{work}: {status}"
        return status != 0

    def kill(self) -> None:
        """Kill the process that works, from another thread."""
        os.kill(until(lambda: self._child), signal.SIGKILL)

    def _number(self) -> int:
        return int(self._program.stdout.readline())


@contextmanager
def killed_site() -> Iterator[KilledSite]:
    """The program while it runs."""
    environment = {**os.environ, "PYTHONPATH": f"{HERE}:{ROOT / 'examples' / 'cms'}"}
    command = [sys.executable, str(HERE / "killed_site.py")]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
    ) as program:
        try:
            yield KilledSite(program)
        finally:
            program.kill()


def killed(*_: Any) -> None:
    """End this process at once."""
    os.kill(os.getpid(), signal.SIGKILL)


def send() -> None:
    """Let the sender do all that it can."""
    from django.core.management import call_command

    call_command("triplewire_sender", "--once")


def send_without_a_mark() -> None:
    """It is killed when it is about to mark what it has sent."""
    from wagtail_triplewire import sender

    sender._sent = killed
    send()


def save(is_committed: bool) -> None:
    """A post is saved, and nobody sends it."""
    from django.conf import settings
    from django.db import transaction

    from conftest import Coast

    with transaction.atomic():
        Coast(settings).post("Olympic games")
        if not is_committed:
            killed()
    killed()


WORKS = {
    "send": send,
    "send without a mark": send_without_a_mark,
    "save": lambda: save(is_committed=True),
    "save without a commit": lambda: save(is_committed=False),
}


def main() -> None:
    """For each order of the input: fork, print the number of the child, let it work, print how it ended."""
    import django
    from django.conf import settings
    from django.db import connection

    os.environ["DJANGO_SETTINGS_MODULE"] = "site_settings"
    django.setup()
    for line in sys.stdin:
        order = json.loads(line)
        child = os.fork()
        if not child:
            status = 1
            try:
                connection.settings_dict["NAME"] = order["database"]
                for name, value in order["settings"].items():
                    setattr(settings, name, value)
                WORKS[order["work"]]()
                status = 0
            finally:
                os._exit(status)
        print(child, flush=True)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)


if __name__ == "__main__":
    main()
