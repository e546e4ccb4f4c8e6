"""Exit codes, help, streams: what a script can rely on."""

from __future__ import annotations

import http.server
import os
import shlex
import signal
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path
from unittest import mock

import pytest
from filelock import FileLock

from amounts import IN_FULL
from cli.runner import HEEDS_HANGUPS, triplewire
from triplewire import config

COMMAND = [sys.executable, "-c", "from triplewire.cli import main; main()"]

WRONG = {
    "nothing": [],
    "no such command": ["frobnicate"],
    "no files": ["read"],
    "no publications": ["match", "--subscriptions", "title.rq"],
    "no subscriptions": ["match", "--publications", "a.ttl"],
    "missing file": ["read", "a.ttl", "nowhere.ttl"],
    "missing subscriptions": ["match", "--subscriptions", "nowhere.rq", "--publications", "a.ttl"],
    "missing publications": ["match", "--subscriptions", "title.rq", "--publications", "a.ttl", "nowhere.ttl"],
    "missing taxonomy": ["match", "--subscriptions", "title.rq", "--publications", "a.ttl", "--taxonomy", "nowhere"],
    "unknown matcher": ["match", "--subscriptions", "title.rq", "--publications", "a.ttl", "--matcher", "magic"],
    "unknown language": ["match", "--language", "sparkl", "ASK { ?s ?p ?o }", "a.ttl"],
    "unknown format": ["read", "a.ttl", "--format", "runes"],
    "unknown split": ["read", "a.ttl", "--split", "hair"],
    "unknown option": ["read", "a.ttl", "--fast"],
    "standard input twice": ["match", "--subscriptions", "-", "--publications", "-"],
    "output of no known name": ["match", "--subscriptions", "title.rq", "--publications", "a.ttl", "--output", "x.csv"],
    "two outputs are one": [
        *("match", "--subscriptions", "title.rq", "--publications", "a.ttl"),
        *("--output", "x.jsonl", "--stats", "./x.jsonl"),
    ],
    "an output is an input": [
        "match",
        "--subscriptions",
        "rows.jsonl",
        "--publications",
        "a.ttl",
        "--output",
        "rows.jsonl",
    ],
    "reading to what is read": ["read", "many.nq", "--output", "many.nq"],
    "output is a folder": ["read", "a.ttl", "--output", "."],
    "a query that names no file": ["match", "nowhere.rq", "a.ttl"],
    "an empty query": ["match", "--query", "", "--publications", "a.ttl"],
    "an empty subscription": ["explain", "--subscription", "", "title.rq", "a.ttl"],
    "no name of a file": ["read", ""],
    "a sample for what looks at none": [
        *("pipeline", "index", "--subscriptions", "title.rq", "--output", "index"),
        *("--partitioner", "containment", "--sample", "a.ttl"),
    ],
    "no name of an output folder": [
        "pipeline",
        "run",
        "--input",
        "a.ttl",
        "--subscriptions",
        "title.rq",
        "--output",
        "",
    ],
    "no name of a cache": ["match", "title.rq", "a.ttl", "--operator-cache", ""],
    "table into a file": ["read", "a.ttl", "--output", "x.nq", "--format", "table"],
}


@pytest.mark.parametrize("arguments", WRONG.values(), ids=WRONG.keys())
def test_wrong_usage(folder: Path, arguments: list[str]) -> None:
    before = sorted(folder.iterdir())
    done = triplewire(*arguments)
    assert done.code == 2, done.err
    assert "Traceback" not in done.err
    if arguments:
        assert "Error: " in done.err
    assert sorted(folder.iterdir()) == before


