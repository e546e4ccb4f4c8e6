"""Every exception that leaves a public call is in `triplewire.errors`, listed and described there."""

from __future__ import annotations

import ast

from house.source import PACKAGE, package_files, shown, tree
from triplewire import errors

# raised and caught within a package, never by a public call
INTERNAL = {"ExpressionError", "Problem", "RegexError", "Undecided"}


def test_exceptions_have_one_home() -> None:
    elsewhere = [
        f"{shown(path)}:{node.lineno}: {node.name}"
        for path in package_files()
        if path != PACKAGE / "errors.py"
        for node in ast.walk(tree(path))
        if isinstance(node, ast.ClassDef)
        and any(ast.unparse(base).endswith(("Error", "Exception", "Warning")) for base in node.bases)
        and not node.name.startswith("_")
        and node.name not in INTERNAL
    ]
    assert not elsewhere, f"define them in triplewire/errors.py, or make them private: {elsewhere}"


def test_all_are_listed_and_described() -> None:
    defined = {
        name for name, value in vars(errors).items() if isinstance(value, type) and value.__module__ == errors.__name__
    }
    assert len(defined) > 8, "hardly an exception was found: this test is blind"
    assert set(errors.__all__) >= defined
    assert errors.__doc__ is not None
    for name in defined - {"Refusal"}:
        assert issubclass(getattr(errors, name), errors.TriplewireError)
        assert f" {name} " in errors.__doc__ or errors.__doc__.count(name), (
            f"the list at the head of errors.py lacks {name}"
        )
