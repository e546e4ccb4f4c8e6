"""Pages, sections, tags and categories as RDF: what each is called, and the RSS 1.0 item of a page.

A site may teach its page types more, as attributes or properties of their classes:

    reply_to      the page that this one answers
    categories    its categories (the model that `TRIPLEWIRE["CATEGORIES"]` names)
    tags          its tags (`taggit`)
    triplewire    False: pages of this type never leave the site

An item whose title begins with GQL would be a subscription (paper 000, section 6), so such a title is quoted.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from html import unescape
from typing import Any
from xml.etree import ElementTree

from django.utils.html import strip_tags
from django.utils.text import slugify
from wagtail.fields import RichTextField
from wagtail.models import Page

from wagtail_triplewire.conf import conf
from wagtail_triplewire.names import page_iri, term_iri

RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
RDFS = "http://www.w3.org/2000/01/rdf-schema#"
RSS = "http://purl.org/rss/1.0/"
DC = "http://purl.org/dc/elements/1.1/"
SIOC = "http://rdfs.org/sioc/ns#"
TERMS = "https://triplewire.net/cms#"
"""What no common vocabulary says: `revision`."""

REPLY_OF = SIOC + "reply_of"
_NO_XML = re.compile("[^\\t\\n\\r\\x20-\\ud7ff\\ue000-\\ufffd\\U00010000-\\U0010ffff]")
_BLOCK_END = re.compile(r"</(?:p|h\d|li|blockquote|td)>|<[bh]r\s*/?>")
_MOST_TEXT = 100_000  # characters of a page
for _prefix, _namespace in (("rdf", RDF), ("", RSS), ("dc", DC), ("sioc", SIOC), ("cms", TERMS)):
    ElementTree.register_namespace(_prefix, _namespace)


def classes_of(page: Page) -> dict[str, str]:
    """The classes of a page, with their labels: its type, the page above it, its tags, its categories."""
    parent = page.get_parent()
    classes = {page._meta.label: str(page._meta.verbose_name)}
    if parent is not None and not parent.is_root():
        classes[f"section-{parent.pk}"] = parent.title
    classes |= {f"tag-{tag.slug or slugify(tag.name)}": tag.name for tag in _all(page, "tags")}
    classes |= {f"category-{category.pk}": str(category) for category in _all(page, "categories")}
    return classes


def _all(page: Page, name: str) -> Iterable[Any]:
    related = getattr(page, name, None)
    return related.all() if hasattr(related, "all") else related or ()


def text_of(page: Page) -> str:
    """The text of a page without markup: all that its search fields have, but for the title."""
    parts: list[str] = []
    for field in page.get_searchable_search_fields():
        if field.field_name == "title":
            continue
        raw = getattr(page, field.field_name, "")
        is_rich = isinstance(field.get_field(type(page)), RichTextField)
        value = plain(raw) if is_rich else field.get_value(page)  # Wagtail's text of it loses what looks like a tag
        parts += map(str, value) if isinstance(value, list | tuple) else [str(value or "")]
    return "\n".join(filter(None, parts))[:_MOST_TEXT]


def plain(html: str) -> str:
    """A text of HTML without its markup, a line for each block."""
    return unescape(strip_tags(_BLOCK_END.sub("\\g<0>\n", html))).strip()


def feed_of(pages: Iterable[Page]) -> str:
    """RSS 1.0 with an item for each page."""
    items = [_item(page) for page in pages]
    root = ElementTree.Element(f"{{{RDF}}}RDF")
    address = conf().url("pages.rdf")
    channel = ElementTree.SubElement(root, f"{{{RSS}}}channel", {f"{{{RDF}}}about": address})
    for name, text in (("title", conf().base), ("link", conf().base + "/"), ("description", "What is new here")):
        ElementTree.SubElement(channel, f"{{{RSS}}}{name}").text = text
    order = ElementTree.SubElement(ElementTree.SubElement(channel, f"{{{RSS}}}items"), f"{{{RDF}}}Seq")
    for item in items:
        ElementTree.SubElement(order, f"{{{RDF}}}li", {f"{{{RDF}}}resource": item.attrib[f"{{{RDF}}}about"]})
        root.append(item)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + ElementTree.tostring(root, encoding="unicode")


def _item(page: Page) -> ElementTree.Element:
    item = ElementTree.Element(f"{{{RSS}}}item", {f"{{{RDF}}}about": page_iri(page.pk)})

    def say(name: str, text: str) -> None:
        ElementTree.SubElement(item, name).text = _NO_XML.sub("\ufffd", text)

    def point(name: str, iri: str) -> None:
        ElementTree.SubElement(item, name, {f"{{{RDF}}}resource": iri})

    say(f"{{{RSS}}}title", f"“{page.title}”" if page.title.strip().startswith("GQL") else page.title)
    say(f"{{{RSS}}}link", page.full_url or conf().base)
    say(f"{{{RSS}}}description", text_of(page))
    for term, label in classes_of(page).items():
        point(f"{{{RDF}}}type", term_iri(term))
        if term.startswith(("tag-", "category-")):
            say(f"{{{DC}}}subject", label)
    if page.owner is not None:
        say(f"{{{DC}}}creator", page.owner.get_full_name() or page.owner.get_username())
    if page.first_published_at is not None:
        say(f"{{{DC}}}date", page.first_published_at.isoformat())
    if (answered := getattr(page, "reply_to", None)) is not None:
        point(f"{{{SIOC}}}reply_of", page_iri(answered.pk))
    say(f"{{{TERMS}}}revision", str(page.live_revision_id or 0))
    return item


def literal(text: str) -> str:
    """A text as N-Triples write it."""
    escapes = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r"}
    return '"' + "".join(escapes.get(character, character) for character in text) + '"'


def triples(subject: str, said: Iterable[tuple[str, str]]) -> str:
    """What is said of a subject, as N-Triples; objects are written already."""
    return "".join(f"<{subject}> <{predicate}> {value} .\n" for predicate, value in said)
