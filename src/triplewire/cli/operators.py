"""`triplewire operators`: the operators that subscriptions may call, and what is known of them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from triplewire.cli import output
from triplewire.cli.arguments import OperatorFiles, ReplaceOperators, folder_option, operators_from
from triplewire.cli.report import one_line, say
from triplewire.errors import TriplewireError
from triplewire.folders import text_of_file

if TYPE_CHECKING:
    from triplewire.model.operator import Operator


COUNTS = ("calls", "failed", "seconds", "cost", "held")  # of an operator, in the file of `match --stats`
COLUMNS = (
    "name", "version", "parameters", "other forms", "runs", "cost", "learned", "selectivity", "calls", "failures"
)  # fmt: skip


def operators_command(
    operators: OperatorFiles = None,
    replace_operators: ReplaceOperators = False,
    stats: Annotated[
        Path | None, typer.Option(metavar="FILE", help="What `match --stats FILE` has counted: calls, costs, failures.")
    ] = None,
    engine: Annotated[
        Path | None,
        folder_option(help="What a saved engine, or `pipeline run --output DIR`, has learned: calls, costs, failures."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="JSON Lines.")] = False,
) -> None:
    """
    \b
    triplewire operators
    triplewire operators --operators mine.py services.toml --json

    List the operators: those that are built in, installed ones, and those of files. "cost" is what a call is stated to
    cost, "learned" the seconds that one took on average (of --engine: older calls count less), "selectivity" the share
    of true ones.
    """
    from triplewire.operators.files import operators_of

    if stats is not None and engine is not None:
        raise typer.BadParameter("give --stats or --engine", param_hint="--engine")
    counted = _learned(engine) if engine is not None else _counted(stats)
    with output.text_output(None) as stream:
        known = operators_of(operators_from(operators, replace_operators))
        rows = [described(operator, counted.get(name, {})) for name, operator in known.items()]
        if as_json:
            output.write_json(stream, *rows)
        else:
            output.print_table(stream, COLUMNS, [tuple(map(_shown, row.values())) for row in rows], "no operators")


def described(operator: Operator, counted: Mapping[str, Any]) -> dict[str, Any]:
    """What an operator states, and what was counted of its calls; None where nothing is known."""
    from triplewire.model.operator import forms_of, traits_of

    traits = traits_of(operator)
    forms = [[{"name": formal.name, "unit": formal.unit} for formal in form] for form in forms_of(operator)]
    calls, failures = counted.get("calls"), counted.get("failed")
    answered = (calls or 0) - (failures or 0)
    held = counted.get("held")
    return {
        "name": operator.name,
        "version": traits.version,
        "parameters": forms[0],
        "other_forms": forms[1:],
        "runs": "isolated" if traits.isolated else "http" if hasattr(operator, "evaluate_together") else "here",
        "cost": traits.cost,
        "learned": _rounded(counted.get("each", counted.get("seconds", 0.0) / calls if calls else None)),
        "selectivity": _rounded(counted.get("selectivity", held / answered if held is not None and answered else None)),
        "calls": calls,
        "failures": failures,
    }


def _rounded(number: float | None) -> float | None:
    return None if number is None else round(number, 6)


def _learned(directory: Path) -> dict[str, Any]:
    """What a saved engine, or an output folder of the pipeline, knows, by operator. Raises `BadParameter` where the
    directory is neither."""
    from triplewire.engine.store.directory import load_learned
    from triplewire.operators.order.statistics import LearnedCalls

    learned = LearnedCalls()
    try:
        of_runs = directory / "_learned.json"
        told = json.loads(of_runs.read_bytes()) if of_runs.is_file() else load_learned(directory)
        if told is not None:
            learned.restore(told)
    except (TriplewireError, ValueError, RecursionError) as error:
        raise typer.BadParameter(one_line(str(error)), param_hint="--engine") from error
    if fault := learned.independence.fault():
        say(f"note: {fault}")
    return {
        name: {"each": None, **own, **({"each": own["seconds_each"]} if "seconds_each" in own else {})}
        for name, own in learned.by_operator().items()
    }


def _counted(file: Path | None) -> dict[str, Any]:
    """The counts of a run by operator. Raises `BadParameter` where the file has none."""
    if file is None:
        return {}
    try:
        by_name = json.loads(text_of_file(file))["operators"]["by_name"]
        numbers = [own.get(name, 0) for own in by_name.values() for name in COUNTS]
        if not all(isinstance(number, int | float) for number in numbers):
            raise TypeError
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        what = f"{file} is no file of `triplewire match --stats` with counts of operators"
        raise typer.BadParameter(what, param_hint="--stats") from None
    counts: dict[str, Any] = by_name
    return counts


def _shown(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, list) and any(isinstance(form, list) for form in value):
        return " or ".join(map(_shown, value))
    if isinstance(value, list):
        return ", ".join(f"{p['name']} ({p['unit']})" if p["unit"] else p["name"] for p in value)
    return f"{value:g}" if isinstance(value, float) else str(value)
