"""Publications from files and bytes: RDF syntaxes and feeds, recognised by content, behind a guard.

The way of a document: `sources` finds it, `documents` unpacks it, `sniff` names its syntax, `client` hands it to the
parsing process (`worker`), where `decode` runs it through `guard`, the parser (`rdf`, `process.lines`, `feeds`) and
`split`. `write` is the way back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import chain
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from triplewire.config import Settings
    from triplewire.errors import Refusal
    from triplewire.model.publication import Publication
    from triplewire.read.documents import Source, read_document
    from triplewire.read.names import to_nquads
    from triplewire.read.rdf.contexts import Loader

__all__ = ["read", "read_document", "to_nquads"]


def read(
    *sources: Source,
    split: str = "item",
    base: str = "",
    settings: Settings | None = None,
    on_refusal: Callable[[Refusal], None] | None = None,
    loader: Loader | None = None,
    as_written: bool = False,
) -> Iterator[Publication]:
    """The publications of all sources, in order; a folder's files by sorted path, hidden ones left out.

    The arguments are those of `read_document`. Without `on_refusal` the first `ReadError` is raised; with it each
    becomes a `Refusal` of kind "publication" and the rest is read; one of kind "warning" is about what was read
    although it is ill-formed.
    """
    # `import triplewire` comes by here, and does without the parsing process, unpacking and NumPy behind these
    from triplewire.config import Settings
    from triplewire.read.documents import check_reading, check_sources, documents, read_document

    check_sources("read", sources)
    check_reading("read", split, base, settings, on_refusal, loader)
    limits = settings or Settings()
    return chain.from_iterable(
        read_document(
            document.data,
            document.name,
            base=base,
            split=split,
            settings=limits,
            on_refusal=on_refusal,
            loader=loader,
            as_written=as_written,
            first_line=document.first_line,
        )
        for document in documents(*sources, settings=limits, on_refusal=on_refusal, split=split)
    )


def __getattr__(name: str) -> Any:
    # imported when first asked for, as above
    if name == "read_document":
        from triplewire.read.documents import read_document

        return read_document
    if name == "to_nquads":
        from triplewire.read.names import to_nquads

        return to_nquads
    raise AttributeError(f"module 'triplewire.read' has no attribute {name!r}")
