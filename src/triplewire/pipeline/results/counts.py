"""What each micro-batch was counted to be. The counts are committed with its matches, by the same rename."""

from __future__ import annotations

import datetime as dt
import json
import re
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any

NAME = "_counts.json"
"""The file beside the matches of a micro-batch, or of a batch run. Readers of Parquet pass over such names."""

_OF_BATCH = re.compile(r"batch=(\d+)")


@dataclass(frozen=True)
class Totals:
    """Publications read, matches written, inputs refused, and matches that were told before; the micro-batches that
    they are of; and the candidates that the index gave, pairs of a publication and a subscription."""

    batches: int = 0
    publications: int = 0
    matches: int = 0
    refused: int = 0
    repeats: int = 0
    candidates: int = 0

    def __add__(self, other: Totals) -> Totals:
        return Totals(*(getattr(self, entry.name) + getattr(other, entry.name) for entry in fields(Totals)))


@dataclass(frozen=True)
class Counts:
    """Of one micro-batch: what was counted in it, and with all before it; the seconds that it took, and when it was
    committed. `more` is what else is known of it, such as the version of the index."""

    own: Totals
    total: Totals
    seconds: float = 0.0
    committed: str = ""
    more: dict[str, Any] = field(default_factory=dict)

    def write(self, folder: Path) -> None:
        """Write the counts beside matches that are not committed yet."""
        now = dt.datetime.now(dt.UTC).isoformat(timespec="milliseconds")
        (folder / NAME).write_text(json.dumps(asdict(replace(self, committed=now))) + "\n", encoding="utf-8")

    @classmethod
    def read(cls, folder: Path) -> Counts | None:
        """The counts beside committed matches; None where an earlier version of this program wrote them."""
        try:
            text = json.loads((folder / NAME).read_text(encoding="utf-8"))
            own, total = Totals(**text.pop("own")), Totals(**text.pop("total"))
            return cls(own, total, **text)
        except (OSError, ValueError, TypeError, KeyError, AttributeError):
            return None


def last_batch(matches: Path) -> int | None:
    """The number of the last micro-batch that was committed to this folder, if there is one."""
    try:
        numbers = [number_of(entry.name) for entry in matches.iterdir()]
    except OSError:
        return None
    return max((number for number in numbers if number is not None), default=None)


def number_of(folder: str) -> int | None:
    """The number of the micro-batch whose folder has this name; None for another name."""
    match = _OF_BATCH.fullmatch(folder)
    return None if match is None else int(match[1])


def last_counts(matches: Path) -> Counts | None:
    """The counts of the last micro-batch, or of a batch run."""
    number = last_batch(matches)
    return Counts.read(matches if number is None else matches / f"batch={number}")
