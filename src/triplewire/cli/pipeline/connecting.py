"""Options of `triplewire pipeline` for what lies outside of files: `triplewire.pipeline.connect.addresses`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from triplewire.cli.report import one_line
from triplewire.errors import TriplewireError

if TYPE_CHECKING:
    from triplewire.pipeline.connect.addresses import Connections
    from triplewire.pipeline.connect.delivery import Delivery
    from triplewire.pipeline.connect.parts import Sink

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

    def connections(self) -> Connections:
        """What the file says. Raises `BadParameter`."""
        return connections_from(self.connect)

    def delivery(self) -> Delivery:
        """The sinks. Raises `BadParameter` where an address is wrong."""
        # --help does without Arrow behind these
        from triplewire.pipeline.connect.delivery import Delivery
        from triplewire.pipeline.connect.parts import LETTER, MATCH

        connections = self.connections()
        return Delivery(
            _sinks(self.to or (), MATCH, connections, "--to"),
            _sinks(self.dead_letters_to or (), LETTER, connections, "--dead-letters-to"),
        )


def connections_from(file: Path | None) -> Connections:
    """What a file of connections says; nothing without one. Raises `BadParameter`."""
    # --help does without it
    from triplewire.pipeline.connect.addresses import Connections

    with wrong("--connect"):
        return Connections.read(file) if file is not None else Connections()


def _sinks(texts: list[str] | tuple[str, ...], kind: str, connections: Connections, option: str) -> list[Sink]:
    # as in `Connecting.delivery`
    from triplewire.pipeline.connect.addresses import address
    from triplewire.pipeline.connect.delivery import sink

    with wrong(option):
        return [sink(address(text, connections), kind) for text in texts]


@contextmanager
def wrong(option: str) -> Iterator[None]:
    """What is wrong with an address, or with the file of connections, is wrong usage of this option."""
    try:
        yield
    except TriplewireError as error:
        raise typer.BadParameter(one_line(str(error)), param_hint=option) from error
