"""Tells receivers of matches and refused inputs.

`rows` says what a sink takes, `webhook` posts it, `sqlite` and `json_lines` keep it. It needs no Spark.
`triplewire.pipeline.connect.delivery` gives sinks the rows of micro-batches.
"""

from __future__ import annotations

from triplewire.notify.json_lines import JsonLinesSink
from triplewire.notify.rows import (
    LETTER,
    MATCH,
    LetterRecord,
    MatchRecord,
    Part,
    Record,
    Sink,
    json_text,
)
from triplewire.notify.sqlite import SqliteSink
from triplewire.notify.webhook import WebhookSink, signature_headers

__all__ = [
    "LETTER",
    "MATCH",
    "JsonLinesSink",
    "LetterRecord",
    "MatchRecord",
    "Part",
    "Record",
    "Sink",
    "SqliteSink",
    "WebhookSink",
    "json_text",
    "signature_headers",
]
