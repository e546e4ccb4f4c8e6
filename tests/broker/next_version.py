"""The version after this one, for tests of an upgrade.

`python -m broker.next_version FOLDER ARGUMENT...` is `triplewire` with the revisions of tables in a folder.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from alembic.script import ScriptDirectory

from triplewire import cli
from triplewire.store import migrate

REVISION = Path(__file__).resolve().parents[1] / "cases" / "service" / "next_revision.py"


def revisions(folder: Path) -> Path:
    """The revisions of this version, and one more, in a folder that is made."""
    shutil.copytree(migrate.MIGRATIONS, folder)
    head = str(ScriptDirectory(folder).get_current_head())
    (folder / "versions" / REVISION.name).write_text(REVISION.read_text("utf-8").replace("HEAD", head), "utf-8")
    return folder


if __name__ == "__main__":
    migrate.MIGRATIONS = Path(sys.argv.pop(1))
    cli.main()
