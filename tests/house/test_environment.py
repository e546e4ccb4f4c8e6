"""Every variable of the environment that the code, the tests or the documents name is listed, and no other one."""

from __future__ import annotations

import dataclasses
import re

from house.source import PACKAGE, ROOT, text_files
from triplewire.config import IN_FILES, VARIABLES, ServiceSettings, Settings

_NAME = re.compile(r"\bTRIPLEWIRE_[A-Z][A-Z_]*[A-Z]\b")
_ABOUT_UNKNOWN = ROOT / "tests" / "model" / "test_settings.py"  # it has wrong ones on purpose


def test_variables_are_listed() -> None:
    named: dict[str, str] = {}
    for path in [*text_files(), ROOT / "Makefile"]:
        if path == _ABOUT_UNKNOWN or path == PACKAGE / "config.py":
            continue
        for name in _NAME.findall(path.read_text(encoding="utf-8", errors="replace")):
            named.setdefault(name, path.relative_to(ROOT).as_posix())
    assert len(named) > 5, "hardly a variable was found: this test is blind"
    unlisted = {name: place for name, place in named.items() if name not in VARIABLES}
    assert not unlisted, f"list them in triplewire.config.VARIABLES: {unlisted}"
    of_service = [field.name for field in dataclasses.fields(ServiceSettings)]
    names = [*Settings.__slots__, *of_service, *(f"{name}_file" for name in IN_FILES)]
    of_settings = {f"TRIPLEWIRE_{name.upper()}" for name in names}
    unused = set(VARIABLES) - of_settings - set(named)
    assert not unused, f"nothing reads these: {unused}"
