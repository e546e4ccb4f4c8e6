"""Secrets are compared in constant time, as the code says.

How long an answer takes must not tell how much of one was right. What is compared where stands in
`tests/cases/service/secret_comparisons.toml`.
"""

from __future__ import annotations

import ast
import re
import tomllib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CASES = tomllib.loads((ROOT / "tests" / "cases" / "service" / "secret_comparisons.toml").read_text("utf-8"))
FOLDERS = ("broker", "deliver", "notify", "service")
SECRET = re.compile(r"(?i)(^|_)(token|ticket|secret|mac|signature|digest|challenge|cookie|code|password|right)$")
KEYS = re.compile(r"\b(feed_key|callback_key|grant_key|secret_of|_mac|_code)\(")


def modules() -> Iterator[tuple[str, ast.Module]]:
    """The place and the tree of each module that may see a secret."""
    package = ROOT / "src" / "triplewire"
    for folder in FOLDERS:
        for file in sorted((package / folder).rglob("*.py")):
            yield file.relative_to(package).as_posix(), ast.parse(file.read_text("utf-8"))


def is_suspicious(node: ast.AST) -> bool:
    """Is it a comparison whose time depends on how much of something is right that is called like a secret?"""
    if not isinstance(node, ast.Compare) or not any(
        isinstance(operator, ast.Eq | ast.NotEq | ast.In | ast.NotIn) for operator in node.ops
    ):
        return False
    parts = [part for side in (node.left, *node.comparators) for part in ast.walk(side)]
    names = [part.id for part in parts if isinstance(part, ast.Name)]
    names += [part.attr for part in parts if isinstance(part, ast.Attribute)]
    return any(map(SECRET.search, names)) or bool(KEYS.search(ast.unparse(node)))


def test_secrets_are_compared_in_constant_time() -> None:
    calls: dict[str, Counter[str]] = {}
    for place, tree in modules():
        for function in ast.walk(tree):
            if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
                for node in ast.walk(function):
                    if isinstance(node, ast.Call) and ast.unparse(node.func) == "hmac.compare_digest":
                        calls.setdefault(place, Counter())[function.name] += 1
    assert calls == CASES["constant_time"]


def test_no_secret_is_compared_otherwise() -> None:
    places = {
        f"{place}: {ast.unparse(node)}" for place, tree in modules() for node in ast.walk(tree) if is_suspicious(node)
    }
    assert places == set(CASES["others"])


def test_what_is_looked_for_is_noticed() -> None:
    for text in ("row.ticket == given", "token in known", "who.code != code", "feed_key(1, key) == given"):
        assert is_suspicious(ast.parse(text, mode="eval").body), text
    for text in ("ticket is None", "len(secret) >= 9", "hmac.compare_digest(token, known)"):
        assert not is_suspicious(ast.parse(text, mode="eval").body), text
