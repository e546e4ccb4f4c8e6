"""What a service must do (docs/cms-protocol.md)."""

from __future__ import annotations

import http.server
import json
import re
import secrets
import threading
import time
import xmlrpc.client
from functools import partial
from typing import Any

from triplewire.cli.conformance.asked import Points, Service, ask, call, fault_of, item, must, point
from triplewire.errors import UnavailableError

POINTS: Points = []
_point = partial(point, POINTS)
_METHODS = {"publish", "subscribe", "try", "renew", "unsubscribe", "list", "notifications", "forget"}
_PLACE = re.compile(r":\d+:\d+: ")


def _query(word: str) -> str:
    """A query in GQL for pages with a word in their title."""
    return f'SELECT ?t WHERE (?x, title, ?t) SUCHTHAT (?t CONTAINS "{word}")'


def _subscribed(service: Service, **more: Any) -> tuple[dict[str, Any], str]:
    """A subscription in GQL for a word that nobody else uses, and the word."""
    word = f"word{secrets.token_hex(6)}"
    return service.subscribe(_query(word), language="gql", **more), word


# --- calls -----------------------------------------------------------------------------------------------------------


@_point("the methods are there", "serve them at /RPC2, and name them in system.listMethods")
def _methods(service: Service) -> None:
    names = set(call(f"{service.base}/RPC2", "system.listMethods"))
    must(names >= _METHODS, f"missing: {_METHODS - names}")


@_point("there is no system.multicall", "refuse it: one request would try many tickets")
def _no_multicall(service: Service) -> None:
    calls = [{"methodName": "list", "params": [{}]}]
    fault = fault_of(lambda: call(f"{service.base}/RPC2", "system.multicall", calls, token=service.token))
    must(fault.faultCode == -32601, fault)


@_point("a call without a token is a fault 401", "ask for a token before anything else")
def _no_token(service: Service) -> None:
    must(fault_of(lambda: call(f"{service.base}/RPC2", "list", {})).faultCode == 401, "another fault")


@_point("what is no call is a fault, and says which", "-32700 XML, -32600 call, -32601 method, -32602 struct")
def _no_call(service: Service) -> None:
    bodies = {b"<methodCall": -32700, b"<methodResponse><params/></methodResponse>": -32600}
    for body, code in bodies.items():
        answer = ask(f"{service.base}/RPC2", "POST", body, token=service.token)
        must(str(code).encode() in answer.body, answer.body)
    must(fault_of(lambda: service.call("nothing")).faultCode == -32601, "an unknown method")
    must(fault_of(lambda: service.call("list", nonsense=1)).faultCode == -32602, "an unknown member")


@_point("a wrong query is a fault 400 with line and column", "begin its text with NAME:LINE:COLUMN:")
def _wrong_query(service: Service) -> None:
    for name in ("subscribe", "try"):
        fault = fault_of(lambda name=name: service.call(name, query="SELECT WHERE (?x, title, ?y)", language="gql"))  # type: ignore[misc]
        must(fault.faultCode == 400 and _PLACE.search(fault.faultString), fault)


# --- subscriptions ---------------------------------------------------------------------------------------------------


@_point("a subscription has id, ticket, feed and expiry", "answer them to subscribe")
def _made(service: Service) -> None:
    made, _ = _subscribed(service, title="Conformance", seconds=3600)
    must({"id", "ticket", "feed", "expires"} <= made.keys() and made["feed"].startswith("http"), made)


@_point("the ticket alone renews and ends, a wrong one does not", "take a ticket in place of a token")
def _ticket(service: Service) -> None:
    made, _ = _subscribed(service, seconds=600)
    by = {"subscription": made["id"], "ticket": made["ticket"]}
    address = f"{service.base}/RPC2"
    fault_of(lambda: call(address, "renew", {**by, "ticket": made["ticket"][:-2]}))
    must(call(address, "renew", {**by, "seconds": 7200})["expires"] > made["expires"], "not renewed")
    must(call(address, "unsubscribe", by) is True, "not ended")