CODES = {  # a command, and what it ends with
    "read a.ttl": 0,
    "read a.ttl broken.ttl": 1,
    "match title.rq nowhere.ttl": 2,
    "match title.rq a.ttl --output no/x.jsonl": 73,
    "match title.rq a.ttl --output a.ttl/x.jsonl": 73,
    "match title.rq a.ttl --refusals a.ttl/x.jsonl": 73,
    "read a.ttl --output a.ttl/x.nq": 73,
    "watch --once --subscriptions title.rq --sources a.ttl --output a.ttl/found": 73,
    "watch --once --subscriptions title.rq --sources a.ttl --output sqlite:a.ttl/found.db": 73,
    "watch --once --subscriptions title.rq --sources a.ttl --output sqlite:a.ttl": 73,
    "match title.rq a.ttl --taxonomy broken.ttl": 74,
    "pipeline subscribe --index . title.rq": 74,
    "pipeline index --subscriptions sqlite:/nowhere.db#queries --output index": 74,
    "pipeline index --subscriptions title.rq --output a.ttl/index": 73,
}


@pytest.mark.parametrize(("line", "code"), CODES.items(), ids=CODES.keys())
def test_exit_codes(folder: Path, line: str, code: int) -> None:
    done = triplewire(*line.split())
    assert done.code == code, done.err
    assert "Traceback" not in done.err
    assert ".part" not in done.err, "a temporary file means nothing to who reads it"


def test_an_output_that_another_run_writes_to_is_busy(folder: Path) -> None:
    Path("out").mkdir()
    with FileLock("out/_lock"):
        done = triplewire("pipeline", "run", "--input", "a.ttl", "--subscriptions", "title.rq", "--output", "out")
    assert done.code == 75
    assert "another run writes to it; wait until that has ended" in done.err


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("MAX_TRIPLES", "lots"),
        ("MAX_TRIPLES", ""),
        ("MAX_TRIPLES", "0"),
        ("MAX_TRIPLES", "-1"),
        ("MAX_TRIPLES", "9" * 5_000),
        ("PARSE_SECONDS", "99999999999"),
        ("PARSE_BYTES", "9999999999999999999"),
    ],
)
def test_a_wrong_setting_is_wrong_usage(folder: Path, monkeypatch: pytest.MonkeyPatch, name: str, value: str) -> None:
    monkeypatch.setenv(f"TRIPLEWIRE_{name}", value)
    done = triplewire("read", "a.ttl")
    assert done.code == 2
    assert f"TRIPLEWIRE_{name}" in done.err


