"""Reads RSS and Atom: the tree of a feed becomes a channel and items. Runs in the parsing process.

RSS 1.0 is RDF: each item keeps its own triples, closed over blank nodes, and takes its channel's title and link. Where
the XML is ill-formed it is repaired first. Where it is no RDF all the same, or items are not told apart by `rdf:about`,
it is read by its elements, as RSS 2.0 is, and a warning says so.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from xml.etree.ElementTree import Element

from triplewire.errors import ReadError
from triplewire.model.publication import Publication
from triplewire.model.terms import IRI, RDF, RDF_TYPE, XSD_STRING, Literal, Node, Triple
from triplewire.read import guard
from triplewire.read.decoded import Decoded, Problem, warning
from triplewire.read.feeds import items
from triplewire.read.feeds import vocabulary as v
from triplewire.read.feeds.elements import Context, read_channel, read_item
from triplewire.read.feeds.markup import text_of_html, text_of_title, unwrapped
from triplewire.read.feeds.refine import refined
from triplewire.read.feeds.xml_tree import Tree, is_item, parse_tree, split_name
from triplewire.read.process.frames import Request
from triplewire.read.rdf.parse import parse
from triplewire.read.rdf.split import closure, grouped

_WEB = ("http://", "https://")


def read_feed(request: Request) -> Decoded:
    """The publications of an RSS 0.9x, RSS 2.0 or Atom feed. Raises `ReadError` if it is none."""
    return publications_of(parse_tree(request.data, request.settings), request)


def publications_of(tree: Tree, request: Request, *more: Problem) -> Decoded:
    """The publications of the tree of a feed. Raises `ReadError` if it is none."""
    channel = _xml_channel(tree.root)
    if channel is None:
        ill = "".join(f": {problem.error.what}" for problem in tree.problems[:1])
        raise ReadError(f"the XML is neither RDF nor a feed{ill}", remedy="give RSS, Atom or RDF/XML")
    base = request.base or request.document
    context = Context(base if base.startswith(_WEB) else _own_address(channel), "", request.as_written)
    if channel is not tree.root:
        context = context.within(tree.root)
    if is_item(channel):  # an entry that is a document of its own (RFC 4287, section 2): nothing is said of its feed
        head, inherited = items.Channel(), items.Draft()
    else:
        head, inherited = read_channel(channel, context, request.document)
        context = context.within(channel)
    feed = items.Feed(head, [read_item(item, context, inherited) for item in tree.items])
    return items.publications(feed, request, [*tree.problems, *more])


def _own_address(channel: Element) -> str:
    """The address of the feed by its own link to itself; "" where there is none of the web."""
    links = (child for child in channel if split_name(child.tag)[1].lower() == "link" and child.get("rel") == "self")
    return next((address for link in links if (address := link.get("href", "").strip()).startswith(_WEB)), "")


def _xml_channel(root: Element) -> Element | None:
    """The element that describes the feed; None if the document is no feed."""
    for element in root.iter():
        namespace, local = split_name(element.tag)
        if local.lower() in ("channel", "feed") and v.is_feed_namespace(namespace):
            return element
    namespace, local = split_name(root.tag)
    is_feed = local.lower() in v.HEAD_NAMES or any(map(is_item, root.iter()))
    return root if is_feed else None


# --- RSS 1.0 ---------------------------------------------------------------------------------------------------------

_STRIPPED = (v.DC, str(v.TITLE.value).removesuffix("title"))  # namespaces in which white space at the ends is idle


def read_rss_1(request: Request) -> Decoded:
    """The publications of an RSS 1.0 feed. Raises `ReadError`."""
    tree = parse_tree(request.data, request.settings)
    try:
        data = guard.check_rdf_xml(tree.data, request.settings)
        base = request.base or request.document
        spelt = _spelt(tree)
        parsed = (triple for _, triple in parse(data, request.syntax, base, request.settings))
        triples = [t._replace(predicate=spelt.get(t.predicate, t.predicate)) for t in parsed]
    except ReadError as error:
        if error.remedy.startswith("raise "):
            raise
        what = f"not RDF/XML, so read as a plain feed: {error.what}"
        return publications_of(tree, request, warning(what, error.line, error.column))
    nodes = list(dict.fromkeys(t.subject for t in triples if t.predicate == RDF_TYPE and t.object == v.ITEM))
    named = len(set(map(_name, tree.items)))
    if named < len(tree.items) or len(nodes) < named:
        problems = [warning("the items are not told apart by rdf:about, so read as a plain feed")]
        if len(nodes) > named:
            what = f"{len(nodes) - named} items that are no <item>, but have its rdf:type, are no part of a plain feed"
            problems.append(Problem(ReadError(what, remedy="give each item an rdf:about of its own")))
        return publications_of(tree, request, *problems)
    about = grouped(triples)
    node, channel = _channel(about, request)
    if request.split != "item":
        are_items = set(nodes)
        whole = [triple for subject in about for triple in _own(subject, about[subject], subject in are_items, request)]
        links = [Triple(item, v.IS_PART_OF, node) for item in nodes]
        return items.whole_or_by_subject(
            [*whole, *items.about_channel(channel, node, request), *links], request, tree.problems
        )
    return items.decoded(_items(nodes, about, node, channel, request), request, tree.problems)


def _spelt(tree: Tree) -> dict[IRI, IRI]:
    """The properties whose well-known namespace is written in another way than it is, and what they are."""
    names = {split_name(element.tag) for element in tree.root.iter()}
    return {
        IRI(namespace + local): IRI(v.spelt(namespace) + local)
        for namespace, local in names
        if v.spelt(namespace) != namespace
    }


def _name(item: Element) -> tuple[str, str] | Element:
    """What names an item in RDF, as written; the element itself where nothing does."""
    names = ((name, item.get(f"{{{RDF}}}{name}", item.get(name, ""))) for name in ("about", "ID", "nodeID"))
    return next((name for name in names if name[1]), item)


def _channel(about: Mapping[Node, Sequence[Triple]], request: Request) -> tuple[Node, items.Channel]:
    """The node of the first channel, and what goes along with each item."""
    for node, triples in about.items():
        if any(t.predicate == RDF_TYPE and t.object == v.CHANNEL for t in triples):
            return node, items.Channel("", _text(triples, v.TITLE), _text(triples, v.LINK))
    return IRI(request.document), items.Channel()


def _text(triples: Sequence[Triple], predicate: IRI) -> str:
    texts = (t.object.lexical.strip() for t in triples if t.predicate == predicate and isinstance(t.object, Literal))
    return next(filter(None, texts), "")


def _items(
    nodes: Sequence[Node], about: dict[Node, list[Triple]], node: Node, channel: items.Channel, request: Request
) -> Iterator[Publication]:
    """A publication for each item."""
    distinct = items.distinct_ids(request.document)
    language = _text(about.get(node, []), v.LANGUAGE)
    shared = [*items.about_channel(channel, node, request)]
    for number, item in enumerate(nodes, start=1):
        triples = list(_own(item, closure(item, about), True, request))
        if language and not request.as_written and not _text(about[item], v.LANGUAGE):
            triples.append(Triple(item, v.LANGUAGE, Literal(language)))
        identifier = distinct(item.value if isinstance(item, IRI) else _text(about[item], v.LINK), number)
        triples += [Triple(item, v.IS_PART_OF, node), *shared]
        yield Publication(identifier, tuple(dict.fromkeys(triples)), request.source, items.published(item, triples))


def _own(node: Node, triples: Sequence[Triple], is_item: bool, request: Request) -> Iterator[Triple]:
    """The triples of a resource: as written, or with what their texts mean."""
    if request.as_written:
        return iter(triples)
    return refined(node, _plain(node, triples) if is_item else triples)


def _plain(item: Node, triples: Sequence[Triple]) -> Iterator[Triple]:
    """An item's texts without markup, which goes to content:encoded, and without white space at their ends. Empty ones
    are none, and contents alone are described by their text, as in other feeds."""
    is_described, contents = False, ""
    for triple in triples:
        value = triple.object
        if triple.subject == item and triple.predicate == v.ENCODED and isinstance(value, Literal):
            contents = contents or value.lexical
        if triple.subject != item or not isinstance(value, Literal) or not triple.predicate.value.startswith(_STRIPPED):
            yield triple
            continue
        if value.datatype != XSD_STRING and not value.language:
            yield triple
            continue
        written = unwrapped(value.lexical).strip()
        if not written:
            continue
        is_described = is_described or triple.predicate == v.DESCRIPTION
        if triple.predicate not in (v.TITLE, v.DESCRIPTION):
            yield triple._replace(object=replace(value, lexical=written))
            continue
        plain = (text_of_title if triple.predicate == v.TITLE else text_of_html)(written).strip()
        yield triple._replace(object=replace(value, lexical=plain))
        if plain != written and triple.predicate == v.DESCRIPTION:
            yield Triple(item, v.ENCODED, Literal(written))
    plain = "" if is_described else text_of_html(contents).strip()
    if plain:
        yield Triple(item, v.DESCRIPTION, Literal(plain))
