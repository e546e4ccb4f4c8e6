"""Maps the elements of RSS and Atom to what they say of an item or a channel: the table of `docs/feeds.md`.

Elements of other namespaces, and those of RSS and Atom that have no row in the table, become triples under their own
names (`_Reading.other`), so that nothing is dropped. What the texts mean, once all syntaxes are triples (types, dates,
places): `triplewire.read.feeds.refine`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeAlias
from xml.etree.ElementTree import Element

from triplewire.model.namespaces import RSS
from triplewire.model.references import id_iri, is_absolute
from triplewire.model.terms import IRI, RDF, Literal
from triplewire.read.feeds import vocabulary as v
from triplewire.read.feeds.items import Channel, Draft, Item, absolute, resource
from triplewire.read.feeds.markup import Text, construct
from triplewire.read.feeds.xml_tree import is_item, split_name
from triplewire.read.names import legal

Details: TypeAlias = tuple[tuple[IRI, str], ...]
"""Properties of a linked document, and the attributes that they are read from."""

_LINK_DETAILS: Details = (
    (v.FORMAT, "type"), (v.LANGUAGE, "hreflang"), (v.CHANNEL_TITLE, "title"), (v.ENCLOSURE_LENGTH, "length"),
)  # fmt: skip
_ENCLOSURE_DETAILS: Details = (
    (v.ENCLOSURE_LENGTH, "length"), (v.ENCLOSURE_TYPE, "type"), (v.CHANNEL_TITLE, "title"),
)  # fmt: skip
_TEXTS = {
    "copyright": v.RIGHTS, "rights": v.RIGHTS, "language": v.LANGUAGE, "pubdate": v.DATE, "published": v.DATE,
    "issued": v.DATE, "updated": v.MODIFIED, "modified": v.MODIFIED, "lastbuilddate": v.MODIFIED,
    "created": v.CREATED, "expirationdate": v.VALID,
}  # fmt: skip
_WEB = ("http:", "https:", "ftp:")
_MARKUP = {(v.CONTENT, "encoded"), (v.XHTML, "body"), (v.XHTML, "div")}
_LONGEST_BASE = 1_024  # characters; a longer one is passed over, as every address would be resolved against it
_NOWHERE = "urn:triplewire:source"
_NOT_SAID = (v.XML, "http://www.w3.org/2000/xmlns/")


@dataclass(frozen=True, slots=True)
class Context:
    """What an element inherits: the base of its addresses and its language; and whether texts stay as written."""

    base: str = ""
    language: str = ""
    as_written: bool = False

    def within(self, element: Element) -> Context:
        """The context of what stands in the element."""
        base, language = element.get(f"{{{v.XML}}}base"), element.get(f"{{{v.XML}}}lang")
        if base is None and language is None:
            return self
        base = self.base if base is None or len(base) > _LONGEST_BASE else absolute(self.base, base)
        return replace(self, base=base, language=self.language if language is None else language)


def read_item(element: Element, context: Context, inherited: Draft) -> Item:
    """An item. `inherited` is what it takes from the channel where it says nothing of the kind: authors, language."""
    reading = _Reading(Draft(), context.within(element))
    reading.attributes(element)
    reading.children(element)
    about = reading.about
    if not reading.link:
        reading.link = reading.permanent
        about.text(v.LINK, reading.link)
    reading.describe()
    if not about.first(v.LANGUAGE):
        about.text(v.LANGUAGE, element.get(f"{{{v.XML}}}lang", "") or reading.title_language)
    for draft, predicate in ((reading.origin, v.CREATOR), (inherited, v.CREATOR), (inherited, v.LANGUAGE)):
        if not about.first(predicate):
            about.said += [(said, value) for said, value in draft.said if said == predicate]
    return Item(reading.id, reading.link, about)


def read_channel(element: Element, context: Context, document: str) -> tuple[Channel, Draft]:
    """The channel, and what its items inherit. `document` is its IRI where it states none."""
    reading = _Reading(Draft(), context.within(element), is_channel=True)
    reading.children(element)
    candidates = [reading.id, element.get(f"{{{RDF}}}about", ""), reading.self_address, document]
    identity = next(candidate for candidate in candidates if is_absolute(candidate))
    channel = Channel(identity, reading.title, reading.link, reading.about)
    inherited = Draft()
    inherited.text(v.LANGUAGE, reading.about.first(v.LANGUAGE) or reading.context.language)
    if split_name(element.tag)[0].lower() in v.ATOM_NAMESPACES:  # RFC 4287, 4.2.1: an entry has the feed's authors
        inherited.said += [(said, value) for said, value in reading.about.said if said == v.CREATOR]
    return channel, inherited


class _Reading:
    """The reading of one item or channel, element by element. What is found goes to `about`."""

    def __init__(self, about: Draft, context: Context, *, is_channel: bool = False) -> None:
        self.about = about
        self.context = context
        self.is_channel = is_channel
        self.id = self.link = self.title = self.title_language = self.self_address = ""
        self.permanent = ""  # the address that a guid is
        self.origin = Draft()  # what an item takes from the feed that it was taken from
        self._descriptions: list[Text] = []
        self._contents: list[Text] = []

    def children(self, element: Element) -> None:
        """Read all children, those of the table by its rows."""
        for child in element:
            namespace, local = split_name(child.tag)
            if is_item(child) or (self.is_channel and local.lower() in ("channel", "items")):
                continue
            outer, self.context = self.context, self.context.within(child)
            read_row = _ROWS.get(local.lower()) if v.is_feed_namespace(namespace) else None
            if read_row is not None:
                read_row(self, child)
            elif (v.spelt(namespace), local.lower()) in _MARKUP:
                self._contents.append(construct(child, is_markup=True))
            else:
                self.other(self.about, child)
            self.context = outer

    def attributes(self, element: Element) -> None:
        """Read the attributes of the item's own element."""
        self.id = absolute(self.context.base, element.get(f"{{{RDF}}}about", ""))
        for name, value in element.attrib.items():
            namespace, local = split_name(name)
            if namespace != RDF and namespace not in _NOT_SAID:
                self.about.text(_predicate(namespace or RSS, local), value.strip())

    def other(self, about: Draft, element: Element) -> None:
        """An element without a row: its text, the IRI it refers to, and a resource that has its attributes. Elements
        within one of another namespace are said of the same resource, since such elements often only group."""
        namespace, local = split_name(element.tag)
        known = v.is_feed_namespace(namespace)
        predicate = _predicate(RSS if known else namespace, local)
        node = Draft()
        for name, value in element.attrib.items():
            of, attribute = split_name(name)
            if of == RDF and attribute == "resource":
                about.say(predicate, resource(absolute(self.context.base, value)))
            elif of not in _NOT_SAID and value.strip():
                node.text(_predicate(of or (RSS if known else namespace), attribute), value.strip())
        text = "".join([element.text or "", *(child.tail or "" for child in element)]).strip()
        about.text(predicate, text)
        for child in element:
            if not is_item(child):
                within_known = known or v.is_feed_namespace(split_name(child.tag)[0])
                self.other(node if within_known else about, child)
        if node.said:
            about.say(predicate, node)

    def read_title(self, element: Element) -> None:
        """title"""
        title = self._construct(element, is_title=True)
        text = title.written if self.context.as_written else title.plain
        self.title = self.title or text
        self.title_language = self.title_language or element.get(f"{{{v.XML}}}lang", "")
        self.about.text(v.CHANNEL_TITLE if self.is_channel else v.TITLE, text)

    def read_link(self, element: Element) -> None:
        """link, with its address as text (RSS) or in `href` (Atom)"""
        address = absolute(self.context.base, element.get("href") or (element.text or ""))
        relation = (element.get("rel") or "alternate").strip().removeprefix(v.RELATION)
        relation = relation if is_absolute(relation) else relation.lower()  # RFC 8288, section 3.3
        if not address:
            return
        if relation == "enclosure":
            self._linked(v.ENCLOSURE, address, element, _ENCLOSURE_DETAILS)
        elif relation == "alternate":
            self.link = self.link or address
            if self.is_channel:
                self.about.say(v.PAGE, resource(address))
                return
            self.about.text(v.LINK, address)
            if any(element.get(name) for _, name in _LINK_DETAILS):
                self._linked(v.ELSEWHERE, address, element, _LINK_DETAILS)
        else:
            if relation == "self":
                self.self_address = self.self_address or address
            named = relation if is_absolute(relation) else v.RELATION + legal(relation)
            self._linked(IRI(named), address, element, _LINK_DETAILS)

    def read_id(self, element: Element) -> None:
        """guid, id"""
        text = (element.text or "").strip()
        self.id = self.id or text
        is_guid = split_name(element.tag)[1].lower() == "guid"
        if is_guid and element.get("isPermaLink", "true").strip().lower() != "false" and text.startswith(_WEB):
            self.permanent = text

    def read_description(self, element: Element) -> None:
        """description, summary, subtitle, tagline, abstract"""
        self._descriptions.append(self._construct(element))
        if self.is_channel:
            self.about.text(v.CHANNEL_DESCRIPTION, self._plain(element))

    def read_content(self, element: Element) -> None:
        """content, or where it is"""
        if element.get("src"):
            self.about.say(v.ELSEWHERE, resource(absolute(self.context.base, element.get("src", ""))))
        self._contents.append(self._construct(element))

    def read_person(self, element: Element) -> None:
        """author, managingEditor, contributor, webMaster"""
        is_other = split_name(element.tag)[1].lower() in ("contributor", "webmaster")
        simple, detailed = (v.CONTRIBUTOR, v.OTHER_AGENT) if is_other else (v.CREATOR, v.AGENT)
        parts = {split_name(child.tag)[1].lower(): (child.text or "").strip() for child in element}
        name, mail, page = (parts.get(key, "") for key in ("name", "email", "uri"))
        page = page or parts.get("url", "")
        text = (element.text or "").strip()
        if not parts and text:
            name, mail = person(text)
        self.about.text(simple, name or mail)
        if (mail and name) or page:
            agent = Draft()
            agent.text(v.NAME, name)
            if mail:
                agent.say(v.MAILBOX, resource("mailto:" + mail.removeprefix("mailto:")))
            if page:
                agent.say(v.HOMEPAGE, resource(absolute(self.context.base, page)))
            self.about.say(detailed, agent)

    def read_category(self, element: Element) -> None:
        """category, keywords"""
        term = (element.get("term") or element.text or "").strip()
        scheme = (element.get("scheme") or element.get("domain") or "").strip()
        label = (element.get("label") or "").strip()
        if not (term := term or label):
            return
        named = legal(scheme + term) if scheme else ""
        if is_absolute(named):
            topic = Draft(named)
            topic.text(v.LABEL, label)
            self.about.say(v.SUBJECT, topic)
            return
        self.about.text(v.SUBJECT, term)
        if scheme or (label and label != term):
            topic = Draft(said=[(v.VALUE, Literal(term))])
            topic.text(v.SCHEME, scheme)
            topic.text(v.LABEL, label)
            self.about.say(v.TOPIC, topic)

    def read_enclosure(self, element: Element) -> None:
        """enclosure"""
        address = absolute(self.context.base, element.get("url") or element.get("href") or element.text or "")
        if address:
            self._linked(v.ENCLOSURE, address, element, _ENCLOSURE_DETAILS)
        else:
            self.other(self.about, element)

    def read_source(self, element: Element) -> None:
        """source: the feed that an item was taken from"""
        if len(element):
            feed, self.origin = read_channel(element, replace(self.context, language=""), _NOWHERE)
            address, title, page = feed.id, feed.title, feed.link
        else:
            address = absolute(self.context.base, element.get("url") or "")
            title, page = " ".join((element.text or "").split()), ""
        named = legal(address)
        if is_absolute(named) and named != _NOWHERE:
            origin = Draft(named)
            origin.text(v.CHANNEL_TITLE, title)
            if page:
                origin.say(v.PAGE, resource(page))
            self.about.say(v.FROM, origin)
        else:
            self.about.text(v.SOURCE, title or address)

    def read_text(self, element: Element) -> None:
        """an element whose text is the object of one property"""
        self.about.text(_TEXTS[split_name(element.tag)[1].lower()], self._plain(element))

    def describe(self) -> None:
        """The description and the contents, once all are known: the text, and the markup where there is any."""
        texts = self._descriptions or self._contents[:1]
        plain = [text.written if self.context.as_written else text.plain for text in texts]
        for text in dict.fromkeys(plain):
            self.about.text(v.DESCRIPTION, text)
        written = [text.written for text in self._contents if text.is_markup or text.plain not in plain]
        if not self.context.as_written:
            written += [text.written for text in self._descriptions if text.written != text.plain]
        for markup in dict.fromkeys(written):
            self.about.text(v.ENCODED, markup)

    def _construct(self, element: Element, *, is_title: bool = False) -> Text:
        is_atom = split_name(element.tag)[0].lower() in v.ATOM_NAMESPACES
        return construct(element, is_atom=is_atom, is_title=is_title)

    def _plain(self, element: Element) -> str:
        text = self._construct(element)
        return text.written if self.context.as_written else text.plain

    def _linked(self, predicate: IRI, address: str, element: Element, details: Details) -> None:
        """A link to a document, with what the attributes of `element` say of that document."""
        node = Draft()
        for detail, name in details:
            node.text(detail, (element.get(name) or "").strip())
        self.about.link(predicate, address, node)


