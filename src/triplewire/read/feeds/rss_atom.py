"""Reads RSS and Atom: the tree of a feed becomes a channel and items. Runs in the parsing process.

What each element becomes: `triplewire.read.feeds.elements`. The items of RSS 1.0 are RDF already and keep their own
triples: `triplewire.read.feeds.rss_1`.
"""

from __future__ import annotations

from xml.etree.ElementTree import Element

from triplewire.errors import ReadError
from triplewire.read.decoded import Decoded, Problem
from triplewire.read.feeds.drafts import Feed
from triplewire.read.feeds.elements import Context, read_channel, read_item
from triplewire.read.feeds.items import publications
from triplewire.read.feeds.vocabulary import HEAD_NAMES, is_feed_namespace
from triplewire.read.feeds.xml_tree import Tree, is_item, parse_tree, split_name
from triplewire.read.process.frames import Request


def read_feed(request: Request) -> Decoded:
    """The publications of an RSS 0.9x, RSS 2.0 or Atom feed. Raises `ReadError` if it is none."""
    return publications_of(parse_tree(request.data, request.settings), request)


def publications_of(tree: Tree, request: Request, *more: Problem) -> Decoded:
    """The publications of the tree of a feed. Raises `ReadError` if it is none."""
    channel = _channel(tree.root)
    if channel is None:
        ill = "".join(f": {problem.error.what}" for problem in tree.problems[:1])
        raise ReadError(f"the XML is neither RDF nor a feed{ill}", remedy="give RSS, Atom or RDF/XML")
    base = request.base or request.document
    context = Context(base if base.startswith(("http://", "https://")) else "", "", request.as_written)
    if channel is not tree.root:
        context = context.within(tree.root)
    head, inherited = read_channel(channel, context, request.document)
    context = context.within(channel)
    items = [read_item(item, context, inherited) for item in tree.items]
    return publications(Feed(head, items), request, [*tree.problems, *more])


def _channel(root: Element) -> Element | None:
    """The element that describes the feed; None if the document is no feed."""
    for element in root.iter():
        namespace, local = split_name(element.tag)
        if local.lower() in ("channel", "feed") and is_feed_namespace(namespace):
            return element
    namespace, local = split_name(root.tag)
    is_feed = local.lower() in HEAD_NAMES or any(map(is_item, root.iter()))
    return root if is_feed else None
