"""A disk that fills up under a stream: it stops and says why, and when there is room again nothing is lost or twice.

The disk is a tmpfs of two megabytes, over the output folder, filled but for some bytes: the
fewer there are, the earlier the stream stops. `TRIPLEWIRE_DAMAGE=all` tries more numbers of bytes.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from amounts import IN_FULL
from pipeline.runs import committed
from triplewire.cli import run
from triplewire.pipeline.index.build import build

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("spark")]

SIZE = 2 << 20
ROOMS = (0, 4, 12, 20, 28, 36, 44, 52, 60, 76, 92, 124) if IN_FULL else (0, 20)
"""KiB that are left."""


@contextmanager
def small_disk(folder: Path) -> Iterator[None]:
    """A file system of `SIZE` bytes over the folder, with what is in it."""
    held = folder.with_name(f"{folder.name}-before")
    shutil.copytree(folder, held)
    command = ["mount", "-t", "tmpfs", "-o", f"size={SIZE}", "tmpfs", str(folder)]
    try:
        subprocess.run(command, check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError) as error:
        pytest.skip(f"this process may not mount a file system: {error}")
    try:
        shutil.copytree(held, folder, dirs_exist_ok=True)
        yield
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


def fill(ballast: Path, room: int) -> None:
    """Leave so many bytes."""
    with ballast.open("wb", buffering=0) as stream:
        block = 1 << 16
        while block:
            try:
                stream.write(b"\0" * block)
            except OSError:
                block //= 2
        stream.truncate(max(0, stream.tell() - room))


@pytest.mark.usefixtures("spark")  # the command takes the session that is there
def test_a_full_disk(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    if sys.platform != "linux":
        pytest.skip("there is no tmpfs")
    source, out, index = tmp_path / "in", tmp_path / "out", tmp_path / "index"
    source.mkdir()
    (tmp_path / "any.rq").write_text("ASK { ?s <urn:p> ?o }")
    build(index, [tmp_path / "any.rq"])
    command = ["pipeline", "run", "--input", str(source), "--index", str(index), "--output", str(out), "--streaming"]
    command.append("--conf=triplewire.settle=0")

    def publish(number: int) -> str:
        name = f"urn:g{number}"
        (source / f"{number}.nq").write_text(f'<urn:s> <urn:p> "{number}" <{name}> .\nno quad\n')
        return name

    wanted = Counter([publish(0)])
    assert run(command) == 1, "a line is refused"
    stopped = 0
    with ExitStack() as disk:
        disk.enter_context(small_disk(out))
        for number, room in enumerate(ROOMS, 1):
            wanted[publish(number)] += 1
            fill(out / "_ballast", room << 10)
            capsys.readouterr()
            code = run(command)
            said = capsys.readouterr().err
            (out / "_ballast").unlink()
            seen = committed(out)
            assert max(seen.values()) == 1
            if code != 1 or seen != wanted:
                stopped += 1
                assert code in (1, 69, 73), said
                assert "No space left on device" in said or "disk is full" in said, said
                assert "Traceback" not in said
        assert run(command) in (0, 1)  # 0: the last one did all
        assert committed(out) == wanted
        letters = [
            name for file in out.glob("dead-letter/batch=[0-9]*/*.parquet")
            for name in pq.read_table(file)["subject"].to_pylist()
        ]  # fmt: skip
        assert len(letters) == len(set(letters)) == len(wanted)
    assert stopped
