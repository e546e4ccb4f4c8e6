"""`triplewire serve`: a broker over HTTP. See `triplewire.service`."""

from __future__ import annotations

import errno
import logging
import os
import secrets
import socket
from contextlib import ExitStack, suppress
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

import typer

from triplewire.cli.arguments import check_files, file_argument, grouped, operators_from
from triplewire.cli.output import named
from triplewire.cli.report import say
from triplewire.cli.settings import EffectiveSettings, GivenSettings
from triplewire.errors import BusyError, UnavailableError, WriteError

if TYPE_CHECKING:
    from fastapi import FastAPI

    from triplewire.broker.broker import Broker
    from triplewire.broker.scale_out.from_pipeline import Outside
    from triplewire.config import ServiceSettings
    from triplewire.deliver.schedule import Deliveries
    from triplewire.operators.files import OperatorFile


@grouped
def serve_command(given: GivenSettings) -> None:
    """
    \b
    triplewire serve --data broker
    triplewire serve --data broker --database postgresql://user@host/name
    TRIPLEWIRE_PORT=9000 triplewire serve --config triplewire.toml

    Keep subscriptions and publications, and tell each match at once: as feeds, webhooks, and in many other ways. Each
    option is also a variable of the environment, TRIPLEWIRE_PORT=9000, and a line of a file, port = 9000; limits are
    there alone. SIGTERM ends what is under way, and then the service (exit code 0).
    """
    needs("serve", "fastapi", "uvicorn", "sqlalchemy", "prometheus_client")
    from triplewire.broker.feeds.websub import Hub
    from triplewire.broker.incoming.polling import Polling
    from triplewire.broker.incoming.websub_subscriber import Subscriber
    from triplewire.broker.network.links import Network
    from triplewire.broker.owners import has_tokens
    from triplewire.service.app import service
    from triplewire.service.logs import log_to_standard_error

    effective = given.effective()
    settings, data = effective.service, folder_of(effective)
    hidden = [settings.token, settings.upstream_token, settings.metrics_token, settings.feed_secret]
    log_to_standard_error(settings.log_level, settings.log_format == "json", filter(None, hidden))
    with listen(settings.host, settings.port) as listening, ExitStack() as running:
        broker = running.enter_context(_opened(effective, data))
        delivering = running.enter_context(_delivering(broker, settings))
        running.enter_context(Polling(broker, settings))
        running.enter_context(Hub(broker, settings.allow_private_addresses))
        if settings.base_url:  # foreign hubs have to reach it
            running.enter_context(Subscriber(broker, settings.base_url, settings.allow_private_addresses))
        if settings.upstream:
            running.enter_context(Network(broker, settings.upstream, settings.upstream_token or settings.token))
        app = service(broker, settings, delivering)
        host = f"[{settings.host}]" if ":" in settings.host else settings.host
        if not (settings.token or has_tokens(broker.database)):
            say(f"nobody has a token yet: triplewire token create --data {data} --owner {settings.owner}")
        say(f"serving at {settings.base_url or f'http://{host}:{settings.port}/'}")
        first = f"{settings.base_url.rstrip('/') or f'http://{host}:{settings.port}'}/sign-in"
        say(f"your page, for the first visit: {first}?key={app.state.first_visit}")
        run(app, settings, listening)


def run(app: FastAPI, settings: ServiceSettings, listening: socket.socket) -> None:
    """Serve an application until a signal ends it."""
    import uvicorn

    class Server(uvicorn.Server):
        """Ends streams at a signal: it waits for all answers."""

        def handle_exit(self, sig: int, frame: FrameType | None) -> None:
            app.state.streams.end()
            super().handle_exit(sig, frame)

    config = uvicorn.Config(
        app,
        log_config=None,
        server_header=False,
        forwarded_allow_ips=settings.trusted_proxies,
        timeout_graceful_shutdown=max(1, int(settings.stop_seconds)),
    )
    with suppress(KeyboardInterrupt):  # the signal that has ended it, once more
        Server(config).run(sockets=[listening])


def _delivering(broker: Broker, settings: ServiceSettings) -> Deliveries:
    """What delivers events, those of feeds to subscribers of the hub included."""
    from triplewire.broker.feeds.websub import message_of
    from triplewire.deliver.limits import DeliverySettings
    from triplewire.deliver.schedule import Deliveries
    from triplewire.deliver.webhooks import Posts
    from triplewire.service import feeds

    base_url = settings.base_url or f"http://{settings.host}:{settings.port}"
    sending = DeliverySettings(**{**vars(settings), "base_url": base_url})
    posts = Posts(sending, lambda sent: message_of(broker, sent.event.subscription, sent.target, feeds.rendered))
    return Deliveries(broker, sending, channels={"websub": posts})


