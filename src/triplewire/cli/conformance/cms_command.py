"""`triplewire conformance cms`: a line a point, and what to do where one does not hold."""

from __future__ import annotations

import xmlrpc.client
from contextlib import ExitStack
from typing import IO, Annotated, Any

import typer

from triplewire.cli import output
from triplewire.cli.arguments import grouped
from triplewire.cli.client import Asking, token_of
from triplewire.cli.conformance.asked import Points, service_at
from triplewire.cli.report import one_line, say
from triplewire.errors import ServiceError, TriplewireError, UnavailableError

app = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="Do others do what our protocols say?")
app.callback()(lambda: None)  # else a group of one command is that command


@app.command("cms", short_help="Check a service and the site of a CMS.")
@grouped
def cms_command(
    site: Annotated[str, typer.Option(metavar="URL", help="The site; without one, the service alone is checked.")] = "",
    *,
    asking: Asking,
) -> None:
    """
    \b
    triplewire conformance cms --service http://127.0.0.1:8750
    triplewire conformance cms --service https://broker.example --site https://site.example

    Check that a service, and the module of a CMS, do what docs/cms-protocol.md says: a line a point, `ok`, `not ok`
    with what to do, or `skip` with why. What is made at the service belongs to a user that nobody has, and is removed
    at the end. The token: --token-file, TRIPLEWIRE_TOKEN, else the one that a site in development gives to guests. Exit
    code 1: a point does not hold.
    """
    from triplewire.cli.conformance import service_points, site_points  # which read feeds; not needed for --help

    base, token = token_of(asking)
    web = site_points.Site(site.rstrip("/"), base) if site else None
    if web is not None:
        web.look()
        token = token or str(web.about.get("guest", ""))
        web.token = token
    if not token:
        raise TriplewireError(
            "there is no token with which the service could be asked",
            remedy="TRIPLEWIRE_TOKEN, --token-file FILE, or --site URL of a site in development",
        )
    missed = 0
    with output.text_output(None) as stream, ExitStack() as stack:
        try:
            service = stack.enter_context(service_at(base, token))
            missed += _checked(stream, service_points.POINTS, service)
            missed += _checked(stream, site_points.POINTS, web) if web is not None else 0
        except (ServiceError, xmlrpc.client.Fault) as error:  # of what is removed at the end
            raise TriplewireError(f"what was made at the service could not be removed: {error}", source=base) from None
    if missed:
        say(f"{missed} points do not hold")
        raise typer.Exit(1)


def _checked(stream: IO[str], points: Points, of: Any) -> int:
    """Check points, a line each; returns how many do not hold."""
    missed = 0
    for number, point in enumerate(points, 1):
        line = f"{of.word} {number}: {point.name}"
        try:
            point.check(of)
            stream.write(f"ok {line}\n")
        except UnavailableError as reason:
            stream.write(one_line(f"skip {line}: {reason}") + "\n")
        except Exception as error:  # whatever a service that is wrong has answered
            stream.write(one_line(f"not ok {line}: {_seen(error)}; to do: {point.remedy}") + "\n")
            missed += 1
        stream.flush()
    return missed


def _seen(error: Exception) -> str:
    if isinstance(error, ServiceError):
        return str(error)
    if isinstance(error, xmlrpc.client.Fault):
        return f"fault {error.faultCode}: {error.faultString}"
    return f"{type(error).__name__}: {error}"
