"""docs/serve.md lists the settings of a service, each with its default and what it says, and its smaller limits."""

from __future__ import annotations

import dataclasses
import json

import pytest

from docs.blocks import ROOT
from triplewire.config import IN_FILES, SERVICE_LIMITS, ServiceSettings, Settings

PAGE = ROOT / "docs" / "serve.md"


def rows_of_settings() -> list[str]:
    rows = []
    for field in dataclasses.fields(ServiceSettings):
        mark = "*" if field.name in IN_FILES else ""
        default = "" if field.default in ("", ()) else f"`{json.dumps(field.default)}`"
        rows.append(f"| `{field.name}`{mark} | {default} | {field.metadata['help']} |")
    return rows


def rows_of_limits() -> list[str]:
    return [f"| `{name}` ({getattr(Settings(), name):,}) | {limit:,} |" for name, limit in SERVICE_LIMITS.items()]


@pytest.mark.parametrize(
    ("head", "rows"),
    [("| setting | default | what it says |", rows_of_settings()), ("| limit | in a service |", rows_of_limits())],
    ids=["settings", "limits"],
)
def test_the_table_is_what_the_code_says(head: str, rows: list[str]) -> None:
    lines = PAGE.read_text(encoding="utf-8").splitlines()
    begin = lines.index(head) + 2
    end = next(number for number in range(begin, len(lines)) if not lines[number].startswith("|"))
    assert lines[begin:end] == rows, "make the table anew:\n" + "\n".join(rows)
