"""All limits of the engine, in one frozen dataclass, and what else a service is told, in another.

An error names the setting whose limit was passed. Only the command line reads the environment
(`Settings.from_environment`, `triplewire.cli.settings`): `TRIPLEWIRE_MAX_BINDINGS=50` sets `max_bindings`. `VARIABLES`
has all variables.
"""

from __future__ import annotations

import dataclasses
import os
import re
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from triplewire.argument_checks import refuse
from triplewire.errors import TriplewireError

PREFIX = "TRIPLEWIRE_"
MOST = 2**62  # operating systems take no larger ones
MOST_SECONDS = 10**9
LISTED = 1 << 20  # bindings of a match that may be listed even where `max_steps` is smaller
MOST_LISTED = (1 << 30) - 1  # less than where the counts of kernels stay, so that these tell when there are more


@dataclass(frozen=True, slots=True)
class Settings:
    """Limits, with their units. All are positive integers; others are refused with an `ArgumentError`."""

    # subscriptions
    max_query_bytes: int = 64 * 1024  # UTF-8 bytes of one subscription's text
    max_query_depth: int = 64  # nested groups, parentheses, operators
    max_branches: int = 64  # branches of the disjunctive normal form
    max_patterns: int = 256  # triple patterns of one subscription

    merge_subscriptions: int = 1_024  # of the last segment, made anew for new ones; with more the next begins

    # evaluation of one subscription against one publication
    max_bindings: int = 1_000  # distinct bindings of a match; of one with more, `truncated` says so
    max_binding_bytes: int = 64 * 1024 * 1024  # UTF-8 bytes of the terms in them, and of those in a CONSTRUCT graph
    # steps of work on one pair, some microseconds each: candidate triples and rows, characters that functions read and
    # write; with more, the pair is refused, and where it is known to match, its bindings are cut
    max_steps: int = 2_000_000
    operator_seconds: int = 10  # one call of an operator; if it takes longer, the call is unknown
    operator_cache_bytes: int = 256 * 1024 * 1024  # outcomes of operators on disk, where a folder for them is given
    max_regex_bytes: int = 1_024  # UTF-8 bytes of a regular expression

    # inputs
    max_input_bytes: int = 512 * 1024 * 1024  # one file, after decompression
    max_document_bytes: int = 16 * 1024 * 1024  # one document that is one publication or feed (all but N-Quads, TriG)
    max_triples: int = 100_000  # triples of one publication
    max_literal_bytes: int = 1024 * 1024
    max_iri_bytes: int = 8 * 1024
    max_xml_depth: int = 256
    max_json_depth: int = 64
    max_turtle_depth: int = 128  # nested [ ] and ( )
    max_entities: int = 64  # entity declarations of one XML document
    max_entity_bytes: int = 1_024  # the value of one entity
    parse_seconds: int = 30  # one document in the parsing worker
    parse_bytes: int = 2 * 1024 * 1024 * 1024  # address space of the parsing worker

    def __post_init__(self) -> None:
        """Raises `ArgumentError` where a limit is no positive integer, or too large."""
        for name in self.__slots__:
            value, most = getattr(self, name), most_of(name)
            if type(value) is not int or not 1 <= value <= most:
                raise refuse(f"Settings({name}=...)", f"an integer from 1 to {most}", value, _remedy(value))

    @property
    def most_bindings(self) -> int:
        """How many bindings a match keeps: `max_bindings`, but no more than `max_steps` can list, or kernels count."""
        return min(self.max_bindings, max(self.max_steps, LISTED), MOST_LISTED)

    @classmethod
    def from_environment(
        cls, environment: Mapping[str, str] | None = None, on_warning: Callable[[str], None] | None = None
    ) -> Settings:
        """The defaults, overridden by `TRIPLEWIRE_<NAME>` variables. Raises `TriplewireError` where a value is no
        number or out of range. `on_warning` is told of each unknown `TRIPLEWIRE_` variable, once a process; without
        it, Python's warnings are."""
        environment = os.environ if environment is None else environment
        warn = on_warning or partial(warnings.warn, stacklevel=2)
        for name in sorted(set(environment) - _told):
            if name.startswith(PREFIX) and name not in VARIABLES:
                _told.add(name)
                warn(unknown_variable(name))
        changes = {}
        for setting in (field.name for field in dataclasses.fields(cls)):
            name, most = PREFIX + setting.upper(), most_of(setting)
            if (text := environment.get(name)) is not None:
                if not text.isdecimal() or len(text) > len(str(MOST)) or not 1 <= int(text) <= most:
                    what = f"{text!r} is not a number from 1 to {most}"
                    raise TriplewireError(what, source=name, remedy="use digits only")
                changes[setting] = int(text)
        return cls(**changes)


