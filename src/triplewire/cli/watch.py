"""`triplewire watch`: feeds or a folder polled, new matches told once, without Spark. See `triplewire.watch`."""

from __future__ import annotations

import enum
import json
import threading
import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated

import typer

from triplewire.cli import output
from triplewire.cli.arguments import (
    Compiling,
    ContextFile,
    ContextFiles,
    OperatorCalls,
    Reading,
    SameOption,
    SubscriptionFiles,
    check_files,
    choice_option,
    grouped,
    is_there,
    settings_from_environment,
    warn_of_no_subscription,
    wrong_usage,
)
from triplewire.cli.inputs import engine_of, load
from triplewire.cli.match import prepare_kernels
from triplewire.cli.output import feed_lines, shortened
from triplewire.cli.pipeline.session import ConnectFile, connections_from
from triplewire.cli.report import Report, counted, one_line, say
from triplewire.errors import Refusal, TriplewireError
from triplewire.model.same import Same

if TYPE_CHECKING:
    from triplewire.engine import Engine
    from triplewire.net.addresses import Connections
    from triplewire.notify.rows import Part, Record, Sink
    from triplewire.watch import Source, Watch, WatchFolder, WatchStatus

_TRY_AGAIN = 75  # the exit code where another watch of this output runs
_STATE = ".watch"  # behind the name of a database: the folder with what the watch must know


class Format(enum.StrEnum):
    """What is written to standard output of each match."""

    TEXT = "text"
    JSONL = "jsonl"
    NONE = "none"


@dataclass(frozen=True)
class Told:
    """Who is told beside the output; a group of options."""

    to: Annotated[
        list[str] | None,
        typer.Option("--to", metavar="URL", help="Matches also to a webhook (https://...) or sqlite:FILE#TABLE."),
    ] = None
    dead_letters_to: Annotated[
        list[str] | None, typer.Option("--dead-letters-to", metavar="URL", help="The same for what is refused.")
    ] = None
    connect: ConnectFile = None
    why: Annotated[bool, typer.Option("--why", help="Say of each match why it is one.")] = False
    same: SameOption = None
    form: Annotated[
        Format | None,
        choice_option(Format, "--format", help="On standard output; default: text on a terminal, none elsewhere."),
    ] = None

    def sinks(self, target: str, connections: Connections, out: IO[str]) -> tuple[list[Sink], list[Sink]]:
        """The sinks of matches and of dead letters. Raises `BadParameter`."""
        from triplewire.notify import LETTER, MATCH, JsonLinesSink

        matches: list[Sink] = []
        letters: list[Sink] = []
        if target.startswith("sqlite:"):
            matches.append(_sink("--output", target, connections, MATCH))
            letters.append(_sink("--output", target.partition("#")[0], connections, LETTER))
        else:
            matches.append(JsonLinesSink(Path(target) / "matches.jsonl"))
            letters.append(JsonLinesSink(Path(target) / "dead-letters.jsonl"))
        matches += (_sink("--to", text, connections, MATCH) for text in self.to or ())
        letters += (_sink("--dead-letters-to", text, connections, LETTER) for text in self.dead_letters_to or ())
        form = self.form or (Format.TEXT if out.isatty() else Format.NONE)
        if form is not Format.NONE:
            matches.append(Shown(out, form))
        return matches, letters


def _sink(option: str, text: str, connections: Connections, kind: str) -> Sink:
    """The sink of an address. Raises `BadParameter` for one that only Spark can write to."""
    from triplewire.net.addresses import JDBC, KAFKA, SQLITE, WEBHOOK, address, kind_of, shown
    from triplewire.notify import LETTER, SqliteSink, WebhookSink

    with wrong_usage(option):
        if kind_of(text) in (KAFKA, JDBC):
            raise TriplewireError("Spark writes there: triplewire pipeline run", source=shown(text))
        target = address(text, connections, (SQLITE, WEBHOOK))
        if target.kind == WEBHOOK:
            return WebhookSink(target)
        return SqliteSink(target.named("dead_letters" if kind == LETTER else "matches"), kind)


class Shown:
    """Writes matches to a stream: a line or a few for people, or JSON Lines."""

    def __init__(self, stream: IO[str], form: Format) -> None:
        self._stream, self._form = stream, form

    def __str__(self) -> str:
        return "standard output"

    def check(self, stream: str, stop: threading.Event | None = None) -> None:
        """There is nothing to find out."""

    def deliver(self, rows: Iterable[Record], part: Part) -> list[Refusal]:
        """Write the rows."""
        from triplewire.notify import json_text

        for row in rows:
            text = json_text(row) if self._form is Format.JSONL else "\n".join(_lines(row._asdict()))
            self._stream.write(f"{text}\n")
        self._stream.flush()
        return []


