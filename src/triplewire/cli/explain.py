"""`triplewire explain`: why a subscription matches a publication, or the first part of it that fails."""

from __future__ import annotations

import enum
import sys
from typing import TYPE_CHECKING, Annotated

import typer

from triplewire.cli import output
from triplewire.cli.arguments import choice_option, grouped, refuse_nothing
from triplewire.cli.inputs import Inputs, read_publications
from triplewire.cli.report import Report, counted, one_line, say
from triplewire.errors import Refusal, TriplewireError

if TYPE_CHECKING:
    from triplewire.engine import Engine, Explanation
    from triplewire.model.publication import Publication

SHOWN_IDS = 10  # of subscriptions among which the user has to choose


class Format(enum.StrEnum):
    """The forms on standard output; JSON is one object a line."""

    TEXT = "text"
    JSON = "json"


@grouped
def explain_command(
    inputs: Inputs,
    subscription: Annotated[
        str | None,
        typer.Option(metavar="ID", help="The subscription to explain; may be left out where there is only one."),
    ] = None,
    publication: Annotated[str | None, typer.Option(metavar="ID", help="The publication; default: each one.")] = None,
    only_matches: Annotated[
        bool, typer.Option("--only-matches", help="Pass over publications that do not match.")
    ] = False,
    nearest: Annotated[
        bool, typer.Option("--nearest", help="For a miss, the nearest query that matches, checked by matching again.")
    ] = False,
    form: Annotated[Format, choice_option(Format, "--format", help="Text for people, or JSON Lines.")] = Format.TEXT,
) -> None:
    """
    \b
    triplewire explain --subscription olympics --subscriptions queries.jsonl --publications feed.xml
    triplewire explain 'SELECT ?t { ?item rss:title ?t }' feeds/ --only-matches

    Say which patterns, constraints, words, positions and classes decided a match; for a miss, the first part of the
    subscription that failed.
    """
    given, report = inputs.sorted_out(), Report()
    for option, id_ in (("--subscription", subscription), ("--publication", publication)):
        if id_ == "":
            raise typer.BadParameter("the id is empty", param_hint=option)
    asked = matched = triples = 0
    with output.text_output(None) as stream:  # before an operator prints
        engine = given.engine("reference")
        given.subscribe(engine, report, only=subscription or "")
        if len(engine.subscriptions) > 1:
            ids = ", ".join(one_line(registered.id) for registered in engine.subscriptions[:SHOWN_IDS])
            raise typer.BadParameter(f"name one of the subscriptions: {ids}", param_hint="--subscription")
        if not engine.subscriptions:
            what = f"subscription {subscription!r}" if subscription else "subscription"
            report.say(f"there is no {what} in these files")
            raise typer.Exit(report.exit_code or 2)
        filled, seen = given.filled(report), stream.isatty()
        for candidate in read_publications(filled, inputs.reading, report, loader=given.loader, streaming=seen):
            triples += candidate.size
            if publication and candidate.id != publication:
                continue
            asked += 1
            explanation = _explained(engine, candidate, report, nearest)
            matched += explanation is not None and explanation.matched
            if explanation is not None and (explanation.matched or not only_matches):
                stream.write(_shown(explanation, form))
    if not inputs.allow_empty:
        refuse_nothing(given.publications, triples, report)
    report.finish()
    if asked and sys.stderr.isatty():
        say(f"{matched:,} of {counted(asked, 'publication')} {'matches' if matched == 1 else 'match'}")
    if publication and not asked and not report.refused:
        report.say(f"there is no publication {publication!r} in these files")
        raise typer.Exit(2)
    raise typer.Exit(report.exit_code)


def _explained(engine: Engine, publication: Publication, report: Report, nearest: bool) -> Explanation | None:
    """The explanation of the only subscription; None where it is refused. An undecided pair is reported as well."""
    subscription = engine.subscriptions[0].id
    pair = f"{publication.id} {subscription}"
    try:
        explanation = engine.explain(subscription, publication, nearest=nearest)
    except TriplewireError as error:
        report.refuse(Refusal.of("pair", pair, error))
        return None
    for reason in explanation.unknown if explanation.undecided else ():
        report.refuse(Refusal("pair", pair, "", reason.removeprefix(f"{publication.id}: ")))
    return explanation


def _shown(explanation: Explanation, form: Format) -> str:
    if form is Format.JSON:
        return explanation.to_json() + "\n"
    return "\n".join(map(one_line, explanation.lines())) + "\n\n"
