"""What the site offers to programs, and what its call-back refuses."""

from __future__ import annotations

import time
import xmlrpc.client
from typing import Any

import pytest
from wagtail.models import PageViewRestriction

from conftest import Coast
from wagtail_triplewire.conf import conf
from wagtail_triplewire.models import Inbox, Request

EVENT = {
    "id": "1",
    "type": "matched",
    "sequence": 1,
    "publication": {"id": "http://127.0.0.1:8000/triplewire/pages/2", "title": "t", "link": "javascript:alert(1)"},
    "bindings": [],
}


def call(client: Any, struct: dict[str, Any], method: str = "notify", secret: str = "", age: int = 0) -> Any:
    """Call the site as the service does; answers what it says, or the code of its fault."""
    from base64 import b64encode
    from hashlib import sha256
    from hmac import new

    body, at = xmlrpc.client.dumps((struct,), method).encode(), str(int(time.time()) - age)
    signature = new((secret or conf().inbox_key).encode(), f"1.{at}.".encode() + body, sha256).digest()
    headers = {
        "webhook-id": "1",
        "webhook-timestamp": at,
        "webhook-signature": f"v1,{b64encode(signature).decode()}",
    }
    answer = client.post("/triplewire/notify", body, content_type="text/xml", headers=headers)
    assert answer["WebHook-Allowed-Rate"] == "*"
    try:
        return xmlrpc.client.loads(answer.content)[0][0]
    except xmlrpc.client.Fault as fault:
        return fault.faultCode


def test_a_call_is_taken_once(coast: Coast, client: Any) -> None:
    row = coast.request("SELECT * WHERE (?x, title, ?y)")
    event = {**EVENT, "subscription": row.subscription}
    assert call(client, {**event, "test": True}) is True
    assert not Inbox.objects.exists()
    assert [call(client, event), call(client, event)] == [True, True]
    entry = Inbox.objects.get()
    assert (entry.request, entry.seq, entry.link) == (row, 1, "")


@pytest.mark.parametrize(
    ("change", "how", "code"),
    [
        ({}, {"secret": "another"}, 403),
        ({}, {"age": 4_000}, 403),
        ({}, {"method": "system.multicall"}, -32601),
        ({"subscription": "unknown"}, {}, 404),
        ({"sequence": "x"}, {}, -32602),
        ({"publication": 7}, {}, -32602),
    ],
)
def test_other_calls_are_faults(
    coast: Coast, client: Any, change: dict[str, Any], how: dict[str, Any], code: int
) -> None:
    row = coast.request("SELECT * WHERE (?x, title, ?y)")
    assert call(client, {**EVENT, "subscription": row.subscription, **change}, **how) == code
    assert not Inbox.objects.exists()


@pytest.mark.parametrize("body", [b"", b"<x", b'<!DOCTYPE a [<!ENTITY b "c">]><methodCall/>', b"\xff\xfe"])
def test_what_is_no_call_is_a_fault(coast: Coast, client: Any, body: bytes) -> None:
    answer = client.post("/triplewire/notify", body, content_type="text/xml")
    with pytest.raises(xmlrpc.client.Fault):
        xmlrpc.client.loads(answer.content)


def test_a_request_is_suspended_with_its_reason(coast: Coast, client: Any) -> None:
    row = coast.request("SELECT * WHERE (?x, title, ?y)")
    assert call(client, {**EVENT, "subscription": row.subscription, "type": "suspended", "reason": "too many"}) is True
    assert list(Request.objects.values_list("state", "reason").filter(pk=row.pk)) == [("refused", "too many")]


def test_the_feed_has_public_pages_and_an_etag(coast: Coast, client: Any) -> None:
    PageViewRestriction.objects.create(page=coast.page("seals"), restriction_type="login")
    coast.post("soon", is_live=False)
    answer = client.get("/triplewire/pages.rdf")
    text = answer.content.decode()
    assert "First puffin chick of the year" in text
    assert "Who has seen the seals?" not in text
    assert "soon" not in text
    assert client.get("/triplewire/pages.rdf", headers={"If-None-Match": answer["ETag"]}).status_code == 304


def test_a_name_of_a_page_leads_to_it(coast: Coast, client: Any) -> None:
    page, draft = coast.page("seals"), coast.post("soon", is_live=False)
    assert client.get(f"/triplewire/pages/{page.pk}").url.endswith("/forum/seals/")
    assert client.get(f"/triplewire/pages/{draft.pk}").status_code == 404


def test_only_a_site_in_development_tells_a_token(coast: Coast, client: Any, settings: Any, tmp_path: Any) -> None:
    (tmp_path / "guest").write_text("secret\n")
    for is_development in (True, False):
        given = {"DEVELOPMENT": is_development, "GUEST_FILE": tmp_path / "guest"}
        settings.TRIPLEWIRE = {**settings.TRIPLEWIRE, **given}
        assert client.get("/triplewire/").json().get("guest") == ("secret" if is_development else None)


def test_forms_of_others_are_not_there(coast: Coast, client: Any) -> None:
    row = coast.request("SELECT * WHERE (?x, title, ?y)")
    assert client.get("/triplewire/profile/").status_code == 302
    client.force_login(coast.user("ann"))
    assert client.get(f"/triplewire/requests/{row.pk}/").status_code == 404
    for what in ("delete", "renew"):
        assert client.post(f"/triplewire/requests/{row.pk}/{what}/").status_code == 404
    assert client.get(f"/triplewire/requests/{row.pk}/delete/").status_code == 405


def test_editors_see_what_is_refused(coast: Coast, client: Any) -> None:
    client.force_login(coast.user("ann"))
    assert client.get("/admin/triplewire/").status_code == 302
    client.force_login(coast.user("admin"))
    assert "Refused by the service" in client.get("/admin/triplewire/").content.decode()