def _lines(row: dict[str, str]) -> list[str]:
    """A match for people: its subscription and publication, the bindings that come first, and the reasons."""
    lines = [one_line(f"{row['subscription']}  {row['publication']}")]
    bindings = json.loads(row["bindings"])
    for binding in bindings[: output.SHOWN_BINDINGS]:
        values = "  ".join(f"?{name} = {shortened(str(term['value']))}" for name, term in binding.items())
        lines += [f"  {values}"] if values else []
    if len(bindings) > output.SHOWN_BINDINGS:
        lines.append(f"  ... {len(bindings) - output.SHOWN_BINDINGS:,} more")
    return lines + [f"  because {one_line(reason)}" for reason in json.loads(row.get("why") or "[]")]


@dataclass(frozen=True)
class Doing:
    """What the command does; a group of options."""

    once: Annotated[bool, typer.Option("--once", help="Tell what is new and end, as for a cron job.")] = False
    status: Annotated[
        bool, typer.Option("--status", help="Say what the watch of this output has done, and why a feed waits.")
    ] = False
    as_json: Annotated[bool, typer.Option("--json", help="With --status: one JSON object.")] = False


Target = Annotated[
    str,
    typer.Option(
        "--output", metavar="DIR|sqlite:FILE", help="Where matches go: matches.jsonl in a folder, or a database."
    ),
]
Sources = Annotated[
    str,
    typer.Option(
        "--sources",
        metavar="FEEDS|FOLDER",
        show_default=False,
        help="A list of feeds (.opml, or .feeds: an address a line), the address of one feed, or files: a file, a "
        "folder, a glob.",
    ),
]


@grouped
def watch_command(
    target: Target,
    source: Sources = "",
    subscriptions: SubscriptionFiles = None,
    *,
    doing: Doing,
    compiling: Compiling,
    calls: OperatorCalls,
    told: Told,
    reading: Reading,
    context: ContextFiles = None,
) -> None:
    """
    \b
    triplewire watch --subscriptions queries/ --sources mine.feeds --output found
    triplewire watch --subscriptions queries/ --sources mine.feeds --output sqlite:found.db --once
    triplewire watch --output found --status

    Poll feeds or a folder, match what is new, and tell each match once. What is known lies in the output folder (of a
    database: beside it, in FILE.watch), so a watch goes on where the last one stopped, or was killed. It runs until
    Ctrl-C, or with --once until all is told.
    """
    folder = _folder(target)
    if doing.status:
        with wrong_usage("--output"):
            status = folder.status()
        print(json.dumps(asdict(status)) if doing.as_json else _shown(status))
        return
    for option, is_given in (("--subscriptions", subscriptions), ("--sources", source)):
        if not is_given:
            raise typer.BadParameter("it is missing", param_hint=option)
    check_files(subscriptions or (), compiling.taxonomy or ())
    connections, report = connections_from(told.connect), Report()
    with ExitStack() as opened:
        out = opened.enter_context(output.text_output(None))  # before an operator prints
        _check_source(source, folder)
        matches, letters = told.sinks(target, connections, out)
        _hold(folder, target, opened)
        begun, refused = time.perf_counter(), list[Refusal]()
        loading = Report(refused.append)
        engine = _engine(subscriptions or (), compiling, calls, loading)
        watch = _watch(engine, folder, matches, letters, told, reading, report, context or ())
        filler = _source(source, folder, watch, connections, loading)
        watch.start(refused)
        report.refused = loading.refused
        _run(partial(watch.run, filler, not doing.once), watch)
        report.finish()
        say(f"{_counts(watch)} ({time.perf_counter() - begun:.1f} s); written to {target}")
    raise typer.Exit(report.exit_code)


def _hold(folder: WatchFolder, target: str, opened: ExitStack) -> None:
    """Hold the output until the end. Ends the process where another watch does."""
    with wrong_usage("--output"):
        held = opened.enter_context(folder.alone())
    if not held:
        say(f"triplewire: {target}: another watch writes to it; wait until that has ended, or name another output")
        raise typer.Exit(_TRY_AGAIN)


def _engine(files: Iterable[Path], compiling: Compiling, calls: OperatorCalls, loading: Report) -> Engine:
    """An engine with the subscriptions of the files."""
    prepare_kernels(compiling.matcher)
    engine = engine_of(compiling, calls, compiling.matcher)
    warn_of_no_subscription(files, load(engine, files, loading), loading)
    loading.finish()
    return engine


