"""Tables for notebooks (`_repr_html_`). All text is escaped: what a feed says never becomes markup or a link."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Sequence
from itertools import islice

from triplewire.model.terms import Literal, Term, shortened

ROWS = 50  # of a table; a line says how many more there are
CELL = 300  # characters of a cell
_UNSEEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")  # or turned around


def escaped(text: str) -> str:
    """The text, shortened, as HTML shows it. Characters that cannot be seen are written as escapes."""
    visible = _UNSEEN.sub(lambda match: f"\\u{ord(match[0]):04x}", shortened(text, CELL))
    return html.escape(visible, quote=True)


def term_text(term: Term) -> str:
    """A term for a cell: a plain text without quotation marks, everything else in N-Triples notation."""
    is_plain = isinstance(term, Literal) and str(term).endswith('"')
    return term.lexical if is_plain and isinstance(term, Literal) else str(term)


def table(caption: str, head: Sequence[str], rows: Iterable[Sequence[str]], count: int) -> str:
    """A table of the first rows of `count`; all arguments are text."""
    first = islice(rows, ROWS)
    lines = [f"<table><caption>{escaped(caption)}</caption>", _row("th", head), *(_row("td", row) for row in first)]
    if count > ROWS:
        lines.append(f'<tr><td colspan="{len(head)}">{count - ROWS:,} more</td></tr>')
    return "\n".join([*lines, "</table>"])


def _row(tag: str, cells: Iterable[str]) -> str:
    return "<tr>" + "".join(f'<{tag} style="text-align:left">{escaped(cell)}</{tag}>' for cell in cells) + "</tr>"


def lines_of_text(text: str) -> str:
    """Lines of text with their indents. Each line is shortened."""
    return "<pre>" + "\n".join(map(escaped, text.split("\n"))) + "</pre>"
