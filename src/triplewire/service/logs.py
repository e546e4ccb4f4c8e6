"""What a service logs: a line a message, as text or as a JSON object, to standard error. No line holds a secret.

Tickets, keys of feeds, passwords in addresses and values of secret parameters are cut out of each line, and so are the
secrets of the settings, wherever a message has them from.
"""

from __future__ import annotations

import datetime as dt
import json
import logging
import re
from collections.abc import Iterable

_SECRETS = (
    (re.compile(r"\btw_([a-z]{2,5})_[A-Za-z0-9_-]+"), r"tw_\1_..."),
    (re.compile(r"(/(?:s|websub|webhooks)/[0-9]+[-/])[A-Za-z0-9_-]+"), r"\1..."),
    (re.compile(r"(?i)([?&](?:[a-z_.]*(?:key|token|ticket|secret|password|signature))=)[^&\s\"']+"), r"\1..."),
    (re.compile(r"(?i)\b((?:bearer|basic) )[^\s\"']+"), r"\1..."),
    (re.compile(r"(?<=://)[^/@\s\"']+@"), "...@"),
)
_SHORTEST = 6  # characters of a secret of the settings that is cut out


def without_secrets(text: str, secrets: Iterable[str] = ()) -> str:
    """The text with `...` in place of each secret that is known by its form, and of those given."""
    for secret in secrets:
        if len(secret) >= _SHORTEST:
            text = text.replace(secret, "...")
    for pattern, in_its_place in _SECRETS:
        text = pattern.sub(in_its_place, text)
    return text


class Lines(logging.Formatter):
    """Messages as lines."""

    def __init__(self, as_json: bool, secrets: Iterable[str]) -> None:
        super().__init__()
        self._as_json, self._secrets = as_json, tuple(secrets)

    def format(self, record: logging.LogRecord) -> str:
        """One message as one line."""
        text = record.getMessage()
        if record.exc_info:
            text = f"{text}\n{self.formatException(record.exc_info)}"
        text = without_secrets(text, self._secrets)
        at = dt.datetime.fromtimestamp(record.created, dt.UTC).isoformat(timespec="milliseconds")
        if self._as_json:
            about = {"time": at, "level": record.levelname.lower(), "logger": record.name, "message": text}
            return json.dumps(about, ensure_ascii=False)
        return f"{at} {record.levelname.lower()} {record.name}: {text}".replace("\r", " ").replace("\n", "\n  ")


def log_to_standard_error(level: str, as_json: bool, secrets: Iterable[str]) -> None:
    """Have all loggers of this process write such lines from now on. `level`: the least that is written."""
    handler = logging.StreamHandler()
    handler.setFormatter(Lines(as_json, secrets))
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
    for name in ("alembic", "httpcore2", "uvicorn.error"):  # they tell of each step
        logging.getLogger(name).setLevel(logging.WARNING)