@_point("many are renewed by one call, each with its answer", "take an array of ids")
def _renewed_together(service: Service) -> None:
    ids = [_subscribed(service, seconds=600)[0]["id"] for _ in range(2)]
    answers = service.call("renew", subscriptions=[*ids, "unknown"], seconds=7200)
    must(["expires" in answer for answer in answers] == [True, True, False], answers)


@_point("the subscriptions of a user are listed, and of nobody else", "act for users: the owner SITE/USER")
def _listed(service: Service) -> None:
    made, _ = _subscribed(service)
    rows = service.call("list", user=service.user)
    must(made["id"] in [row["id"] for row in rows] and {row["user"] for row in rows} == {service.user}, rows)
    must(service.call("list", user=f"{service.user}-other") == [], "another user's")


@_point("a dry run says what the last pages would have matched, and keeps nothing", "answer try from the window")
def _dry_run(service: Service) -> None:
    before, word = len(service.call("list", user=service.user)), f"word{secrets.token_hex(6)}"
    page = service.page(f"A {word}")
    said = service.call("try", query=_query(word), language="gql", user=service.user)
    must(said["matched"] == 1 and said["newest"][0]["publication"] == page, said)
    must(len(service.call("list", user=service.user)) == before, "something was kept")


# --- pages -----------------------------------------------------------------------------------------------------------


@_point("a page that matches is told, one that does not is not", "match what is published")
def _told(service: Service) -> None:
    made, word = _subscribed(service)
    page = service.page(f"A {word}")
    service.page("Something else")
    must(service.told(made) == [("matched", page)], service.told(made))


@_point("an event can be asked for with the reasons of the match", "answer why: an array of sentences")
def _why(service: Service) -> None:
    made, word = _subscribed(service)
    service.page(f"A {word}")
    (note,) = service.call("notifications", subscription=made["id"], why=True)
    must(note["why"] and any(word in line for line in note["why"]), note)


@_point("events behind a sequence, and those of all behind a number", "take after")
def _after(service: Service) -> None:
    made, word = _subscribed(service)
    pages = [service.page(f"A {word} {number}") for number in range(3)]
    notes = service.call("notifications", subscription=made["id"], after=1)
    must([note["publication"] for note in notes] == pages[1:], notes)
    rest = service.call("notifications", after=notes[0]["number"])
    must(notes[1]["number"] in [note["number"] for note in rest], rest)


@_point("a revision is taken once, and none that is older", "keep the newest revision of each page")
def _revisions(service: Service) -> None:
    made, word = _subscribed(service)
    page = service.page(f"A {word}", revision=5)
    service.page(f"A {word}", page, revision=5)
    service.page(f"An old {word}", page, revision=4)
    service.page(f"A new {word}", page, revision=6)
    must(service.told(made) == [("matched", page), ("changed", page)], service.told(made))


@_point("a page that is taken away is told so, and shown no more", "take delete, and tell unmatched")
def _taken_away(service: Service) -> None:
    made, word = _subscribed(service)
    page = service.page(f"A {word}", revision=1)
    service.call("publish", page=page, delete=True, revision=2)
    must([kind for kind, _ in service.told(made)] == ["matched", "unmatched"], service.told(made))
    must(service.call("try", query=_query(word), language="gql", user=service.user)["matched"] == 0, "it is shown")


@_point("a page is told to its readers alone, by every door", "match the readers as well")
def _readers(service: Service) -> None:
    made, word = _subscribed(service)
    other = service.call("subscribe", query=_query(word), language="gql", user=f"{service.user}-other")
    try:
        page = service.page(f"A {word}")
        service.page(f"A {word} for nobody", readers=[])
        must(service.told(made) == [("matched", page)], service.told(made))
        must(service.told(other) == [], service.told(other))
        said = service.call("try", query=_query(word), language="gql", user=f"{service.user}-other")
        must(said["matched"] == 0, said)
    finally:
        service.call("forget", user=f"{service.user}-other")


