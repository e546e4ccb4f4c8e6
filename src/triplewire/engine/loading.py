"""Registers the subscriptions of files: one loop over their rows, which a registrar puts into the current snapshot.

`triplewire.languages.sources.files` reads the rows. A snapshot of segments takes them as columns
(`triplewire.engine.segments.loading`), any other one as objects.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, ParamSpec, TypeAlias

from triplewire.engine.compiler import Compiler, id_is_taken
from triplewire.engine.current_snapshot import CurrentSnapshot
from triplewire.engine.subscriptions import Rules
from triplewire.errors import Refusal, TriplewireError
from triplewire.ir.subscription import Subscription
from triplewire.languages.sources.files import ROWS_AHEAD, ParsedRow, read_rows
from triplewire.languages.sources.tables import SubscriptionSource, SubscriptionTexts
from triplewire.languages.templates import Templates
from triplewire.read.documents import bytes_of

if TYPE_CHECKING:
    from triplewire.engine.segments.loading import SegmentRegistrar

Refuse: TypeAlias = Callable[[Refusal], None]
Warn: TypeAlias = Callable[[str, str], None]
Told = ParamSpec("Told")

OBJECTS_TOGETHER = 16_384  # a snapshot of objects copies a table at each change


def load(
    sources: Sequence[SubscriptionSource],
    compiler: Compiler,
    current: CurrentSnapshot,
    refuse: Refuse,
    warn: Warn | None,
    ids: frozenset[str] | None,
) -> Iterator[int]:
    """Register the subscriptions of files and tables; with `ids`, only those with these ids. Texts in tables stay
    there, where the snapshot is one of segments. Yields the number registered since the last yield. Where `refuse`,
    `warn`, reading or the caller raises, the rows before that are registered, and perhaps some of those after it."""
    world, templates, together = compiler.world, None, OBJECTS_TOGETHER
    compiler.tables.update({source.name: source for source in sources if isinstance(source, SubscriptionTexts)})
    raised: list[Exception] = []
    tell, warn = _guarded(refuse, raised), None if warn is None else _guarded(warn, raised)
    registrar: ObjectRegistrar | SegmentRegistrar = ObjectRegistrar(current, tell, warn)
    if current.snapshot.columnar:
        from triplewire.engine.segments.loading import SegmentRegistrar  # compiled kernels

        registrar = SegmentRegistrar(compiler, current, bytes_of(sources), tell, warn)
        meant = None if compiler.entailment == "none" else compiler.meant
        templates, together = Templates(world.settings, world.operators, meant), ROWS_AHEAD
    rows = read_rows(
        sources,
        templates,
        operators=world.operators,
        settings=world.settings,
        registered=Rules.of(current.snapshot),
        ids=ids,
        on_refusal=refuse,
    )
    wanted = rows if ids is None else (parsed for parsed in rows if parsed.row.id in ids)
    del rows, templates  # so that the templates go when there are no more rows
    unread: list[Exception] = []
    while not (raised or unread):
        batch: list[ParsedRow] = []
        try:
            batch.extend(islice(wanted, together))  # those before one that raises stay in the list
        except Exception as error:
            unread.append(error)
        if not batch:
            break
        try:
            yield registrar.add(batch)
        except GeneratorExit:  # the caller has raised something
            registrar.finish()
            raise
    yield registrar.finish()
    for first in raised + unread:  # what is refused when it is registered was read before
        raise first


def _guarded(receiver: Callable[Told, None], raised: list[Exception]) -> Callable[Told, None]:
    """The receiver, which is not called any more once a guarded receiver has raised; the exception goes to `raised`."""

    def tell(*told: Told.args, **named: Told.kwargs) -> None:
        if not raised:
            try:
                receiver(*told, **named)
            except Exception as error:
                raised.append(error)

    return tell


class ObjectRegistrar:
    """Registers rows that were parsed in full."""

    def __init__(self, current: CurrentSnapshot, refuse: Refuse, warn: Warn | None) -> None:
        self._current, self._refuse, self._warn = current, refuse, warn

    def add(self, rows: list[ParsedRow]) -> int:
        """Register the subscriptions of the rows together, those that can be. Returns how many."""
        checked: dict[str, Subscription] = {}
        refusals: list[Refusal] = []  # told outside of the lock: whoever is told may call the engine
        with self._current.lock:
            snapshot = self._current.snapshot
            for parsed in rows:
                id_ = parsed.row.id
                assert parsed.subscription is not None
                try:
                    if id_ in snapshot:
                        raise id_is_taken(id_)
                    checked[id_] = snapshot.compiler.checked(parsed.subscription)
                except TriplewireError as error:
                    refusals.append(parsed.row.refusal(error))
            self._current.snapshot = snapshot.changed(tuple(checked.values()), ())
        for refusal in refusals:
            self._refuse(refusal)
        if self._warn is not None:
            for subscription in checked.values():
                for warning in subscription.warnings:
                    self._warn(subscription.id, warning)
        return len(checked)

    def finish(self) -> int:
        """A correction of the counts that `add` gave, once all rows are registered: nothing is left here."""
        return 0
