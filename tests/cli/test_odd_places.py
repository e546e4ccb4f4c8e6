"""Inputs and outputs that are no plain files, and texts that a terminal would take for commands."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from cli.runner import triplewire
from triplewire.cli.output import whole_file

QUERY = "SELECT ?t { ?s <http://e.org/title> ?t }"


@pytest.fixture
def publications(tmp_path: Path) -> Path:
    file = tmp_path / "many.nq"
    file.write_text("".join(f'<urn:{n}> <http://e.org/title> "t {n}" <urn:p:{n}> .\n' for n in range(2_000)))
    return file


@pytest.mark.parametrize("kind", ["a pipe", "a link to a device"])
def test_what_is_no_file_below_a_folder_is_refused(publications: Path, kind: str) -> None:
    folder = publications.parent
    if kind == "a pipe":
        os.mkfifo(folder / "odd.nq")
    else:
        (folder / "odd.nq").symlink_to("/dev/zero")
    done = triplewire("match", QUERY, folder)
    assert (done.code, len(done.rows)) == (1, 2_000)
    reason = "it is no plain file, but a pipe, a socket or a device"
    assert done.err == f"refused publication {folder / 'odd.nq'}: {reason}\n"
    (folder / "queries").mkdir()
    os.mkfifo(folder / "queries" / "q.rq")
    done = triplewire("check", folder / "queries")
    assert done.code == 1
    assert reason in done.out


def test_parquet_goes_into_a_pipe(publications: Path, tmp_path: Path) -> None:
    pipe, got = tmp_path / "out.parquet", tmp_path / "got"
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: got.write_bytes(pipe.read_bytes()))
    reader.start()
    done = triplewire("match", QUERY, publications, "--output", pipe)
    reader.join()
    assert done.code == 0, done.err
    assert len(pq.read_table(got)) == 2_000


@pytest.mark.parametrize("option", ["--output", "--refusals", "--stats"])
def test_a_link_in_a_circle_is_replaced(publications: Path, option: str) -> None:
    link = publications.parent / "loop.jsonl"
    link.symlink_to(link)
    done = triplewire("match", QUERY, publications, option, link)
    assert done.code == 0, done.err
    assert link.is_file()


@pytest.mark.parametrize("option", ["--output", "--refusals", "--stats"])
def test_a_full_disk_is_named(publications: Path, option: str) -> None:
    full = publications.parent / "full.jsonl"
    full.symlink_to("/dev/full")
    (publications.parent / "broken.ttl").write_text("<urn:a")
    done = triplewire("match", QUERY, publications.parent, option, full)
    assert done.code == 73
    assert done.err.endswith(f"triplewire: {full} cannot be written: No space left on device\n")


def run(*arguments: object, **streams: object) -> subprocess.CompletedProcess[bytes]:
    command = [sys.executable, "-c", "from triplewire.cli import main; main()", *map(str, arguments)]
    return subprocess.run(command, check=False, **streams)  # type: ignore[call-overload,no-any-return]


@pytest.mark.usefixtures("without_kernels")
def test_a_full_disk_for_messages_loses_no_rows(publications: Path, tmp_path: Path) -> None:
    (tmp_path / "broken.ttl").write_text("<urn:a")
    with open("/dev/full", "w") as full:
        done = run("match", QUERY, publications, tmp_path / "broken.ttl", stdout=subprocess.PIPE, stderr=full)
    assert len(done.stdout.splitlines()) == 2_000
    assert done.returncode == 73


@pytest.mark.usefixtures("without_kernels")
def test_a_table_whose_reader_goes_away(publications: Path) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    done = run("match", QUERY, publications, "--format", "table", stdout=writer, stderr=subprocess.PIPE)
    os.close(writer)
    assert (done.returncode, done.stderr) == (141, b"")


def test_a_folder_that_was_removed(publications: Path, tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    code = "import os, sys; os.rmdir(os.getcwd()); from triplewire.cli import run; sys.exit(run(sys.argv[1:]))"
    command = [sys.executable, "-c", code, "match", QUERY, publications, "--output", "x.jsonl"]
    environment = os.environ | {"TRIPLEWIRE_CACHE": "c"}
    done = subprocess.run(command, cwd=gone, env=environment, check=False, capture_output=True, text=True)
    assert done.returncode == 74
    assert done.stderr.endswith("No such file or directory (the current folder was removed)\n")


def test_an_explanation_sends_no_commands_to_a_terminal(tmp_path: Path) -> None:
    title = "http://e.org/title"
    rows = [{"@id": f"http://e.org/{n}", title: text} for n, text in enumerate(("a", "\x1b[2J\x9b31m\u2028b"))]
    (tmp_path / "p.jsonld").write_text(json.dumps(rows))
    (tmp_path / "s.jsonl").write_text(
        json.dumps({"id": "one\ntwo\x1b]0;owned\x07", "language": "sparql", "query": QUERY}) + "\n"
    )
    done = triplewire("explain", "--subscriptions", tmp_path / "s.jsonl", "--publications", tmp_path / "p.jsonld")
    assert done.code == 0, done.err
    assert done.out.startswith("one two\\x1b]0;owned\\x07 matches")
    assert not any(mark in done.out for mark in "\x1b\x07\x9b\u2028")


@pytest.mark.usefixtures("without_kernels")
def test_standard_input_that_does_not_wait_is_read_to_its_end() -> None:
    """As a pipe may be that is shared with a program of another kind."""
    reader, writer = os.pipe()
    os.set_blocking(reader, False)
    command = [sys.executable, "-c", "from triplewire.cli import main; main()", "match", QUERY, "-"]
    process = subprocess.Popen(command, stdin=reader, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    os.close(reader)
    for part in range(2):
        os.write(
            writer, b"".join(b'<urn:%d> <http://e.org/title> "t" <urn:p:%d%d> .\n' % (n, part, n) for n in range(9))
        )
        time.sleep(1)
    os.close(writer)
    out, err = process.communicate()
    assert (process.returncode, len(out.splitlines()), err) == (0, 18, b"")


def test_a_name_that_is_empty_and_a_file_whose_size_is_not_known(publications: Path) -> None:
    for option in ("--publications", "--subscriptions"):
        done = triplewire("match", option, "")
        assert done.code == 2
        assert "the name of a file is empty" in done.err
    done = triplewire("match", QUERY, "/proc/self/limits", publications)
    assert (done.code, len(done.rows)) == (1, 2_000)
    assert "is empty" not in done.err


def test_what_a_process_of_the_same_number_left(tmp_path: Path) -> None:
    left = tmp_path / f".out.jsonl.{os.getpid()}.part"  # in containers, many processes have the same number
    left.write_text("left")
    for _ in range(2):
        with whole_file(tmp_path / "out.jsonl") as part:
            part.write_text("whole")
    assert (tmp_path / "out.jsonl").read_text() == "whole"
    assert sorted(os.listdir(tmp_path)) == [left.name, "out.jsonl"]
