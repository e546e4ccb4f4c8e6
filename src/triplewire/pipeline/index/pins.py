"""Which version of an index a micro-batch is matched with: the newest one, and when it is repeated the one it had.

The ledger is a SQLite file in the output folder of the stream. A version that turns out to be damaged when it is new is
told of and passed over until it is whole, and the stream goes on with the one before. A version whose subscriptions
call operators that the run was not given is told of, and used: those calls fail.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from triplewire.engine import Engine
from triplewire.errors import StoreError
from triplewire.operators.files import OperatorFile
from triplewire.pipeline.filter import IndexFilter
from triplewire.pipeline.index.open_version import OpenVersion, opened, refuse_missing, usable
from triplewire.pipeline.index.versions import Version, current, pin, unpin
from triplewire.state_file import connected

_TABLE = """
CREATE TABLE IF NOT EXISTS pins (batch INTEGER PRIMARY KEY, version TEXT NOT NULL, sha256 TEXT NOT NULL);
"""


class Pins:
    """The ledger: micro-batch -> the name of its version, and the hash of that version's manifest. `at` is called at
    the named points (`output.Output.at`)."""

    def __init__(self, file: Path, at: Callable[[str], None] = lambda point: None) -> None:
        self._file = file
        self._at = at

    def of(self, batch: int) -> tuple[str, str] | None:
        """The version that a micro-batch was pinned to, if it was."""
        with connected(self._file, _TABLE) as connection:
            row = connection.execute("SELECT version, sha256 FROM pins WHERE batch = ?", (batch,)).fetchone()
        return None if row is None else (str(row[0]), str(row[1]))

    def pin(self, batch: int, version: Version) -> None:
        """Pin a micro-batch that is not pinned yet."""
        with connected(self._file, _TABLE) as connection:
            connection.execute("INSERT INTO pins VALUES (?, ?, ?)", (batch, version.name, version.sha256))
        self._at("after the pin")


class IndexSource:
    """An index as the subscriptions of a run. `output`: the folder of the run; `operators`: the files that give its
    own operators; `on_note` gets what a user should know. `source`: the hash of what the run compiled itself, where it
    made the index."""

    def __init__(
        self,
        directory: Path,
        output: Path,
        operators: Sequence[OperatorFile] = (),
        on_note: Callable[[str], None] = lambda note: None,
        source: str = "",
    ) -> None:
        self.directory = directory.absolute()
        self.source = source
        self.identity = source or str(self.directory)  # what the record of a run says of its subscriptions
        self._output = output
        self._operators = tuple(operators)
        self._on_note = on_note
        self._last: Version | None = None
        self._passed_over = ""  # the name of the version that a note was about, and which is tried each time
        self._marked = ""
        self._told_unpinned = False
        self._told_missing = ""

    def check(self) -> None:
        """Open and check the version that counts now. Raises `StoreError`, also where its subscriptions call operators
        that the run was not given. The version that the run had last, before it was interrupted perhaps, stays pinned
        until a batch has another."""
        refuse_missing(self._opened(self._newest()))

    def newest(self) -> IndexFilter:
        """The version that counts now, checked; the last one that was used, where that is damaged. Raises `StoreError`
        where there is none."""
        return self._used(self._newest_pinned())

    def _newest_pinned(self) -> Version:
        """The version that counts now, pinned, so that nobody removes it. Where it was removed before it was pinned, as
        newer ones had come meanwhile, the one that counts then."""
        while True:
            version = self._newest()
            if version.sha256 == self._marked:
                return version
            try:
                self._used(version)
                usable(self.directory, version.name, self._operators)
                return version
            except StoreError:
                if _name_of(self.directory) == version.name:
                    raise

    def _newest(self) -> Version:
        while True:
            name = _name_of(self.directory)
            try:
                self._last = usable(self.directory, current(self.directory), self._operators)
                self._passed_over = ""
                return self._last
            except StoreError as error:
                if name != _name_of(self.directory):  # newer versions came, and this one may be gone
                    continue
                if self._last is None or not self._is_there(self._last):
                    raise
                if self._passed_over != name:
                    self._on_note(f"{error}; matching goes on with {self._last.name}")
                self._passed_over = name
                return self._last

    def _is_there(self, version: Version) -> bool:
        """Can it still be used? The index may have been removed, or made anew."""
        try:
            return usable(self.directory, version.name, self._operators).sha256 == version.sha256
        except StoreError:
            return False

    def pinned(self, pins: Pins, batch: int) -> IndexFilter:
        """The version of a micro-batch. Raises `StoreError` where the one that it had is gone, or is another now."""
        before = pins.of(batch)
        if before is None:
            version = self._newest_pinned()
            pins.pin(batch, version)
            return self._used(version)
        name, sha256 = before
        what = f"the version {name}, which micro-batch {batch} had before it was interrupted, is gone"
        if (self.directory / name).exists():
            version = usable(self.directory, name, self._operators)
            if version.sha256 == sha256:
                return self._used(version)
            what = f"the version {name} is not the one that micro-batch {batch} had before it was interrupted"
        remedy = "put that index back, or choose another output folder"
        raise StoreError(what, source=str(self.directory), remedy=remedy)

    def engine(self) -> Engine:
        """The engine of the version that was used last, of an index that is not spread. Raises `StoreError`."""
        return self.newest().opened().server()

    def _used(self, version: Version) -> IndexFilter:
        if self._marked != version.sha256:
            try:
                pin(self.directory, self._output, version.name)
            except OSError as error:
                if not self._told_unpinned:
                    self._told_unpinned = True
                    self._on_note(
                        f"{self.directory} cannot be written ({error.strerror}): others may remove a version such as "
                        f"{version.name} before a micro-batch that was interrupted is repeated with it"
                    )
            self._marked = version.sha256
            missing = ", ".join(self._opened(version).missing)
            if missing not in ("", self._told_missing):  # once for the same operators, however many versions call them
                self._told_missing = missing
                self._on_note(
                    f"{version.name} of {self.directory} has subscriptions that call operators that this run was not "
                    f"given ({missing}): pairs that depend on such a call are refused until it is started with "
                    "--operators FILE"
                )
        nodes = len(version.content.parts) - 1
        return IndexFilter(str(self.directory), version.name, nodes, self._operators, sha256=version.sha256)

    def _opened(self, version: Version) -> OpenVersion:
        return opened(self.directory, version.name, self._operators)

    def release(self) -> None:
        """The run is done, and nothing of it is repeated: no version has to stay for it."""
        unpin(self.directory, self._output)


def _name_of(directory: Path) -> str:
    try:
        return current(directory)
    except StoreError as error:
        return str(error)
