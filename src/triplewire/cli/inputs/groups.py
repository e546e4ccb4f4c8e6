"""Options that several commands share, as the fields of a dataclass: a command takes them as one argument."""

from __future__ import annotations

import dataclasses
import functools
import inspect
from collections.abc import Callable
from typing import Any, get_type_hints

KEYWORD = inspect.Parameter.KEYWORD_ONLY


def grouped(command: Callable[..., None]) -> Callable[..., None]:
    """The command as Typer takes it: each argument of a dataclass is replaced by the fields of that class."""
    hints = get_type_hints(command, include_extras=True)
    groups: dict[str, tuple[type, list[str]]] = {}
    parameters: list[inspect.Parameter] = []
    for name, parameter in inspect.signature(command).parameters.items():
        kind = hints[name]
        if not (isinstance(kind, type) and dataclasses.is_dataclass(kind)):
            parameters.append(parameter.replace(annotation=hints[name], kind=KEYWORD))
            continue
        types = get_type_hints(kind, include_extras=True)
        fields = dataclasses.fields(kind)
        groups[name] = kind, [field.name for field in fields]
        parameters += [
            inspect.Parameter(field.name, KEYWORD, default=field.default, annotation=types[field.name])
            for field in fields
        ]

    @functools.wraps(command)
    def called(**values: Any) -> None:
        objects = {name: kind(**{field: values.pop(field) for field in own}) for name, (kind, own) in groups.items()}
        command(**objects, **values)

    called.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]  # what Typer looks at
    return called
