"""The output folder of a run: matches and dead letters as Parquet. Files appear only when they are complete.

    DIR/matches/*.parquet             publication, subscription, bindings, truncated, matched_at, construct, content,
                                      revision, index_version, why
    DIR/dead-letter/*.parquet         kind, subject, where, reason, remedy
    DIR/matches/batch=N/*.parquet     the same of a stream, one folder for each micro-batch; dead-letter likewise, and
                                      batch=-N holds what start N of the stream refused beside the micro-batches
    DIR/_run.json                     which run wrote the folder
    DIR/_arrivals.sqlite              which files a stream has read (`triplewire.pipeline.connect.arrivals`)
    DIR/_checkpoint                   the progress of a stream of other than files of this machine (Spark's own)
    DIR/_told.sqlite                  which matches a stream has told (`triplewire.pipeline.match_ledger`)
    DIR/_learned.json, DIR/_budgets   what operators have cost, and have spent (`triplewire.pipeline.filter`)
    DIR/_index                        the index of a run that was given subscriptions (`triplewire.pipeline.index`)
    DIR/_pins.sqlite                  which version of an index a micro-batch had (`triplewire.pipeline.index.pins`)
    DIR/_metrics.prom                 what was counted (`triplewire.pipeline.committed`)
    DIR/_inbox                        what was polled of feeds (`triplewire.sources`)
    DIR/_stream                       the name of this output for other sinks (`triplewire.pipeline.connect.delivery`)
    DIR/_delivering                   the last micro-batch that was handed to other sinks
    DIR/_writing                      incomplete files, in a folder for each process that writes
    DIR/_replaced                     results of the run before, while those of a batch run take their place

Parquet is written to `_writing` and renamed when it is complete, the matches last: that rename is the commit. A batch
run replaces the one before. A micro-batch that is committed stays as it is, also where Spark repeats it after a crash.
`triplewire.pipeline.run` says what is written, `triplewire.pipeline.committed` how it is read.
"""

from __future__ import annotations

import datetime as dt
import json
import os
import re
import secrets
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from filelock import FileLock, Timeout

from triplewire.errors import BusyError, Refusal, TriplewireError, WriteError
from triplewire.folders import named_by, replace_text
from triplewire.model.references import is_url
from triplewire.pipeline.rows import DEAD_LETTERS, storable

NAME = "_counts.json"
"""The file beside the matches of a micro-batch, or of a batch run, which is committed with them, by the same rename.
Readers of Parquet pass over such names."""

LOCAL_FILES = "files of this machine"
MATCHES, DEAD_LETTER = "matches", "dead-letter"
FORMAT = "triplewire pipeline run"
_FROM_TASKS = "part-*.parquet"  # the names of the files of tasks; the driver's have other names
_LOOK = 0.5  # seconds to wait for one that only looks at the lock (`triplewire.pipeline.committed`)

_OF_BATCH = re.compile(r"batch=(\d+)")


@dataclass
class Totals:
    """Publications read, matches written, inputs refused, and matches that were not written because they were told
    before; the micro-batches that they are of (1 for a batch); and the candidates that the index gave, pairs of a
    publication and a subscription."""

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