def test_an_unknown_variable_is_told_of_once(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(config, "_told", set())
    unknown = "TRIPLEWIRE_" + "MAX_TRIPLE"  # in two pieces: those that are read are listed, and a test looks for others
    monkeypatch.setenv(unknown, "1")
    done = triplewire("match", "--subscriptions", "title.rq", "--publications", "a.ttl")
    assert done.code == 0
    assert done.err.count(f"{unknown} ") == 1
    assert "did you mean TRIPLEWIRE_MAX_TRIPLES?" in done.err


@pytest.mark.parametrize("command", ["", "read", "match", "explain"])
def test_help_begins_with_an_example(command: str) -> None:
    done = triplewire(*filter(None, [command]), "--help")
    assert (done.code, done.err) == (0, "")
    usage, example = (line for line in done.out.splitlines()[:3] if line.strip())
    assert usage.startswith("Usage: triplewire")
    assert example.strip().startswith("triplewire ")
    assert triplewire(*filter(None, [command]), "-h").out == done.out


ODD_ADDRESSES = {
    "doctor --data folder --database postgresql://[::1": (1, "the address of the database cannot be read"),
    "serve --data folder --database postgresql://[::1": (74, "the address of the database cannot be read"),
    "serve --data folder --host ...": (2, "Invalid value for --host, --port: it cannot be listened at"),
    "metadata init --store sqlite:///": (74, "the address names no database"),
    "metadata serve --store sqlite:///m.db --host ...": (2, "Invalid value for --host, --port"),
    "repository query --store sqlite:///m.db @binary": (74, "binary: it is no UTF-8 text: invalid start byte"),
    "subscribe @binary": (74, "binary: it is no UTF-8 text: invalid start byte"),
    "subscribe @nowhere": (2, "nowhere does not exist"),
    "publish hollow": (1, "refused publication hollow: the folder holds no file"),
}


@pytest.mark.parametrize(("line", "wanted"), ODD_ADDRESSES.items(), ids=ODD_ADDRESSES)
def test_odd_addresses_and_files_are_no_fault_of_ours(folder: Path, line: str, wanted: tuple[int, str]) -> None:
    Path("binary").write_bytes(b"\xff\x00")
    Path("hollow").mkdir()
    done = triplewire(*line.split())
    assert (done.code, wanted[1] in " ".join((done.out + done.err).split())) == (wanted[0], True)


class Elsewhere(http.server.BaseHTTPRequestHandler):
    """A site that answers each question with the page in `said`."""

    said = ("text/html", b"<!DOCTYPE html>")

    def do_GET(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.send_response(200)
        self.send_header("Content-Type", self.said[0])
        self.send_header("Content-Length", str(len(self.said[1])))
        self.end_headers()
        self.wfile.write(self.said[1])

    do_POST = do_DELETE = do_GET

    def log_message(self, *_: object) -> None:
        """Nothing on standard error."""


@pytest.mark.parametrize("line", ["deadletter list", "export", "publish a.ttl", "tail --no-follow", "subscribe x"])
@pytest.mark.parametrize("said", [("text/html", b"<!DOCTYPE html>"), ("application/json", b"{")])
def test_what_is_no_service_is_said_in_one_line(folder: Path, line: str, said: tuple[str, bytes]) -> None:
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), type("Site", (Elsewhere,), {"said": said})) as site:
        threading.Thread(target=site.serve_forever, args=(0.05,), daemon=True).start()
        address = f"http://127.0.0.1:{site.server_address[1]}"
        done = triplewire(*shlex.split(line), "--service", address)
        site.shutdown()
    assert (done.code, f"{address}: it gives {said[0]}, where a service gives " in done.err) == (69, True)


@pytest.mark.parametrize(
    ("variable", "value", "code", "said"),
    [
        ("SERVICE", "http://[::1", 2, "no address of a service: url is wrong: Invalid IPv6 URL"),
        ("SERVICE", "http://h:99999", 2, "Port out of range"),
        ("SERVICE", "http://host/ü", 2, "no address of a service: url must be"),
        ("SERVICE", f"http://{'a' * 99}.example", 69, "the service does not answer"),
        ("TOKEN", "one\ntwo", 2, "TRIPLEWIRE_TOKEN has no token, which is one line"),
        ("TOKEN", "zw\u20ac", 2, "TRIPLEWIRE_TOKEN has no token, which is one line"),
    ],
)
def test_addresses_and_tokens_that_are_none(
    monkeypatch: pytest.MonkeyPatch, variable: str, value: str, code: int, said: str
) -> None:
    monkeypatch.setenv(f"TRIPLEWIRE_{variable}", value)
    done = triplewire("deadletter", "list")
    assert (done.code, said in " ".join(done.err.split())) == (code, True)


def test_version() -> None:
    done = triplewire("--version")
    assert done.code == 0
    assert done.out.startswith("triplewire ")


ONE_VALUE = [
    (
        "match --subscriptions title.rq year.gql --publications a.ttl",
        "year.gql stands where publications are expected (--subscriptions has title.rq, --publications has a.ttl;",
    ),
    ("match --subscriptions title.rq year.gql a.ttl", "write --subscriptions year.gql, or name a folder"),
    ("match --operators op.py", "give a query: triplewire match 'SELECT ...' FILE..., --query or --subscriptions ("),
    ("match --operators op.py", "(--operators has op.py; an option takes one value, and may be repeated)"),
]


@pytest.mark.parametrize(("line", "said"), ONE_VALUE, ids=[f"{line} {said[:9]}" for line, said in ONE_VALUE])
def test_an_option_takes_one_value(folder: Path, line: str, said: str) -> None:
    (folder / "op.py").write_text("operators = ()\n")
    (folder / "year.gql").write_text("SELECT Publications FROM Publications WHERE (?i, rss:title, ?t)")
    done = triplewire(*line.split())
    assert done.code == 2
    assert said in done.err


