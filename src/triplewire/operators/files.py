"""Operators of a file. That of a Python file: a module attribute `operators`, an iterable of operator objects.

    class LongerThan:
        name = "longerThan"
        parameters = (Parameter("characters"),)
        def evaluate(self, publication, arguments): ...

    operators = (LongerThan(),)

The file is code: it is run with all rights of this process. It stands alone, but may import what is installed. Its
text can travel to another process and be run there. The protocol: `triplewire.model.operator`. A TOML file declares
services: `triplewire.operators.http`.
"""

from __future__ import annotations

import re
import sys
import traceback
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from types import ModuleType
from typing import Any

from triplewire.errors import OperatorError, text_of_raised
from triplewire.folders import text_of_file
from triplewire.model.operator import Operator, Parameter, misspelt, traits_of
from triplewire.operators import built_in_operators
from triplewire.operators.calling.isolated import Isolated
from triplewire.operators.http import declared

ATTRIBUTE = "operators"
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")
_OTHER_NAME = "give the operator another name"
_REPLACE = "--replace-operators, which has yours in its place"
_EXAMPLE = "write `operators = (MyOperator(),)` at its end"


@dataclass(frozen=True, slots=True)
class OperatorFile:
    """The text of a file of operators; `path` is where it was read, for messages. `replaces`: its operators may take
    the names of installed ones."""

    path: str
    text: str
    replaces: bool = False


def read_operator_files(paths: Iterable[str | Path], *, replace: bool = False) -> tuple[OperatorFile, ...]:
    """The files, not run yet. `replace`: their operators may take the names of installed ones. Raises `OperatorError`
    where one cannot be read."""
    files = []
    for path in map(str, paths):
        try:
            files.append(OperatorFile(str(Path(path)), text_of_file(path), replace))
        except OSError as error:
            what = (error.strerror or str(error)).lower()
            raise _failure(path, f"it cannot be read: {what}", "give a Python or TOML file") from None
        except UnicodeDecodeError as error:
            raise _failure(path, f"it is no UTF-8 text: {error.reason}", "give a Python or TOML file") from None
    return tuple(files)


def operators_of(files: Sequence[OperatorFile]) -> Mapping[str, Operator]:
    """The installed operators and those of the files, by name; runs the files.

    A file of the same text is run once a process. Raises `OperatorError` where a file cannot be run, has no
    `operators`, has something else among them, or gives a name that is taken: by another one of the files, or by an
    installed one unless the file replaces these.
    """
    operators = dict(built_in_operators())
    owners: dict[str, str] = {}
    for file in files:
        for operator in _operators(file):
            name = operator.name
            if name in owners:
                raise _failure(file.path, f"the name {name!r} is taken by {owners[name]}", _OTHER_NAME)
            if name in operators and not file.replaces:
                what, remedy = f"the name {name!r} is taken by an installed operator", f"{_OTHER_NAME}, or {_REPLACE}"
                raise _failure(file.path, what, remedy)
            operators[name], owners[name] = operator, f"an operator of {file.path}"
    return operators


@lru_cache(maxsize=64)
def _operators(file: OperatorFile) -> tuple[Operator, ...]:
    """The operators of a file; those that are isolated run its text in processes of their own."""
    if file.path.endswith(".toml"):
        try:
            return tuple([_checked(file.path, place, entry) for place, entry in enumerate(declared(file.text), 1)])
        except (ValueError, RecursionError) as error:  # `tomllib.TOMLDecodeError` is one
            raise _failure(file.path, str(error), "see docs/operators.md") from None
    operators = list(operators_in(file))
    for place, operator in enumerate(operators):
        if getattr(operator, "isolated", False):
            operators[place] = Isolated(operator, ("file", file.path, file.text, operator.name))
    return tuple(operators)


def operators_in(file: OperatorFile) -> tuple[Operator, ...]:
    """The operators of a Python file, as objects of this process. Raises `OperatorError`."""
    module = _run(file)
    if not hasattr(module, ATTRIBUTE):
        raise _failure(file.path, f"it has no attribute {ATTRIBUTE!r}", _EXAMPLE)
    value: Any = getattr(module, ATTRIBUTE)
    try:
        listed = list(value.values() if isinstance(value, Mapping) else value)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # an iterable of foreign code may raise anything
        what = f"its {ATTRIBUTE} cannot be listed: {text_of_raised(error)}"
        raise _failure(file.path, what, _EXAMPLE) from None
    return tuple([_checked(file.path, place, entry) for place, entry in enumerate(listed, 1)])


def _run(file: OperatorFile) -> ModuleType:
    """The file as a module. It has a name of its own by its text, under which its classes find it."""
    name = f"triplewire_operators_{sha256(file.text.encode('utf-8', 'surrogatepass')).hexdigest()[:16]}"
    module = ModuleType(name)
    module.__file__ = file.path
    sys.modules[name] = module
    try:
        exec(compile(file.text, file.path, "exec"), module.__dict__)
    except SyntaxError as error:
        raise _failure(file.path, f"it is no Python: {error.msg}", "mend it", line=error.lineno or 0) from None
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # foreign code may raise anything
        trace = traceback.walk_tb(error.__traceback__)
        lines = [line for frame, line in trace if frame.f_code.co_filename == file.path]
        line = lines[-1] if lines else 0  # the last one of the file on the way to where it was raised
        what = f"it raised while it was run: {text_of_raised(error)}"
        raise _failure(file.path, what, "mend it; it may import what is installed", line=line) from error
    return module


def _checked(path: str, place: int, entry: Any) -> Operator:
    """The object, if it is an operator."""
    if fault := fault_of(entry):
        what = f"number {place} of its {ATTRIBUTE} {fault}"
        raise _failure(path, what, "see `triplewire.extend.Operator`")
    operator: Operator = entry
    return operator


def fault_of(operator: Any) -> str:
    """Why this is no operator: what stands after its name in a message; "" where it is one."""
    name, parameters = getattr(operator, "name", None), getattr(operator, "parameters", None)
    if isinstance(operator, type):
        return f"is the class {operator.__name__}, not an object of it"
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        return f"has no name of letters, digits, _ and - ({name!r:.60})"
    if not _are_parameters(parameters):
        return f"({name}) has no tuple of Parameter as its parameters"
    forms = getattr(operator, "other_forms", ())
    if not isinstance(forms, tuple) or not all(map(_are_parameters, forms)):
        return f"({name}) has other_forms = {forms!r:.60}, which is no tuple of tuples of Parameter"
    lengths = [len(form) for form in (parameters, *forms)]
    if len(set(lengths)) < len(lengths):
        return f"({name}) has two forms with as many parameters ({', '.join(map(str, lengths))})"
    if not callable(getattr(operator, "evaluate", None)):
        return f"({name}) has no method evaluate(publication, arguments)"
    try:
        traits_of(operator)
    except ValueError as error:
        return f"({name}) {error}"
    fault = misspelt(operator)
    return f"({name}) {fault}" if fault else ""


def _are_parameters(form: Any) -> bool:
    return isinstance(form, tuple) and all(isinstance(parameter, Parameter) for parameter in form)


def _failure(path: str | Path, what: str, remedy: str, *, line: int = 0) -> OperatorError:
    return OperatorError(what, source=str(path), line=line, remedy=remedy)
