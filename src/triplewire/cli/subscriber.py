"""`triplewire publish`, `subscribe`, `renew`, `unsubscribe` and `tail`: paper 002, section 5.1, on the command line."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Annotated, Any
from urllib.parse import urlencode, urlsplit

import typer

from triplewire.cli import output
from triplewire.cli.arguments import check_files, file_argument, grouped, query_in
from triplewire.cli.client import Asking, JsonOption, Service, in_path, token_in
from triplewire.cli.report import Report, counted, one_line, say
from triplewire.errors import Refusal, ServiceError
from triplewire.folders import entries_of

DAY = 86_400
_LOOK = 0.5  # seconds between two questions for new events

IdArgument = Annotated[str, typer.Argument(metavar="ID", help="The id of the subscription.")]
Seconds = Annotated[float, typer.Option(help="How long it is valid from now on; a day, unless said.")]
Ticket = Annotated[
    Path | None, typer.Option("--ticket-file", metavar="FILE", help="The file of the ticket, in place of a token.")
]


@grouped
def publish_command(
    files: Annotated[list[Path], typer.Argument(metavar="FILE...", parser=file_argument, help="- is standard input.")],
    wait: Annotated[bool, typer.Option("--wait", help="Say how many subscriptions each publication matches.")] = False,
    readers: Annotated[str, typer.Option(help="Only subscriptions of these owners see it: ann,bob.")] = "",
    source: Annotated[str, typer.Option(metavar="ID", help="The source that it comes from.")] = "",
    *,
    asking: Asking,
    as_json: JsonOption = False,
) -> None:
    """
    \b
    triplewire publish news.rss --wait
    curl -sL https://example.org/feed | triplewire publish - --json

    Publish documents in any syntax: RDF, feeds. Each is accepted once it is written to the disk of the service. Exit
    code 1: some were refused.
    """
    check_files(files)
    service, report = Service(asking), Report()
    query = urlencode(
        {name: value for name, value in (("wait", int(wait)), ("readers", readers), ("source", source)) if value}
    )
    with output.text_output(None) as stream:
        for file in _plain_files(files, report):
            for said in _published(service, query, file, report):
                if as_json:
                    output.write_json(stream, said)
                else:
                    new = "" if said["new"] else " (was there)"
                    is_counted = said["new"] and "matched" in said
                    matched = f": matches {counted(said['matched'], 'subscription')}" if is_counted else ""
                    stream.write(one_line(f"{said['publication']}{new}{matched}") + "\n")
    report.end()


def _plain_files(given: list[Path], report: Report) -> Iterator[Path]:
    """The files, and those below the folders; what cannot be read, and folders that hold none, are refused."""
    for file in given:
        entries = list(entries_of(file))
        for path, reason in entries or [(file, "the folder holds no file")]:
            if reason:
                report.refuse(Refusal("publication", str(path), "", reason))
            else:
                yield path


def _published(service: Service, query: str, file: Path, report: Report) -> Iterator[dict[str, Any]]:
    """What the service says of each publication of a file that it has accepted; what it refuses goes to the report."""
    try:
        body = sys.stdin.buffer.read() if str(file) == "-" else file.read_bytes()
        answer = service.ask("POST", f"/publish?{query}", body, "application/octet-stream")
    except OSError as error:
        report.refuse(Refusal("publication", str(file), "", error.strerror or str(error)))
        return
    except ServiceError as error:
        if error.status not in (400, 413, 422):
            raise
        report.refuse(Refusal("publication", str(file), "", error.what, error.remedy))
        return
    for said in answer if isinstance(answer, list) else [answer]:
        if "publication" in said:
            yield said
        else:
            report.refuse(
                Refusal("publication", str(file), said.get("where", ""), said["title"], said.get("remedy", ""))
            )


@grouped
def subscribe_command(
    query: Annotated[str, typer.Argument(metavar="QUERY", help="The query, or @FILE.")],
    language: Annotated[
        str, typer.Option(metavar="NAME", help="sparql, gql, rdql, mdv, predicates, keywords.")
    ] = "sparql",
    id: Annotated[str, typer.Option(metavar="ID", help="Its id; made by the service, unless said.")] = "",
    title: Annotated[str, typer.Option(help="The title of its feed.")] = "",
    seconds: Seconds = DAY,
    webhook: Annotated[str, typer.Option(metavar="URL", help="An address that each event is posted to.")] = "",
    once_per_story: Annotated[bool, typer.Option("--once-per-story", help="Tell alike reports once.")] = False,
    *,
    asking: Asking,
    as_json: JsonOption = False,
) -> None:
    """
    \b
    triplewire subscribe 'SELECT ?title { ?item rss:title ?title FILTER ftcontains(?title, "puffin*") }' --id puffins
    triplewire subscribe @puffins.rq --seconds 2592000

    Subscribe. The answer has the address of its feed, and a ticket: who has it may renew and end the subscription. The
    service tells it this once.
    """
    wanted: dict[str, Any] = {"language": language, "id": id, "title": title, "seconds": seconds, "webhook": webhook}
    wanted |= {"query": query_in(query), "once_per_story": once_per_story}
    said = Service(asking).ask("POST", "/subscriptions", wanted)
    for warning in said["warnings"]:
        say(f"warning: {warning}")
    _tell(said, as_json, ("id", "ticket", "feed", "expires"))


@grouped
def renew_command(
    id: IdArgument,
    seconds: Seconds = DAY,
    ticket: Ticket = None,
    *,
    asking: Asking,
    as_json: JsonOption = False,
) -> None:
    """
    \b
    triplewire renew puffins --seconds 604800

    Have a subscription last for so many seconds from now.
    """
    path = f"/subscriptions/{in_path(id)}/renew"
    _tell(Service(asking).ask("POST", path, {"seconds": seconds}, ticket=_ticket(ticket)), as_json, ("id", "expires"))


@grouped
def unsubscribe_command(id: IdArgument, ticket: Ticket = None, *, asking: Asking) -> None:
    """
    \b
    triplewire unsubscribe puffins

    End a subscription. Its feed stays for a while, and says so.
    """
    Service(asking).ask("DELETE", f"/subscriptions/{in_path(id)}", ticket=_ticket(ticket))
    say(f"{id} has ended")


@grouped
def tail_command(
    id: Annotated[str, typer.Argument(metavar="[ID]", help="A subscription; without one, all of the owner.")] = "",
    after: Annotated[int, typer.Option(metavar="N", help="Begin behind the event of this number.")] = 0,
    follow: Annotated[bool, typer.Option(help="Go on with the events to come, until Ctrl-C.")] = True,
    *,
    asking: Asking,
) -> None:
    """
    \b
    triplewire tail
    triplewire tail puffins --no-follow | jq .title

    Show events, one JSON object a line: those that there are, and then each as it comes.
    """
    service, path, cursor, last = Service(asking), "/events", "number", after
    if id:
        feed = service.ask("GET", f"/subscriptions/{in_path(id)}")["feed"]  # refused where there is none
        path, cursor, last = f"/s/{PurePosixPath(urlsplit(feed).path).stem}/events", "sequence", 0
    with output.text_output(None) as stream:
        while True:
            page = service.ask("GET", f"{path}?after={last}&format=ndjson", answers="application/x-ndjson")
            for line in page.splitlines():
                event = json.loads(line)
                last = event[cursor]
                if event["number"] > after:
                    stream.write(line.decode() + "\n")
            stream.flush()
            if not follow:
                return
            time.sleep(_LOOK)


def _ticket(file: Path | None) -> str:
    return token_in(file, "--ticket-file") if file is not None else ""


def _tell(said: dict[str, Any], as_json: bool, names: tuple[str, ...]) -> None:
    """Write an answer: as JSON, or these parts of it, a line each."""
    with output.text_output(None) as stream:
        if as_json:
            output.write_json(stream, said)
            return
        for name in names:
            value = said[name]
            if name == "expires":
                value = time.strftime("%Y-%m-%d %H:%M:%SZ", time.gmtime(value))
            stream.write(f"{name:8}{value}\n")
