"""Is a term one that RDF 1.1 has? Asked of terms that foreign code gives: operators, services, languages of plug-ins.

What we read and parse has been checked by then.
"""

from __future__ import annotations

import re

from triplewire.model.references import is_absolute
from triplewire.model.terms import IRI, LANG_STRING, BlankNode, Term, shortened

LANGUAGE_TAG = re.compile(r"[A-Za-z]{1,8}(-[A-Za-z0-9]{1,8})*")  # as in BCP 47, section 2.1; which ones is not asked
_SURROGATE = re.compile(r"[\ud800-\udfff]")
_LABEL = re.compile(r"[\w:]([\w:.·-]*[\w:·-])?")  # BLANK_NODE_LABEL of N-Triples 1.1, but for rare characters


def fault_of_term(term: Term) -> str:
    """What is wrong with a term, with the text of it; "" where nothing is."""
    if isinstance(term, IRI):
        return "" if is_absolute(term.value) else f"{shortened(term.value)!r} is no absolute IRI"
    if isinstance(term, BlankNode):
        return "" if _LABEL.fullmatch(term.label) else f"{shortened(term.label)!r} is no label of a blank node"
    if _SURROGATE.search(term.lexical):
        return f"the literal {shortened(term.lexical)!r} has half a character: a surrogate alone"
    if term.language:
        is_tag = LANGUAGE_TAG.fullmatch(term.language)
        return "" if is_tag else f"{shortened(term.language)!r} is no language tag such as en or pt-br"
    if term.datatype == LANG_STRING:
        return f"the literal {shortened(term.lexical)!r} is an rdf:langString without a language"
    return "" if is_absolute(term.datatype) else f"{shortened(term.datatype)!r} is no absolute IRI of a datatype"
