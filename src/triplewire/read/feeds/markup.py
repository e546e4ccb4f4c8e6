"""Reduces HTML to its text, for rss:description. The markup itself is kept in content:encoded."""

from __future__ import annotations

import html
import re

# Only names that HTML knows are tags: `a < b` and `<project>` in a description are text.
_INLINE = (
    "a abbr acronym applet b bdi bdo big button cite code data del dfn em embed font i iframe img input ins kbd label "
    "map mark math meter noscript object option param picture q s samp select small source span strike strong sub sup "
    "svg textarea time tt u var video audio wbr"
)
_BLOCK = (
    "address article aside blockquote body br canvas caption center col colgroup dd details dir div dl dt fieldset "
    "figcaption figure footer form frame frameset h1 h2 h3 h4 h5 h6 head header hr html legend li link main menu meta "
    "nav ol optgroup p pre section summary table tbody td tfoot th thead title tr ul"
)
_BLOCKS = frozenset(_BLOCK.split())
_TAG = re.compile(
    rf"<(?P<close>/?)(?P<name>{'|'.join(sorted((_INLINE + ' ' + _BLOCK).split(), key=len, reverse=True))})"
    r"""(?=[\s/>])(?:"[^"<]*+"|'[^'<]*+'|[^<>"'])*+>""",
    re.IGNORECASE,
)
_HIDDEN = re.compile(r"<!--|<(script|style)(?=[\s/>])", re.IGNORECASE)
_ENTITY = re.compile(r"&(?:#\d+|#[xX][0-9a-fA-F]+|[A-Za-z][A-Za-z0-9]*);")


def text_of_html(markup: str) -> str:
    """The text of an HTML fragment, without tags, with entities resolved and white space collapsed.

    Plain text stays.
    """
    bare = _without_hidden(markup)
    bare, tags = _TAG.subn(lambda m: " " if m["name"].lower() in _BLOCKS else "", bare)
    if not tags and bare == markup:
        return html.unescape(markup) if _ENTITY.search(markup) else markup
    return " ".join(html.unescape(bare).split())


def _without_hidden(markup: str) -> str:
    """The markup without comments, scripts and styles, in one pass. One that is never closed reaches to the end."""
    shown, position = [], 0
    while match := _HIDDEN.search(markup, position):
        shown.append(markup[position : match.start()])
        end = re.compile(rf"</{match[1]}\s*>" if match[1] else "-->", re.IGNORECASE).search(markup, match.end())
        if end is None:
            return " ".join(shown)
        position = end.end()
    return " ".join([*shown, markup[position:]])
