"""The parsing process: it may crash, hang or grow; the reader goes on. The attacks are real, and the guard is off."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import replace

import pytest

from amounts import IN_FULL
from triplewire import child_process
from triplewire.child_process import LENGTH
from triplewire.config import Settings
from triplewire.errors import ReadError, Refusal
from triplewire.model.publication import Publication
from triplewire.model.terms import IRI, Literal, Triple
from triplewire.read import read_document
from triplewire.read.decoded import Syntax
from triplewire.read.process.frames import Reply, Request, publications_frame
from triplewire.read.process.parsing import CLIENT, Client
from waiting import until

GOOD = Request(b"<http://a> <http://b> 1 .", Syntax.TURTLE, "http://d", "d", settings=Settings(parse_bytes=512 << 20))
RDF = 'xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#"'
BOMB = (
    '<!DOCTYPE r [<!ENTITY a "aaaaaaaaaa">'
    + "".join(f'<!ENTITY {chr(98 + n)} "{f"&{chr(97 + n)};" * 10}">' for n in range(9))
    + f']><rdf:RDF {RDF}><rdf:Description rdf:about="http://a"><rdf:value>&j;</rdf:value></rdf:Description></rdf:RDF>'
)
NESTED = "<a:a> <a:b> " + "<<( <a:a> <a:b> " * 60_000 + "1" + " )>>" * 60_000 + " ."
DEEP = f'<r xmlns="http://a/" {RDF}>' + "<a>" * 60_000 + "</a>" * 60_000 + "</r>"


@pytest.fixture
def weak() -> Iterator[Client]:
    client = Client("weak_worker")
    yield client
    client.close()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "syntax", "refusal"),
    [
        (BOMB, Syntax.RDF_XML, "d: the parser crashed on it (signal 6)"),  # it aborts when memory ends
        (NESTED, Syntax.TURTLE, "d: the parser crashed on it (signal 11)"),  # its stack overflows
        (DEEP, Syntax.RDF_XML, "d: parsing it takes more than 3 s; raise parse_seconds"),  # quadratic
    ],
    ids=["memory", "crash", "hang"],
)
def test_the_reader_survives_what_the_parser_does_not(weak: Client, text: str, syntax: Syntax, refusal: str) -> None:
    seconds = 3 if "takes more" in refusal else 120
    hostile = replace(
        GOOD, data=text.encode(), syntax=syntax, settings=Settings(parse_bytes=512 << 20, parse_seconds=seconds)
    )
    assert len(weak.ask(GOOD).publications) == 1
    with pytest.raises(ReadError) as refused:
        weak.ask(hostile)
    assert str(refused.value) == refusal
    waits = Settings(parse_bytes=512 << 20, parse_seconds=120)  # as the start of a process counts, too
    good, malformed = (
        replace(hostile, data=data, syntax=Syntax.TURTLE, settings=waits) for data in (GOOD.data, b"<http://a> .")
    )
    assert len(weak.ask(good).publications) == 1
    together = list(weak.ask_all([replace(good, settings=hostile.settings), hostile, good, malformed, good]))
    assert next(str(reply) for reply in together if isinstance(reply, ReadError)) == refusal
    assert [isinstance(reply, ReadError) for reply in together] == [False, True, False, True, False]
    assert len(weak.ask(GOOD).publications) == 1


@pytest.mark.parametrize("text", [BOMB, NESTED, DEEP], ids=["memory", "crash", "hang"])
def test_with_the_guard_the_parser_never_sees_them(text: str) -> None:
    before = _worker()
    with pytest.raises(ReadError):
        read_document(text.encode(), "d")
    assert _worker() == before, "the same process goes on"


@pytest.mark.parametrize(
    ("code", "how"),
    [("time.sleep(3_600)", "killed"), ("os.close(1); time.sleep(1); os._exit(3)", "exit 3"),
     ("os.close(0); time.sleep(1); os.kill(os.getpid(), 9)", "signal 9")],
    ids=["at work", "about to exit", "about to be killed"],
)  # fmt: skip
def test_a_process_is_killed_at_once_unless_it_ends_by_itself(
    code: str, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who has closed a pipe is waited for, as long as that takes; nobody else is."""
    monkeypatch.setattr(child_process, "_ENDS_SECONDS", 3_000)
    command = [sys.executable, "-c", f"import os, time; print('there', flush=True); {code}"]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)
    assert process.stdout is not None
    assert process.stdout.readline() == b"there\n"
    if how != "killed":
        until(lambda: child_process._has_closed_a_pipe(process))
    assert child_process.end(process) == how


