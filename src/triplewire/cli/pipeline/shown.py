"""The result of `triplewire pipeline demo`: a table of matches, each with a short reason. It loads the engine."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from triplewire.cli.output import title
from triplewire.cli.report import counted, one_line
from triplewire.engine import Engine, Explanation
from triplewire.engine.explain.explanation import Finding, Verdict
from triplewire.errors import Refusal, TriplewireError
from triplewire.model.publication import Publication
from triplewire.pipeline.committed import committed_files
from triplewire.pipeline.output import DEAD_LETTER, MATCHES, Totals
from triplewire.pipeline.run import PipelineRun
from triplewire.pipeline.sources import is_remote, local_roots
from triplewire.read import read

OF_EACH, IN_ALL = 4, 60  # matches shown of one subscription, and altogether
REASONS, CHARACTERS, STEPS = 3, 64, 6  # reasons of one match; how long each may be; classes of a path

WIDTH = 120  # of the table where there is no terminal
NEXT = (
    ".venv/bin/triplewire explain --subscription puffin-chicks --subscriptions examples/subscriptions "
    "--publications examples/publications/feeds/bird-log.atom",
    ".venv/bin/triplewire match --subscriptions examples/subscriptions --taxonomy examples/taxonomy.ttl "
    "--publications examples/publications",
    "make demo DATA=path/to/your/feeds",
)

_WORDS = re.compile(r"'([^']+)' is word (\d+)")
_IRI = re.compile(r"<[^<>\s]*[/#]([^<>\s/#]+)>")  # only its last part is shown
_HIDDEN = re.compile(r"\?\.\d+ = ")  # a variable that the parser invented
_COMPARES = re.compile(r" is ([<>=!]+) ")
_DATATYPE = re.compile(r'"([^"]*)"\^\^\S+')
_NUMBER = re.compile(r"""['"]([-+]?[0-9.]+)['"]""")


@dataclass(frozen=True, slots=True)
class Shown:
    """A row of the table: a match, and why it is one."""

    subscription: str
    publication: str
    title: str
    why: str


def picked(job: PipelineRun) -> list[tuple[str, str, str]]:
    """The first `OF_EACH` matches of each subscription, as many as are shown: (subscription, publication, source).
    Looks in the input for the publications of those that were committed."""
    names = ["subscription", "publication"]
    tables = [pq.read_table(file, columns=names) for file in committed_files(job.output)]
    chosen: dict[str, list[str]] = {}
    for table in [pa.concat_tables(tables).group_by(names).aggregate([])] if tables else ():
        for row in table.sort_by([(name, "ascending") for name in names]).to_pylist():
            chosen.setdefault(row["subscription"], []).append(row["publication"])
    ranked = [(name, ids[rank]) for rank in range(OF_EACH) for name, ids in chosen.items() if rank < len(ids)]
    pairs = sorted(ranked[:IN_ALL])
    left, sources = {publication for _, publication in pairs}, {}
    roots = local_roots(job.source) if left and not is_remote(job.source) else ()
    for publication in read(*roots, split=job.split, on_refusal=_counted_already):
        if publication.id in left:
            left.remove(publication.id)
            sources[publication.id] = publication.source
            if not left:
                break
    return [(subscription, publication, sources.get(publication, "")) for subscription, publication in pairs]


def explained(picked: Iterable[tuple[str, str, str]], engine: Engine, split: str) -> Iterator[Shown]:
    """The picked matches with their reasons. Reads the files of the publications again; "" is a source not known."""
    picked = list(picked)
    publications: dict[tuple[str, str], Publication] = {}
    for source in sorted({source for _, _, source in picked} - {""}):
        wanted = {publication for _, publication, file in picked if file == source}
        for publication in read(source, split=split, on_refusal=_counted_already):
            if publication.id in wanted:
                publications[publication.id, source] = publication
    for subscription, identity, source in picked:
        matched = publications.get((identity, source))
        why = ""
        if matched is not None:
            try:
                why = short(engine.explain(subscription, matched))
            except TriplewireError as error:
                why = error.what
        yield Shown(subscription, identity, title(matched) if matched else "", why)


def _counted_already(refusal: Refusal) -> None:
    """Ignores a refusal, which the run has reported already."""


def short(explanation: Explanation) -> str:
    """An explanation in a few words: why its conditions hold, or the first triple of a subscription without
    conditions."""
    conditions: list[str] = []
    others: list[str] = []
    for finding in _leaves(explanation.findings):
        decides = finding.part.startswith(("FILTER", "CALL"))
        (conditions if decides else others).extend(map(shorter, finding.because))
    return "; ".join(list(dict.fromkeys(conditions))[:REASONS] or others[:1])


def _leaves(findings: Iterable[Finding]) -> Iterator[Finding]:
    """The findings that hold, and the parts of each."""
    for finding in findings:
        if finding.verdict is Verdict.HOLDS:
            yield finding
            yield from _leaves(finding.parts)


def shorter(line: str) -> str:
    """A reason, shortened: words with their positions, a path of classes, or a comparison of values."""
    words = _WORDS.findall(line)
    if words:
        return _shortened(", ".join(f'"{word}" at word {place}' for word, place in words))
    line = _HIDDEN.sub("", _IRI.sub(r"\1", line))
    if " -> " in line:
        steps = line.split(" = ", 1)[-1].split(" -> ")[::-1]  # the most general class first
        return _shortened(" > ".join(steps if len(steps) <= STEPS else [steps[0], "...", *steps[-2:]]))
    line = _COMPARES.sub(r" \1 ", line).replace(" does: ", " ").removesuffix(" is true")
    return _shortened(_NUMBER.sub(r"\1", _DATATYPE.sub(r"\1", line)))


def _shortened(text: str) -> str:
    """The text, at most CHARACTERS long."""
    return text if len(text) <= CHARACTERS else text[: CHARACTERS - 3] + "..."


def show(lines: list[Shown], summary: Totals, engine: Engine, folder: Path) -> None:
    """Print the table, the totals, and commands to try next."""
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
    for column, ratio in (("subscription", 2), ("publication", 5), ("why", 6)):
        table.add_column(column, ratio=ratio, overflow="fold")
    last = ""
    for line in lines:
        name = Text(line.subscription, "bold" if line.subscription != last else "dim")
        last = line.subscription
        what = Text(one_line(line.title or line.publication), overflow="ellipsis", no_wrap=True)
        table.add_row(name, what, Text(one_line(line.why)))
    console = Console(width=None if sys.stdout.isatty() else WIDTH)
    if lines:
        console.print(table)
    if len(lines) < summary.matches:
        shown = f"{len(lines):,} of {counted(summary.matches, 'match', 'matches')}"
        print(f"... {shown} are shown, at most {OF_EACH} of a subscription")
    silent = sorted({subscription.id for subscription in engine.subscriptions} - {line.subscription for line in lines})
    matches = counted(summary.matches, "match", "matches")
    print(f"\n{matches} of {counted(len(engine.subscriptions), 'subscription')} in ", end="")
    refused = "1 input was" if summary.refused == 1 else f"{summary.refused:,} inputs were"
    print(
        f"{counted(summary.publications, 'publication')}; {refused} refused"
        + (" (see above)" if summary.refused else "")
    )
    if silent:
        print(f"without a match: {', '.join(silent)}")
    print(f"\nThe result as Parquet: {folder}/{MATCHES}, what was refused: {folder}/{DEAD_LETTER}\nTry next:")
    for command in NEXT:
        print(f"  {command}")
