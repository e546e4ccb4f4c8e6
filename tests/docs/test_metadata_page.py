"""The blocks `sh metadata` of docs/metadata.md run one after the other.

They run in an empty folder that has `examples`; a block `printed` behind one says what its commands print, from the
first to the last.
"""

from __future__ import annotations

from pathlib import Path

from docs.blocks import ROOT, blocks
from docs.test_service_blocks import Shell
from pipeline.connect.servers import free_port

PAGE = ROOT / "docs" / "metadata.md"
PORTS = ("8751", "8752")


def test_page_of_metadata(tmp_path: Path) -> None:
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    shell, ports, printed, compared = Shell(tmp_path), {port: str(free_port()) for port in PORTS}, "", 0
    shell.environment["XDG_STATE_HOME"] = str(tmp_path / "state")
    shell.environment.pop("TRIPLEWIRE_TOKEN", None)
    try:
        for block in blocks(PAGE):
            if "metadata" in block.words:
                text = block.text.replace("\\\n", " ")
                for port, free in ports.items():
                    text = text.replace(port, free)
                printed = "".join(map(shell.run, text.splitlines()))
            elif "printed" in block.words:
                assert printed.endswith(block.text), f"{block}:\n{printed}"
                compared += 1
    finally:
        shell.end()
    assert shell.ended == [0, 0]
    assert compared > 3