def needs(extra: str, *modules: str) -> None:
    """Raises `UnavailableError` where a package of an extra is not installed."""
    import importlib.util

    absent = [module for module in modules if importlib.util.find_spec(module) is None]
    if absent:
        remedy = f"in a copy of the sources: pip install '.[{extra}]'"
        raise UnavailableError(f"{', '.join(absent)}: not installed", remedy=remedy)


def folder_of(effective: EffectiveSettings, *, is_made: bool = True) -> Path:
    """The folder of the data, which is made where there is none."""
    if not effective.service.data:
        raise typer.BadParameter("give the folder where everything is kept", param_hint="--data")
    data = Path(effective.service.data)
    return _made(data) if is_made else data


def _made(folder: Path) -> Path:
    """The folder, which is made where there is none. Raises `WriteError` where it cannot be."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise WriteError(f"the folder cannot be made: {error.strerror}", source=str(folder)) from None
    return folder


def database_of(settings: ServiceSettings, data: Path) -> str:
    """The address of the database."""
    return settings.database or f"sqlite:///{(data / 'broker.db').absolute()}"


def secret_of(settings: ServiceSettings, data: Path) -> bytes:
    """The secret that keys of feeds are made with: of the settings, or of the folder; a new one where there is none."""
    if settings.feed_secret:
        return settings.feed_secret.encode()
    file = data / "secret"
    if not file.exists():
        with named(data):
            part = file.with_name(f".secret.{os.getpid()}")
            part.touch(0o600)
            part.write_bytes(secrets.token_bytes(32))
            os.replace(part, file)
    return file.read_bytes()


def listen(host: str, port: int) -> socket.socket:
    """A socket that listens. Raises `BusyError` where another process has the port."""
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0][0]
        return socket.create_server((host, port), family=family, backlog=2_048)
    except (OSError, UnicodeError) as error:  # `UnicodeError`: no name of a host
        if isinstance(error, OSError) and error.errno == errno.EADDRINUSE:
            raise BusyError(f"another process listens at port {port}", remedy="choose another: --port") from None
        what = f"it cannot be listened at: {getattr(error, 'strerror', error)}"
        raise typer.BadParameter(what, param_hint="--host, --port") from None


def _outside(settings: ServiceSettings, data: Path, operators: tuple[OperatorFile, ...]) -> Outside:
    """The pipeline, where it matches. Its matches come, unless said, to a table of the broker's own database, or for
    SQLite to a file beside it."""
    from triplewire.broker.scale_out.from_pipeline import Outside
    from triplewire.broker.scale_out.pipeline_matches import TABLE

    usual = settings.database or f"sqlite:{(data / 'matches.db').absolute()}"
    return Outside(Path(settings.index), data / "inbox", settings.matches or f"{usual}#{TABLE}", operators)


def _opened(effective: EffectiveSettings, data: Path) -> Broker:
    from triplewire.broker.broker import Broker
    from triplewire.broker.events.removal import Retention
    from triplewire.broker.subscriptions.quarantine import Limits
    from triplewire.engine import Engine
    from triplewire.operators.files import operators_of
    from triplewire.read.taxonomy import load_taxonomy

    settings = effective.service
    taxonomy = [file_argument(name) for name in settings.taxonomy]
    check_files(taxonomy)
    files = operators_from([file_argument(name) for name in settings.operators])
    if settings.source_folder and not Path(settings.source_folder).is_dir():
        raise typer.BadParameter(f"{settings.source_folder} is no folder", param_hint="--source-folder")
    if settings.index:
        _made(Path(settings.index))
    engine = Engine(
        taxonomy=load_taxonomy(taxonomy, effective.limits) if taxonomy else None,
        operators=operators_of(files) if files else None,
        settings=effective.limits,
    )
    broker = Broker.open(
        database_of(settings, data),
        secret_of(settings, data),
        engine=engine,
        outside=_outside(settings, data, files) if settings.index else None,
        warn=logging.getLogger("triplewire").warning,
        retention=Retention(settings.keep_days * 86_400, settings.keep_events),
        limits=Limits(trusted=frozenset({settings.owner})),
        folder=data,
    )
    broker.most_subscriptions = settings.most_subscriptions
    return broker
