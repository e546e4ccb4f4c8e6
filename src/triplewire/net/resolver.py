"""Addresses of a name, within a time.

The look-up of the system has no limit that a program may set: where no name server answers, it takes 10 seconds and
more.
"""

from __future__ import annotations

import socket
import threading
from concurrent.futures import Future

from triplewire.forks import forget_in_children, new_lock


class Resolver:
    """Looks names up, each in a thread of its own, of which those that ask for one name at once share one. A thread
    that takes too long is left behind. Any number of threads may ask."""

    def __init__(self) -> None:
        self._lock = new_lock()
        self._under_way: dict[tuple[str, int], Future[list[str]]] = {}
        forget_in_children(self)

    def addresses(self, host: str, port: int, seconds: float) -> list[str]:
        """The distinct addresses of a host. Raises `OSError` or `UnicodeError` where it has none, and `TimeoutError`,
        which is an `OSError`, where that is not known within so many seconds."""
        key = host, port
        with self._lock:
            answer = self._under_way.get(key)
            if answer is None:
                answer = self._under_way[key] = Future()
                # no pool of `concurrent.futures`: the end of the program would wait for its threads
                threading.Thread(target=self._look_up, args=(key, answer), name="triplewire-name", daemon=True).start()
        return answer.result(seconds)

    def _look_up(self, key: tuple[str, int], answer: Future[list[str]]) -> None:
        raised: Exception | None = None
        try:
            entries = socket.getaddrinfo(*key, type=socket.SOCK_STREAM)
        except Exception as error:
            raised = error
        with self._lock:  # before it is told, so that who asks again has a look-up of its own
            self._under_way.pop(key, None)
        if raised is not None:
            answer.set_exception(raised)
        else:
            answer.set_result(list(dict.fromkeys(str(entry[4][0]) for entry in entries)))

    def forget(self) -> None:
        """In the child of a fork: the threads are those of the parent."""
        self._under_way = {}


RESOLVER = Resolver()