def _watch(
    engine: Engine,
    folder: WatchFolder,
    matches: list[Sink],
    letters: list[Sink],
    told: Told,
    reading: Reading,
    report: Report,
    context: Iterable[ContextFile],
) -> Watch:
    from triplewire.read.rdf.contexts import ContextLoader
    from triplewire.watch import Watch

    return Watch(
        engine,
        folder,
        folder.opened_inbox(),
        matches,
        letters,
        why=told.why,
        same=told.same or Same.ITEM,
        split=reading.split.value,
        as_written=reading.as_written,
        loader=ContextLoader(dict(context)),
        on_refusal=report.refuse,
    )


def _folder(target: str) -> WatchFolder:
    """The folder in which a watch keeps what it must know. Raises `BadParameter` for what is no output."""
    from triplewire.net.addresses import SQLITE, address, kind_of, sqlite_path
    from triplewire.watch import WatchFolder

    if not target:
        raise typer.BadParameter("the name is empty; give . for the current folder", param_hint="--output")
    if not kind_of(target):
        return WatchFolder(Path(target).absolute())
    with wrong_usage("--output"):
        file = Path(sqlite_path(address(target, None, (SQLITE,)).url)).absolute()
    return WatchFolder(file.with_name(file.name + _STATE))


def _check_source(source: str, folder: WatchFolder) -> None:
    """Raises `BadParameter` where there is no such source, or the output lies within it."""
    from triplewire.folders import named_by
    from triplewire.model.references import is_address

    if is_address(source):
        return
    roots = named_by(source)
    if not roots:
        what = "does not exist" if not is_there(Path(source)) else "cannot be looked into"
        raise typer.BadParameter(f"{source} {what}", param_hint="--sources")
    here = folder.folder.resolve()
    if any(Path(root).is_dir() and here.is_relative_to(Path(root).resolve()) for root in roots):
        what = f"{folder.folder} lies within {source}: a watch must not read what it writes"
        raise typer.BadParameter(what, param_hint="--output")


def _source(source: str, folder: WatchFolder, watch: Watch, connections: Connections, report: Report) -> Source:
    """What fills the inbox. An address that cannot be asked is refused, and the others stay. Raises `BadParameter`
    where there is nothing to watch."""
    from triplewire.model.references import is_address
    from triplewire.net.addresses import shown
    from triplewire.net.guard import target_of
    from triplewire.sources import Poller, addresses, is_list
    from triplewire.watch import FileSource

    settings = settings_from_environment()
    if not (is_address(source) or is_list(source)):
        most = settings.max_input_bytes
        return FileSource(source, folder.arrivals, watch.inbox, most, watch.stop, report.say)
    with wrong_usage("--sources"):
        if is_address(source):
            try:
                target_of(source)
            except ValueError as error:
                raise TriplewireError(shown(f"the feed cannot be asked: {error}"), source=shown(source)) from None
            feeds = [source]
        else:
            feeds = addresses(Path(source), settings, report.refuse)
        return Poller(feeds, folder.inbox, connections, stop=watch.stop, on_note=report.say, receive=watch.inbox.append)


def _run(work: partial[None], watch: Watch) -> None:
    """Do the work in a thread of its own, so that Ctrl-C and SIGTERM end it between two steps."""
    with ThreadPoolExecutor(1) as pool:
        future = pool.submit(work)
        try:
            future.result()
        except KeyboardInterrupt:
            watch.stop.set()
            future.result()


def _counts(watch: Watch) -> str:
    """What this start has told."""
    now, before = watch.told, watch.begun
    repeats, refused = now.repeats - before.repeats, now.refused - before.refused
    text = f"{counted(now.matches - before.matches, 'match', 'matches')} in "
    text += counted(now.publications - before.publications, "publication")
    return text + (f", {repeats:,} told before" if repeats else "") + (f", {refused:,} refused" if refused else "")


def _shown(status: WatchStatus) -> str:
    """The status as lines for people."""
    repeats = f" ({status.repeats:,} more were told before)" if status.repeats else ""
    lines = [f"a watch, which {'runs' if status.running else 'does not run'}"]
    lines += [f"publications  {status.publications:,}", f"matches       {status.matches:,}{repeats}"]
    lines += [f"refused       {status.refused:,}"]
    if status.waiting:
        lines.append(f"waiting       {counted(status.waiting, 'part')} of what came")
    if status.last:
        lines.append(f"last told     {status.last}")
    return "\n".join([*lines, *feed_lines(status.feeds)])
