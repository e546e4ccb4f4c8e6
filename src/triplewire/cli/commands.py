"""The commands and their options, as one Typer program."""

from __future__ import annotations

from typing import Annotated

import typer

from triplewire.cli import check, explain, match, read, warm_up
from triplewire.cli.about.operators import operators_command
from triplewire.cli.about.version import show_version
from triplewire.cli.backtest import backtest_command
from triplewire.cli.pipeline import commands as pipeline

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
app.command("check", short_help="Check subscriptions and taxonomies: errors, and what cannot match.")(
    check.check_command
)
app.command("backtest", short_help="Run subscriptions over an archive of publications, on Spark.")(backtest_command)
app.command("operators", short_help="List the operators that subscriptions may call.")(operators_command)
app.command("warm-up", short_help="Compile the matching loops now, for images and clusters.")(warm_up.warm_up_command)
app.add_typer(pipeline.app, name="pipeline")


def _show_version(wanted: bool) -> None:
    if wanted:
        show_version()
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
