"""Who is signed in: a cookie, made where an API token (or the key of the address that `serve` prints) is shown.

The cookie is `EXPIRES.DIGEST.MAC`: the digest of the token, signed with the broker's secret. It ends with its time, and
with the token, which may be revoked. Every form carries a second code made of the cookie, so that another site can
send none in somebody's name (OWASP: signed double-submit cookie).
"""

from __future__ import annotations

import hmac
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from fastapi import APIRouter, Request
from fastapi.responses import RedirectResponse, Response
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import FormData

from triplewire.broker import owners, tickets
from triplewire.service.access import ANYBODY, PAGE, allowed, broker, owner_or_none, settings
from triplewire.service.pages.rendered import page
from triplewire.service.problems import Problem
from triplewire.store.database import now

router = APIRouter(include_in_schema=False)

COOKIE, CODE, CODE_HEADER = "triplewire", "code", "x-code"
SECONDS = 30 * 86_400
"""That somebody stays signed in."""

_OURS = re.compile(r"/(page/[\w/.-]*(\?[\w=&%.-]*)?)?")  # where one may be sent after signing in
_KEY = b"the key of the first visit"  # in place of a token, whose digest the cookie has


@dataclass(frozen=True)
class Person:
    """Who is signed in, and the code of the forms of this session."""

    owner: str
    code: str


def person_or_none(request: Request) -> Person | None:
    """Who is signed in."""
    cookie = request.cookies.get(COOKIE, "")
    signed, _, mac = cookie.rpartition(".")
    if not signed or not hmac.compare_digest(_mac(request, signed).encode(), mac.encode("utf-8", "surrogatepass")):
        return None
    expires, _, digest = signed.partition(".")
    owner = _owner_of(request, bytes.fromhex(digest))
    return Person(owner, _mac(request, f"form {cookie}")) if int(expires) > now() and owner is not None else None


def person(request: Request) -> Person:
    """Who is signed in: what the page calls for this request is done in that name. Raises `Problem` (401)."""
    who = person_or_none(request)
    if who is None:
        raise Problem(401, "sign in first", "with an API token")
    request.state.owner = who.owner
    return who


async def posted(request: Request) -> tuple[Person, FormData]:
    """Who has sent a form, and its fields. Raises `Problem`: 401 for nobody, 403 for a form of another site."""
    who = await run_in_threadpool(person, request)
    form = await request.form(max_files=1, max_fields=100)
    check_code(who, str(form.get(CODE, "")))
    return who, form


def account_of(request: Request) -> str | None:
    """Whose API token or session a request has; None for nobody."""
    by = owner_or_none(request)
    if by is None:
        who = person_or_none(request)
        return who.owner if who is not None else None
    request.state.owner = by  # the door does not look it up again
    return by


def check_code(who: Person, code: str) -> None:
    """Raises `Problem` (403) where a request does not come from a page of this session."""
    if not hmac.compare_digest(who.code.encode(), code.encode("utf-8", "surrogatepass")):
        raise Problem(403, "the form is not of this session", "load the page again, and send it once more")


def _mac(request: Request, text: str) -> str:
    return hmac.digest(broker(request).secret, f"page {text}".encode("utf-8", "surrogatepass"), "sha256").hex()


def _owner_of(request: Request, digest: bytes) -> str | None:
    known = settings(request).token
    for own in (tickets.digest(known) if known else b"", hmac.digest(broker(request).secret, _KEY, "sha256")):
        if own and hmac.compare_digest(own, digest):
            return settings(request).owner
    return owners.owner_of(broker(request).database, digest)


def is_secure(request: Request) -> bool:
    """Does the browser reach the service by https?"""
    return (settings(request).base_url or str(request.url)).startswith("https:")


def _signed_in(request: Request, digest: bytes, target: str) -> Response:
    signed = f"{int(now()) + SECONDS}.{digest.hex()}"
    answer = RedirectResponse(target if _OURS.fullmatch(target) else "/", 303)
    value = f"{signed}.{_mac(request, signed)}"
    answer.set_cookie(COOKIE, value, SECONDS, httponly=True, samesite="strict", secure=is_secure(request))
    return answer


def refused(request: Request, said: Mapping[str, Any]) -> Response | None:
    """A refusal as a page, where a page was asked for; the way to the form for who is not signed in."""
    path = request.url.path
    if path not in ("/", "/sign-in", "/sign-out") and not path.startswith("/page/"):
        return None
    who = person_or_none(request)
    if who is None and said["status"] == 401:
        target = path + (f"?{request.url.query}" if request.url.query else "")
        return RedirectResponse("/sign-in" if target == "/" else f"/sign-in?then={quote(target)}", 303)
    return page(request, "refused.html", who, status=said["status"], values={"said": said})


@router.get("/sign-in")
@allowed(ANYBODY)
def sign_in_form(request: Request, then: str = "/", key: str = "") -> Response:
    """The form that asks for a token; with the key of the first visit, straight to the start."""
    first = request.app.state.first_visit
    if key and first and hmac.compare_digest(key.encode("utf-8", "surrogatepass"), first.encode()):
        request.app.state.first_visit = ""  # it is good once
        return _signed_in(request, hmac.digest(broker(request).secret, _KEY, "sha256"), "/")
    wrong = "This address was good for one visit. Sign in with the API token." if key else ""
    return page(request, "sign_in.html", None, then=then, wrong=wrong, status=403 if key else 200)


@router.post("/sign-in")
@allowed(ANYBODY)
async def sign_in(request: Request) -> Response:
    """Sign in with a token."""
    if request.headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
        raise Problem(403, "the form is of another site", "open the page itself")
    form: Mapping[str, Any] = await request.form(max_files=0, max_fields=10)
    token, then = str(form.get("token", "")).strip(), str(form.get("then", "/"))
    digest = tickets.digest(token)
    if not token or await run_in_threadpool(_owner_of, request, digest) is None:
        wrong = "Nobody has this token. It is what TRIPLEWIRE_TOKEN has, or what `triplewire token create` printed."
        return page(request, "sign_in.html", None, then=then, wrong=wrong, status=403)
    return _signed_in(request, digest, then)


@router.post("/sign-out")
@allowed(PAGE)
async def sign_out(request: Request) -> Response:
    """Sign out: the browser forgets the cookie."""
    await posted(request)
    answer = RedirectResponse("/sign-in", 303)
    answer.delete_cookie(COOKIE, httponly=True, samesite="strict", secure=is_secure(request))
    return answer
