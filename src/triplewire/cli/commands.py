"""The commands of `triplewire`, and where each is defined: `app` runs a command line.

A command line loads the module of its own command alone, so that each starts without the options of the others.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import Annotated

import typer

from triplewire import kernel_cache, plugins
from triplewire.cli.report import of_output, say
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


_COMMANDS = {
    "read": ("read:read_command", "Show the publications in files."),
    "match": ("match:match_command", "Match publications against subscriptions."),
    "explain": ("explain:explain_command", "Say why a subscription matches a publication, or not."),
    "watch": ("watch:watch_command", "Poll feeds or a folder, and tell each new match once; without Spark."),
    "check": ("check:check_command", "Check subscriptions and taxonomies: errors, and what cannot match."),
    "backtest": ("backtest:backtest_command", "Run subscriptions over an archive of publications, on Spark."),
    "operators": ("operators:operators_command", "List the operators that subscriptions may call."),
    "warm-up": ("commands:warm_up_command", "Compile the matching loops now, for images and clusters."),
    "serve": ("serve:serve_command", "Serve a broker: subscriptions, feeds and webhooks over HTTP."),
    "publish": ("subscriber:publish_command", "Publish documents to a service."),
    "subscribe": ("subscriber:subscribe_command", "Subscribe at a service."),
    "renew": ("subscriber:renew_command", "Have a subscription last longer."),
    "unsubscribe": ("subscriber:unsubscribe_command", "End a subscription."),
    "tail": ("subscriber:tail_command", "Show the events of a service as they come."),
    "import": ("keeper:import_command", "Take feeds and subscriptions from an OPML file."),
    "export": ("keeper:export_command", "Write all subscriptions as OPML."),
    "backup": ("backup:backup_command", "Copy the database of a service."),
    "restore": ("backup:restore_command", "Put such a copy back."),
    "doctor": ("doctor:doctor_command", "Look at what a service stands on, and say what to do."),
    "deadletter": ("keeper:dead_letters", None),
    "token": ("keeper:tokens", None),
    "config": ("settings:app", None),
    "pipeline": ("pipeline.commands:app", None),
    "conformance": ("conformance.cms_command:app", None),
    "metadata": ("metadata:app", None),
    "repository": ("repository:app", None),
}
"""Where each command is, and what the list of all says of it; a group of commands says that itself."""


def _show_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version  # --help does without

        print(f"triplewire {version('triplewire')}")
        raise typer.Exit


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


def app(arguments: list[str], prog_name: str) -> None:
    """Run a command line. Where it names no command, all are loaded: for help, what is completed, and what comes next
    to a wrong name."""
    program = typer.Typer(
        name="triplewire",
        no_args_is_help=True,
        rich_markup_mode=None,  # plain text keeps the line breaks of the examples, and starts in half the time
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
    )
    program.callback()(_options)
    for name in arguments[:1] if arguments and arguments[0] in _COMMANDS else _COMMANDS:
        place, short_help = _COMMANDS[name]
        command = plugins.attribute(f"triplewire.cli.{place}")
        if isinstance(command, typer.Typer):
            program.add_typer(command, name=name)
        else:
            program.command(name, short_help=short_help)(command)
    program(arguments, prog_name=prog_name)
