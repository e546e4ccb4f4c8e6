"""Subscriptions that an earlier command has indexed: `triplewire match --cache DIR`.

A folder of the cache holds a saved engine for each set of files, taxonomy, operators, limits and matcher; beside it,
which contents the files had, and what was said of them. Where the contents are the same, the engine is opened; where
they are not, or the files have no folder yet, what has not changed is taken over from there, or from the newest engine
of other files. An engine in which little has changed is saved when the same contents are met again: files that change
each time are not written each time.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from triplewire.cli.report import Report, counted, say
from triplewire.errors import Refusal, StoreError
from triplewire.folders import alone, entries_of, replace_text

if TYPE_CHECKING:
    from triplewire.engine import Engine
    from triplewire.engine.loading import LoadedCount

_LEAST = 1 << 17  # bytes of files: smaller ones are read sooner than a saved index
_STATE = "subscriptions.json"
_ENGINE = "engine"
_MET = "contents-that-were-met"
_AT_ONCE = 16  # where more than one of so many subscriptions has changed, the engine is saved at once
_DIGITS = 32  # of the name of a folder


@dataclass
class Said:
    """What was said of the subscriptions of files: warnings with their ids, and refusals. It is passed on."""

    report: Report
    warnings: list[tuple[str, str]]
    refusals: list[Refusal]

    def warn(self, id: str, warning: str) -> None:
        """Pass a warning on."""
        self.warnings.append((id, warning))
        self.report.warn(id, warning)

    def refuse(self, refusal: Refusal) -> None:
        """Pass a refusal on."""
        self.refusals.append(refusal)
        self.report.refuse(refusal)


def digest(files: Iterable[Path], *more: str) -> str:
    """A hash of the names and contents of files, and of all files below folders, and of further texts."""
    whole = hashlib.sha256(json.dumps(more).encode())
    for path in files:
        for file, _ in entries_of(path):
            whole.update(json.dumps(str(file)).encode())
            if file.is_file():
                with file.open("rb") as stream:
                    whole.update(hashlib.file_digest(stream, "sha256").digest())
    return whole.hexdigest()


def are_large(files: Iterable[Path]) -> bool:
    """Is it worth to keep an index of these files?"""
    sizes = (file.stat().st_size for path in files for file, _ in entries_of(path) if file.is_file())
    return sum(sizes) >= _LEAST


def load_with(
    cache: Path,
    meaning: str,
    files: Sequence[Path],
    report: Report,
    *,
    new: Callable[[], Engine],
    opened: Callable[[Path], Engine],
    loaded: Callable[[Engine, Said, bool], LoadedCount],
) -> Engine:
    """An engine with the subscriptions of the files. `meaning` names what else they depend on; `new` makes an engine
    without subscriptions, `opened` opens a saved one; `loaded` loads the files, in place of what an engine has where
    that is asked for. Raises `StoreError` where the folder cannot be written to."""
    of_meaning = cache / digest((), meaning)[:_DIGITS]
    place = of_meaning / digest((), *map(str, files))[:_DIGITS]
    place.mkdir(parents=True, exist_ok=True)
    with alone(place):
        contents, said = digest(files), Said(report, [], [])
        engine, before = _saved([place, *_newest_first(of_meaning)], opened)
        if engine is not None and before["contents"] == contents:
            for id, warning in before["warnings"]:
                report.warn(id, warning)
            for refusal in before["refusals"]:
                report.refuse(Refusal(**refusal))
            return engine
        is_new = engine is None
        engine = new() if engine is None else engine
        count = loaded(engine, said, not is_new)
        if not is_new:
            for id, warning in before["warnings"]:
                if id in engine and id not in count.anew:
                    said.warn(id, warning)
            say(f"{counted(count.new, 'new subscription')}, {count.changed:,} changed, {count.gone:,} gone")
            if (count.new + count.changed + count.gone) * _AT_ONCE <= len(engine) and not _was_met(place, contents):
                return engine
        (place / _STATE).unlink(missing_ok=True)
        engine.save(place / _ENGINE)
        state = {"contents": contents, "warnings": said.warnings, "refusals": list(map(asdict, said.refusals))}
        replace_text(place / _STATE, json.dumps(state))
    return engine


def _was_met(place: Path, contents: str) -> bool:
    """Were these the contents of the files when this was asked before?"""
    met = place / _MET
    before = met.read_text("utf-8") if met.exists() else ""
    replace_text(met, contents)
    return before == contents


def _newest_first(of_meaning: Path) -> list[Path]:
    """The folders of all files, the last that was written first."""
    states: list[tuple[float, Path]] = []
    for state in of_meaning.glob(f"*/{_STATE}"):
        with suppress(FileNotFoundError):  # another command writes it anew
            states.append((state.stat().st_mtime, state.parent))
    return [place for _, place in sorted(states, reverse=True)]


def _saved(places: Iterable[Path], opened: Callable[[Path], Engine]) -> tuple[Engine | None, dict[str, Any]]:
    """The engine that was saved in the first of these folders where one is there and not damaged, and what is known of
    its files."""
    for place in places:
        with suppress(OSError, ValueError, StoreError):
            return opened(place / _ENGINE), json.loads((place / _STATE).read_text("utf-8"))
    return None, {}
