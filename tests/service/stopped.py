"""`triplewire serve`, stopped and started again and again: `python -m service.stopped FOLDER PORT`.

The command runs once in this process, which has loaded everything then. From then on each start is a fork of it, which
takes a fraction of the time. Each line of standard input is the name of a signal: the service is sent it, and its exit
code is a line of standard output, once the next one answers. The last one is sent SIGTERM at the end of the input.
"""

from __future__ import annotations

import http.client
import os
import signal
import sys
import threading
import time
import traceback
from contextlib import suppress

from triplewire.cli import main


def run(folder: str, port: str) -> int:
    """Run the command until a signal ends it; its exit code."""
    signal.signal(signal.SIGTERM, signal.SIG_DFL)  # `main` replaces what no program has set
    signal.signal(signal.SIGINT, signal.default_int_handler)
    sys.argv = ["triplewire", "serve", "--data", folder, "--port", port]
    try:
        main()
    except SystemExit as end:
        return int(end.code or 0)
    return 0


def until_ready(port: str) -> None:
    """Wait until the service answers."""
    while True:
        connection = http.client.HTTPConnection("127.0.0.1", int(port), timeout=300)
        with suppress(OSError, http.client.HTTPException):
            connection.request("GET", "/readiness")
            if connection.getresponse().status == 200:
                connection.close()
                return
        connection.close()
        time.sleep(0.01)


def started(folder: str, port: str) -> int:
    """The process id of a service that answers."""
    child = os.fork()
    if not child:
        try:
            os._exit(run(folder, port))
        except BaseException:
            traceback.print_exc()
            os._exit(1)
    until_ready(port)
    return child


def ended(process: int, number: int) -> int:
    """Send a service a signal; its exit code."""
    os.kill(process, number)
    return os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])


def stop_often(folder: str, port: str) -> None:
    """Send the service each signal that is asked for, and start it again."""

    def stop_this() -> None:
        until_ready(port)
        os.kill(os.getpid(), signal.SIGTERM)

    stopping = threading.Thread(target=stop_this)
    stopping.start()
    assert run(folder, port) == 0
    stopping.join()
    assert threading.active_count() == 1, threading.enumerate()  # else a fork would copy locks that others hold
    process = started(folder, port)
    for line in iter(sys.stdin.readline, ""):
        code = ended(process, signal.Signals[line.strip()])
        process = started(folder, port)
        print(code, flush=True)
    print(ended(process, signal.SIGTERM), flush=True)


if __name__ == "__main__":
    stop_often(*sys.argv[1:])
