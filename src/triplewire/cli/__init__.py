"""The command line: `triplewire read`, `match`, `explain`, `bench`, `pipeline`. One file a command.

Data goes to standard output, messages and progress to standard error. Exit codes: 0 done; 1 some input was refused,
and the rest was processed; 2 wrong usage; 70 a fault of the program; 74 a file cannot be read or written; 130
interrupted; 141 the reader of the output went away. `arguments` has the options that commands share, `report` the
messages, `output` the forms of the results.
"""

from __future__ import annotations

import os
import sys
from importlib.metadata import version
from typing import Annotated

import typer

from triplewire.cli import bench, explain, match, pipeline, read
from triplewire.cli.arguments import spread
from triplewire.cli.report import one_line, say, to_nowhere
from triplewire.errors import TriplewireError

__all__ = ["main"]

app = typer.Typer(
    name="triplewire",
    add_completion=False,
    no_args_is_help=True,
    rich_markup_mode=None,  # plain text keeps the line breaks of the examples, and starts in half the time
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
)
app.command("read", short_help="Show the publications in files.")(read.read_command)
app.command("match", short_help="Match publications against subscriptions.")(match.match_command)
app.command("explain", short_help="Say why a subscription matches a publication, or not.")(explain.explain_command)
app.command("bench", short_help="Measure matching on the papers' workloads.")(bench.bench_command)
app.add_typer(pipeline.app, name="pipeline")


def _show_version(wanted: bool) -> None:
    if wanted:
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


def main() -> None:
    """The console script: run the command line of this process and exit."""
    sys.exit(run(sys.argv[1:]))


def run(arguments: list[str]) -> int:
    """Run one command line; returns its exit code. Never raises, never shows a traceback."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:  # the caller closed it: what goes there is for nobody
            setattr(sys, name, open(os.devnull, "w" if number else "r"))  # noqa: SIM115  # until the end
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):  # what a test puts in its place may not have it
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")
    try:
        app(spread(arguments), prog_name="triplewire")
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else 0
    except KeyboardInterrupt:
        return 130
    except TriplewireError as error:
        say(f"triplewire: {one_line(str(error))}")
        return 1
    except OSError as error:  # a full disk, for one
        to_nowhere(sys.stdout)
        say(f"triplewire: {one_line(str(error))}")
        return 74
    except Exception as error:  # the last resort: a fault of ours must not look like an answer
        say(f"triplewire: internal error, please report it: {type(error).__name__}: {one_line(str(error))}")
        if os.environ.get("TRIPLEWIRE_TRACEBACK"):
            raise
        return 70
    return 0
