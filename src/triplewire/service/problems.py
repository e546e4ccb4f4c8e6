"""What a door answers where it refuses: problem details (RFC 9457), with line and column where a text is wrong."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Annotated, Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response
from pydantic import WithJsonSchema
from starlette.exceptions import HTTPException

from triplewire.errors import BusyError, LimitError, StoreError, TriplewireError, UnavailableError

_log = logging.getLogger("triplewire.service")


class Problem(HTTPException):
    """A refusal with its status: what is wrong, and what to do."""

    def __init__(self, status: int, what: str, remedy: str = "", headers: dict[str, str] | None = None) -> None:
        super().__init__(status, what, headers)
        self.remedy = remedy

    def __str__(self) -> str:
        return f"{self.detail}; {self.remedy}" if self.remedy else str(self.detail)


def details(status: int, what: str, remedy: str = "", **more: Any) -> dict[str, Any]:
    """Problem details as an object of JSON."""
    return {"type": "about:blank", "status": status, "title": what, **({"remedy": remedy} if remedy else {}), **more}


def details_of(error: TriplewireError | Problem) -> dict[str, Any]:
    """Problem details of an error, with the place where it has one."""
    if isinstance(error, Problem):
        return details(error.status_code, str(error.detail), error.remedy)
    places = {"line": error.line, "column": error.column, "record": error.record}
    return details(status_of(error), error.what, error.remedy, **{k: v for k, v in places.items() if v})


def status_of(error: TriplewireError) -> int:
    """The HTTP status of an error."""
    if isinstance(error, BusyError | UnavailableError):
        return 503
    if isinstance(error, StoreError):
        return 507
    return 413 if isinstance(error, LimitError) else 400


def refused(problem: Problem) -> Response:
    """A refusal as an answer."""
    return JSONResponse(details_of(problem), problem.status_code, problem.headers, "application/problem+json")


ProblemDetails = Annotated[dict[str, Any], WithJsonSchema({"$ref": "#/components/schemas/Problem"})]
"""What stands in a list of answers for what was refused; described in `triplewire.service.openapi`."""

Refused = Callable[[Request, dict[str, Any]], Response | None]


def install(app: FastAPI, on_page: Refused = lambda request, said: None) -> None:
    """Have all errors of doors answered as problem details, but where `on_page` has an answer for people. They are
    answered in threads, as a page asks the database who is signed in."""

    def answer(request: Request, said: dict[str, Any], headers: Any = None) -> Response:
        made = on_page(request, said) or JSONResponse(said, said["status"], media_type="application/problem+json")
        made.headers.update(headers or {})
        return made

    @app.exception_handler(HTTPException)
    def of_http(request: Request, error: HTTPException) -> Response:
        return answer(
            request, details(error.status_code, str(error.detail), getattr(error, "remedy", "")), error.headers
        )

    @app.exception_handler(RequestValidationError)
    def of_validation(request: Request, error: RequestValidationError) -> Response:
        wrong = [
            {"where": ".".join(map(str, entry["loc"][1:])) or "the body", "what": entry["msg"]}
            for entry in error.errors()
        ]
        what = "; ".join(f"{entry['where']}: {entry['what']}" for entry in wrong)
        return answer(request, details(422, what, "see /openapi.json", errors=wrong))

    @app.exception_handler(TriplewireError)
    def of_ours(request: Request, error: TriplewireError) -> Response:
        said = details_of(error)
        return answer(request, said, {"Retry-After": "5"} if said["status"] >= 500 else None)

    @app.exception_handler(Exception)
    def of_others(request: Request, error: Exception) -> Response:
        _log.exception("a door failed: %s", request.url.path)
        return answer(request, details(500, "a fault of the service", "it is in its log"))
