"""Files on the command line: what cannot be one, what is not there, and what holds nothing."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

import typer

from triplewire.cli.report import Report
from triplewire.errors import Refusal

_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
_NOTHING = "give --allow-empty where that is as it should be"


def file_argument(text: str | Path) -> Path:
    """The file that an argument names. Raises `BadParameter` for an address: nothing is fetched."""
    if _ADDRESS.match(str(text)):
        raise typer.BadParameter(
            f"{text} is an address, and nothing is fetched; give a file, or pipe it: curl -sL {text} | triplewire ... -"
        )
    return Path(text)


def check_files(*groups: Iterable[Path]) -> None:
    """Raises `BadParameter` where a file does not exist, or standard input is given twice."""
    files = [file for group in groups for file in group]
    for file in files:
        if str(file) != "-" and not file.exists():
            raise typer.BadParameter(f"{file} does not exist")
    if sum(str(file) == "-" for file in files) > 1:
        raise typer.BadParameter("standard input (-) can be given once only")


def refuse_hollow(files: Iterable[Path], report: Report) -> list[Path]:
    """The files, without folders that hold no file and files of no byte, which are refused."""
    # --help does without the readers behind this
    from triplewire.read.sources import files_below

    filled: list[Path] = []
    for file in files:
        reason = ""
        if file.is_dir():
            reason = "" if any(True for _ in files_below(file)) else "the folder holds no file"
        elif file.is_file() and not file.stat().st_size:
            reason = "the file is empty"
        if reason:
            report.refuse(Refusal("publication", str(file), "", reason, _NOTHING))
        else:
            filled.append(file)
    return filled


def refuse_nothing(files: Iterable[Path], triples: int, report: Report) -> None:
    """Refuse all of the inputs, where nothing was read of them, and nobody has said why."""
    if triples or report.refused:
        return
    names = ", ".join("standard input" if str(file) == "-" else str(file) for file in files)
    report.refuse(Refusal("publication", names, "", "nothing in it says anything: there is no triple", _NOTHING))
