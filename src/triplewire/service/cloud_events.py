"""CloudEvents 1.0 as they come over HTTP (protocol binding, section 3): binary, structured and batched.

Their data are documents. The source and the id of an event say which request is the same as one before (specification,
section 3.1.1). What is not known of an event is passed over, as extensions are.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple
from urllib.parse import unquote

from triplewire.errors import ReadError

_STRUCTURED, _BATCH = "application/cloudevents+json", "application/cloudevents-batch+json"
_REQUIRED = ("specversion", "id", "source", "type")


class CloudEvent(NamedTuple):
    """An event: its identity, and the document that it brings."""

    source: str
    id: str
    content_type: str
    data: bytes

    @property
    def key(self) -> str:
        """What is the same for the same event."""
        return json.dumps(["cloudevent", self.source, self.id])


def events_in(headers: Mapping[str, str], body: bytes) -> Iterator[CloudEvent | ReadError] | None:
    """The events of a request, and in place of each that is wrong, why; None where there is none in it, but a document.
    The names of `headers` are in lower case. Raises `ReadError` for a body that is no list of events."""
    content_type = headers.get("content-type", "")
    kind = content_type.partition(";")[0].strip().lower()
    if kind in (_STRUCTURED, _BATCH):
        try:
            given = json.loads(body)
        except (ValueError, RecursionError) as error:
            raise ReadError(f"this is no JSON: {error}") from None
        if kind == _BATCH and not (isinstance(given, list) and given):
            raise ReadError("a batch of CloudEvents is a JSON array of at least one")
        return map(_structured, given if kind == _BATCH else [given])
    if "ce-specversion" not in headers:
        return None
    stated = {name[3:]: unquote(value) for name, value in headers.items() if name.startswith("ce-")}
    return iter([_event(stated, content_type, body)])


def _structured(given: Any) -> CloudEvent | ReadError:
    if not isinstance(given, dict):
        return ReadError("a CloudEvent is a JSON object")
    content_type = given.get("datacontenttype", "application/json")
    data = given.get("data")
    if "data_base64" in given:
        try:
            content = base64.b64decode(given["data_base64"], validate=True)
        except (binascii.Error, TypeError, ValueError) as error:
            return ReadError(f"data_base64 of the CloudEvent cannot be read: {error}")
    else:
        content = (data if isinstance(data, str) else json.dumps(data)).encode("utf-8", "surrogatepass")
    return _event(given, str(content_type), content)


def _event(stated: Mapping[str, Any], content_type: str, data: bytes) -> CloudEvent | ReadError:
    missing = [name for name in _REQUIRED if not (isinstance(stated.get(name), str) and stated[name])]
    if missing:
        return ReadError(f"the CloudEvent has no {' and no '.join(missing)}", remedy=f"needed: {', '.join(_REQUIRED)}")
    if stated["specversion"] != "1.0":
        return ReadError(f"CloudEvents of version {stated['specversion']!r} are not known here", remedy="send 1.0")
    if not data or data == b"null":
        return ReadError("the CloudEvent brings no data", remedy="data is the document: RDF in any syntax, or a feed")
    return CloudEvent(stated["source"], stated["id"], content_type, data)
