"""XSD dates, times and durations: reading, the time line, writing; and the labels that read as an instant.

Standard: XML Schema 1.1 part 2, sections 3.3.6 to 3.3.14 and D.2 (the seven-property model). Python's datetime is not
used: it knows neither years below 1 nor instants without a zone beside those with one. Comparison:
`triplewire.ir.values.compare`.
"""

from __future__ import annotations

import calendar
import re
from typing import NamedTuple, TypeAlias

from triplewire.model.terms import XSD, Literal

Instant: TypeAlias = tuple[int, str]
"""Seconds since 0000-03-01T00:00:00Z, and the digits of the fraction without trailing zeros: ordered as instants
are."""


class Moment(NamedTuple):
    """A value of xsd:dateTime, date, time, gYear, gYearMonth, gMonth, gMonthDay or gDay.

    `datatype` is its IRI; `zone` is in minutes, None where there is none; `seconds` and `fraction` as in Instant; the
    fields that a datatype lacks have the value that places it on the time line.
    """

    datatype: str
    year: int
    month: int
    day: int
    hour: int
    minute: int
    second: int
    fraction: str
    zone: int | None

    @property
    def instant(self) -> Instant:
        """Where it lies on the time line; without a zone, as if it were in UTC."""
        seconds = days(self.year, self.month, self.day) * 86_400
        seconds += self.hour * 3_600 + (self.minute - (self.zone or 0)) * 60 + self.second
        return seconds, self.fraction


class Duration(NamedTuple):
    """A duration: months, and seconds with a fraction's digits; `sign` is -1 or 1, the other parts are not negative."""

    sign: int
    months: int
    seconds: int
    fraction: str


_YEAR = r"(?P<year>-?(?:[1-9][0-9]{4,8}|[0-9]{4}))"
_DATE = _YEAR + r"-(?P<month>[0-9]{2})-(?P<day>[0-9]{2})"
_TIME = r"(?P<hour>[0-9]{2}):(?P<minute>[0-9]{2}):(?P<second>[0-9]{2})(?:\.(?P<fraction>[0-9]+))?"
_ZONE = r"(?P<zone>Z|[+-][0-9]{2}:[0-9]{2})?"
_FORMS = {
    XSD + name: re.compile(form + _ZONE)
    for name, form in {
        "dateTime": f"{_DATE}T{_TIME}",
        "dateTimeStamp": f"{_DATE}T{_TIME}(?=[Z+-])",
        "date": _DATE,
        "time": _TIME,
        "gYear": _YEAR,
        "gYearMonth": _YEAR + r"-(?P<month>[0-9]{2})",
        "gMonth": r"--(?P<month>[0-9]{2})",
        "gMonthDay": r"--(?P<month>[0-9]{2})-(?P<day>[0-9]{2})",
        "gDay": r"---(?P<day>[0-9]{2})",
    }.items()
}
DATE_TIME = XSD + "dateTime"
DATE = XSD + "date"
TIME = XSD + "time"
MOMENTS = frozenset(_FORMS)
"""The datatypes whose values are moments."""
HAS_FIELD = {
    field: frozenset(datatype for datatype, form in _FORMS.items() if group in form.groupindex)
    for field, group in (("year", "year"), ("month", "month"), ("day", "day"), ("time", "hour"))
}
"""Which datatypes YEAR, MONTH, DAY, and HOURS, MINUTES, SECONDS can be asked of."""


def days(year: int, month: int, day: int) -> int:
    """Days since 0000-03-01 of a date in the proleptic Gregorian calendar, which has a year 0."""
    year, month = (year, month - 3) if month > 2 else (year - 1, month + 9)
    return year * 365 + year // 4 - year // 100 + year // 400 + (month * 153 + 2) // 5 + day - 1


def days_of_month(year: int, month: int) -> int:
    """How many days the month has."""
    return calendar.monthrange(2000 + year % 400, month)[1]  # the calendar repeats itself after 400 years


def read_moment(lexical: str, datatype: str) -> Moment | None:
    """The moment that a literal stands for; None where the lexical form is not valid for the datatype."""
    form = _FORMS.get(datatype)
    match = form.fullmatch(lexical) if form is not None else None
    if match is None:
        return None
    # xsd:time stands on the last day of 1972, the others on the first of what they leave out (XSD 1.1, D.2.1)
    return _moment(DATE_TIME if datatype.endswith("Stamp") else datatype, match.groupdict())


def _moment(datatype: str, parts: dict[str, str | None]) -> Moment | None:
    is_time = datatype == TIME
    defaults = {"year": 1972, "month": 12 if is_time else 1, "day": 31 if is_time else 1}
    defaults |= {"hour": 0, "minute": 0, "second": 0}
    year, month, day, hour, minute, second = (int(parts.get(name) or default) for name, default in defaults.items())
    fraction = (parts.get("fraction") or "").rstrip("0")
    zone = _zone(parts.get("zone"))
    if not 1 <= month <= 12 or not 1 <= day <= days_of_month(year, month) or minute > 59 or second > 59 or zone == _BAD:
        return None
    if hour == 24 and not (minute or second or fraction):
        hour = 0
        if not is_time:
            day += 1
            if day > days_of_month(year, month):
                year, month, day = (year, month + 1, 1) if month < 12 else (year + 1, 1, 1)
    if hour > 23:
        return None
    return Moment(datatype, year, month, day, hour, minute, second, fraction, zone)


