"""The public surface is a list: sorted, short, documented, and no more and no less than what the package shows."""

from __future__ import annotations

import importlib
import inspect

import pytest

LIMIT = 28  # `triplewire.extend` is all that authors of plug-ins of three families see
SURFACES = ("triplewire", "triplewire.extend")


@pytest.mark.parametrize("name", SURFACES)
def test_public_names(name: str) -> None:
    module = importlib.import_module(name)
    listed = list(module.__all__)
    assert listed == sorted(set(listed)), f"{name}.__all__ is kept sorted, each name once"
    assert len(listed) <= LIMIT, f"{name} has {len(listed)} public names (limit {LIMIT})"
    missing = [public for public in listed if not hasattr(module, public)]
    assert not missing, f"{name} lists what it does not have: {missing}"
    own = {
        attribute
        for attribute, value in vars(module).items()
        if not attribute.startswith("_") and str(getattr(value, "__module__", "")).startswith("triplewire")
    }
    assert own <= set(listed), f"{name} shows names that its __all__ does not list: {sorted(own - set(listed))}"
    assert set(dir(module)) >= set(listed), f"dir({name}) hides public names"


@pytest.mark.parametrize("name", SURFACES)
def test_public_names_are_documented(name: str) -> None:
    module = importlib.import_module(name)
    documented = {"types.UnionType", "typing.Union"}
    for public in module.__all__:
        value = getattr(module, public)
        if inspect.isclass(value) or callable(value):
            own = value.__dict__.get("__doc__") if inspect.isclass(value) else value.__doc__
            assert (own or "").strip(), f"{name}.{public} has no docstring"
            assert not (own or "").startswith(f"{public}("), f"{name}.{public} has only a generated docstring"
        else:
            kind = f"{type(value).__module__}.{type(value).__qualname__}"
            assert kind in documented or isinstance(value, str), f"{name}.{public} is a bare {kind}"
