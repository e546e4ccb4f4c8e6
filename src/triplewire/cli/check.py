"""The command `triplewire check`: are these subscriptions and taxonomies right, and can they match?"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from triplewire.cli import output
from triplewire.cli.arguments import (
    AllowEmptyOption,
    OperatorFiles,
    ReplaceOperators,
    TaxonomyFiles,
    check_files,
    file_argument,
    operators_from,
    refusal_of_nothing,
    refuse_hollow,
    settings_from_environment,
)
from triplewire.cli.report import counted, one_line, say
from triplewire.errors import Refusal, TaxonomyError, TriplewireError
from triplewire.folders import entries_of

if TYPE_CHECKING:
    from triplewire.engine.compiler import Compiler
    from triplewire.ir.taxonomy import Taxonomy

ERROR, WARNING = "error", "warning"


@dataclass(frozen=True, slots=True)
class Remark:
    """What is wrong, or may be: `kind` is "error" or "warning", `subject` an id or a file, `where` the position."""

    kind: str
    subject: str
    where: str
    text: str
    remedy: str = ""

    @classmethod
    def of(cls, refusal: Refusal) -> Remark:
        """An error."""
        return cls(ERROR, refusal.subject, refusal.where, refusal.reason, refusal.remedy)

    def __str__(self) -> str:
        place = self.where or self.subject
        row = re.match(r".* \(record [0-9]+\)", place, re.DOTALL)
        if row is not None and not place.startswith(f"{self.subject} (record "):
            place = f"{row[0]} {self.subject}{place[row.end() :]}"
        elif row is None and self.subject not in place:
            place = f"{place} {self.subject}"
        return f"{place}: {self.kind}: {self.text}" + (f"; {self.remedy}" if self.remedy else "")


def check_command(
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILE...", parser=file_argument, help="Subscriptions and taxonomies, or folders; - is JSON Lines."
        ),
    ],
    taxonomy: TaxonomyFiles = None,
    operators: OperatorFiles = None,
    replace_operators: ReplaceOperators = False,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object a line.")] = False,
    allow_empty: AllowEmptyOption = False,
) -> None:
    """
    \b
    triplewire check queries/
    triplewire check storms.rq harbours.mdv classes.ttl

    Parse subscriptions and taxonomies. Errors are what `match` would refuse; warnings say what can never match: a
    variable that nothing binds, an empty interval, a type that feeds do not have, a term that its vocabulary does not
    have, a class that the taxonomy lacks. A file that is not named as one of subscriptions is read as a taxonomy, which
    holds for the subscriptions. The exit code is 1 where there are errors.
    """
    from triplewire.engine.compiler import Compiler
    from triplewire.ir.evaluation.evaluate import World
    from triplewire.operators import with_taxonomy
    from triplewire.operators.files import operators_of

    check_files(files, taxonomy or ())
    remarks: list[Remark] = []

    def refuse(refusal: Refusal) -> None:
        remarks.append(Remark.of(refusal))

    subscriptions, taxonomies = parted(files, refuse, allow_empty)
    classes = _taxonomy([*(taxonomy or ()), *taxonomies], remarks)
    settings = settings_from_environment()
    with output.text_output(None) as stream:
        called = with_taxonomy(operators_of(operators_from(operators, replace_operators)), classes)
        compiler = Compiler(World(classes, called, settings))
        count = _check(subscriptions, compiler, remarks)
        if subscriptions and not (count or remarks or allow_empty):
            refuse(refusal_of_nothing(subscriptions, "subscription", "subscription"))
        for remark in remarks:
            text = json.dumps(asdict(remark), ensure_ascii=False) if as_json else one_line(str(remark))
            stream.write(text + "\n")
    errors = sum(remark.kind == ERROR for remark in remarks)
    checked = [counted(count, "subscription")] if subscriptions or not taxonomies else []
    if taxonomies or taxonomy:
        checked.append(f"a taxonomy of {counted(len(classes.classes), 'class', 'classes')}")
    say(f"{' and '.join(checked)}: {counted(errors, 'error')}, {counted(len(remarks) - errors, 'warning')}")
    raise typer.Exit(1 if errors else 0)


def parted(
    files: Iterable[Path], refuse: Callable[[Refusal], None], allow_empty: bool
) -> tuple[list[Path], list[Path]]:
    """Files of subscriptions, and those of taxonomies; folders are replaced by the files below them. What of them
    cannot be read, and what holds nothing, is refused."""
    from triplewire.languages.sources.files import SUFFIXES  # --help does without the parsers

    subscriptions: list[Path] = []
    taxonomies: list[Path] = []

    def is_query(file: Path) -> bool:
        return str(file) == "-" or Path(file.name.removesuffix(".gz")).suffix in SUFFIXES

    for given in files:
        is_folder = os.path.isdir(given)
        if (is_folder or is_query(given)) and not (allow_empty or refuse_hollow([given], "subscription", refuse)):
            continue
        for file, left_out in entries_of(given):
            if left_out:
                refuse(Refusal("subscription", str(file), "", left_out))
            else:
                (subscriptions if is_query(file) else taxonomies).append(file)
    return subscriptions, taxonomies


def _taxonomy(files: list[Path], remarks: list[Remark]) -> Taxonomy:
    """The taxonomy of all files that can be read; what is wrong with the others becomes a remark."""
    from triplewire.ir.taxonomy import EMPTY
    from triplewire.read.taxonomy import load_taxonomy

    readable: list[Path] = []
    settings = settings_from_environment()
    for file in files:
        try:
            alone = load_taxonomy(file, settings)
        except TaxonomyError as error:
            remarks.append(Remark.of(Refusal.of("taxonomy", str(file), error)))
            continue
        readable.append(file)
        if not alone.classes:
            remarks.append(Remark(WARNING, str(file), str(file), "it states no class", "a taxonomy needs subclasses"))
    try:
        return load_taxonomy(readable, settings) if readable else EMPTY
    except TaxonomyError as error:  # a cycle over several files
        remarks.append(Remark.of(Refusal.of("taxonomy", "", error)))
        return EMPTY


def _check(files: list[Path], compiler: Compiler, remarks: list[Remark]) -> int:
    """Compile the subscriptions of the files. Returns how many there are, those with errors too."""
    from triplewire.languages.sources.files import read_rows  # --help does without the parsers

    world, count = compiler.world, 0

    def refuse(refusal: Refusal) -> None:
        nonlocal count
        count += 1
        remarks.append(Remark.of(refusal))

    for parsed in read_rows(map(str, files), operators=world.operators, settings=world.settings, on_refusal=refuse):
        count += 1
        row = parsed.row
        place = f"{row.source} (record {row.record})" if row.record else row.source
        try:
            warnings = compiler.checked(parsed.subscription).warnings
        except TriplewireError as error:
            remarks.append(Remark.of(row.refusal(error)))
            continue
        remarks.extend(Remark(WARNING, row.id, place, warning) for warning in warnings)
    return count
