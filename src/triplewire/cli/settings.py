"""The settings of a service: defaults < a TOML file < the environment < options; and `triplewire config dump`.

The names are the fields of `triplewire.config.ServiceSettings` and `Settings`. `name` is `--name` on the command line,
`TRIPLEWIRE_` and the name in upper case in the environment, and `name` in the file. What `IN_FILES` names may stand in
a file of its own, which `name_file` names in all three.
"""

from __future__ import annotations

import dataclasses
import difflib
import json
import os
import re
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from triplewire.cli.arguments import file_argument, files_option, folder_argument, grouped, wrong_usage
from triplewire.cli.report import one_line, say
from triplewire.config import IN_FILES, PREFIX, SERVICE_LIMITS, VARIABLES, ServiceSettings, Settings, unknown_variable
from triplewire.errors import ArgumentError, StoreError, TriplewireError

FILE = "triplewire.toml"
"""The file of settings in the folder of the data, which is read where no other is named."""

_FIELDS = {field.name: field for field in dataclasses.fields(ServiceSettings)}
_DEFAULTS: dict[str, Any] = {
    **{name: field.default for name, field in _FIELDS.items()},
    **{field.name: field.default for field in dataclasses.fields(Settings)},
    **SERVICE_LIMITS,
}
_NUMBERS = {int: r"[0-9]{1,18}", float: r"[0-9]{1,9}(\.[0-9]+)?"}
_YES, _NO = ("1", "true", "yes", "on"), ("0", "false", "no", "off")
_PASSWORD = re.compile(r"(://[^/@:]*:)[^/@]*(?=@)|(\bpassword=)[^&]*")


@dataclasses.dataclass(frozen=True)
class EffectiveSettings:
    """The settings, and where each that is no default comes from."""

    service: ServiceSettings
    limits: Settings
    origins: Mapping[str, str]

    def shown(self) -> Iterator[tuple[str, object, str]]:
        """Each setting: its name, its value without secrets, and where it comes from."""
        values = {**dataclasses.asdict(self.service), **dataclasses.asdict(self.limits)}
        for name, value in values.items():
            if name in _FIELDS and _FIELDS[name].metadata["secret"]:
                value = "********" if value else ""
            elif isinstance(value, str | tuple):
                value = _without_passwords(value)
            yield name, value, self.origins.get(name, "default")


def read_settings(
    options: Mapping[str, Any], file: Path | None = None, environment: Mapping[str, str] = os.environ
) -> EffectiveSettings:
    """Put the settings together. `options`: what was given on the command line, by name, None for what was not. `file`:
    the TOML file; without it, that of the folder of the data, if there is one. Raises `TriplewireError` for what is
    unknown or has a wrong value, and `StoreError` for a file that cannot be read."""
    given = {name: value for name, value in options.items() if value is not None}
    if file is None and (data := given.get("data") or environment.get(f"{PREFIX}DATA")):
        file = Path(data) / FILE if (Path(data) / FILE).is_file() else None
    values, origins = dict(_DEFAULTS), dict[str, str]()
    for origin, layer in (
        (str(file), _in_toml(file) if file is not None else {}),
        ("environment", _in_environment(environment)),
        ("option", {name: _option(name, value) for name, value in given.items()}),
    ):
        for name, value in layer.items():
            owner = name.removesuffix("_file")
            if name != owner and name not in _DEFAULTS:
                if owner in layer:
                    raise TriplewireError(f"there are {owner} and {name}", source=origin, remedy="give one of them")
                name, value = owner, _content(str(value), origin)
            values[name], origins[name] = value, origin
    for name, origin in origins.items():
        try:
            (ServiceSettings if name in _FIELDS else Settings)(**{name: values[name]})
        except ArgumentError as error:
            raise TriplewireError(error.what, source=_place(name, origin), remedy=error.remedy) from None
    if values["longest_poll"] < values["shortest_poll"]:
        what = f"longest_poll ({values['longest_poll']}) is less than shortest_poll ({values['shortest_poll']})"
        raise TriplewireError(what, remedy="give both")
    if values["matches"] and not values["index"]:
        raise TriplewireError("matches are read from nowhere without an index", remedy="give --index, too")
    limits = Settings(**{field.name: values.pop(field.name) for field in dataclasses.fields(Settings)})
    return EffectiveSettings(ServiceSettings(**values), limits, origins)


def _without_passwords(value: str | tuple[str, ...]) -> str | tuple[str, ...]:
    """The address, or addresses, but for passwords."""
    if isinstance(value, tuple):
        return tuple([_PASSWORD.sub(r"\1\2********", text) for text in value])
    return _PASSWORD.sub(r"\1\2********", value)


def _place(name: str, origin: str) -> str:
    """Where a setting was given, as its user wrote it."""
    return {"option": f"--{name.replace('_', '-')}", "environment": PREFIX + name.upper()}.get(
        origin, f"{origin}: {name}"
    )


def _in_toml(file: Path) -> dict[str, Any]:
    """What a TOML file says, each value of the type of the setting."""
    try:
        said = tomllib.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise TriplewireError("the file of settings does not exist", source=str(file)) from None
    except (OSError, ValueError, RecursionError) as error:
        raise StoreError(f"the settings cannot be read: {error}", source=str(file)) from None
    known = {*_DEFAULTS, *(f"{name}_file" for name in IN_FILES)}
    for name, value in said.items():
        if name not in known:
            near = difflib.get_close_matches(name, known, 1, 0.6)
            remedy = f"did you mean {near[0]}?" if near else "`triplewire config dump` shows those that there are"
            raise TriplewireError(f"there is no setting {name!r}", source=str(file), remedy=remedy)
        kind = type(_DEFAULTS.get(name, ""))
        if isinstance(value, list) and kind is tuple and all(isinstance(item, str) for item in value):
            said[name] = tuple(value)
        elif kind is float and type(value) is int:
            said[name] = float(value)
        elif type(value) is not kind:
            what = f"{name} is {_shown_kind(type(value))}, and {_shown_kind(kind)} is expected"
            raise TriplewireError(what, source=str(file))
    return said


