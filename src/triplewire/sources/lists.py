"""Lists of feeds: OPML (`.opml`; OPML 2.0, outlines with `xmlUrl`), or an address a line (`.feeds`, # is a comment)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from xml.etree import ElementTree

from triplewire.config import Settings
from triplewire.errors import ReadError, Refusal
from triplewire.net.addresses import shown
from triplewire.net.guard import target_of
from triplewire.read.guard.texts import check_utf8
from triplewire.read.guard.xml import check_rdf_xml

SUFFIXES = (".opml", ".feeds")
_REMEDY = "user and password go to a file: --connect FILE, as authorization of the beginning of the address"


def is_list(source: str) -> bool:
    """Does a source name a list of feeds? A topic of Kafka, an inbox and a folder may have such names, too."""
    if not source.lower().endswith(SUFFIXES) or source.startswith(("kafka:", "inbox:")):
        return False
    return not Path(source).is_dir()


def addresses(file: Path, settings: Settings, on_refusal: Callable[[Refusal], None]) -> list[str]:
    """The addresses of a list, each once. One that cannot be asked is refused, and the others stay. Raises `ReadError`
    where the file cannot be read, is no such list, or has no address."""
    try:
        with file.open("rb") as stream:
            data = stream.read(settings.max_document_bytes + 1)
    except OSError as error:
        raise ReadError(f"it cannot be read: {error.strerror or error}", source=str(file)) from None
    if len(data) > settings.max_document_bytes:
        raise ReadError("it is too large", source=str(file), remedy="cut it, or raise max_document_bytes")
    try:
        if file.suffix.lower() == ".opml":
            listed = list(_outlines(data, settings))
        else:
            lines = map(str.strip, check_utf8(data, "list of feeds").decode().splitlines())
            listed = [line for line in lines if line and not line.startswith("#")]
    except ReadError as error:
        error.source = error.source or str(file)
        raise
    out: dict[str, None] = {}
    for address in listed:
        try:
            target_of(address)
        except ValueError as error:
            remedy = _REMEDY if "@" in address else ""
            reason = shown(f"the feed cannot be asked: {error}")
            on_refusal(Refusal("publication", shown(address), str(file), reason, remedy))
        else:
            out[address] = None
    if not out:
        raise ReadError("it has no address of a feed", source=str(file), remedy="an outline has its feed as xmlUrl")
    return list(out)


def _outlines(data: bytes, settings: Settings) -> Iterator[str]:
    """The values of `xmlUrl`, however they are written; the guard has looked at the document before."""
    try:
        root = ElementTree.fromstring(check_rdf_xml(data, settings).decode("utf-8", "replace"))
    except ElementTree.ParseError as error:  # what the guard does not look at: prefixes without a namespace
        raise ReadError(f"not well-formed XML: {error}") from None
    for element in root.iter("outline"):
        yield from (value.strip() for name, value in element.items() if name.lower() == "xmlurl" and value.strip())
