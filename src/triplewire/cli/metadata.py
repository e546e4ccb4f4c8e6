"""`triplewire metadata`: what a provider of metadata is given and asked (MDV paper; `docs/metadata.md`)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import ExitStack
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated

import typer

from triplewire.cli import output
from triplewire.cli.arguments import Format, FormatOption, check_files, file_argument, grouped
from triplewire.cli.client import token_in
from triplewire.cli.metadata_files import (
    BatchOption,
    Paths,
    RuleFiles,
    Rules,
    StoreOption,
    TokenFile,
    Where,
    checked,
    documents,
    events,
    named,
    provider_of,
    remote,
    told,
)
from triplewire.cli.report import Report, counted, say

if TYPE_CHECKING:
    from triplewire.errors import Refusal
    from triplewire.metadata.backbone import Writing
    from triplewire.metadata.messages import Change
    from triplewire.metadata.registry import Registry
    from triplewire.metadata.remote import RemoteProvider

RepositoryOption = Annotated[
    str, typer.Option("--repository", metavar="NAME", help="The repository whose rules they are.")
]


@grouped
def init_command(
    store: StoreOption,
    schema: Annotated[
        Path | None, typer.Option(metavar="FILE", parser=file_argument, help="The schema: RDFS, in any syntax.")
    ] = None,
    base: Annotated[
        str, typer.Option(metavar="IRI", help="What names of documents are resolved against; default: file:///.")
    ] = "",
    lead: Annotated[
        bool, typer.Option("--lead", help="Write the log of documents here from now on, not with a peer.")
    ] = False,
) -> None:
    """
    \b
    triplewire metadata init --store sqlite:///provider.db --schema objectglobe.ttl

    Make the store of a provider. A schema takes the place of the one before: documents that violate it are named, and
    stay. Exit code 1: there are such.
    """
    from triplewire.read.names import document_iri

    check_files([schema] if schema is not None else [])
    report = Report()
    with provider_of(store, base=base) as provider:
        if lead:
            provider.state("peer", "")
        if schema is not None:
            applied = provider.use_schema(schema.read_bytes(), document_iri(str(schema)))
            report.refuse(*applied.refused)
        say(f"{store}: names of documents are resolved against {provider.base}")
    report.end()


@grouped
def register_command(paths: Paths, batch: BatchOption = 100, *, where: Where) -> None:
    """
    \b
    triplewire metadata register --store sqlite:///provider.db documents/ --batch 100

    Register documents, or new versions of them: RDF in any syntax. A document has the name of its file, or its way
    below the folder. A malformed one is refused, and its version before withdrawn. Exit code 1: some were refused.
    """
    report = Report()
    with ExitStack() as running:
        writing = where.opened(running)
        _, base = writing.applied("")
        count = _change(writing, documents(paths, base, report.refuse), batch, report, lambda: _files(paths))
    say(counted(count, "document"))
    report.end()


@grouped
def delete_command(
    names: Annotated[list[str], typer.Argument(metavar="DOCUMENT...", help="Names of documents, or their IRIs.")],
    *,
    where: Where,
) -> None:
    """
    \b
    triplewire metadata delete --store sqlite:///provider.db doc.rdf

    Delete documents with all that they say.
    """
    from triplewire.metadata.messages import Withdraw

    missing: list[Refusal] = []
    report = Report(missing.append)
    with ExitStack() as running:
        writing = where.opened(running, made=False)
        _, base = writing.applied("")
        changes = [Withdraw(iri) for iri in dict.fromkeys(named(base, name) for name in names)]
        count = _change(writing, changes, len(changes), report, lambda: len(changes))
    say(f"{counted(count - len(missing), 'document')} deleted")
    report.end()


def _files(paths: Iterable[Path]) -> int:
    """How many files there are, also below folders."""
    return sum(sum(file.is_file() for file in path.rglob("*")) if path.is_dir() else 1 for path in paths)


def _change(
    writing: Writing | RemoteProvider, changes: Iterable[Change], batch: int, report: Report, total: Callable[[], int]
) -> int:
    """Apply changes; returns how many."""
    from triplewire.metadata.remote import portions

    count = 0
    with report.progress("documents", total) as advance:
        for portion in portions(changes, batch):
            report.refuse(*writing.change(portion).refused)
            count += len(portion)
            advance(count, 0)
    return count


@grouped
def apply_command(
    file: Annotated[
        Path, typer.Argument(metavar="EVENTS", parser=file_argument, help="JSON Lines; - is standard input.")
    ],
    batch: BatchOption = 100,
    source: Annotated[
        str, typer.Option(metavar="NAME", help="What the list is called; default: the file's name.")
    ] = "",
    *,
    where: Where,
) -> None:
    """
    \b
    triplewire metadata apply --provider http://127.0.0.1:8751 events.jsonl --batch 10

    Apply events in their order: {"seq": 1, "op": "add", "path": "doc.rdf", "content": "..."}, also "update" and
    "delete". Those up to the last `seq` of this list that was applied are passed over, so a run that was broken off
    goes on where it was. Exit code 1: some documents were refused.
    """
    from triplewire.languages.sources.files import count_rows
    from triplewire.metadata.remote import portions

    report, source, count = Report(), source or file.name, 0
    with ExitStack() as running, report.progress("events", lambda: count_rows([file])) as advance:
        writing = where.opened(running)
        after, base = writing.applied(source)
        for portion in portions(events(file, base, after, report.refuse), batch):
            applied = writing.change([event.change for event in portion], source, portion[-1].seq)
            report.refuse(*applied.refused)
            count += len(portion)
            advance(count, 0)
    say(counted(count, "event") + (f" behind {after:,}" if after else ""))
    report.end()


@grouped
def subscribe_command(
    files: RuleFiles,
    store: StoreOption,
    repository: RepositoryOption,
    form: FormatOption = None,
    show: Annotated[bool, typer.Option(help="Write the resources that the rules register now.")] = True,
) -> None:
    """
    \b
    triplewire metadata subscribe --store sqlite:///provider.db --repository passau rules.jsonl

    Subscribe a repository to rules, and show what they register now. A rule may name others of the repository. Exit
    code 1: some were refused.
    """
    from triplewire.languages.sources.files import count_rows
    from triplewire.metadata.remote import portions

    report = Report()
    rules, ids = Rules(report), list[str]()
    with provider_of(store) as provider, output.text_output(None) as stream:
        with report.progress("rules", lambda: count_rows(files)) as advance:
            for portion in portions(rules.read(files), 5_000):
                applied = provider.subscribe(repository, portion)
                ids += applied.ids
                for refusal in applied.refused:
                    rules.refuse(refusal)
                advance(len(ids), 0)
        say(counted(len(ids), "rule"))
        if show:
            new, form = set(ids), output.chosen_form(form, None, Format.TABLE, Format.JSONL)
            rows = ({"rule": rule, "resources": iris} for _, rule, iris in provider.results(repository) if rule in new)
            told(rows, stream, as_lines=form is Format.JSONL)
    report.end()


@grouped
def unsubscribe_command(
    ids: Annotated[list[str], typer.Argument(metavar="ID...", help="Ids of rules.")],
    store: StoreOption,
    repository: RepositoryOption,
) -> None:
    """
    \b
    triplewire metadata unsubscribe --store sqlite:///provider.db --repository passau hosts

    Have a repository give rules up: what no other rule of it asks for leaves its cache.
    """
    with provider_of(store, made=False) as provider:
        provider.unsubscribe(repository, ids)
    say(f"{counted(len(ids), 'rule')} ended")


@grouped
def results_command(form: FormatOption = None, *, where: Where) -> None:
    """
    \b
    triplewire metadata results --provider http://127.0.0.1:8751 --format jsonl

    Show which resources each rule registers: {"rule": ID, "resources": [IRI, ...]} a line.
    """
    where.check()
    form = output.chosen_form(form, None, Format.TABLE, Format.JSONL)
    with ExitStack() as running, output.text_output(None) as stream:
        if where.store:
            results = running.enter_context(provider_of(where.store, alone=False, made=False)).results()
            rows: Iterable[dict[str, object]] = [  # not written as they are read: a slow reader would hold up SQLite
                {"repository": name, "rule": rule, "resources": resources} for name, rule, resources in results
            ]
        else:
            provider = running.enter_context(remote(where.provider, where.token_file))
            rows = provider.results()
        told(rows, stream, as_lines=form is Format.JSONL, of_many=True)


@grouped
def browse_command(
    what: Annotated[str, typer.Argument(metavar="[CLASS|IRI]", help="A class, or a resource.")] = "",
    after: Annotated[str, typer.Option(metavar="IRI", help="Go on behind this instance.")] = "",
    pick: Annotated[
        list[str] | None, typer.Option(metavar="IRI", help="A resource or class that is to be cached.")
    ] = None,
    condition: Annotated[
        str, typer.Option(metavar="TEXT", help="What holds for instances of a picked class: c.memory > 64.")
    ] = "",
    repository: RepositoryOption = "",
    yes: Annotated[bool, typer.Option("--yes", help="Register the rules of picks without asking.")] = False,
    *,
    store: StoreOption,
) -> None:
    """
    \b
    triplewire metadata browse --store sqlite:///provider.db
    triplewire metadata browse --store sqlite:///provider.db http://example.org/terms#CycleProvider
    triplewire metadata browse --store sqlite:///provider.db --pick http://example.org/doc.rdf#host --repository passau

    Show the classes that there are, the instances of one, or what a resource says. Picks become rules, which are shown,
    and registered where you agree.
    """
    from triplewire.metadata.registry import rules_of_picks

    with provider_of(store, alone=bool(pick), made=False) as provider, output.text_output(None) as stream:
        if not pick:
            _show(provider.registry, what, after, stream)
            return
        if not repository:
            raise typer.BadParameter("give the repository that picks are for", param_hint="--repository")
        rules = rules_of_picks(provider.registry, pick, condition)
        for rule in rules:
            stream.write(f"-- {rule.id}\n{rule.query}\n")
        stream.flush()
        if not (yes or typer.confirm(f"Register {counted(len(rules), 'rule')} for {repository}?", err=True)):
            return
        report = Report()
        report.refuse(*provider.subscribe(repository, rules).refused)
        report.end()


def _show(registry: Registry, what: str, after: str, stream: IO[str]) -> None:
    """Write the classes that there are, the instances of one, or what a resource says."""
    if not what:
        rows = [(name, f"{count:,}") for name, count in registry.classes().items()]
        output.print_table(stream, ("class", "instances"), rows, "no resources")
    elif instances := registry.instances(what, after=after):
        stream.writelines(f"{iri}\n" for iri in instances)
    else:
        about = registry.resources([what])
        rows = [(name, value) for of in about.values() for name, value in of.statements]
        output.print_table(stream, ("property", "value"), rows, "no such class or resource")


@grouped
def serve_command(
    store: StoreOption,
    port: Annotated[int, typer.Option(metavar="N", min=1, max=65_535, help="The port to listen at.")] = 8751,
    host: Annotated[str, typer.Option(help="The address to listen at; 0.0.0.0 for all.")] = "127.0.0.1",
    peer: Annotated[
        str, typer.Option(metavar="ADDRESS", help="A provider whose log of documents this one follows.")
    ] = "",
    token_file: TokenFile = None,
) -> None:
    """
    \b
    triplewire metadata serve --store sqlite:///provider.db --port 8751
    triplewire metadata serve --store postgresql://user@host/name --port 8752 --peer http://127.0.0.1:8751

    Serve a provider over HTTP. Writing needs its token, TRIPLEWIRE_TOKEN or --token-file; without one, commands of the
    same user on this machine may write. Providers with a peer have the documents of that, and hand on what is written.
    SIGTERM ends it (exit code 0).
    """
    from triplewire.cli.serve import listen, needs, run

    needs("serve", "fastapi", "uvicorn", "prometheus_client")
    from triplewire.config import ServiceSettings
    from triplewire.metadata.backbone import Peer, Writing
    from triplewire.metadata.remote import leave_token
    from triplewire.service.logs import log_to_standard_error
    from triplewire.service.metadata_doors import metadata_service

    checked(store)  # no Spark, whose batches take too long for those who wait
    token = token_in(token_file)
    with listen(host, port) as listening, ExitStack() as running:
        log_to_standard_error("info", False, filter(None, [token]))
        provider = running.enter_context(provider_of(store, warn=say))
        settings = ServiceSettings(host=host, port=port, token=token or leave_token(port), most_body=_MOST_BODY)
        writing = Writing(provider)
        if peer:
            writing = running.enter_context(Peer(provider, remote(peer, token_file, "--peer"), say))
        app = metadata_service(writing, settings)
        say(f"serving at http://{f'[{host}]' if ':' in host else host}:{port}/")
        run(app, settings, listening)


_MOST_BODY = 1 << 30  # bytes of a batch of documents

app = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="Metadata that keeps itself current: providers.")
app.command("init", short_help="Make the store of a provider, or give it a schema.")(init_command)
app.command("register", short_help="Register documents.")(register_command)
app.command("delete", short_help="Delete documents.")(delete_command)
app.command("apply", short_help="Apply a list of events in order.")(apply_command)
app.command("subscribe", short_help="Subscribe a repository to rules.")(subscribe_command)
app.command("unsubscribe", short_help="Have a repository give rules up.")(unsubscribe_command)
app.command("results", short_help="Show which resources each rule registers.")(results_command)
app.command("browse", short_help="Look around, and pick what is to be cached.")(browse_command)
app.command("serve", short_help="Serve a provider over HTTP.")(serve_command)
