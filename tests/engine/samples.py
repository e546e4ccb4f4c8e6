"""Small publications and operators that the tests of the engine share."""

from __future__ import annotations

import datetime as dt
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from triplewire import IRI, Literal, Publication, Triple
from triplewire.extend import Argument, Parameter, Verdict
from triplewire.model.terms import RDF_TYPE, XSD

EX = "http://example.org/"
RSS = "http://purl.org/rss/1.0/"


def iri(name: str) -> IRI:
    """A name in the example namespace."""
    return IRI(EX + name)


def item(name: str, title: str, year: int = 2005) -> Publication:
    """A feed item with a title and a year; its id is the name."""
    subject = iri(name)
    triples = (
        Triple(subject, RDF_TYPE, IRI(RSS + "item")),
        Triple(subject, IRI(RSS + "title"), Literal(title)),
        Triple(subject, iri("year"), Literal(str(year), XSD + "integer")),
    )
    return Publication(name, triples, "test", dt.datetime(2024, 1, 1, tzinfo=dt.UTC))


class Stub:
    """An operator that answers from a table; a missing row raises. `calls` counts."""

    def __init__(self, name: str, parameters: int, answers: dict[str, Verdict]) -> None:
        self.name = name
        self.parameters = tuple(Parameter(f"a{n}") for n in range(parameters))
        self.answers = answers
        self.calls = 0

    def evaluate(self, publication: Publication, arguments: tuple[Argument, ...]) -> Verdict:
        """The answer for the publication's id."""
        self.calls += 1
        return self.answers[publication.id]


def read_while_writing(write: Callable[[int], None], read: Callable[[], None], writers: int, readers: int = 2) -> None:
    """Call `write` in so many threads, with their numbers, and `read` in others again and again until all have written.
    Fails where any of them fails."""
    failures = list[BaseException]()
    stop = threading.Event()

    def write_once(number: int) -> None:
        try:
            write(number)
        except BaseException as error:
            failures.append(error)

    def read_on() -> None:
        try:
            while not stop.is_set():
                read()
        except BaseException as error:
            failures.append(error)

    reading = [threading.Thread(target=read_on) for _ in range(readers)]
    writing = [threading.Thread(target=write_once, args=(number,)) for number in range(writers)]
    for thread in reading + writing:
        thread.start()
    for thread in writing:
        thread.join()
    stop.set()
    for thread in reading:
        thread.join()
    assert not failures


@contextmanager
def full_disk(bytes_: int) -> Iterator[None]:
    """A block in which no file can grow past so many bytes."""
    resource = pytest.importorskip("resource")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (bytes_, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
