"""`make cms`: a service and this site beside each other, in the foreground, until SIGTERM or Ctrl-C.

All that they keep is in `out/cms`. The first start makes the tokens, the tables, and some people and pages.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path
from types import FrameType

HERE = Path(__file__).resolve().parent
DATA = Path(os.environ.get("CMS_DATA", HERE.parents[1] / "out" / "cms"))
TRIPLEWIRE = HERE.parents[1] / ".venv" / "bin" / "triplewire"
SERVICE_PORT, PORT = os.environ.get("SERVICE_PORT", "8750"), os.environ.get("PORT", "8000")
SITE = f"http://127.0.0.1:{PORT}"


def token(file: Path, *options: str) -> None:
    """Have a token in a file that only its owner reads."""
    if file.exists():
        return
    command = [TRIPLEWIRE, "token", "create", "--data", DATA / "broker", *options]
    made = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout
    with open(os.open(file, os.O_CREAT | os.O_WRONLY, 0o600), "w", encoding="utf-8") as stream:
        stream.write(made)


def manage(*arguments: str) -> list[str]:
    """A command of Django."""
    return [sys.executable, str(HERE / "manage.py"), *arguments]


def ended(number: int, frame: FrameType | None) -> None:
    """A signal ends what runs below as well."""
    raise SystemExit(0)


def wait_until_up(address: str, process: subprocess.Popen[bytes]) -> None:
    """Until an address answers. Raises `SystemExit` where its process has ended."""
    while process.poll() is None:
        try:
            urllib.request.urlopen(address, timeout=5).close()
            return
        except urllib.error.HTTPError:
            return
        except OSError:
            time.sleep(0.1)
    raise SystemExit(process.returncode)


def main() -> None:
    """Start both, and end both."""
    signal.signal(signal.SIGTERM, ended)
    DATA.mkdir(parents=True, exist_ok=True)
    token(DATA / f"site-{PORT}.token", "--owner", "coast", "--namespace", f"{SITE}/triplewire/")
    token(DATA / "guest.token", "--owner", "guest")
    serve = [TRIPLEWIRE, "serve", "--data", DATA / "broker", "--port", SERVICE_PORT, "--allow-private-addresses"]
    processes = [subprocess.Popen(serve)]
    try:
        for arguments in (("migrate", "-v0"), ("demo_content",)):
            subprocess.run(manage(*arguments), check=True)
        wait_until_up(f"http://127.0.0.1:{SERVICE_PORT}/readiness", processes[0])
        processes.append(subprocess.Popen(manage("runserver", "--noreload", f"127.0.0.1:{PORT}")))
        wait_until_up(f"{SITE}/triplewire/", processes[1])
        print(
            f"The site is at {SITE}, its editors' pages at {SITE}/admin/; sign in as admin, ann or ben: coast",
            flush=True,
        )
        while all(process.poll() is None for process in processes):
            time.sleep(0.5)
    except KeyboardInterrupt:
        pass
    finally:
        for process in processes:
            process.terminate()
        for process in processes:
            process.wait(30)


if __name__ == "__main__":
    main()