def test_what_follows_the_value_of_an_option_is_the_query(folder: Path) -> None:
    (folder / "op.py").write_text("operators = ()\n")
    done = triplewire("match", "--operators", "op.py", "SELECT ?t { ?s ?p ?t }", "a.ttl")
    assert (done.code, len(done.rows)) == (0, 1), done.err
    assert triplewire("explain", "--subscriptions", "title.rq", "a.ttl").code == 0


@pytest.mark.parametrize(
    ("line", "words"), [("match --matcher t", "trie"), ("match --format j", "jsonl"), ("explain --spl", "--split")]
)
def test_completion(line: str, words: str) -> None:
    environment = {"_TRIPLEWIRE_COMPLETE": "complete_bash", "COMP_WORDS": f"triplewire {line}"}
    environment["COMP_CWORD"] = str(line.count(" ") + (not line.endswith(" ")))
    command = [sys.executable, "-c", "import sys; sys.argv[0] = 'triplewire'; from triplewire.cli import main; main()"]
    done = subprocess.run(command, env=os.environ | environment, capture_output=True, text=True, check=False)
    assert words in done.stdout.split()


def test_a_fault_is_one_line_and_70(folder: Path) -> None:
    with mock.patch("triplewire.cli.inputs.load", side_effect=ZeroDivisionError("one\ntwo\x1b")):
        done = triplewire("match", "--subscriptions", "title.rq", "--publications", "a.ttl")
    assert done.code == 70
    assert done.err.splitlines() == [
        "triplewire: internal error, please report it: ZeroDivisionError: one two\\x1b",
    ]


def test_process_streams_and_code(folder: Path) -> None:
    done = subprocess.run(
        [*COMMAND, "read", "broken.ttl", "many.nq"], capture_output=True, text=True, check=False, cwd=folder
    )
    assert done.returncode == 1
    assert len(done.stdout.splitlines()) == 3
    assert done.stderr.startswith("refused publication broken.ttl:1:")


@pytest.mark.skipif(os.name == "nt", reason="there are no limits of sizes there")
@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_no_text_is_cut(folder: Path, unbuffered: str) -> None:
    """Without a buffer, as many containers have it, a system may take a part of a text, and nobody is told."""
    (folder / "long.nq").write_text(f'<urn:s> <urn:p> "{"x" * 900_000}" <urn:g> .\n')
    command = shlex.join([*COMMAND, "read", "long.nq"])
    done = subprocess.run(
        ["bash", "-c", f"ulimit -f 100; {command} > out.nq"],
        env={**os.environ, "PYTHONUNBUFFERED": unbuffered},
        stderr=subprocess.PIPE,
        check=False,
        cwd=folder,
    )
    assert (done.returncode, done.stderr) == (73, b"triplewire: File too large\n")


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_the_reader_of_a_line_goes_away(unbuffered: str) -> None:
    environment = {**os.environ, "PYTHONUNBUFFERED": unbuffered}
    reading, writing = os.pipe()
    os.close(reading)
    command = [*COMMAND, "--version"]
    done = subprocess.run(command, env=environment, stdout=writing, stderr=subprocess.PIPE, check=False)
    os.close(writing)
    assert (done.returncode, done.stderr) == (141, b"")


@pytest.mark.parametrize("to", [[], ["--output", "/dev/stdout"]], ids=["standard output", "a pipe"])
def test_the_reader_goes_away(folder: Path, to: list[str]) -> None:
    if to and not Path(to[1]).exists():
        pytest.skip("there is no /dev/stdout here")
    big = "".join(f'<urn:s{n}> <urn:p> "{"x" * 100}" <urn:g{n}> .\n' for n in range(5_000))
    (folder / "big.nq").write_text(big)
    with subprocess.Popen(
        [*COMMAND, "read", "big.nq", *to], stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=folder
    ) as run:
        assert run.stdout is not None
        assert run.stderr is not None
        run.stdout.readline()
        run.stdout.close()
        said = run.stderr.read()
        assert (run.wait(), said) == (141, b"")