def _in_environment(environment: Mapping[str, str]) -> dict[str, Any]:
    """What variables say. An unknown one is told of, as other programs may have made it."""
    values: dict[str, Any] = {}
    for variable, text in sorted(environment.items()):
        if not variable.startswith(PREFIX):
            continue
        name = variable.removeprefix(PREFIX).lower()
        if variable not in VARIABLES:
            say(one_line(f"warning: {unknown_variable(variable)}"))
        elif name in _DEFAULTS:
            values[name] = _parsed(text, type(_DEFAULTS[name]), variable, _parted(name))
        elif name.removesuffix("_file") in IN_FILES:
            values[name] = text
    return values


def _parted(name: str) -> str:
    """What stands between several values of a setting."""
    return str(_FIELDS[name].metadata["parted"]) if name in _FIELDS else os.pathsep


def _parsed(text: str, kind: type, source: str, parted: str) -> Any:
    """The value of a text."""
    if kind is tuple:
        return tuple(part.strip() for part in text.split(parted) if part.strip())
    if kind is bool and text.lower() in (*_YES, *_NO):
        return text.lower() in _YES
    if kind is str or re.fullmatch(_NUMBERS.get(kind, "(?!)"), text):
        return kind(text)
    raise TriplewireError(f"{text!r} is not {_shown_kind(kind)}", source=source)


def _shown_kind(kind: type) -> str:
    names = {str: "a text", int: "a whole number", float: "a number", bool: "true or false", tuple: "a list of texts"}
    return names.get(kind, f"a value of another kind ({kind.__name__})")


def _option(name: str, value: Any) -> Any:
    return tuple(map(str, value)) if isinstance(value, list) else str(value) if isinstance(value, Path) else value


def _content(file: str, origin: str) -> str:
    """The secret that a file holds."""
    try:
        return Path(file).read_text(encoding="utf-8").strip()
    except FileNotFoundError:
        raise TriplewireError("the file of a secret does not exist", source=f"{origin}: {file}") from None
    except (OSError, ValueError) as error:
        raise StoreError(f"the secret cannot be read: {error}", source=f"{origin}: {file}") from None


# --- on the command line ---------------------------------------------------------------------------------------------

ConfigFile = Annotated[
    Path | None,
    typer.Option("--config", metavar="FILE", parser=file_argument, help=f"Settings in TOML; default: DATA/{FILE}."),
]


def _options() -> Iterator[tuple[str, Any]]:
    for name, field in _FIELDS.items():
        help, flag, kind = field.metadata["help"], f"--{name.replace('_', '-')}", type(field.default)
        default = "" if field.default in ("", ()) or kind is bool else f" Default: {field.default}."
        if name in ("data", "index"):
            yield name, Annotated[Path | None, typer.Option(flag, metavar="DIR", parser=folder_argument, help=help)]
        elif kind is tuple and _parted(name) == os.pathsep:
            yield name, Annotated[list[Path] | None, files_option(flag, help=help)]
        elif kind is tuple:
            yield name, Annotated[list[str] | None, typer.Option(flag, metavar="URL", help=f"{help} Repeatable.")]
        elif not field.metadata["secret"]:
            metavar = {int: "N", float: "NUMBER", bool: None}.get(kind, "TEXT")
            names = (f"{flag}/--no-{flag[2:]}",) if kind is bool else (flag,)
            yield name, Annotated[kind | None, typer.Option(*names, metavar=metavar, help=help + default)]
        if name in IN_FILES:
            of_file = typer.Option(f"{flag}-file", metavar="FILE", help=f"A file with the value of {flag}.")
            yield f"{name}_file", Annotated[Path | None, of_file]


class GivenSettings:
    """An option a setting, and the file of others; a group of options."""

    config: ConfigFile = None

    def effective(self) -> EffectiveSettings:
        """What they, the environment and the file say."""
        options = dict(vars(self))
        with wrong_usage():
            return read_settings(options, options.pop("config"))


for _name, _kind in _options():
    GivenSettings.__annotations__[_name] = _kind
    setattr(GivenSettings, _name, None)
dataclasses.dataclass(frozen=True)(GivenSettings)


@grouped
def dump_command(
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object.")] = False, *, given: GivenSettings
) -> None:
    """
    \b
    triplewire config dump --data broker
    TRIPLEWIRE_PORT=9000 triplewire config dump --config triplewire.toml --json

    Show all settings of `triplewire serve` with these options, and where each comes from. Secrets are not shown.
    """
    from triplewire.cli import output

    rows = list(given.effective().shown())
    with output.text_output(None) as stream:
        if as_json:
            told = {name: {"value": value, "from": origin} for name, value, origin in rows}
            stream.write(json.dumps(told, ensure_ascii=False, indent=1) + "\n")
        else:
            shown = [(name, json.dumps(value, ensure_ascii=False), origin) for name, value, origin in rows]
            output.print_table(stream, ("setting", "value", "from"), shown, "no settings")


app = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="The settings of `triplewire serve`.")
app.callback()(lambda: None)
app.command("dump", short_help="Show all settings, and where each comes from.")(dump_command)
