"""Options of `triplewire pipeline` for Kafka, databases and webhooks: see `triplewire.net.addresses`."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from triplewire.cli.arguments import wrong_usage
from triplewire.cli.inputs.files import check_files, file_argument
from triplewire.cli.pipeline.session import spark_with_log

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from triplewire.config import Settings
    from triplewire.net.addresses import Connections
    from triplewire.pipeline.connect.delivery import Delivery
    from triplewire.pipeline.connect.parts import SparkSink

ConnectFile = Annotated[
    Path | None,
    typer.Option(
        "--connect",
        metavar="FILE",
        exists=True,
        dir_okay=False,
        help="TOML: users, secrets and settings, in tables named after the beginning of an address.",
    ),
]


@dataclass(frozen=True)
class Connecting:
    """Where a run writes beside its output folder, and what it needs to reach other systems; a group of options."""

    to: Annotated[
        list[str] | None,
        typer.Option(
            "--to",
            metavar="URL",
            help="Matches also to kafka://HOST:PORT/TOPIC, jdbc:postgresql://HOST/DATABASE#TABLE, sqlite:FILE#TABLE or "
            "a webhook (https://...); may be repeated.",
        ),
    ] = None
    dead_letters_to: Annotated[
        list[str] | None, typer.Option("--dead-letters-to", metavar="URL", help="The same for dead letters.")
    ] = None
    connect: ConnectFile = None

    def opened(self) -> tuple[Connections, Delivery]:
        """What the file of connections says, and the sinks. Raises `BadParameter` where an address is wrong."""
        # --help does without Arrow behind these
        from triplewire.notify.rows import LETTER, MATCH
        from triplewire.pipeline.connect.delivery import Delivery

        connections = connections_from(self.connect)
        matches = _sinks(self.to or (), MATCH, connections, "--to")
        return connections, Delivery(
            matches, _sinks(self.dead_letters_to or (), LETTER, connections, "--dead-letters-to")
        )


def connections_from(file: Path | None) -> Connections:
    """What a file of connections says; nothing without one. Raises `BadParameter`."""
    # --help does without it
    from triplewire.net.addresses import Connections

    with wrong_usage("--connect"):
        return Connections.read(file) if file is not None else Connections()


def _sinks(texts: list[str] | tuple[str, ...], kind: str, connections: Connections, option: str) -> list[SparkSink]:
    # as in `Connecting.opened`
    from triplewire.net.addresses import address
    from triplewire.pipeline.connect.delivery import sink

    with wrong_usage(option):
        return [sink(address(text, connections), kind) for text in texts]


# --- subscriptions ---------------------------------------------------------------------------------------------------


class Subscribed(NamedTuple):
    """A file or a folder of subscriptions, or the address of a table of them."""

    file: Path
    address: str = ""


def subscribed_argument(text: str) -> Subscribed:
    """What an argument names. Raises `BadParameter` for an address of anything but a database."""
    if text.startswith(("jdbc:", "sqlite:")):
        return Subscribed(Path(), text)
    return Subscribed(file_argument(text))


SubscribedOption = Annotated[
    list[Subscribed] | None,
    typer.Option(
        "--subscriptions",
        metavar="FILE...",
        parser=subscribed_argument,
        help="Queries: .gql .rq .mdv .pred (one each), .jsonl .parquet (many), folders of them; tables of databases: "
        "jdbc:postgresql://HOST/DATABASE#TABLE, sqlite:FILE#TABLE.",
    ),
]


class Fetched(NamedTuple):
    """Files of subscriptions, and the addresses that some of them stand for."""

    files: list[Path]
    names: dict[str, str]


@contextmanager
def subscription_files(
    given: Iterable[Subscribed], settings: Settings, connect: Path | None, config: dict[str, str], master: str
) -> Iterator[Fetched]:
    """The subscriptions as files; those of tables are fetched, and removed in the end. Raises `BadParameter`."""
    # --help does without Arrow behind these
    from triplewire.languages.sources.rows import row_bytes
    from triplewire.net.addresses import JDBC, SQLITE, address
    from triplewire.pipeline.connect.tables import DEFAULT_TABLE, fetched

    given, connections = list(given), connections_from(connect)
    check_files([entry.file for entry in given if not entry.address])
    out = Fetched([], {})
    with ExitStack() as opened:
        log = Path(tempfile.gettempdir()) / f"triplewire-spark-{os.getpid()}.log"

        @opened.push
        def forget(raised: type[BaseException] | None, *_: object) -> None:
            if raised is None or issubclass(raised, KeyboardInterrupt):  # other failures name the log
                log.unlink(missing_ok=True)

        @cache
        def spark() -> SparkSession:  # one for all tables, which is told of once
            return opened.enter_context(spark_with_log(log, master, config))

        for entry in given:
            if not entry.address:
                out.files.append(entry.file)
                continue
            folder = Path(tempfile.mkdtemp(prefix="triplewire-subscriptions-"))
            opened.callback(shutil.rmtree, folder, ignore_errors=True)
            with wrong_usage("--subscriptions"):
                table = address(entry.address, connections, (JDBC, SQLITE)).named(DEFAULT_TABLE)
                files = fetched(table, folder / "rows", spark, row_bytes(settings))
            out.files.extend(files)
            out.names.update((str(file), str(table)) for file in files)
        yield out
