"""Pages of templates, with everything escaped; and the style and the scripts that they load from this service.

The text of a page is written in its template in English, as `_("...")`; another language is a file
`templates/LANGUAGE.toml` of these texts and their translations.
"""

from __future__ import annotations

import hashlib
import json
import tomllib
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jinja2
from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse, Response

from triplewire.broker.feeds.cleaning import web_address
from triplewire.broker.feeds.entries import written
from triplewire.net.addresses import shown
from triplewire.service.access import ANYBODY, allowed, base_of, preferences
from triplewire.service.problems import Problem
from triplewire.store.database import now

if TYPE_CHECKING:
    from triplewire.service.pages.sessions import Person

router = APIRouter(include_in_schema=False)

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
)
"""What a page may load (Content-Security-Policy): only what this service sends, and nothing that stands in the page."""

ENGLISH = "en"
_SPANS = ((86_400.0, "d"), (3_600.0, "h"), (60.0, "min"), (1.0, "s"))
_FOLDER = files("triplewire.service")


def _span(seconds: float) -> str:
    """A time for people, in the largest unit that it has two of."""
    size, unit = next(((size, unit) for size, unit in _SPANS if seconds >= 2 * size), _SPANS[-1])
    return f"{seconds / size:.0f} {unit}"


def _share(part: float) -> str:
    """A share in per cent."""
    return f"{100 * part:.1f} %" if part < 0.995 else "100 %"


def _indented(text: str) -> str:
    """A JSON text as lines; as it is where it is none."""
    try:
        return json.dumps(json.loads(text), indent=2, ensure_ascii=False)
    except ValueError:
        return text


@cache
def _environment(language: str) -> jinja2.Environment:
    folder = _FOLDER.joinpath("templates")
    made = jinja2.Environment(
        loader=jinja2.FileSystemLoader(str(folder)),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    texts = {} if language == ENGLISH else tomllib.loads(folder.joinpath(f"{language}.toml").read_text("utf-8"))

    def translated(text: str, **values: object) -> str:
        translation = str(texts.get(text, text))
        return translation.format(**values) if values else translation

    made.globals |= {"_": translated, "language": language, "static": _addresses()}
    made.filters |= {"span": _span, "web": web_address, "share": _share, "indented": _indented, "iso": written}
    made.filters["without_secrets"] = shown
    return made


@cache
def languages() -> tuple[str, ...]:
    """The languages that pages have."""
    names = (Path(entry.name) for entry in _FOLDER.joinpath("templates").iterdir())
    return (ENGLISH, *sorted(path.stem for path in names if path.suffix == ".toml"))


def _language_of(request: Request) -> str:
    """The first language that a browser asks for and there is (RFC 9110, 12.5.4: in the order of their weights)."""
    asked = sorted(preferences(request.headers.get("accept-language", "")), key=lambda named: -named[1])
    return next((name for name in (each.split("-")[0] for each, _ in asked) if name in languages()), ENGLISH)


def page(
    request: Request,
    template: str,
    who: Person | None,
    *,
    status: int = 200,
    values: Mapping[str, Any] | None = None,
    **more: Any,
) -> Response:
    """A page of a template. What cannot be written as UTF-8 is replaced."""
    common = {"who": who, "now": now(), "path": request.url.path, "base": base_of(request)}
    text = _environment(_language_of(request)).get_template(template).render({**common, **(values or {}), **more})
    headers = {"Content-Security-Policy": POLICY, "Cache-Control": "no-store"}
    return HTMLResponse(text.encode("utf-8", "replace"), status, headers)


@cache
def _static() -> dict[str, tuple[bytes, str]]:
    """What pages load, by name, with its media type."""
    contents = {
        entry.name: entry.read_bytes()
        for entry in _FOLDER.joinpath("static").iterdir()
        if not entry.name.startswith("_")
    }
    kinds = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
    return {name: (content, kinds[Path(name).suffix]) for name, content in contents.items()}


@cache
def _addresses() -> dict[str, str]:
    """The addresses of what pages load: each changes with the content."""
    return {
        name: f"/static/{name}?v={hashlib.sha256(content).hexdigest()[:12]}" for name, (content, _) in _static().items()
    }


@router.get("/static/{name}")
@allowed(ANYBODY)
def static(name: str) -> Response:
    """What pages load."""
    if name not in _static():
        raise Problem(404, "there is no such file")
    content, kind = _static()[name]
    return Response(content, media_type=kind, headers={"Cache-Control": "public, max-age=31536000, immutable"})