@_point("a text full of markup and of GQL is content, and stays a text", "escape what you write, run nothing")
def _markup(service: Service) -> None:
    made, word = _subscribed(service)
    page = service.page(f"{word} <script>alert(1)</script> ISO publishes GQL: SELECT * WHERE (?x, ?y, ?z)")
    must(service.told(made) == [("matched", page)], service.told(made))
    for form in ("html", "atom", "rdf"):
        text = ask(made["feed"].rpartition(".")[0] + f".{form}").body
        must(b"<script>alert" not in text and word.encode() in text, text)


# --- feeds -----------------------------------------------------------------------------------------------------------


@_point("the feed in RSS 1.0 says query, expiry, what has matched, and why", "write tw:query ... tw:why")
def _feed(service: Service) -> None:
    made, word = _subscribed(service)
    page = service.page(f"A {word}")
    text = ask(made["feed"].rpartition(".")[0] + ".rdf").body.decode()
    for name in ("tw:query", "tw:language", "tw:expires", "tw:publication", "tw:origin", "tw:why", "tw:triples"):
        must(f"<{name}>" in text, f"{name} is missing: {text}")
    must(page in text and "http://purl.org/rss/1.0/" in text, text)
    address = re.search(r"<tw:triples>([^<]+)<", text)
    triples = ask(address[1]) if address else None
    must(triples is not None and word.encode() in triples.body, triples)


@_point("the same as text of a feed over XML-RPC", "take format")
def _feed_by_call(service: Service) -> None:
    made, word = _subscribed(service)
    page = service.page(f"A {word}")
    text = service.call("notifications", subscription=made["id"], format="rdf")
    must(isinstance(text, str) and page in text and "<rdf:RDF" in text, text)


@_point("an unchanged feed is 304, another key 404", "answer If-None-Match; keys are capabilities")
def _known_feed(service: Service) -> None:
    made, _ = _subscribed(service)
    first = ask(made["feed"])
    again = ask(made["feed"], If_None_Match=first.headers.get("etag", ""))
    must((first.status, again.status) == (200, 304), (first.status, again.status))
    stem, _, form = made["feed"].rpartition(".")
    must(ask(f"{stem[:-2]}xx.{form}").status == 404, "another key")


@_point("an echo of the service is refused", "carry tw:origin, and refuse your own")
def _echo(service: Service) -> None:
    made, word = _subscribed(service)
    service.page(f"A {word}")
    feed = ask(made["feed"].rpartition(".")[0] + ".rdf").body
    fault = fault_of(lambda: service.call("publish", content=feed, readers=[f"/{service.user}"]))
    must("echo" in fault.faultString and len(service.told(made)) == 1, fault)


# --- items that subscribe --------------------------------------------------------------------------------------------


@_point("an item titled GQL is refused from a source that may not subscribe", "never match it as content")
def _untrusted(service: Service) -> None:
    made, word = _subscribed(service)
    content = item(f"urn:{word}", "GQL", _query(word))
    fault_of(lambda: service.call("publish", content=content, readers=[f"/{service.user}"]))
    must(service.told(made) == [], service.told(made))


@_point("from a source that may, it subscribes; another description changes it; full_sync ends it", "follow the feed")
def _subscribing_items(service: Service) -> None:
    word = f"word{secrets.token_hex(6)}"
    wanted = {"kind": "push", "may_subscribe": True, "full_sync": True, "user": service.user}
    source = json.loads(ask(f"{service.base}/sources", "POST", wanted, token=service.token).body)
    must("id" in source, source)
    first, second = f"urn:first:{word}", f"urn:second:{word}"

    def wish(about: str, asked: str) -> None:
        service.call("publish", source=source["id"], content=item(about, "GQL: a wish", f"<p>{_query(asked)}</p>"))

    def listed() -> dict[str, Any]:
        return {row["id"]: row for row in service.call("list", user=service.user)}

    wish(first, "x")
    wish(first, word)
    row = listed().get(first, {})
    must((row.get("revision"), row.get("query"), row.get("title")) == (2, _query(word), "a wish"), row)
    page = service.page(f"A {word}")
    must(service.told({"id": first}) == [("matched", page)], "it does not match")
    wish(second, "x")
    must((listed()[first]["state"], listed()[second]["state"]) == ("ended", "active"), listed())