class Output:
    """The output folder. Call `prepare` first, then `take` and `commit`, once or for each micro-batch."""

    def __init__(self, folder: str | Path) -> None:
        if is_url(str(folder)):
            raise TriplewireError(
                "the output is a folder of this machine's file system",
                source=str(folder),
                remedy="to write elsewhere, use match_publications(...) and Spark's own writers",
            )
        self.folder = Path(os.path.abspath(folder))
        self.checkpoint = self.folder / "_checkpoint"
        self.log = self.folder / "_spark.log"
        self.arrivals = self.folder / "_arrivals.sqlite"
        self.told = self.folder / "_told.sqlite"
        self.pins = self.folder / "_pins.sqlite"
        self.index = self.folder / "_index"
        self.inbox = self.folder / "_inbox"
        self.learned = self.folder / "_learned.json"
        self.budgets = self.folder / "_budgets"
        self.replaced = self.folder / "_replaced"
        self.at: Callable[[str], None] = lambda point: None
        """Called at each named point of a commit (docs/streams.md), so that a test can end the process there."""
        self._record = self.folder / "_run.json"
        # another for each process: the workers of one that was killed may still write for a moment
        self._writing = self.folder / "_writing" / f"{os.getpid()}-{secrets.token_hex(4)}"
        self._lock = FileLock(self.folder / "_lock", timeout=_LOOK, thread_local=False)

    def prepare(self, source: Path, streaming: bool) -> str:
        """Make the folder and remove what an interrupted run left. Returns what earlier runs wrote, as text ("" for
        none).

        Raises `TriplewireError` where it lies within the input, is in use, or holds what this run must not replace.
        """
        new = [folder for folder in (self.folder, *self.folder.parents) if not folder.exists()]
        try:
            self.folder.mkdir(parents=True, exist_ok=True)  # before the look, as a glob names what is there
            here, roots = self.folder.resolve(), map(Path, named_by(str(source)))  # a glob may name the folder, too
            if any(root.is_dir() and here.is_relative_to(root.resolve()) for root in roots):
                for folder in new:
                    folder.rmdir()
                raise self._wrong("it lies within the input folder, and a run must not read its own output")
            self._lock.acquire()  # held until the process ends
            shutil.rmtree(self._writing.parent, ignore_errors=True)
            for left in (self.folder / DEAD_LETTER).glob("batch=-*/.driver-*"):
                left.unlink()
            self._put_back()
        except Timeout:
            what, remedy = "another run writes to it", "wait until that has ended, or choose another output folder"
            raise BusyError(what, source=str(self.folder), remedy=remedy) from None
        except OSError as error:
            raise WriteError(f"it cannot be written: {error.strerror or error}", source=str(self.folder)) from error
        return self._before(streaming)

    def _before(self, streaming: bool) -> str:
        """The results of earlier runs, as text. Raises `TriplewireError` where this run must not replace them."""
        before = self.last_record()
        held = [name for name in (MATCHES, DEAD_LETTER, "_checkpoint") if (self.folder / name).exists()]
        if not held:
            return ""
        if before is None:
            raise self._wrong(f"its {held[0]} was not written by this command")
        was_stream = before.get("streaming") is True
        if was_stream != streaming:
            kinds = ("a batch run", "a stream")
            raise self._wrong(f"it holds the results of {kinds[was_stream]}, and this is {kinds[streaming]}")
        if not streaming:
            count = before.get("matches")
            what = f"{count:,} matches" if isinstance(count, int) else "the results"
            return f"takes the place of {what} of {before.get('ended', 'a run that did not end')}"
        done = len(list((self.folder / MATCHES).glob("batch=*")))
        progress = self.checkpoint if before.get("remote") is True else self.arrivals
        if not progress.exists() and progress is self.arrivals and self.checkpoint.exists():
            raise self._wrong("an earlier version wrote it, which kept another record of the files that it read")
        if done and not progress.exists():
            raise self._wrong(f"its {progress.name} is gone: the stream would begin anew and repeat results")
        return f"goes on after {done:,} micro-batches"

    def check_progress(self, reads: str, topic_id: str = "") -> None:
        """Raises `TriplewireError` where an earlier stream read from elsewhere: its micro-batches have the numbers
        that this one would give, and its progress means nothing here. `reads`: `sources.read_by_stream`; `topic_id`:
        `connect.kafka.topic_id`, "" where it is not known."""
        before = self.last_record() or {}
        offsets = (*self.checkpoint.glob("offsets/[0-9]*"), *self.checkpoint.glob("sources/*/[0-9]*"))
        has_begun = self.arrivals.exists() or bool(offsets)
        if before.get("streaming") is not True or not has_begun:
            return
        read = before.get("reads")
        if not isinstance(read, str):  # an earlier version wrote the record
            was_local = before.get("remote") is not True
            read = reads if was_local == (reads == LOCAL_FILES) else LOCAL_FILES if was_local else "another source"
        if read != reads:
            raise self._wrong(f"its stream reads {read}, and this one reads {reads}")
        if topic_id and before.get("topic_id") not in ("", None, topic_id):  # None: an earlier version wrote the record
            raise self._wrong("the topic of its stream was deleted, and this is another one of the same name")

    def release(self) -> None:
        """Let other runs write to the folder. The end of the process does the same."""
        self._lock.release(force=True)

    def record(self, **facts: Any) -> None:
        """Write `_run.json`: facts about the run that writes this folder."""
        replace_text(self._record, json.dumps({"format": FORMAT, **facts}, indent=1) + "\n")

    def for_tasks(self) -> str:
        """A new folder in `_writing`, for the tasks of a batch."""
        return str(self._writing / f"tasks-{secrets.token_hex(4)}")

    def take(self, kind: str, files: Iterable[Path]) -> None:
        """Take files that tasks have written, for `commit`."""
        folder = self._writing / kind
        folder.mkdir(parents=True, exist_ok=True)
        for file in files:
            os.rename(file, folder / file.name)

    def write_refusals(self, refusals: Iterable[Refusal]) -> None:
        """Write the dead letters of the driver beside those of the workers that were taken."""
        _write_letters(refusals, self._writing / DEAD_LETTER / "driver.parquet")

    def uncommitted(self) -> tuple[Path, Path]:
        """The folders with the matches and the dead letters that were written, and are not committed yet."""
        return self._writing / MATCHES, self._writing / DEAD_LETTER

    def next_start(self) -> str:
        """The folder for the refusals of this start of a stream: those of earlier starts stay."""
        folders = (self.folder / DEAD_LETTER).glob("batch=-*")
        earlier = [int(folder.name.removeprefix("batch=-")) for folder in folders]
        return f"batch=-{max(earlier, default=0) + 1}"

    def add_refusals(self, refusals: Sequence[Refusal], part: str) -> None:
        """Write more dead letters of the driver beside those that are there, while micro-batches may be written."""
        if not refusals:
            return
        folder = self.folder / DEAD_LETTER / part
        folder.mkdir(parents=True, exist_ok=True)
        file = folder / f"driver-{len(list(folder.glob('driver-*.parquet')))}.parquet"
        aside = folder / f".{file.name}"
        _write_letters(refusals, aside)
        os.replace(aside, file)

    def is_committed(self, part: str) -> bool:
        """Did an earlier try of this micro-batch commit it?"""
        return all((self.folder / kind / part).exists() for kind in (MATCHES, DEAD_LETTER))

    def counts(self, part: str = "") -> Counts | None:
        """What was counted of a micro-batch that is committed."""
        return Counts.read(self.folder / MATCHES / part)

    def commit(self, part: str = "", counts: Counts | None = None) -> None:
        """Move what was written to its place, replacing what is there, with what was counted. `part` names the folder
        of a micro-batch."""
        if counts is not None:
            counts.write(self._writing / MATCHES)
        self.at("before the commit")
        for kind in (DEAD_LETTER, MATCHES):
            new, place, old = (folder / kind for folder in (self._writing, self.folder, self.replaced))
            if not new.exists():
                continue
            place, old = place / part, old / part
            place.parent.mkdir(parents=True, exist_ok=True)
            if place.exists():
                old.parent.mkdir(parents=True, exist_ok=True)
                shutil.rmtree(old, ignore_errors=True)
                os.rename(place, old)
            if kind == MATCHES:
                self.at("between the renames")
            os.rename(new, place)
        self.at("after the commit")
        for done in (self._writing, self.replaced):
            shutil.rmtree(done, ignore_errors=True)

    def _put_back(self) -> None:
        """Put back what a run that was killed had moved away, and had not put others in its place."""
        for kind in (MATCHES, DEAD_LETTER):
            old = self.replaced / kind
            for folder in [*old.glob("batch=*"), old]:
                place = self.folder / folder.relative_to(self.replaced)
                if folder.exists() and not place.exists():
                    place.parent.mkdir(parents=True, exist_ok=True)
                    os.rename(folder, place)
        shutil.rmtree(self.replaced, ignore_errors=True)

    def count(self, part: str | None = None) -> int:
        """The number of matches that were committed; without a part, of those that are not committed yet."""
        folder = self._writing / MATCHES if part is None else self.folder / MATCHES / part
        return sum(pq.read_metadata(file).num_rows for file in folder.glob(_FROM_TASKS))

    def refusals(self, part: str = "") -> Iterator[Refusal]:
        """The dead letters that the workers wrote."""
        for file in sorted((self.folder / DEAD_LETTER / part).glob(_FROM_TASKS)):
            with pq.ParquetFile(file) as parquet:
                for batch in parquet.iter_batches():
                    yield from (Refusal(**row) for row in batch.to_pylist())

    def last_record(self) -> dict[str, Any] | None:
        """The content of `_run.json`, if a run wrote it."""
        try:
            record = json.loads(self._record.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None
        return record if isinstance(record, dict) and record.get("format") == FORMAT else None

    def _wrong(self, what: str) -> TriplewireError:
        return TriplewireError(what, source=str(self.folder), remedy="choose another output folder, or remove this one")


def _write_letters(refusals: Iterable[Refusal], file: Path) -> None:
    pq.write_table(pa.Table.from_pylist(list(map(storable, refusals)), schema=DEAD_LETTERS), file)