def most_of(name: str) -> int:
    """The largest value of a setting."""
    return MOST_SECONDS if name.endswith("_seconds") else MOST


def setting(
    default: Any,
    help: str,
    *,
    secret: bool = False,
    choices: tuple[str, ...] = (),
    least: float = 0,
    most: float = MOST,
    form: tuple[str, str] = ("", ""),
    parted: str = os.pathsep,
) -> Any:
    """A field of `ServiceSettings`. What is `secret` is also read from a file, whose name ends in `_file`, and is never
    shown nor given on the command line. A number is from `least` to `most`. `form`: a regular expression of a text, and
    the same in words; where the default is empty, the text may be, too. `parted`: what stands between several in the
    environment: those that the separator of paths parts are files."""
    about = {"help": help, "secret": secret, "choices": choices, "parted": parted}
    return dataclasses.field(default=default, metadata={**about, "least": least, "most": most, "form": form})


_NETWORK = r"\s*[0-9A-Fa-f.:]+(/[0-9]+)?\s*"
_HOST_AND_PORT = r"[^\s/,:@]+:[0-9]{1,5}"


@dataclass(frozen=True)
class ServiceSettings:
    """How `triplewire serve` works, beside the limits (`Settings`, with `SERVICE_LIMITS` in place of defaults)."""

    data: str = setting("", "The folder where everything is kept.")
    host: str = setting("127.0.0.1", "The address to listen at; 0.0.0.0 for all.")
    port: int = setting(8750, "The port to listen at.", least=1, most=65_535)
    base_url: str = setting(
        "",
        "The address as others reach it, where that is another one.",
        form=(r"https?://[^\s/?#@]+(/[^\s?#]*)?", "an address: https://HOST/"),
    )
    trusted_proxies: str = setting(
        "127.0.0.1",
        "Proxies whose X-Forwarded headers count: addresses and networks, by ','; * for all.",
        form=(rf"|\*|{_NETWORK}(,{_NETWORK})*", "addresses and networks, by ',': 127.0.0.1,10.0.0.0/8"),
    )
    database: str = setting("", "postgresql://...; default: a SQLite file in the folder of the data.")
    token: str = setting("", "The API token of the owner of the service.", secret=True)
    owner: str = setting(
        "owner", "The name of the owner of the service.", form=(r"[^\x00-\x1f\x7f?#]{1,200}", "a name without ? and #")
    )
    feed_secret: str = setting("", "What addresses of feeds are made with; default: DATA/secret.", secret=True)
    taxonomy: tuple[str, ...] = setting((), "The class hierarchy: RDFS, OWL, SKOS, or two columns.")
    operators: tuple[str, ...] = setting((), "Operators of your own: Python files, which are run; TOML files.")
    index: str = setting(
        "", "Have `pipeline run --index DIR` match, and keep its index of subscriptions in this folder."
    )
    matches: str = setting("", "Where that run tells matches: URL#TABLE, sqlite:FILE#TABLE, kafka://HOST:PORT/TOPIC.")
    upstream: tuple[str, ...] = setting(
        (), "Brokers to subscribe at for the own subscriptions, by ',': addresses.", parted=","
    )
    upstream_token: str = setting("", "The API token that upstreams are asked with; default: token.", secret=True)
    allow_private_addresses: bool = setting(False, "Feeds, webhooks and callbacks may lie in your own network.")
    most_body: int = setting(1 << 20, "Bytes of a request.", least=1)
    requests_per_minute: float = setting(
        6_000.0, "Requests of one account, and of one network (an address of IPv4, a /64 of IPv6).", least=1
    )
    dry_runs_per_minute: float = setting(
        300.0, "Of these, dry runs: /match, /explain, /feed, /sparql, the tester.", least=1
    )
    most_subscriptions: int = setting(10_000, "Subscriptions of one owner.", least=1)
    wait_seconds: float = setting(30.0, "How long ?wait=1 waits for matching.")
    source_folder: str = setting("", "The folder below which sources may be folders.")
    shortest_poll: float = setting(60.0, "Seconds between two requests for a feed, at least.")
    longest_poll: float = setting(21_600.0, "Seconds between two requests for a feed, at most.")
    most_new: int = setting(100, "Publications with new ids of one document that are told.", least=1)
    keep_days: float = setting(30.0, "Days that events are kept, and what was delivered in the log.")
    keep_events: int = setting(1_000, "Events that are kept of a subscription.", least=1)
    deliveries_at_once: int = setting(2, "Deliveries to one host at once.", least=1)
    deliveries_per_minute: float = setting(60.0, "Deliveries to one host in a minute, unless it allows more.", least=1)
    delivery_seconds: float = setting(15.0, "How long a receiver has to answer.", least=0.1)
    smtp: str = setting(
        "",
        "smtp://HOST:PORT or smtps://HOST:PORT, which mail is given to.",
        form=(r"smtps?://([^\s/?#@:]+|\[[0-9A-Fa-f:.]+\])(:[0-9]{1,5})?/?", "smtp://HOST:PORT or smtps://HOST:PORT"),
    )
    smtp_user: str = setting("", "The user of that server.")
    smtp_password: str = setting("", "Its password.", secret=True)
    mail_from: str = setting("", "Who sends mail.", form=(r"[^\s@<>]+@[^\s@<>]+", "an address of mail: NAME@HOST"))
    kafka: str = setting(
        "",
        "Servers of Kafka, HOST:PORT by ',', to which events may be delivered.",
        form=(rf"{_HOST_AND_PORT}(,{_HOST_AND_PORT})*", "servers, by ',': HOST:PORT"),
    )
    messengers: str = setting(
        "discord,matrix,matrixs,ntfy,ntfys,slack,tgram", "Services of Apprise to which events may be delivered, by ','."
    )
    stop_seconds: float = setting(30.0, "How long requests, and then deliveries, may take to end at SIGTERM.")
    metrics_token: str = setting("", "The token that /metrics asks of who is not in --metrics-from.", secret=True)
    metrics_from: str = setting("127.0.0.0/8,::1", "Networks that may read /metrics without a token, by ','.")
    log_level: str = setting("info", "What is logged.", choices=("debug", "info", "warning", "error"))
    log_format: str = setting("text", "json: an object a line.", choices=("text", "json"))

    def __post_init__(self) -> None:
        """Raises `ArgumentError` where a number is too small or large, or a text is none of its choices, or not of its
        form."""
        for field in dataclasses.fields(ServiceSettings):
            value, about = getattr(self, field.name), field.metadata
            (pattern, form), least, most = about["form"], about["least"], about["most"]
            if about["choices"] and value not in about["choices"]:
                raise refuse(f"ServiceSettings({field.name}=...)", f"one of {', '.join(about['choices'])}", value)
            if isinstance(value, int | float) and not least <= value <= most:
                to = "on" if most == MOST else f"to {most}"
                raise refuse(f"ServiceSettings({field.name}=...)", f"a number from {least} {to}", value)
            if pattern and (value or field.default) and not re.fullmatch(pattern, value):
                raise refuse(f"ServiceSettings({field.name}=...)", form, value)


