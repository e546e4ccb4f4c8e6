"""Every exception that Triplewire raises on purpose, and the record of an input that was refused.

    TriplewireError
    ├── ArgumentError        a call got an argument that it cannot take; also a TypeError and a ValueError
    ├── LanguageError        the query text is wrong: line, column, what was found, what was expected
    │   └── UnsupportedQuery the text is right, but outside the subset: which construct, what to use instead
    ├── ReadError            a publication (or a file of them) could not be read: which one, where, why
    ├── TaxonomyError        a taxonomy has a cycle or cannot be read
    ├── OperatorError        an operator failed or ran out of time: its call is unknown for that publication
    │   ├── CallNotMade      a call did not reach its operator: a budget is spent, or it is suspended
    │   ├── OperatorFault    the operator itself is at fault: it crashed, hung, or answered nonsense
    │   └── PassingError     the same call may succeed soon; as PassingFault, where the operator is at fault
    ├── UnavailableError     a service, a driver or a program that is needed is not there
    │   ├── RequestError     a server gave no whole answer in time, or one that is too large
    │   │   └── AddressError its address may not be asked, or it has none
    │   └── SparkError       Spark, or the Java that it needs, is missing, did not start, or failed
    ├── LimitError           a limit of `config.Settings` was passed: which one, how to raise it
    ├── ServiceError         a service has refused what it was asked for
    ├── SubscriptionError    a subscription cannot be registered: its id is taken, an operator is unknown ...
    └── StoreError           a directory is no saved engine, no index, or no output of a run
        ├── DamagedError     what was saved there is damaged
        ├── GapError         something that has to come first is missing
        ├── WriteError       it cannot be written
        └── BusyError        another process has it: try again

An error says what happened, where, why, and what to do. Where work goes on after an error (a batch, a folder of files),
it becomes a `Refusal`. No input is dropped without one.
"""

from __future__ import annotations

from dataclasses import dataclass


class TriplewireError(Exception):
    """The base class. `what` is one sentence. The other fields are empty where they do not apply.

    `source` names the file, subscription or publication; `line` and `column` count from 1; `record` counts the rows of
    a JSON Lines, Parquet or N-Quads file from 1; `remedy` says what to do about it.
    """

    def __init__(
        self, what: str, *, source: str = "", line: int = 0, column: int = 0, record: int = 0, remedy: str = ""
    ) -> None:
        super().__init__(what)
        self.what, self.remedy = what, remedy
        self.source, self.line, self.column, self.record = source, line, column, record

    @property
    def where(self) -> str:
        """`source:line:column` and the record, without the parts that are not known."""
        place = ":".join(str(part) for part in (self.source, self.line, self.column) if part)
        return f"{place} (record {self.record})".lstrip() if self.record else place

    def __str__(self) -> str:
        text = f"{self.where}: {self.what}" if self.where else self.what
        return f"{text}; {self.remedy}" if self.remedy else text


class ArgumentError(TriplewireError, TypeError, ValueError):
    """A function or method got an argument of a wrong type or value. The call changed nothing.

    `source` names the function and the argument. It is Python's `TypeError` and `ValueError` as well, so that callers
    may expect either.
    """


class LanguageError(TriplewireError):
    """The text of a subscription does not follow its language."""


class UnsupportedQuery(LanguageError):
    """The text is well-formed, but standing queries do not support the named construct."""


class ReadError(TriplewireError):
    """An input is malformed, hostile or in no known syntax."""


class TaxonomyError(TriplewireError):
    """The class hierarchy has a cycle, or its file cannot be read."""


class OperatorError(TriplewireError):
    """An operator raised, or ran out of time."""


class CallNotMade(OperatorError):
    """A call did not reach its operator: a budget is spent, or the operator is suspended."""


class OperatorFault(OperatorError):
    """The operator itself is at fault, whatever it was asked: it crashed, hung, or answered nonsense."""


class PassingError(OperatorError):
    """A call failed for a reason that may be gone soon. `wait`: the seconds that a service asks for, 0 where it says
    nothing."""

    def __init__(self, what: str, *, remedy: str = "", wait: float = 0.0) -> None:
        super().__init__(what, remedy=remedy)
        self.wait = wait


class PassingFault(PassingError, OperatorFault):
    """The operator is at fault, perhaps not for long: it gave no answer in time, or a service is busy."""


class UnavailableError(TriplewireError):
    """A service, a driver or a program that is needed is not there, or does not answer."""


class RequestError(UnavailableError):
    """A server gave no whole answer in time, or one that is too large."""


class AddressError(RequestError):
    """A server has no address, or one that may not be asked: nothing was sent to it."""


class LimitError(TriplewireError):
    """A limit of `config.Settings` was passed; `remedy` names the setting."""


class SubscriptionError(TriplewireError):
    """A subscription cannot be registered or found."""


class ServiceError(TriplewireError):
    """A service has refused what it was asked for (4xx). `status` is the HTTP status."""

    status = 0


class StoreError(TriplewireError):
    """A directory is not a saved engine, or is a damaged one."""


class DamagedError(StoreError):
    """What was saved is not there any more as it was saved."""


class GapError(StoreError):
    """What lies between what is there and what has come is missing, and has to come first."""


class WriteError(StoreError):
    """A directory or a file cannot be written."""


class BusyError(StoreError):
    """Another process has what is asked for: the same may work later."""


class SparkError(UnavailableError):
    """Spark, or the Java that it needs, is missing, did not start, or failed."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """An input that was not processed, and why. It becomes a row of the dead-letter output.

    `kind` is "publication", "subscription" or "pair" (a publication and a subscription whose evaluation failed), or
    "delivery" (a row that a receiver does not take). It is "warning" where nothing was left out: the input is
    ill-formed, and was read as far as it can be.
    `subject` is the file, the id, or "publication subscription"; `where` the position; `reason` what and why.
    """

    kind: str
    subject: str
    where: str
    reason: str
    remedy: str = ""

    @classmethod
    def of(cls, kind: str, subject: str, error: TriplewireError) -> Refusal:
        """A refusal of `subject` for an error that was raised while it was processed."""
        return cls(kind, subject, error.where, error.what, error.remedy)

    @property
    def is_warning(self) -> bool:
        """Was the input processed all the same?"""
        return self.kind == "warning"

    def __str__(self) -> str:
        place, rest = f"{self.subject} {self.where}", self.where.removeprefix(self.subject)
        is_one_query = rest.startswith(".") and " (record " not in rest  # the subject is the id of that of a file
        if self.subject.startswith(self.where):
            place = self.subject
        elif self.where.startswith(self.subject) and (is_one_query or rest.startswith((":", " (record "))):
            place = self.where
        text = f"{'warning' if self.is_warning else f'refused {self.kind}'} {place}: {self.reason}"
        return f"{text}; {self.remedy}" if self.remedy else text


def text_of_raised(error: BaseException) -> str:
    """The class and the text of what foreign code raised. The class alone where it has no text, or none can be had."""
    try:
        text = str(error)
    except KeyboardInterrupt:
        raise
    except BaseException:  # asking for the text runs foreign code as well
        text = ""
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def raise_refusal(refusal: Refusal) -> None:
    """What becomes of the refusal of a subscription where nobody asks for refusals. Raises `SubscriptionError`."""
    raise SubscriptionError(refusal.reason, source=refusal.where or refusal.subject, remedy=refusal.remedy)


__all__ = sorted(name for name, value in vars().items() if getattr(value, "__module__", "") == __name__)
