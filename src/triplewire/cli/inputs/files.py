"""Files on the command line: what cannot be one, what is not there, and what holds nothing."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable
from pathlib import Path

import typer

from triplewire.cli.report import Report
from triplewire.errors import Refusal
from triplewire.folders import entries_below

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
        if str(file) != "-" and not is_there(file):
            raise typer.BadParameter(f"{file} does not exist")
    if sum(str(file) == "-" for file in files) > 1:
        raise typer.BadParameter("standard input (-) can be given once only")


def is_there(file: Path) -> bool:
    """Is there such a file or folder? Also where nobody may look: then reading it says so."""
    try:
        return file.exists()
    except PermissionError:
        return True
    except OSError:  # no name of a file
        return False


def refuse_hollow(files: Iterable[Path], kind: str, refuse: Callable[[Refusal], None]) -> list[Path]:
    """The files, without folders that hold no file and files of no byte, which are refused. `kind`: see `Refusal`."""
    filled: list[Path] = []
    for file in files:
        reason = ""
        if os.path.isdir(file):
            reason = "" if any(True for _ in entries_below(file)) else "the folder holds no file"
        elif os.path.isfile(file) and not file.stat().st_size:
            reason = "the file is empty"
        if reason:
            refuse(Refusal(kind, str(file), "", reason, _NOTHING))
        else:
            filled.append(file)
    return filled


def refusal_of_nothing(files: Iterable[Path], kind: str, missing: str) -> Refusal:
    """The refusal of all these files, in which there is no `missing`."""
    names = ", ".join("standard input" if str(file) == "-" else str(file) for file in files)
    return Refusal(kind, names, "", f"nothing in it says anything: there is no {missing}", _NOTHING)


def refuse_nothing(files: Iterable[Path], triples: int, report: Report) -> None:
    """Refuse all of the publications, where nothing was read of them, and nobody has said why."""
    if not triples and not report.refused:
        report.refuse(refusal_of_nothing(files, "publication", "triple"))