IN_FILES = (
    *(field.name for field in dataclasses.fields(ServiceSettings) if field.metadata["secret"]),
    "database",
    "matches",
)
"""The settings of a service that may be read from a file of their own."""

SERVICE_LIMITS: Mapping[str, int] = {
    "max_patterns": 32,
    "max_steps": 1_000_000,
    "operator_seconds": 2,
    "max_triples": 10_000,
    "max_literal_bytes": 256 * 1024,
}
"""The limits of a service that strangers may use, where they are other ones than the defaults of `Settings`."""


def _remedy(value: object) -> str:
    if isinstance(value, str) and value.isdecimal():
        return f"{value} without quotes; the environment takes texts"
    is_off = value is None or (isinstance(value, int) and value < 1)
    return "a limit cannot be turned off; give a large number instead" if is_off else ""


VARIABLES: Mapping[str, str] = {
    **{PREFIX + field.name.upper(): f"the setting {field.name}" for field in dataclasses.fields(Settings)},
    **{PREFIX + field.name.upper(): field.metadata["help"] for field in dataclasses.fields(ServiceSettings)},
    **{f"{PREFIX}{name.upper()}_FILE": f"the file that holds {name}" for name in IN_FILES},
    "TRIPLEWIRE_SERVICE": "the address of the service that commands as `triplewire publish` talk to",
    "TRIPLEWIRE_BENCH_BEFORE": "the checkout that the bench of loading goes by turns with",
    "TRIPLEWIRE_BENCH_DATA": "the folder of the bench's data",
    "TRIPLEWIRE_BENCH_POSTGRES": "the address of an empty database for the bench of the broker",
    "TRIPLEWIRE_BENCH_SYSTEM": "NAME=COMMAND: a system that the bench of peers measures beside the others",
    "TRIPLEWIRE_CACHE": "the folder of compiled code",
    "TRIPLEWIRE_CRASH_AT": "tests: the point at which the process ends, and the how manyth time",
    "TRIPLEWIRE_DAMAGE": "tests: all tries all generated cases, and every moment to stop",
    "TRIPLEWIRE_ONTOLOGY": "the file of axioms of the operator entails",
    "TRIPLEWIRE_FREQUENCIES": "the file of document frequencies of the operator ftsim",
    "TRIPLEWIRE_PLACES": "the file of places of the operator inPlace (GeoJSON)",
    "TRIPLEWIRE_SHAPES": "the folder of shapes of the operator conforms",
    "TRIPLEWIRE_TIER": "auto, compiled or interpreted",
    "TRIPLEWIRE_TRACEBACK": "1: the command line shows where in the code an unexpected error arose",
    "TRIPLEWIRE_TEST_DATA": "tests: the folder of shared data",
    "TRIPLEWIRE_TEST_DOCUMENTS": "tests: how many documents are generated",
    "TRIPLEWIRE_TEST_FEEDS": "tests: how many damaged feeds are read",
    "TRIPLEWIRE_TEST_PAIRS": "tests: how many pairs are compared",
    "TRIPLEWIRE_TEST_SEED": "tests: the seed of what is generated",
    "TRIPLEWIRE_TEST_SHOW_ERRORS": "tests: 1 prints the messages",
    "TRIPLEWIRE_TEST_TEXTS": "tests: how many texts are generated",
}
"""All variables of the environment that Triplewire reads, and what each is."""

_told: set[str] = set()  # unknown variables that a warning has named


def unknown_variable(name: str) -> str:
    """What to say of a variable that nothing reads."""
    # loaded where it is needed: most runs have no unknown variable
    import difflib

    known = [variable.removeprefix(PREFIX) for variable in VARIABLES]
    near = difflib.get_close_matches(name.removeprefix(PREFIX), known, 1, 0.7)
    meant = f"did you mean {PREFIX}{near[0]}?" if near else "triplewire.config.VARIABLES has those that are read"
    return f"the variable {name} of the environment is unknown; {meant}"
