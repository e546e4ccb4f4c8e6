"""Turns documents that came as messages into publications, in a worker. Of files: `triplewire.pipeline.sources`.

A message never names a file: its content is what it holds, whatever its id looks like.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import pyarrow as pa

from triplewire.config import Settings
from triplewire.encode.schema import to_batch
from triplewire.errors import Refusal
from triplewire.model.publication import Publication
from triplewire.pipeline.connect.globs import escape, streamed_files
from triplewire.pipeline.rows import PUBLICATION_ROWS, refused, widened
from triplewire.read import read_document
from triplewire.read.names import id_iri

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

DOCUMENTS = "id binary, place string, content binary, reason string"
"""The rows that `DocumentReader` takes: the id of the document, null for none; where it came from; what it holds; or
why nothing could be had of it."""

BATCH_PUBLICATIONS, BATCH_TRIPLES = 256, 20_000  # a batch is complete with so many


def inbox_documents(spark: SparkSession, folder: str, streaming: bool) -> DataFrame:
    """What is in an inbox (`triplewire.sources.inbox`), as rows of `DOCUMENTS`."""
    if streaming:
        return streamed_files(spark, "parquet", DOCUMENTS).load(escape(folder))
    return spark.read.format("parquet").schema(DOCUMENTS).load(escape(folder))


def groups(publications: Iterable[Publication]) -> Iterator[list[Publication]]:
    """The publications in groups of at most `BATCH_PUBLICATIONS`, with about `BATCH_TRIPLES` triples."""
    group: list[Publication] = []
    triples = 0
    for publication in publications:
        group.append(publication)
        triples += publication.size
        if len(group) >= BATCH_PUBLICATIONS or triples >= BATCH_TRIPLES:
            yield group
            group, triples = [], 0
    if group:
        yield group


@dataclass(frozen=True)
class DocumentReader:
    """Reads documents in a worker: rows of `DOCUMENTS` in, `PUBLICATION_ROWS` out.

    The id of a document that is one publication is its id as an IRI, or its place where it has none. The source of each
    publication is the place.
    """

    split: str = "item"
    settings: Settings = field(default_factory=Settings)
    as_written: bool = False

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Batches of publications, and after them what was refused."""
        for batch in batches:
            refusals: list[Refusal] = []
            for group in groups(self._publications(batch, refusals)):
                yield widened(to_batch(group), PUBLICATION_ROWS)
            if refusals:
                yield refused(refusals, PUBLICATION_ROWS)

    def _publications(self, batch: pa.RecordBatch, refusals: list[Refusal]) -> Iterator[Publication]:
        for row in range(batch.num_rows):
            id, place, content, reason = (
                batch.column(name)[row].as_py() for name in ("id", "place", "content", "reason")
            )
            if not content:
                what = "the message is empty" if content is not None else reason or "the message has no value"
                refusals.append(Refusal("publication", place, place, what))
                continue
            name = id_iri(id) if id else place
            of_document: list[Refusal] = []
            for publication in read_document(
                content,
                name,
                split=self.split,
                settings=self.settings,
                on_refusal=of_document.append,
                as_written=self.as_written,
            ):
                yield replace(publication, source=place)
            refusals += (replace(refusal, where=_placed(refusal.where, name, place)) for refusal in of_document)


def _placed(where: str, name: str, place: str) -> str:
    """Where something was refused: at a place instead of in a document of this name."""
    return place + where.removeprefix(name) if where.startswith(name) else f"{place} {where}".strip()