# --- call-back, taxonomy, the end ------------------------------------------------------------------------------------


@_point("notify is called with each event, signed", "call the address of notify; sign as Standard Webhooks has it")
def _notified(service: Service) -> None:
    came: list[tuple[dict[str, str], bytes]] = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            came.append(({name.lower(): value for name, value in self.headers.items()}, body))
            said = xmlrpc.client.dumps((True,), methodresponse=True).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(said)))
            self.end_headers()
            self.wfile.write(said)

        def log_message(self, *_: object) -> None:
            """Nothing on standard error."""

    if not re.match(r"https?://(localhost|127\.|\[::1\])", service.base):
        raise UnavailableError("the service is not on this machine, and may not reach it")
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        try:
            address = f"http://127.0.0.1:{server.server_address[1]}/notify"
            made, word = _subscribed(service, notify=address, secret="whsec_c2VjcmV0")
        except xmlrpc.client.Fault as fault:
            raise UnavailableError(f"the service calls nobody on its own machine: {fault.faultString}") from None
        page, end = service.page(f"A {word}"), time.monotonic() + 30
        while not came and time.monotonic() < end:
            time.sleep(0.05)
        server.shutdown()
    must(came, "nothing came within 30 s")
    (struct,), name = xmlrpc.client.loads(came[0][1])
    must(name == "notify" and isinstance(struct, dict), name)
    about: dict[str, Any] = struct  # type: ignore[assignment]
    must((about["subscription"], about["sequence"]) == (made["id"], 1) and about["publication"]["id"] == page, about)
    must(about["user"] == service.user and "webhook-signature" in came[0][0], came[0][0])


@_point("a cycle of classes is refused, and its path named", "refuse it before anything is changed")
def _cycle(service: Service) -> None:
    above = "<http://www.w3.org/2000/01/rdf-schema#subClassOf>"
    text = f"<urn:c:a> {above} <urn:c:b> . <urn:c:b> {above} <urn:c:a> ."
    answer = ask(f"{service.base}/taxonomy?dry_run=1", "PATCH", {"add": text}, token=service.token)
    must(answer.status == 400 and b"urn:c:a -> urn:c:b -> urn:c:a" in answer.body, answer.body)


@_point("only who was granted a namespace changes its classes", "refuse others with 403")
def _namespace(service: Service) -> None:
    address = f"{service.base}/taxonomy?namespace=urn:not-granted:"
    statement = "<urn:elsewhere:a> <http://www.w3.org/2000/01/rdf-schema#subClassOf> <urn:not-granted:b> ."
    answer = ask(address, "PATCH", {"add": statement}, token=service.token)
    must(answer.status in (400, 403), answer.body)  # 400 for the owner of the service, who may change any


@_point("who has unsubscribed is told nothing more", "end it at once")
def _unsubscribed(service: Service) -> None:
    made, word = _subscribed(service)
    service.call("unsubscribe", subscription=made["id"])
    service.page(f"A {word}")
    must(service.told(made) == [], service.told(made))


@_point("forget leaves nothing of a user", "remove subscriptions, events, deliveries, sources and tokens")
def _forgotten(service: Service) -> None:
    user, word = f"{service.user}-gone", f"word{secrets.token_hex(6)}"
    made = service.call("subscribe", query=_query(word), language="gql", user=user)
    service.page(f"A {word}", readers=[f"/{user}"])
    counts = service.call("forget", user=user)
    must((counts["subscriptions"], counts["events"]) == (1, 1), counts)
    must(service.call("list", user=user) == [] and ask(made["feed"]).status == 404, "something is left")
