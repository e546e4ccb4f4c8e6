"""Where a publication comes from: what the FROM of a subscription asks, as an operator of every engine.

`FROM news.atom` is the filter `op:fromSource("news.atom")`. FROM itself: `triplewire.languages.grammar.conditions`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from urllib.parse import unquote

from triplewire.model.namespaces import PREDECLARED
from triplewire.model.operator import Argument, Parameter
from triplewire.model.publication import Publication
from triplewire.model.terms import IRI, BlankNode, Literal

_DCTERMS, _FOAF = PREDECLARED["dcterms"], PREDECLARED["foaf"]
CHANNEL, TITLE, PAGE = IRI(_DCTERMS + "isPartOf"), IRI(_DCTERMS + "title"), IRI(_FOAF + "page")
_COMPRESSED = (".gz", ".bz2", ".xz", ".zst")


def comes_from(source: str, name: str) -> bool:
    """Is `name` the address or path `source`, or the end of it from a `/` on: a file, with or without its suffix? Of a
    record of Kafka, its topic."""
    source, name = _plain(source), _plain(name)
    if not source or not name:
        return False
    if source.startswith("kafka:"):
        return source.removeprefix("kafka:").startswith(name.removeprefix("kafka:") + "/") or source == name
    short = source
    for suffix in _COMPRESSED:
        short = short.removesuffix(suffix)
    stem, dot, after = short.rpartition(".")
    ways = (source, short, stem) if dot and "/" not in after else (source, short)
    return any(way == name or way.endswith("/" + name) for way in ways)


def _plain(text: str) -> str:
    """An address or a path as it is compared: a local file by its path."""
    if text[:5].lower() == "file:":
        text = unquote(text[5:])
        text = "/" + text.lstrip("/") if text.startswith("/") else text
    return text.removeprefix("./").rstrip("/")


FROM_SOURCE = "fromSource"


class FromSource:
    """The operator `fromSource(source)`: is that where the publication comes from?

    A source is what `comes_from` says of a line of `Publication.source`; or the publication's channel
    (dcterms:isPartOf), by its IRI, its page (foaf:page) or its title (dcterms:title, whatever its case and blanks). A
    text of several lines names a source a line, of which one has to be it. `met`: the sources that were asked of
    publications that have one, and whether any came from there. `names`: other names of what a line may say.
    """

    name = FROM_SOURCE
    parameters = (Parameter("source"),)

    def __init__(self) -> None:
        self.met: dict[str, bool] = {}
        self.names: Mapping[str, Iterable[str]] = {}

    def evaluate(self, publication: Publication, arguments: tuple[Argument, ...]) -> bool:
        """Raises `ValueError` where the argument is a blank node, or open."""
        (wanted,) = arguments
        if wanted is None or isinstance(wanted, BlankNode):
            raise ValueError("source must be given")
        names = (wanted.value if isinstance(wanted, IRI) else wanted.lexical).splitlines()
        fitting = [name for name in names if self._is_source(publication, name)]
        for name in names if publication.source else ():
            self.met[name] = name in fitting or self.met.get(name, False)
        return bool(fitting)

    def _is_source(self, publication: Publication, name: str) -> bool:
        plain, folded = _plain(name), _folded(name)
        for source in publication.source.split("\n"):
            also = self.names.get(source, ())
            if comes_from(source, name) or any(_plain(other) == plain or _folded(other) == folded for other in also):
                return True
        names = _channel(publication)
        return any(_plain(n.value) == plain if isinstance(n, IRI) else _folded(n.lexical) == folded for n in names)


def _channel(publication: Publication) -> Iterator[IRI | Literal]:
    """IRIs and titles that stand for the channels of a publication."""
    graph = publication.graph
    for channel in dict.fromkeys(triple.object for triple in graph.find(None, CHANNEL, None)):
        if isinstance(channel, Literal):
            continue
        if isinstance(channel, IRI):
            yield channel
        for predicate in (PAGE, TITLE):
            for value in graph.objects(channel, predicate):
                if isinstance(value, IRI | Literal):
                    yield value


def _folded(text: str) -> str:
    return " ".join(text.split()).casefold()


BUILT_IN = FromSource()
"""For the list of built-in operators. What is evaluated in a world is its own."""
