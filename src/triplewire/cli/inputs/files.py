"""Files on the command line: what cannot be one, what is not there, and what holds nothing."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path

import typer

from triplewire.cli.report import Report
from triplewire.errors import Refusal
from triplewire.folders import entries_below
from triplewire.model.references import is_address

_NOTHING = "give --allow-empty where that is as it should be"


def file_argument(text: str | Path) -> Path:
    """The file that an argument names. Raises `BadParameter` for an address, as nothing is fetched, and for no name,
    which Python takes for the current folder."""
    if not str(text):
        raise typer.BadParameter("the name of a file is empty; give . for the current folder")
    if is_address(str(text)):
        raise typer.BadParameter(
            f"{text} is an address, and nothing is fetched; give a file, or pipe it: curl -sL {text} | triplewire ... -"
        )
    return Path(text)


def folder_argument(text: str | Path) -> Path:
    """The folder that an option names. Raises `BadParameter` for no name, which Python takes for the current folder."""
    if not str(text):
        raise typer.BadParameter("the name of a folder is empty; give . for the current folder")
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
        if reason := _hollow(file):
            refuse(Refusal(kind, str(file), "", reason, _NOTHING))
        else:
            filled.append(file)
    return filled


def _hollow(file: Path | str) -> str:
    """Why nothing can be in a file or folder; empty where something may be."""
    if os.path.isdir(file):
        return "" if any(True for _ in entries_below(Path(file))) else "the folder holds no file"
    if not os.path.isfile(file) or os.path.getsize(file):
        return ""
    with suppress(OSError), open(file, "rb") as stream:  # files of /proc have a size of 0, whatever they hold
        return "" if stream.read(1) else "the file is empty"
    return ""  # to read it says what is wrong


def warn_of_no_subscription(files: Iterable[Path | str], registered: int, report: Report) -> None:
    """Warn of files and folders without a subscription, where that may be intended: a stream and an index may begin
    without any. `registered`: how many there are in all of them. What is no file, as a table, is named only."""
    files = list(files)
    hollow = {str(file): reason for file in files if (reason := _hollow(file))}
    if not (registered or hollow or report.refused):
        hollow[", ".join(map(str, files))] = "there is no subscription in it"
    for name, reason in hollow.items():
        report.refuse(Refusal("warning", name, "", reason))


def refusal_of_nothing(files: Iterable[Path], kind: str, missing: str) -> Refusal:
    """The refusal of all these files, in which there is no `missing`."""
    names = ", ".join("standard input" if str(file) == "-" else str(file) for file in files)
    return Refusal(kind, names, "", f"nothing in it says anything: there is no {missing}", _NOTHING)


def refuse_nothing(files: Iterable[Path], triples: int, report: Report) -> None:
    """Refuse all of the publications, where nothing was read of them, and nobody has said why."""
    if not triples and not report.refused:
        report.refuse(refusal_of_nothing(files, "publication", "triple"))
