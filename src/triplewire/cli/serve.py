"""`triplewire serve`: a broker over HTTP. See `triplewire.service`."""

from __future__ import annotations

import os
import secrets
from pathlib import Path
from typing import Annotated

import typer

from triplewire.cli.arguments import (
    OperatorFiles,
    TaxonomyFiles,
    folder_option,
    operators_from,
    settings_from_environment,
)
from triplewire.cli.report import say


def serve_command(
    data: Annotated[Path, folder_option("--data", help="Where everything is kept.")],
    port: Annotated[int, typer.Option(min=1, max=65_535, help="The port to listen at.")] = 8750,
    host: Annotated[str, typer.Option(help="The address to listen at; 0.0.0.0 for all.")] = "127.0.0.1",
    database: Annotated[
        str, typer.Option(metavar="URL", help="postgresql://...; default: a SQLite file in --data.")
    ] = "",
    taxonomy: TaxonomyFiles = None,
    operators: OperatorFiles = None,
) -> None:
    """
    \b
    triplewire serve --data broker
    triplewire serve --data broker --database postgresql://user@host/name

    Keep subscriptions and publications, and tell each match at once: as feeds, webhooks, and in many other ways.
    """
    import uvicorn

    from triplewire.broker.broker import Broker
    from triplewire.broker.quarantine import Limits
    from triplewire.engine import Engine
    from triplewire.operators.files import operators_of
    from triplewire.read.taxonomy import load_taxonomy
    from triplewire.service.app import ServiceSettings, service

    data.mkdir(parents=True, exist_ok=True)
    settings = settings_from_environment()
    engine = Engine(
        taxonomy=load_taxonomy(taxonomy, settings) if taxonomy else None,
        operators=operators_of(operators_from(operators)) if operators else None,
        settings=settings,
    )
    url = database or f"sqlite:///{(data / 'broker.db').absolute()}"
    limits = Limits(trusted=frozenset({ServiceSettings.owner}))
    with Broker.open(url, secret_of(data), engine=engine, limits=limits, folder=data, warn=say) as broker:
        how = ServiceSettings(
            token=os.environ.get("TRIPLEWIRE_TOKEN", ""),
            allow_private_addresses=os.environ.get("TRIPLEWIRE_ALLOW_PRIVATE_ADDRESSES") == "1",
        )
        say(f"serving at http://{host}:{port}/")
        uvicorn.run(service(broker, how), host=host, port=port, log_level="warning")


def secret_of(data: Path) -> bytes:
    """The secret of a folder, which keys of feeds are made with; a new one where there is none."""
    file = data / "secret"
    if not file.exists():
        part = file.with_name(f".secret.{os.getpid()}")
        part.touch(0o600)
        part.write_bytes(secrets.token_bytes(32))
        os.replace(part, file)
    return file.read_bytes()
