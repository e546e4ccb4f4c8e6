"""`triplewire explain`: why a subscription matches a publication, or the first part of it that fails."""

from __future__ import annotations

import enum
import json
from typing import Annotated

import typer

from triplewire.cli import output
from triplewire.cli.arguments import (
    Entailment,
    EntailmentOption,
    OperatorFiles,
    PublicationFiles,
    Split,
    SplitOption,
    SubscriptionFiles,
    TaxonomyFile,
    check_files,
    settings_from_environment,
)
from triplewire.cli.match import load, new_engine, read_chunks
from triplewire.cli.report import Report
from triplewire.errors import Refusal, TriplewireError


class Format(enum.StrEnum):
    """The forms on standard output; JSON is one object a line."""

    TEXT = "text"
    JSON = "json"


def explain_command(
    subscription: Annotated[str, typer.Option(metavar="ID", help="The subscription to explain.")],
    subscriptions: SubscriptionFiles,
    publications: PublicationFiles,
    publication: Annotated[str, typer.Option(metavar="ID", help="The publication; default: each one.")] = "",
    taxonomy: TaxonomyFile = None,
    operators: OperatorFiles = None,
    form: Annotated[Format, typer.Option("--format", help="Text for people, or JSON Lines.")] = Format.TEXT,
    split: SplitOption = Split.ITEM,
    entailment: EntailmentOption = Entailment.NONE,
) -> None:
    """
    \b
    triplewire explain --subscription olympics --subscriptions queries.jsonl --publications feed.xml

    Say which patterns, constraints, words, positions and classes decided a match; for a miss, the first part of the
    subscription that failed.
    """
    check_files(subscriptions, publications, [taxonomy] if taxonomy else [])
    report = Report()
    engine = new_engine(taxonomy, "reference", settings_from_environment(), entailment, operators or ())
    load(engine, subscriptions, report, only=subscription)
    if not engine.subscriptions:
        report.say(f"there is no subscription {subscription!r} in these files")
        raise typer.Exit(report.exit_code or 2)
    is_there = False
    with output.text_output(None) as stream:
        for chunk in read_chunks(publications, split, report, streaming=True):
            for candidate in chunk:
                if publication and candidate.id != publication:
                    continue
                is_there = True
                try:
                    explanation = engine.explain(subscription, candidate)
                except TriplewireError as error:
                    report.refuse(Refusal.of("pair", f"{candidate.id} {subscription}", error))
                    continue
                if form is Format.JSON:
                    stream.write(json.dumps(explanation.to_json(), ensure_ascii=False) + "\n")
                else:
                    stream.write(f"{explanation}\n\n")
    if not is_there and not report.refused:
        report.say(
            f"there is no publication {publication!r} in these files" if publication else "there is no publication"
        )
        raise typer.Exit(2 if publication else 0)
    raise typer.Exit(report.exit_code)