def person(text: str) -> tuple[str, str]:
    """Name and mail address in `mail@host (Name)` or `Name <mail@host>`; the text itself and "" where it is neither."""
    match = re.fullmatch(r"(?P<mail>[^\s()]++)\s*+\((?P<name>[^()]++)\)", text) or re.fullmatch(
        r"(?P<name>[^<>]++)<(?P<mail>[^\s<>]++)>", text
    )
    if match is None or "@" not in match["mail"]:
        return text, ""
    return match["name"].strip().strip('"').strip(), match["mail"]


def _predicate(namespace: str, local: str) -> IRI:
    """Namespace and local name as an IRI; a namespace that is no IRI is written as a URN."""
    return IRI(id_iri(legal(v.spelt(namespace) + local)))


_ROWS: dict[str, Callable[[_Reading, Element], None]] = {
    **dict.fromkeys(_TEXTS, _Reading.read_text),
    **dict.fromkeys(("description", "summary", "subtitle", "tagline", "abstract"), _Reading.read_description),
    **dict.fromkeys(("author", "managingeditor", "contributor", "webmaster"), _Reading.read_person),
    **dict.fromkeys(("guid", "id"), _Reading.read_id),
    "category": _Reading.read_category,
    "content": _Reading.read_content,
    "enclosure": _Reading.read_enclosure,
    "link": _Reading.read_link,
    "source": _Reading.read_source,
    "title": _Reading.read_title,
}
"""The elements of RSS and Atom that have a row in the table of `docs/feeds.md`, by their local names in lower case."""
