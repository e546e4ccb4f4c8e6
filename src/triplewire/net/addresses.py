"""Addresses of Kafka topics, tables of databases and webhooks, and the settings that are needed to reach them.

    kafka://HOST:PORT[,HOST:PORT...]/TOPIC      jdbc:postgresql://HOST/DATABASE#TABLE
    sqlite:FILE#TABLE                           https://HOST/PATH (a webhook)

An address holds no secret: it stands in command lines, logs and records. Secrets come from a TOML file, in tables that
are named after the beginning of an address; the longest that fits counts.

    ["jdbc:postgresql://db.example/"]
    user = "triplewire"
    password = { env = "DB_PASSWORD" }          # or { file = "PATH" }, or a text
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from triplewire.errors import TriplewireError
from triplewire.folders import text_of_file

KAFKA, JDBC, SQLITE, WEBHOOK = "kafka", "jdbc", "sqlite", "webhook"

_KINDS = {"kafka:": KAFKA, "jdbc:": JDBC, "sqlite:": SQLITE, "http:": WEBHOOK, "https:": WEBHOOK}
_BROKERS = re.compile(r"kafka://([A-Za-z0-9._\-\[\]:,]+)/([A-Za-z0-9._-]{1,249})/?")
_TABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,62}(\.[A-Za-z_][A-Za-z0-9_]{0,62})?")
_USER = re.compile(r"://[^?#\s]*@")
_USER_OF_ORACLE = re.compile(r"(?i)(jdbc:oracle:\w+:)[^@\s]+@")
_USER_SETTING = re.compile(r"(?i)[?&;(,]user(name)?=")
_SECRET = re.compile(r"(?i)\b[\w.-]*(pass(word|wd|phrase)?|pwd|secret|token|api[_-]?key|signature|sig|credentials?)=")
# what is not shown, though an address may have it: a feed with a token in its query is asked all the same
_NOT_SHOWN = re.compile(
    rf"(?:{_SECRET.pattern.replace('(?i)', '(?i:', 1).removesuffix('=')})"
    r"|(?<![\w.-])(?i:key|access[_-]?key|auth|authorization|bearer|code|jwt|session|session_?id|sid))=[^&;#\s'\"<>]*"
)
# a part of the path of a webhook that nobody can have chosen as a name: long, with letters and digits
_KEY_IN_PATH = re.compile(r"(?<=/)(?=[^/?#]*[0-9])(?=[^/?#]*[A-Za-z])[\w:.~-]{20,}(?=[/?#]|\Z)")
HTTP_SETTINGS = frozenset(
    {"allow_private_addresses", "attempts", "authorization", "ca_file", "concurrency", "interval", "secret", "timeout"}
)
"""What tables for webhooks and feeds may have; one may be for both."""
_MOST_SECONDS = 3_600
_FORMS = "kafka://HOST:PORT/TOPIC, jdbc:postgresql://HOST/DATABASE#TABLE, sqlite:FILE#TABLE, https://HOST/PATH"


@dataclass(frozen=True)
class Address:
    """One address. `url` is without the table; `name` is the topic or table, "" where none is given; `settings` are
    those of the file of connections, with their secrets, and are never shown."""

    kind: str
    url: str
    name: str = ""
    settings: Mapping[str, str] = field(default_factory=dict, repr=False)

    def __str__(self) -> str:
        """As it may be shown: what looks like a secret in the query or the path of a webhook's URL is left out."""
        url = self.url if self.kind == SQLITE else shown(self.url)
        if self.kind == WEBHOOK:
            url = _KEY_IN_PATH.sub("***", url)
        return f"{url}#{self.name}" if self.name and self.kind in (JDBC, SQLITE) else url

    def named(self, name: str) -> Address:
        """The same with this name where it has none."""
        return self if self.name else Address(self.kind, self.url, name, self.settings)


@dataclass(frozen=True)
class Connections:
    """Settings by the beginning of an address."""

    tables: Mapping[str, Mapping[str, str]] = field(default_factory=dict, repr=False)

    @classmethod
    def read(cls, file: Path) -> Connections:
        """The tables of a TOML file, with the secrets that it refers to. Raises `TriplewireError`."""
        try:
            tables = tomllib.loads(text_of_file(file))
        except (OSError, UnicodeDecodeError) as error:
            raise TriplewireError(f"it cannot be read: {error}", source=str(file)) from None
        except (tomllib.TOMLDecodeError, RecursionError) as error:
            raise TriplewireError(f"no TOML: {error}", source=str(file)) from None
        return cls({prefix: _settings(prefix, table, str(file)) for prefix, table in tables.items()})

    def of(self, text: str) -> Mapping[str, str]:
        """The settings for an address. A beginning that ends within the name of a host, or within a port, fits that
        host or port alone: `https://a.example` does not fit `https://a.example.org/`."""
        fitting = [prefix for prefix in self.tables if text.startswith(prefix) and _is_whole(prefix, text)]
        return self.tables[max(fitting, key=len)] if fitting else {}


