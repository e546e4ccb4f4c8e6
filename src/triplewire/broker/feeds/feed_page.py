"""A feed as a plain page, which needs no script: the entries, and the addresses of the feed in other formats."""

from __future__ import annotations

import base64
import hashlib

from triplewire.broker.feeds.cleaning import in_html, linked
from triplewire.broker.feeds.entries import FORMS, Feed, written

_STYLE = """
:root { color-scheme: light dark; font: 1rem/1.5 system-ui, sans-serif; }
body { max-width: 46rem; margin: auto; padding: 1rem; overflow-wrap: anywhere; }
article { border-top: 1px solid GrayText; margin-top: 1.5rem; }
h2 { font-size: 1.15rem; margin-bottom: 0; }
time, footer, header p { opacity: .8; }
nav a { margin-right: .8rem; }
table { border-collapse: collapse; font-size: .9rem; }
th, td { border: 1px solid GrayText; padding: .2rem .5rem; text-align: left; }
"""

_HASH = base64.b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()
CONTENT_SECURITY = (
    f"default-src 'none'; style-src 'sha256-{_HASH}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
"""The Content-Security-Policy of the page: no script, no picture, this style alone."""


def page(feed: Feed) -> str:
    """The feed as HTML."""
    others = (("alternate", feed.address(form), FORMS[form]) for form in ("atom", "rss", "json"))
    links = "".join(
        f'<link rel="{relation}" href="{in_html(address)}"' + (f' type="{kind.partition(";")[0]}">' if kind else ">")
        for relation, address, kind in (*feed.links("html"), *others)
    )
    title = in_html(feed.title)
    formats = "".join(f'<a href="{in_html(feed.address(form))}">{form}</a>' for form in FORMS if form != "html")
    parts = [
        f'<!DOCTYPE html>\n<html lang="en">\n<head><meta charset="utf-8"><title>{title}</title>',
        '<meta name="viewport" content="width=device-width, initial-scale=1"><meta name="robots" content="noindex">',
        f"<style>{_STYLE}</style>{links}</head>\n<body>",
        f"<header><h1>{title}</h1><p>{in_html(feed.subtitle)}</p><nav>{formats}</nav></header>\n<main>",
    ]
    for entry in feed.entries:
        at = written(entry.updated)
        parts.append(
            f'<article id="{entry.id}"><h2>{linked(entry.title, entry.link)}</h2>'
            f'<time datetime="{at}">{at[:10]} {at[11:16]} UTC</time><div>{entry.markup}</div></article>'
        )
    if not feed.entries:
        parts.append("<p>Nothing has matched so far.</p>")
    older = f'<a href="{in_html(feed.address("html", before=feed.older))}">Older entries</a>' if feed.older else ""
    return "\n".join([*parts, f"</main>\n<footer>{older}</footer>\n</body>\n</html>\n"])
