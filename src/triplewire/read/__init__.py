"""Publications from files and bytes: RDF syntaxes and feeds, recognised by content, behind a guard.

The way of a document: `documents` finds and unpacks it, `sniff` names its syntax, `process.parsing` hands it to the
parsing process (`process.worker`), which runs it through `guard`, the parser (`rdf`, `feeds`) and `rdf.split`. The way
back: `names.to_nquads`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from importlib import import_module
from itertools import chain
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from triplewire.config import Settings
    from triplewire.errors import Refusal
    from triplewire.model.publication import Publication
    from triplewire.read.documents import Source, read_document, read_documents
    from triplewire.read.names import to_nquads
    from triplewire.read.rdf.contexts import Loader

__all__ = ["read", "read_document", "read_documents", "to_nquads"]

_MODULES = {"read_document": "documents", "read_documents": "documents", "to_nquads": "names"}


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
    from triplewire.read.documents import check_reading, check_sources, documents, publications_of

    check_sources("read", sources)
    check_reading("read", split, base, settings, on_refusal, loader)
    limits = settings or Settings()
    read_one = partial(
        publications_of,
        base=base,
        split=split,
        settings=limits,
        on_refusal=on_refusal,
        loader=loader,
        as_written=as_written,
    )
    inputs = documents(*sources, settings=limits, on_refusal=on_refusal, split=split)
    return chain.from_iterable(map(read_one, inputs))


def __getattr__(name: str) -> Any:
    # imported when first asked for, as above
    if name in _MODULES:
        return getattr(import_module(f"triplewire.read.{_MODULES[name]}"), name)
    raise AttributeError(f"module 'triplewire.read' has no attribute {name!r}")
