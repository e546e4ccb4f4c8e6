"""`triplewire import`, `export`, `deadletter` and `token`: what the owner of a service looks after."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from triplewire.cli import output
from triplewire.cli.arguments import check_files, file_argument, grouped
from triplewire.cli.client import Asking, JsonOption, Service, in_path
from triplewire.cli.report import Report, say
from triplewire.cli.serve import database_of, folder_of, needs
from triplewire.cli.settings import GivenSettings
from triplewire.errors import Refusal

LetterArgument = Annotated[str, typer.Argument(metavar="ID", help="Its id, as `deadletter list` shows it.")]


_OF_LETTER = ("number", "kind", "subscription", "publication", "title", "answer")


@grouped
def import_command(
    file: Annotated[Path, typer.Argument(metavar="FILE", parser=file_argument, help="OPML; - is standard input.")],
    *,
    asking: Asking,
    as_json: JsonOption = False,
) -> None:
    """
    \b
    triplewire import feeds.opml

    Add the feeds of an OPML file as sources, and subscriptions that `triplewire export` wrote. Exit code 1: some
    outlines were refused.
    """
    check_files([file])
    body = sys.stdin.buffer.read() if str(file) == "-" else file.read_bytes()
    rows = Service(asking).ask("POST", "/opml", body, "text/x-opml")
    report = Report()
    with output.text_output(None) as stream:
        for row in rows:
            if as_json:
                output.write_json(stream, row)
            if row["what"] == "refused":
                problem = row.get("problem", row)
                where = f"line {row['line']}" if "line" in row else ""
                report.refuse(Refusal("subscription", str(file), where, problem["title"], problem.get("remedy", "")))
    say(f"{len(rows) - report.refused} of {len(rows)} outlines were taken")
    report.end()


@grouped
def export_command(
    output_file: Annotated[
        Path | None, typer.Option("--output", metavar="FILE", help="Where it goes; default: standard output.")
    ] = None,
    *,
    asking: Asking,
) -> None:
    """
    \b
    triplewire export --output subscriptions.opml

    Write all subscriptions as OPML: any reader of feeds takes it, and `triplewire import` makes them again.
    """
    text = Service(asking).ask("GET", "/subscriptions.opml", answers="text/x-opml")
    with output.text_output(output_file) as stream:
        stream.write(text.decode("utf-8"))


@grouped
def list_command(*, asking: Asking, as_json: JsonOption = False) -> None:
    """
    \b
    triplewire deadletter list

    Show what could not be delivered or matched, and why.
    """
    rows = Service(asking).ask("GET", "/deadletters")
    with output.text_output(None) as stream:
        if as_json:
            output.write_json(stream, *rows)
            return
        shown = [tuple(str(row.get(name, "")) for name in _OF_LETTER) for row in rows]
        output.print_table(stream, _OF_LETTER, shown, "no dead letters")


@grouped
def show_command(letter: LetterArgument, *, asking: Asking) -> None:
    """
    \b
    triplewire deadletter show 14

    Show one of them, as JSON.
    """
    rows: list[dict[str, Any]] = Service(asking).ask("GET", "/deadletters")
    shown = [row for row in rows if str(row["number"]) == letter]
    if not shown:
        raise typer.BadParameter(f"there is no dead letter {letter}", param_hint="ID")
    with output.text_output(None) as stream:
        stream.write(json.dumps(shown[0], ensure_ascii=False, indent=1) + "\n")


@grouped
def retry_command(letter: LetterArgument, *, asking: Asking) -> None:
    """
    \b
    triplewire deadletter retry 14

    Deliver it again, as if it were new.
    """
    Service(asking).ask("POST", f"/deadletters/{in_path(letter)}/resend", {})
    say(f"{letter} is delivered again")


@grouped
def drop_command(letter: LetterArgument, *, asking: Asking) -> None:
    """
    \b
    triplewire deadletter drop 15

    Forget it.
    """
    Service(asking).ask("DELETE", f"/deadletters/{in_path(letter)}")
    say(f"{letter} is dropped")


@grouped
def create_command(
    namespace: Annotated[
        str, typer.Option(metavar="IRI", help="What begins the classes that this owner may state in the taxonomy.")
    ] = "",
    *,
    given: GivenSettings,
) -> None:
    """
    \b
    triplewire token create --data broker --owner ann
    triplewire token create --data broker --owner site1 --namespace https://site.example/terms#

    Make an API token of an owner, and print it; it is told this once. The service may run meanwhile. Who has the token
    sees and changes the subscriptions of that owner, and no others; that of the owner of the service (--owner of
    `serve`) may do all.
    """
    needs("serve", "sqlalchemy")
    from triplewire.broker.owners import grant, new_token
    from triplewire.store.database import Database

    effective = given.effective()
    settings = effective.service
    with Database.open(database_of(settings, folder_of(effective)), warn=say, alone=False) as database:
        if namespace:
            database.write(lambda connection: grant(connection, namespace, settings.owner))
        token = new_token(database, settings.owner)
    with output.text_output(None) as stream:
        stream.write(f"{token}\n")


def _group(help: str) -> typer.Typer:
    made = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help=help)
    made.callback()(lambda: None)  # else a group of one command is that command
    return made


dead_letters = _group("What could not be delivered or matched.")
dead_letters.command("list", short_help="Show all, and why.")(list_command)
dead_letters.command("show", short_help="Show one.")(show_command)
dead_letters.command("retry", short_help="Deliver one again.")(retry_command)
dead_letters.command("drop", short_help="Forget one.")(drop_command)

tokens = _group("API tokens of owners.")
tokens.command("create", short_help="Make one, and print it.")(create_command)
