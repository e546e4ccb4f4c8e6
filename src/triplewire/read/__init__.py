"""Publications from files and bytes: RDF syntaxes and feeds, recognised by content, behind a guard.

The way of a document: `sources` finds it, `documents` unpacks it, `sniff` names its syntax, `client` hands it to the
parsing process (`worker`), where `decode` runs it through `guard`, the parser (`rdf`, `lines`, `feeds`, `jsonfeed`) and
`split`. `write` is the way back.
"""

from __future__ import annotations

from triplewire.read.documents import read_document
from triplewire.read.sources import read
from triplewire.read.write import to_nquads

__all__ = ["read", "read_document", "to_nquads"]