_BAD = 10_000  # minutes of a zone that no zone has


def _zone(text: str | None) -> int | None:
    if text is None or text == "Z":
        return None if text is None else 0
    hours, minutes = int(text[1:3]), int(text[4:])
    if minutes > 59 or hours * 60 + minutes > 14 * 60:
        return _BAD
    return (hours * 60 + minutes) * (-1 if text[0] == "-" else 1)


def write_zone(zone: int | None) -> str:
    """`Z`, `+05:30`, or nothing."""
    if not zone:
        return "" if zone is None else "Z"
    return f"{'-' if zone < 0 else '+'}{abs(zone) // 60:02}:{abs(zone) % 60:02}"


def moment_literal(moment: Moment, datatype: str) -> Literal:
    """A dateTime or date as a literal of `datatype` (one of these two)."""
    text = f"{'-' if moment.year < 0 else ''}{abs(moment.year):04}-{moment.month:02}-{moment.day:02}"
    if datatype == DATE_TIME:
        fraction = f".{moment.fraction}" if moment.fraction else ""
        text += f"T{moment.hour:02}:{moment.minute:02}:{moment.second:02}{fraction}"
    return Literal(text + write_zone(moment.zone), datatype)


def zone_duration(zone: int) -> Literal:
    """A zone as an xsd:dayTimeDuration (SPARQL's TIMEZONE)."""
    hours, minutes = divmod(abs(zone), 60)
    text = (f"{hours}H" if hours else "") + (f"{minutes}M" if minutes else "")
    return Literal(f"{'-' if zone < 0 else ''}PT{text or '0S'}", XSD + "dayTimeDuration")


# --- durations ---------------------------------------------------------------------------------------------------

DURATIONS = frozenset(XSD + name for name in ("duration", "dayTimeDuration", "yearMonthDuration"))
"""The datatypes whose values are durations."""

_DURATION = re.compile(
    r"(?P<sign>-?)P(?=[0-9T])(?:(?P<years>[0-9]{1,15})Y)?(?:(?P<months>[0-9]{1,15})M)?(?:(?P<days>[0-9]{1,15})D)?"
    r"(?:T(?=[0-9])(?:(?P<hours>[0-9]{1,15})H)?(?:(?P<minutes>[0-9]{1,15})M)?"
    r"(?:(?P<seconds>[0-9]{1,15})(?:\.(?P<fraction>[0-9]{1,30}))?S)?)?"
)
_FOREIGN_PARTS = {XSD + "dayTimeDuration": ("years", "months"), XSD + "yearMonthDuration": ("days",)}


def read_duration(lexical: str, datatype: str) -> Duration | None:
    """The duration that a literal stands for; None where the lexical form is not valid for the datatype."""
    match = _DURATION.fullmatch(lexical) if datatype in DURATIONS else None
    if match is None or any(match[part] for part in _FOREIGN_PARTS.get(datatype, ())):
        return None
    if "T" in lexical and datatype == XSD + "yearMonthDuration":
        return None
    years, months, day, hours, minutes, seconds = (
        int(match[part] or 0) for part in ("years", "months", "days", "hours", "minutes", "seconds")
    )
    total = ((day * 24 + hours) * 60 + minutes) * 60 + seconds
    fraction = (match["fraction"] or "").rstrip("0")
    zero = not (years or months or total or fraction)
    return Duration(-1 if match["sign"] and not zero else 1, years * 12 + months, total, fraction)


# the four starting points whose agreement decides the order of two durations (XSD 1.1, 3.3.6.2): year, month
_STARTS = ((1696, 9), (1697, 2), (1903, 3), (1903, 7))


def duration_ends(duration: Duration) -> tuple[tuple[int, str], ...]:
    """Where the duration ends, counted from each of the four reference points; comparable position by position."""
    out = []
    for year, month in _STARTS:
        months = year * 12 + month - 1 + duration.sign * duration.months
        moved = days(months // 12, months % 12 + 1, 1) - days(year, month, 1)
        seconds = moved * 86_400 + duration.sign * duration.seconds
        if duration.sign < 0 and duration.fraction:  # -1.25 s is -2 s and 0.75 s
            complement = str(10 ** len(duration.fraction) - int(duration.fraction)).zfill(len(duration.fraction))
            out.append((seconds - 1, complement))
        else:
            out.append((seconds, duration.fraction))
    return tuple(out)


_LENIENT = re.compile(
    f"{_DATE}(?:T(?P<hour>[0-9]{{2}}):(?P<minute>[0-9]{{2}})(?::(?P<second>[0-9]{{2}})(?:\\.(?P<fraction>[0-9]+))?)?)?{_ZONE}"
)


def lenient_instant(text: str) -> Instant | None:
    """The instant of a label that reads as an ISO date (that day 00:00) or dateTime, seconds optional; without
    a zone, UTC (semantics, section 2). A constant is trimmed before. None for any other label."""
    match = _LENIENT.fullmatch(text)
    if match is None:
        return None
    moment = _moment(DATE_TIME, match.groupdict())
    return moment.instant if moment is not None else None