@pytest.mark.skipif(not Path("/dev/stdout").exists(), reason="there is no /dev/stdout here")
@pytest.mark.usefixtures("without_kernels")
def test_the_shell_s_file_is_added_to(folder: Path) -> None:
    """Where the shell leads several outputs to one file, none takes the place of it."""
    match = ["match", "--subscriptions", "title.rq", "--publications", "a.ttl", "--stats", "/dev/stdout"]
    with open("log.txt", "w") as log:
        log.write("before\n")
        log.flush()
        for arguments in (match, ["read", "a.ttl", "--output", "/dev/stdout"]):
            subprocess.run([*COMMAND, *arguments], stdout=log, check=True)
        log.seek(0, os.SEEK_END)
        log.write("after\n")
    text = (folder / "log.txt").read_text()
    assert [text.count(part) for part in ("before\n", '"truncated": false', '"join_steps"', "after\n")] == [1] * 4
    assert triplewire("read", "a.ttl").out in text


def test_a_long_name(folder: Path) -> None:
    name = "é" * 124 + ".nq"  # 251 bytes
    assert triplewire("read", "a.ttl", "--output", name).code == 0
    assert (folder / name).read_text() == triplewire("read", "a.ttl").out


FINALIZED = """
import signal, time

class Interrupted:
    def __del__(self):
        signal.raise_signal(signal.SIGINT)

Interrupted()
time.sleep(600)
"""


@pytest.mark.usefixtures("without_kernels")
def test_an_interrupted_finalizer(folder: Path) -> None:
    """Python raises nothing in a finalizer; the command ends all the same, and shows no traceback."""
    (folder / "operators.py").write_text(FINALIZED)
    files = ["--subscriptions", "title.rq", "--publications", "a.ttl", "--operators", "operators.py"]
    done = subprocess.run([*COMMAND, "match", *files], capture_output=True, check=False, timeout=300)
    assert (done.returncode, done.stdout, done.stderr) == (130, b"", b"")


@pytest.mark.usefixtures("without_kernels")
def test_the_reader_of_the_messages_goes_away(folder: Path) -> None:
    for number in range(1_500):
        (folder / f"bad{number}.ttl").write_text("bad")
    command = [*COMMAND, "match", "--subscriptions", "title.rq", "--publications", ".", "--format", "jsonl"]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, cwd=folder) as run:
        assert run.stderr is not None
        run.stderr.readline()
        run.stderr.close()
        assert run.wait() == 141


ALL_CLOSED = "<&- >&- 2>&-"
FULL = Path("/dev/full")


@pytest.mark.usefixtures("without_kernels")
@pytest.mark.skipif(not FULL.exists(), reason="there is no /dev/full here")
@pytest.mark.parametrize(
    "arguments",
    [
        ["read", "a.ttl"],
        ["match", "--subscriptions", "title.rq", "--publications", "a.ttl"],
        ["explain", "--subscription", "title", "--subscriptions", "title.rq", "--publications", "a.ttl"],
        ["read", "a.ttl", "--output", str(FULL)],
        ["--version"],
    ],
    ids=["read", "match", "explain", "read to a file", "the version"],
)
@pytest.mark.usefixtures("without_kernels")
def test_a_full_disk_is_one_line_and_73(folder: Path, arguments: list[str]) -> None:
    with FULL.open("w") as full:
        done = subprocess.run(
            [*COMMAND, *arguments], stdout=full, stderr=subprocess.PIPE, text=True, check=False, cwd=folder
        )
    named = FULL if str(FULL) in arguments else "standard output"
    assert (done.returncode, done.stderr) == (73, f"triplewire: {named} cannot be written: No space left on device\n")


