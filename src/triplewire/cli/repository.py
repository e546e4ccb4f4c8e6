"""`triplewire repository`: a cache of metadata that follows a provider (MDV paper; `docs/metadata.md`)."""

from __future__ import annotations

import threading
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated

import typer

from triplewire.cli import output
from triplewire.cli.arguments import Format, FormatOption, files_option, grouped, query_in
from triplewire.cli.metadata_files import (
    Paths,
    ProviderOption,
    Rules,
    StoreOption,
    TokenFile,
    documents,
    remote,
    repository_of,
    told,
)
from triplewire.cli.report import Report, counted, one_line, say

_FIRST = "triplewire repository follow --provider ADDRESS --store URL --name NAME"


@grouped
def follow_command(
    provider: ProviderOption,
    store: StoreOption,
    name: Annotated[str, typer.Option(metavar="NAME", help="What providers call this repository.")],
    rules: Annotated[
        list[Path] | None, files_option("--rules", help="Rules that the provider is to know: .mdv, .jsonl, folders.")
    ] = None,
    once: Annotated[bool, typer.Option("--once", help="End when all that there is has come.")] = False,
    token_file: TokenFile = None,
) -> None:
    """
    \b
    triplewire repository follow --provider http://127.0.0.1:8751 --store sqlite:///passau.db --name passau \\
      --rules rules.jsonl

    Keep a cache of what the rules ask for, and go on until Ctrl-C. A provider that is away is asked again until it is
    back. Exit code 1: some rules were refused.
    """
    from triplewire.metadata.follow import Follower

    report = Report()
    read = Rules(report)
    given = list(read.read(rules)) if rules else []
    with repository_of(store, name, warn=say) as repository, remote(provider, token_file) as behind:
        follower = Follower(repository, behind, given, read.refuse)
        if once:
            while follower.step(wait=0):
                pass
            say(f"up to date with {behind.address}")
        else:
            say(f"following {behind.address}")
            follower.run(threading.Event(), say)
    report.end()


@grouped
def register_command(
    paths: Paths,
    store: StoreOption,
    local: Annotated[bool, typer.Option("--local", help="They are local: no provider ever sees them.")] = False,
    delete: Annotated[bool, typer.Option("--delete", help="Delete local documents of these names instead.")] = False,
    base: Annotated[
        str, typer.Option(metavar="IRI", help="What names of documents are resolved against.")
    ] = "file:///",
) -> None:
    """
    \b
    triplewire repository register --store sqlite:///passau.db --local private.ttl

    Register local metadata, which queries see beside the cache. Global metadata are registered with a provider.
    """
    if not local:
        remedy = "triplewire metadata register --provider ADDRESS takes global metadata"
        raise typer.BadParameter(f"say that the documents are local; {remedy}", param_hint="--local")
    report = Report()
    with repository_of(store, alone=False) as repository:
        if delete:
            from triplewire.cli.metadata_files import named

            report.refuse(*repository.withdraw(named(base, str(path)) for path in paths))
        else:
            report.refuse(*repository.register(documents(paths, base, report.refuse)))
        say(counted(len(repository.local_documents()), "local document"))
    report.end()


@grouped
def query_command(
    query: Annotated[str, typer.Argument(metavar="QUERY", help="search CLASS c register c where ...; or @FILE.")],
    store: StoreOption,
    form: FormatOption = None,
) -> None:
    """
    \b
    triplewire repository query --store sqlite:///passau.db \\
      "search CycleProvider c register c where c.serverInformation.memory > 64"

    Ask cache and local metadata. JSON Lines: {"resource": IRI, "statements": [[IRI, term], ...]} a line, terms in
    N-Triples notation. A class may be the id of a rule: then what it holds is meant.
    """
    query = query_in(query)
    form = output.chosen_form(form, None, Format.TABLE, Format.JSONL)
    with repository_of(store, alone=False, made=False) as repository, output.text_output(None) as stream:
        answers = repository.query(query)
        if form is Format.JSONL:
            for resource, statements in answers.items():
                output.write_json(stream, {"resource": resource, "statements": sorted(statements)})
        else:
            shown = (
                (resource, "\n".join(one_line(f"{name} {value}") for name, value in sorted(statements)))
                for resource, statements in answers.items()
            )
            output.print_table(stream, ("resource", "statements"), shown, "no resources")


@grouped
def results_command(store: StoreOption, form: FormatOption = None) -> None:
    """
    \b
    triplewire repository results --store sqlite:///passau.db --format jsonl

    Show which cached resources each rule holds: {"rule": ID, "resources": [IRI, ...]} a line.
    """
    form = output.chosen_form(form, None, Format.TABLE, Format.JSONL)
    with repository_of(store, alone=False, made=False) as repository, output.text_output(None) as stream:
        rows = ({"rule": rule, "resources": resources} for rule, resources in repository.results())
        told(rows, stream, as_lines=form is Format.JSONL)


@grouped
def move_command(
    store: StoreOption,
    to: Annotated[str, typer.Option("--to", metavar="ADDRESS", help="Another provider of the same backbone.")],
    token_file: TokenFile = None,
) -> None:
    """
    \b
    triplewire repository move --store sqlite:///passau.db --to http://127.0.0.1:8752

    Have a repository follow another provider of the backbone, with its rules; `follow` then goes on there.
    """
    from triplewire.metadata.follow import move

    report = Report()
    with repository_of(store, made=False) as repository, ExitStack() as running:
        if not repository.name:
            raise typer.BadParameter(f"the repository follows nobody yet: {_FIRST}", param_hint="--store")
        known = repository.provider
        old = running.enter_context(remote(known, token_file)) if known and known != to.rstrip("/") else None
        new = running.enter_context(remote(to, token_file, "--to"))
        report.refuse(*move(repository, old, new))
        say(f"{repository.name} follows {new.address}")
    report.end()


app = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="Metadata that keeps itself current: caches.")
app.command("follow", short_help="Keep a cache of what rules ask for.")(follow_command)
app.command("register", short_help="Register local metadata.")(register_command)
app.command("query", short_help="Ask cache and local metadata.")(query_command)
app.command("results", short_help="Show which cached resources each rule holds.")(results_command)
app.command("move", short_help="Follow another provider.")(move_command)