def _is_whole(prefix: str, text: str) -> bool:
    """Does the beginning of an address end where a name of a host or a port does, if it ends in one of these?"""
    authority = prefix.partition("://")[2]
    if not authority or re.search(r"[/?#;]|[:,]\Z", authority):
        return True
    return text[len(prefix) :][:1] in ("", *"/?#,;:")


def _settings(prefix: str, table: Any, file: str) -> dict[str, str]:
    if not isinstance(table, dict) or kind_of(prefix) == "":
        what = f"[{prefix!r}] is no table named after the beginning of an address"
        raise TriplewireError(what, source=file, remedy=f'["jdbc:postgresql://db.example/"]; addresses are {_FORMS}')
    settings = {name: _value(name, value, file) for name, value in table.items()}
    if settings.get("allow_private_addresses", "false") not in ("false", "true"):
        raise TriplewireError(f"[{prefix!r}]: allow_private_addresses is true or false", source=file)
    return settings


def _value(name: str, value: Any, file: str) -> str:
    """A setting as text. What is wrong is told without the value."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str | int | float):
        return str(value)
    if isinstance(value, dict) and len(value) == 1:
        (kind, place), *_ = value.items()
        try:
            if kind == "env":
                return os.environ[place]
            if kind == "file":
                return text_of_file(place).strip()
        except KeyError:
            raise TriplewireError(f"{name}: the environment has no variable {place}", source=file) from None
        except (OSError, ValueError, TypeError) as error:
            raise TriplewireError(f"{name}: its file cannot be read: {error}", source=file) from None
    remedy = 'a secret: { env = "NAME" } or { file = "PATH" }'
    raise TriplewireError(f"{name} is no text, number or boolean", source=file, remedy=remedy)


def kind_of(text: str) -> str:
    """The kind of an address, "" where it is a path or another URL."""
    return next((kind for start, kind in _KINDS.items() if text.startswith(start)), "")


def address(text: str, connections: Connections | None = None, allowed: Iterable[str] = ()) -> Address:
    """The address that a user names. `allowed`: the kinds that are expected, all without. Raises `TriplewireError`."""
    kind, settings = kind_of(text), (connections or Connections()).of(text)
    if not kind or (allowed and kind not in set(allowed)):
        raise TriplewireError("it is no address that is known here", source=shown(text), remedy=_FORMS)
    has_user = kind != SQLITE and _USER.search(text)  # the path of a SQLite file may have an @
    has_setting = kind == JDBC and (_USER_OF_ORACLE.search(text) or _USER_SETTING.search(text))
    if has_user or has_setting or (kind != WEBHOOK and _SECRET.search(text)):
        what = "an address holds no user and no password: others would see them"
        remedy = "give them in a file: --connect FILE, with a table named after the beginning of the address"
        raise TriplewireError(what, source=shown(text), remedy=remedy)
    if kind == KAFKA:
        match = _BROKERS.fullmatch(text)
        if match is None:
            raise TriplewireError("this is not kafka://HOST:PORT[,HOST:PORT]/TOPIC", source=shown(text))
        return Address(KAFKA, text.rstrip("/"), match[2], settings)
    if kind == WEBHOOK:
        return Address(WEBHOOK, text, "", settings)
    url, _, table = text.partition("#")
    if table and not _TABLE.fullmatch(table):
        raise TriplewireError(f"{table!r} is no name of a table", source=shown(url), remedy="letters, digits and _")
    if kind == SQLITE and (not sqlite_path(url) or re.match(r"sqlite://(?!/)", url)):
        raise TriplewireError("this is not sqlite:FILE#TABLE", source=url, remedy="an absolute path: sqlite:/FILE")
    return Address(kind, url, table, settings)


def timeout_of(settings: Mapping[str, str], usual: float) -> float:
    """The seconds that an answer of a webhook or a feed may take. Raises `ValueError` for what is no such number, and
    for a setting that they do not have."""
    if unknown := sorted(set(settings) - HTTP_SETTINGS):
        raise ValueError(f"the setting {unknown[0]!r} is unknown; known: {', '.join(sorted(HTTP_SETTINGS))}")
    text = settings.get("timeout", str(usual))
    with suppress(ValueError):
        if 0 < float(text) <= _MOST_SECONDS:
            return float(text)
    raise ValueError(f"timeout must be a number of seconds above 0, at most {_MOST_SECONDS:,}, not {text!r}")


def brokers(target: Address) -> str:
    """The servers of a Kafka address, as Kafka's clients take them."""
    match = _BROKERS.fullmatch(target.url)
    assert match is not None
    return match[1]


def sqlite_path(url: str) -> str:
    """The file of `sqlite:FILE` or `sqlite:///FILE`."""
    path = url.removeprefix("sqlite:")
    return path[2:] if path.startswith("///") else path


def shown(text: str) -> str:
    """An address, or a text that names some, as it may be shown: without what may be a user or a secret."""
    without = _USER_OF_ORACLE.sub(r"\1***@", _USER.sub("://***@", text))
    return _NOT_SHOWN.sub(lambda match: match[0].partition("=")[0] + "=***", without)
