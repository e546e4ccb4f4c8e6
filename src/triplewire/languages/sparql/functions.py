"""The functions of SPARQL 1.1 (17.4) by name: how many arguments they take, and which are refused, with the reason.

What they compute: `triplewire.ir`.
"""

from __future__ import annotations

from typing import NamedTuple

from triplewire.ir.values import casts


class Arity(NamedTuple):
    """Least and most arguments; None is without limit."""

    least: int
    most: int | None

    def __str__(self) -> str:
        if self.most is None:
            return f"{self.least} or more arguments"
        if self.least < self.most:
            return f"{self.least} to {self.most} arguments"
        return f"{self.least} argument" + ("" if self.least == 1 else "s")


def _same(count: int, names: str) -> dict[str, Arity]:
    return dict.fromkeys(names.split(), Arity(count, count))


FUNCTIONS: dict[str, Arity] = {
    **_same(0, "NOW"),
    **_same(1, "STR LANG DATATYPE IRI ABS CEIL FLOOR ROUND STRLEN UCASE LCASE ENCODE_FOR_URI"),
    **_same(1, "YEAR MONTH DAY HOURS MINUTES SECONDS TIMEZONE TZ MD5 SHA1 SHA256 SHA384 SHA512"),
    **_same(1, "ISIRI ISBLANK ISLITERAL ISNUMERIC"),
    **_same(2, "LANGMATCHES CONTAINS STRSTARTS STRENDS STRBEFORE STRAFTER STRLANG STRDT SAMETERM"),
    **_same(3, "IF"),
    "SUBSTR": Arity(2, 3),
    "REGEX": Arity(2, 3),
    "REPLACE": Arity(3, 4),
    "CONCAT": Arity(0, None),
    "COALESCE": Arity(0, None),
}
"""By upper-case name. BOUND and EXISTS, whose arguments are no expressions, are read by `expressions`."""

CASTS = frozenset(casts.CASTS)
"""Datatype IRIs that are called as functions (17.5, and the other datatypes of XSD that have values here)."""

AGGREGATES = frozenset(["COUNT", "SUM", "MIN", "MAX", "AVG", "SAMPLE", "GROUP_CONCAT"])

RANDOM = frozenset(["RAND", "UUID", "STRUUID", "BNODE"])
"""Their value would differ from one evaluation to the next; matching is deterministic (semantics, section 6)."""
