"""The parsing process: `python -m triplewire.read.process.worker`. `triplewire.read.process.client` starts it.

It reads requests on standard input and writes replies on standard output until its input ends. All parsers of untrusted
text run here, so a crash, a hang or too much memory ends this process and refuses one document, and nothing else.
"""

from __future__ import annotations

import contextlib
import os
import resource
import signal
import sys
from typing import BinaryIO

from triplewire.errors import ReadError
from triplewire.read.process.decode import decode
from triplewire.read.process.frames import HEAD, Request, error_frame, piece_frame, publications_frame
from triplewire.read.process.lines import LONGEST, parse_lines
from triplewire.read.syntax import Syntax

BATCH_TRIPLES = 20_000  # triples of one frame, about


def serve(requests: BinaryIO, replies: BinaryIO) -> None:
    """Reply to requests until there are no more.

    The client enforces the time limit; the alarm serves if it has ended.
    """
    while True:
        lengths = requests.read(HEAD.size)
        if len(lengths) < HEAD.size:
            return
        head_length, data_length = HEAD.unpack(lengths)
        request = Request.from_bytes(requests.read(head_length), requests.read(data_length))
        signal.alarm(2 * request.settings.parse_seconds + 1)
        try:
            _answer(request, replies)
        except ReadError as error:
            replies.write(error_frame(error))
        except MemoryError:
            what = f"it takes more memory to parse than allowed, or one token of it has more than {LONGEST:,} bytes"
            replies.write(error_frame(ReadError(what, remedy="raise parse_bytes, or shorten the token")))
        except RecursionError:
            replies.write(error_frame(ReadError("it nests too deeply to be parsed")))
        except Exception as error:  # a defect of a parser refuses the document and does not end the process
            replies.write(error_frame(ReadError(f"it cannot be parsed ({type(error).__name__}: {str(error)[:200]})")))
        replies.flush()
        signal.alarm(0)


def _answer(request: Request, replies: BinaryIO) -> None:
    """Write the frames of one reply. Raises `ReadError`."""
    if request.syntax is Syntax.N_QUADS:
        replies.write(piece_frame(*parse_lines(request.data, request.first_line, request.settings)))
        return
    decoded = decode(request)
    batch, size = [], 0
    for publication in decoded.publications:
        batch.append(publication)
        size += len(publication.triples) + 1
        if size >= BATCH_TRIPLES:
            replies.write(publications_frame(batch, end=False))
            batch, size = [], 0
    replies.write(publications_frame(batch, end=True, problems=decoded.problems))


def main() -> None:
    """Limit the address space to the number of bytes in the first argument, redirect other output, and serve."""
    limit = int(sys.argv[1])
    with contextlib.suppress(ValueError, OSError):  # not every system knows the limit, or lets it be set
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    replies = os.fdopen(os.dup(1), "wb")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the client decides when it ends
    serve(sys.stdin.buffer, replies)


if __name__ == "__main__":
    main()
