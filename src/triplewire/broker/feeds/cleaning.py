"""Texts of strangers, made fit for feeds and pages: no text can break a document, and none becomes a script.

Feeds are written by `templates` (Jinja2), in which each text is escaped, and what XML cannot hold, or should not (XML
1.0, section 2.2), is left out. So one bad title spoils no feed.
"""

from __future__ import annotations

import html
import re
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape, quoteattr

import jinja2
import nh3
from markupsafe import Markup

_UNWRITABLE = re.compile("[^\t\n\r\x20-\x7e\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_READ_AS_HTML = re.compile(r"<[A-Za-z/!?]|&#?\w+;")
_TAGS = set(nh3.ALLOWED_TAGS) - {"img", "map", "area"}  # a picture tells its server who reads, and asks any host
_SCHEMES = {"http", "https", "mailto"}


def clean(text: str) -> str:
    """The text without what XML and UTF-8 cannot hold."""
    return _UNWRITABLE.sub("", text)


def one_line(text: str) -> str:
    """The text, clean, in one line, as titles are."""
    return " ".join(clean(" ".join(text.split())).split())


def safe_markup(text: str) -> Markup:
    """The HTML of a stranger as a fragment of harmless elements: no script, no picture, no address but of the web and
    of mail."""
    return Markup(nh3.clean(clean(text), tags=_TAGS, url_schemes=_SCHEMES, url_relative="deny"))


def web_address(text: str) -> str:
    """An address of the web in one line, or "" for another text."""
    text = one_line(text)
    return text if text.lower().startswith(("http://", "https://")) else ""


def for_rss(title: str) -> str:
    """A plain title for RSS, which does not say whether a title is text or HTML: where programs would take it as HTML,
    it is HTML. So each shows its characters, and none runs them."""
    return html.escape(title, quote=False) if _READ_AS_HTML.search(title) else title


def quoted(value: str) -> str:
    """A text as the value of an attribute of XML, with its quotation marks."""
    return quoteattr(clean(value))


def element(name: str, text: str = "", /, **attributes: str) -> str:
    """An element of XML with a text. Attributes are named as in Python: `rdf_about` becomes `rdf:about`."""
    written = "".join(f" {key.replace('_', ':')}={quoted(value)}" for key, value in attributes.items())
    return f"<{name}{written}>{escape(clean(text))}</{name}>" if text else f"<{name}{written}/>"


def _cleaned(value: object) -> str:
    return Markup(clean(value)) if isinstance(value, Markup) else clean(str(value))


TEMPLATES = jinja2.Environment(
    loader=jinja2.FileSystemLoader(Path(__file__).with_name("templates")),
    autoescape=True,
    auto_reload=False,
    finalize=_cleaned,
    keep_trailing_newline=True,
    lstrip_blocks=True,
    trim_blocks=True,
    undefined=jinja2.StrictUndefined,
)
TEMPLATES.filters |= {"web": web_address, "for_rss": for_rss, "harmless": safe_markup}


def rendered(template: str, **values: Any) -> Markup:
    """A template with these values: texts are escaped, markup is taken as it is."""
    return Markup(TEMPLATES.get_template(template).render(values))