@pytest.mark.skipif(not Path("/dev/zero").exists(), reason="there is no /dev/zero here")
def test_a_device_without_end(folder: Path) -> None:
    done = triplewire("match", "title.rq", "a.ttl", "--operators", "/dev/zero")
    assert done.code != 70
    assert "file too large" in done.err


@pytest.mark.usefixtures("without_kernels")
@pytest.mark.parametrize("closed", [ALL_CLOSED, "<&-", ">&-", "2>&-"])
def test_closed_streams(folder: Path, closed: str) -> None:
    """As daemons are started. What would go there is for nobody; files are written all the same."""
    if IN_FULL or closed == ALL_CLOSED:
        line = f'"$@" match --subscriptions title.rq --publications a.ttl broken.ttl --output out.jsonl {closed}'
        assert subprocess.run(["sh", "-c", line, "sh", *COMMAND], check=False, cwd=folder).returncode == 1
        assert len((folder / "out.jsonl").read_text().splitlines()) == 1
    line = f'"$@" match --subscriptions title.rq --publications a.ttl broken.ttl {closed}'
    done = subprocess.run(["sh", "-c", line, "sh", *COMMAND], capture_output=True, text=True, check=False, cwd=folder)
    assert done.returncode == 1
    assert done.stdout.count("\n") == (0 if " >" in f" {closed}" else 1)
    assert "refused" not in done.stdout


@pytest.mark.usefixtures("without_kernels")
@pytest.mark.skipif(os.name == "nt", reason="signals are sent otherwise there")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize(
    "arguments",
    [
        ["match", "--subscriptions", "title.rq", "--publications", "-", "--output", "out.jsonl"],
        ["read", "-", "--output", "out.nq"],
    ],
    ids=["match", "read"],
)
def test_interrupt(folder: Path, arguments: list[str], number: signal.Signals) -> None:
    """Ctrl-C, which a terminal sends to the whole group, or another signal, while it waits for standard input."""
    before = sorted(folder.iterdir())
    ready = "import sys; from triplewire.cli import main; print('ready', file=sys.stderr, flush=True)"
    with subprocess.Popen(
        [sys.executable, "-c", f"{HEEDS_HANGUPS}; {ready}; main()", *arguments],
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=folder,
        start_new_session=True,
    ) as run:
        assert run.stderr is not None
        assert run.stderr.readline() == b"ready\n"
        time.sleep(0.5)
        os.killpg(run.pid, number)
        assert (run.wait(), run.stderr.read()) == (130, b"")
    assert sorted(folder.iterdir()) == before


def test_an_interrupt_while_a_class_is_defined(tmp_path: Path) -> None:
    """As of a library that is imported: Python 3.11 makes another error of it there."""
    text = """
        class Member:
            def __set_name__(self, owner, name):
                raise KeyboardInterrupt

        class Owner:
            member = Member()
    """
    (tmp_path / "interrupted.py").write_text(textwrap.dedent(text))
    code = "from triplewire.cli import Program, run; raise SystemExit(run([], Program('x', 'interrupted:app')))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd=tmp_path)
    assert (done.returncode, done.stderr) == (130, "")


@pytest.mark.skipif(os.name == "nt", reason="signals are sent otherwise there")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_after_the_end_changes_no_exit_code(number: signal.Signals) -> None:
    """What ends services may send it again while the process lets go of what it has."""
    code = (
        f"{HEEDS_HANGUPS}; import atexit, sys, time; from triplewire.cli import main; "
        "atexit.register(lambda: (print('ending', file=sys.stderr, flush=True), time.sleep(600))); main()"
    )
    with subprocess.Popen([sys.executable, "-c", code, "match"], stderr=subprocess.PIPE, text=True) as run:
        assert run.stderr is not None
        assert "ending\n" in iter(run.stderr.readline, "")
        run.send_signal(number)
        assert run.wait(300) == 2