@pytest.mark.slow
def test_a_killed_process_is_replaced() -> None:
    first = _worker()
    os.kill(first, signal.SIGKILL)
    assert _worker() != first


def test_many_threads_share_one_process() -> None:
    before, wrong = _worker(), []

    def work(number: int) -> None:
        for n in range(50):
            (publication,) = read_document(f'<http://a> <http://p> "{number} {n}" .'.encode(), f"http://d/{number}/{n}")
            if (publication.id, len(publication.triples)) != (f"http://d/{number}/{n}", 1):
                wrong.append(publication)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    assert _worker() == before


@pytest.mark.slow
def test_a_forked_child_starts_its_own_process() -> None:
    parent = _worker()
    child = os.fork()
    if child == 0:
        status = 1
        try:
            own = _worker()
            status = 0 if own != parent else 2
            CLIENT.close()
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert _worker() == parent


@pytest.mark.slow
def test_an_unfinished_exchange_leaves_nothing_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    """An interrupt in the middle of a reply must not be answered with the rest of that reply."""
    client = Client()
    text = "".join(f"<http://a> <http://p> <http://b/{n}> .\n" for n in range(50_000)).encode()
    real_read, calls = os.read, []

    def interrupted(descriptor: int, size: int) -> bytes:
        calls.append(descriptor)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return real_read(descriptor, min(size, 1000))

    with monkeypatch.context() as patch:
        patch.setattr(os, "read", interrupted)
        with pytest.raises(KeyboardInterrupt):
            client.ask(replace(GOOD, data=text))
    assert len(client.ask(GOOD).publications) == 1
    client.close()


def _worker() -> int:
    """The process id of this process's parsing process, which has just answered."""
    assert len(read_document(b"<http://a> <http://b> 1 .", "http://d")) == 1
    assert CLIENT.process_id is not None
    return CLIENT.process_id


@pytest.mark.slow
def test_many_bad_lines_before_a_good_graph() -> None:
    """Each is a refusal with its line, and costs little memory: 200,000 of them, of which a part is tried by default,
    fit into a small process."""
    line = b"<http://a> <http://b> c <http://bad> ."
    good = b'<http://a> <http://b> "good" <http://ok> .\n'
    count, bytes_ = (200_000, 512 << 20) if IN_FULL else (50_000, 256 << 20)
    told: list[Refusal] = []
    settings = Settings(parse_bytes=bytes_)
    (publication,) = read_document(
        good + (line + b"\n") * count + good, "lines.nq", settings=settings, on_refusal=told.append
    )
    assert publication.id == "http://ok"
    assert [refusal.where.split(":")[1] for refusal in told] == [str(number) for number in range(2, count + 2)]


def test_a_reply_that_cannot_be_is_refused() -> None:
    """Each frame is changed where numbers stand: kernels never see what does not fit."""
    publication = Publication("p", (Triple(IRI("http://a"), IRI("http://b"), Literal("x")),))
    frame = publications_frame([publication], end=True)[LENGTH.size :]
    reply = Reply("d")
    reply.take(frame)
    assert reply.publications == [replace(publication, source="d")]
    for damaged in (frame[:-1] + b"\1", frame[:-4], frame[:-40] + bytes(40)):
        with pytest.raises(ReadError, match="d: the parsing process gave what cannot be: "):
            Reply("d").take(damaged)
