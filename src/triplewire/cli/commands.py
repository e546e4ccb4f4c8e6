"""The commands and their options, as one Typer program."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import Annotated

import typer

from triplewire import kernel_cache, plugins
from triplewire.cli import check, explain, keeper, match, metadata, read, repository, settings, subscriber
from triplewire.cli.backtest import backtest_command
from triplewire.cli.backup import backup_command, restore_command
from triplewire.cli.conformance import cms_command
from triplewire.cli.doctor import doctor_command
from triplewire.cli.operators import operators_command
from triplewire.cli.pipeline import commands as pipeline
from triplewire.cli.report import of_output, say
from triplewire.cli.serve import serve_command
from triplewire.cli.watch import watch_command
from triplewire.errors import TriplewireError, WriteError


def warm_up_command(
    folder: Annotated[
        Path | None,
        typer.Option("--cache", metavar="DIR", help="Where the machine code goes; default: TRIPLEWIRE_CACHE."),
    ] = None,
) -> None:
    """
    \b
    triplewire warm-up
    TRIPLEWIRE_CACHE=/opt/triplewire-cache triplewire warm-up    # in an image; set the variable at run time as well

    Compile the matching loops for this processor, a few minutes. Without it, the first matches are interpreted and
    compilation goes on in the background. Set NUMBA_CPU_NAME=generic for machines of different processors.
    """
    if folder is not None:
        os.environ[kernel_cache.FOLDER] = str(folder)
    place, named = kernel_cache.folder(), os.environ.get(kernel_cache.FOLDER)
    if place is None or (named and not place.is_relative_to(Path(named).absolute())):
        raise WriteError(
            f"{named or 'the folder for machine code'} cannot be written", remedy="name another: --cache DIR"
        )
    from triplewire.engine.tiers.kernels import KERNELS

    begun, count = time.perf_counter(), 0

    def compiled(name: str) -> None:
        nonlocal count
        count += 1
        if sys.stderr.isatty():
            print(f"\r\x1b[Kcompiled {count}: {name}", end="", file=sys.stderr, flush=True)

    list(plugins.loaded("matcher"))  # so that their kernels are known
    KERNELS.compiled = compiled
    KERNELS.warn = lambda text: None if KERNELS.refused else say(text)  # which ends the command
    if not KERNELS.wait():
        if KERNELS.refused is not None:
            raise of_output(OSError(KERNELS.refused.errno, KERNELS.refused.strerror, str(place)))
        raise TriplewireError("the kernels are not to be used: TRIPLEWIRE_TIER says so")
    if sys.stderr.isatty():
        print("\r\x1b[K", end="", file=sys.stderr)
    what = f"{count} kernels compiled" if count else "all kernels were compiled"
    say(f"{what} ({time.perf_counter() - begun:.1f} s): {place}")


app = typer.Typer(
    name="triplewire",
    no_args_is_help=True,
    rich_markup_mode=None,  # plain text keeps the line breaks of the examples, and starts in half the time
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
)
app.command("read", short_help="Show the publications in files.")(read.read_command)
app.command("match", short_help="Match publications against subscriptions.")(match.match_command)
app.command("explain", short_help="Say why a subscription matches a publication, or not.")(explain.explain_command)
app.command("watch", short_help="Poll feeds or a folder, and tell each new match once; without Spark.")(watch_command)
app.command("check", short_help="Check subscriptions and taxonomies: errors, and what cannot match.")(
    check.check_command
)
app.command("backtest", short_help="Run subscriptions over an archive of publications, on Spark.")(backtest_command)
app.command("operators", short_help="List the operators that subscriptions may call.")(operators_command)
app.command("warm-up", short_help="Compile the matching loops now, for images and clusters.")(warm_up_command)
app.command("serve", short_help="Serve a broker: subscriptions, feeds and webhooks over HTTP.")(serve_command)
app.command("publish", short_help="Publish documents to a service.")(subscriber.publish_command)
app.command("subscribe", short_help="Subscribe at a service.")(subscriber.subscribe_command)
app.command("renew", short_help="Have a subscription last longer.")(subscriber.renew_command)
app.command("unsubscribe", short_help="End a subscription.")(subscriber.unsubscribe_command)
app.command("tail", short_help="Show the events of a service as they come.")(subscriber.tail_command)
app.command("import", short_help="Take feeds and subscriptions from an OPML file.")(keeper.import_command)
app.command("export", short_help="Write all subscriptions as OPML.")(keeper.export_command)
app.command("backup", short_help="Copy the database of a service.")(backup_command)
app.command("restore", short_help="Put such a copy back.")(restore_command)
app.command("doctor", short_help="Look at what a service stands on, and say what to do.")(doctor_command)
app.add_typer(keeper.dead_letters, name="deadletter")
app.add_typer(keeper.tokens, name="token")
app.add_typer(settings.app, name="config")
app.add_typer(pipeline.app, name="pipeline")
app.add_typer(cms_command.app, name="conformance")
app.add_typer(metadata.app, name="metadata")
app.add_typer(repository.app, name="repository")


def _show_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version  # --help does without

        print(f"triplewire {version('triplewire')}")
        raise typer.Exit


@app.callback()
def _options(
    show_version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and stop.")
    ] = False,
) -> None:
    """
    \b
    triplewire match --subscriptions queries.jsonl --publications feeds/
    triplewire explain --subscription olympics --subscriptions queries.jsonl --publications feeds/

    Standing queries over RDF and feeds. Files may be gzipped; a folder stands for all files below it, - for standard
    input. Limits are set in the environment: TRIPLEWIRE_MAX_BINDINGS=50.
    """
