"""Canonical labels of blank nodes, and a hash that is equal for isomorphic graphs (semantics, section 1).

The labels are those of RDF Dataset Canonicalization (RDFC-1.0, W3C Recommendation 21 May 2024), whose names of
algorithms are used here. For some graphs it tries all permutations of their blank nodes, so the work has a budget.
Past it, nodes are told apart by colour refinement (Weisfeiler and Leman 1968; in the order of Hopcroft 1971), which
takes O(m log n) steps and gives isomorphic graphs the same colours. What a publication says that counts:
`triplewire.model.content`.
"""

from __future__ import annotations

import hashlib
import re
from collections import defaultdict
from collections.abc import Generator, Iterable, Iterator, Sequence
from itertools import chain, permutations
from typing import TypeAlias

from triplewire.model.terms import IRI, BlankNode, Literal, Term, Triple

WORK_BUDGET = 200_000
"""Steps beyond those that are linear in the size of the graph, about half a second. A step hashes one neighbour of a
blank node, or places one in a permutation."""

_LINEAR_STEPS = 8  # granted for each triple
_COPIED_AT_ONCE = 16  # identifiers that are copied in the time of one step
_NO_XML_CHARACTER = re.compile("[\ufffe\uffff]")  # `str(term)` escapes all others that RDFC-1.0, A, wants escaped


def graph_hash(triples: Iterable[Triple]) -> str:
    """SHA-256 (hex) over the canonical lines: equal for isomorphic graphs, whatever labels their blank nodes have.

    Past the work budget blank nodes of one colour have one label in the lines: graphs that differ, but that colours do
    not tell apart, have one hash then.
    """
    distinct = tuple(dict.fromkeys(triples))
    graph = _BlankNodes(distinct, WORK_BUDGET)
    if graph.ambiguous:  # how much work it is must not depend on the order of triples either
        colours = graph.colours()
        graph = _BlankNodes(sorted(distinct, key=lambda triple: _line(triple, colours)), WORK_BUDGET)
        labels = graph.labels()
        labels = colours if graph.is_spent else labels
    else:
        labels = graph.labels()
    return _sha256("".join(sorted(_line(triple, labels) for triple in distinct)))


def canonical_lines(triples: Iterable[Triple], budget: int = WORK_BUDGET) -> list[str]:
    """The canonical N-Triples lines (RDFC-1.0, appendix A), each with its line feed, sorted by code point."""
    distinct = tuple(dict.fromkeys(triples))
    labels = canonical_labels(distinct, budget)
    return sorted(_line(triple, labels) for triple in distinct)


def canonical_labels(triples: Iterable[Triple], budget: int = WORK_BUDGET) -> dict[str, str]:
    """Blank node label -> canonical label, `c14n0`, `c14n1`, ... (RDFC-1.0, 4.4.3).

    Blank nodes without a label when the budget is spent get the next ones in the order of their colours, those of one
    colour in that of their first occurrence.
    """
    return _BlankNodes(tuple(dict.fromkeys(triples)), budget).labels()


class _BudgetSpent(Exception):
    """The work budget is spent: the graph is too symmetric."""


class _Issuer:
    """Issues identifiers in order (RDFC-1.0, 4.5)."""

    __slots__ = ("_prefix", "issued")

    def __init__(self, prefix: str, issued: dict[str, str] | None = None) -> None:
        self._prefix = prefix
        self.issued = {} if issued is None else issued

    def issue(self, node: str) -> str:
        identifier = self.issued.get(node)
        if identifier is None:
            identifier = self.issued[node] = f"{self._prefix}{len(self.issued)}"
        return identifier

    def copy(self) -> _Issuer:
        return _Issuer(self._prefix, self.issued.copy())


_Hashed: TypeAlias = tuple[str, _Issuer]
_Steps: TypeAlias = "Generator[tuple[str, _Issuer], _Hashed, _Hashed]"
"""A coroutine that computes a hash: it yields the calls it needs, is sent their results, and returns its own."""


class _BlankNodes:
    """The canonicalization state of one graph (RDFC-1.0, 4.2), and its algorithms."""

    def __init__(self, triples: Sequence[Triple], budget: int) -> None:
        self.canonical = _Issuer("c14n")
        self.triples_of: dict[str, list[Triple]] = {}  # in the order of first occurrence
        for triple in triples:
            for node in dict.fromkeys((triple.subject, triple.object)):
                if isinstance(node, BlankNode):
                    self.triples_of.setdefault(node.label, []).append(triple)
        self._first_degree: dict[str, str] = {}
        self._left = budget + _LINEAR_STEPS * len(triples)
        self.is_spent = False
        alike: defaultdict[str, list[str]] = defaultdict(list)
        for label in self.triples_of:
            # 4.6: the hash of a node's triples, in which all other blank nodes have the same label
            names = defaultdict(lambda: "z", {label: "a"})
            first_degree = _sha256("".join(sorted(_line(triple, names) for triple in self.triples_of[label])))
            self._first_degree[label] = first_degree
            alike[first_degree].append(label)
        self.ambiguous: list[list[str]] = []  # those with equal hashes, which take more than linear work
        for _, nodes in sorted(alike.items()):
            if len(nodes) == 1:
                self.canonical.issue(nodes[0])
            else:
                self.ambiguous.append(nodes)

    def labels(self) -> dict[str, str]:
        """A canonical identifier for every blank node; past the budget, in the order of their colours."""
        try:
            for nodes in self.ambiguous:
                results = []
                for node in nodes:
                    if node not in self.canonical.issued:
                        issuer = _Issuer("b")
                        issuer.issue(node)
                        results.append(self._run(node, issuer))
                for _, issuer in sorted(results, key=lambda result: result[0]):
                    for node in issuer.issued:
                        self.canonical.issue(node)
        except _BudgetSpent:
            self.is_spent = True
            colours = self.colours()
            for node in sorted(self.triples_of, key=colours.__getitem__):
                self.canonical.issue(node)
        return self.canonical.issued

    def colours(self) -> dict[str, str]:
        """The colour of each blank node: two have the same where neither their triples nor the colours of their
        neighbours, those of their neighbours, and so on, tell them apart."""
        by_hash: defaultdict[str, dict[str, None]] = defaultdict(dict)
        for node, first_degree in self._first_degree.items():
            by_hash[first_degree][node] = None
        classes = [by_hash[first_degree] for first_degree in sorted(by_hash)]
        colour = {node: number for number, nodes in enumerate(classes) for node in nodes}
        new = list(range(len(classes)))  # colours that neighbours have not been told apart by
        while new:
            seen: defaultdict[str, list[tuple[str, str, int]]] = defaultdict(list)  # node -> its edges to new colours
            for number in new:
                for other, position, predicate in chain.from_iterable(map(self._edges, classes[number])):
                    seen[other].append((position, predicate, number))
            alike: defaultdict[int, defaultdict[tuple[tuple[str, str, int], ...], list[str]]]
            alike = defaultdict(lambda: defaultdict(list))
            for node, edges in seen.items():
                alike[colour[node]][tuple(sorted(edges))].append(node)
            first = len(classes)
            for number, by_edges in sorted(alike.items()):
                parts = [nodes for _, nodes in sorted(by_edges.items())]
                largest = max(parts, key=len)
                rest = len(classes[number]) - sum(map(len, parts))
                for node in chain.from_iterable(parts):
                    del classes[number][node]
                if rest < len(largest):  # the largest part keeps the colour: the others tell its neighbours apart
                    parts = [list(classes[number]), *(nodes for nodes in parts if nodes is not largest)]
                    classes[number] = dict.fromkeys(largest)
                for nodes in filter(None, parts):
                    colour.update(dict.fromkeys(nodes, len(classes)))
                    classes.append(dict.fromkeys(nodes))
            new = list(range(first, len(classes)))
        return {node: f"z{number:08}" for node, number in colour.items()}

    def _edges(self, node: str) -> Iterator[tuple[str, str, str]]:
        """The other blank nodes in the triples of a node, with the position of `node` there, and the predicate."""
        for subject, predicate, object_ in self.triples_of[node]:
            if isinstance(subject, BlankNode) and isinstance(object_, BlankNode) and subject != object_:
                is_subject = subject.label == node
                yield (object_ if is_subject else subject).label, "s" if is_subject else "o", predicate.value

    def _spend(self, steps: int) -> None:
        self._left -= steps
        if self._left < 0:
            raise _BudgetSpent

    def _hash_related(self, related: str, triple: Triple, issuer: _Issuer, position: str) -> str:
        """4.7: the hash of how a neighbour is connected, and of its identifier or first-degree hash."""
        identifier = self.canonical.issued.get(related) or issuer.issued.get(related)
        known = f"_:{identifier}" if identifier else self._first_degree[related]
        return _sha256(f"{position}{triple.predicate}{known}")

    def _run(self, node: str, issuer: _Issuer) -> _Hashed:
        """`_hash_n_degree`, with the recursion kept in a list, so that long chains of blank nodes need no deep
        stack."""
        calls = [self._hash_n_degree(node, issuer)]
        result: _Hashed | None = None
        while True:
            try:
                call = next(calls[-1]) if result is None else calls[-1].send(result)
            except StopIteration as stop:
                result = stop.value
                calls.pop()
                if not calls:
                    assert result is not None
                    return result
            else:
                calls.append(self._hash_n_degree(*call))
                result = None

    def _hash_n_degree(self, node: str, issuer: _Issuer) -> _Steps:
        """4.8: the hash of the neighbourhood of a node, in the order that gives the least path."""
        neighbours = self._neighbours(node, issuer)
        data = []
        for related_hash in sorted(neighbours):
            chosen_path, chosen = "", issuer
            for order in permutations(neighbours[related_hash]):
                path, tried = yield from self._try(order, issuer, chosen_path)
                if path and (not chosen_path or path < chosen_path):
                    chosen_path, chosen = path, tried
            data += [related_hash, chosen_path]
            issuer = chosen
        return _sha256("".join(data)), issuer

    def _neighbours(self, node: str, issuer: _Issuer) -> dict[str, list[str]]:
        """4.8.3, steps 1 to 3: the neighbouring blank nodes, by related hash."""
        self._spend(len(self.triples_of[node]))
        neighbours: defaultdict[str, list[str]] = defaultdict(list)
        for triple in self.triples_of[node]:
            for position, term in (("s", triple.subject), ("o", triple.object)):
                if isinstance(term, BlankNode) and term.label != node:
                    neighbours[self._hash_related(term.label, triple, issuer, position)].append(term.label)
        return neighbours

    def _try(self, order: tuple[str, ...], issuer: _Issuer, best: str) -> _Steps:
        """4.8.3, step 5.4: the path of one permutation and the issuer after it; "" where it is not less than `best`."""
        self._spend(len(order) + len(issuer.issued) // _COPIED_AT_ONCE)
        issuer = issuer.copy()
        path, recursion = "", []
        for related in order:
            identifier = self.canonical.issued.get(related)
            if identifier is None:
                if related not in issuer.issued:
                    recursion.append(related)
                identifier = issuer.issue(related)
            path += f"_:{identifier}"
            if _beaten(path, best):
                return "", issuer
        for related in recursion:
            related_hash, hashed = yield related, issuer
            path += f"_:{issuer.issue(related)}<{related_hash}>"
            issuer = hashed
            if _beaten(path, best):
                return "", issuer
        return path, issuer


def _beaten(path: str, best: str) -> bool:
    """Is the least path known so far less than any that begins with `path`?"""
    return bool(best) and len(path) >= len(best) and path > best


def canonical_term(term: IRI | Literal) -> str:
    """A term in canonical N-Triples (RDFC-1.0, appendix A)."""
    return _NO_XML_CHARACTER.sub(lambda match: f"\\u{ord(match[0]):04X}", str(term))


def _line(triple: Triple, labels: dict[str, str]) -> str:
    """A triple in canonical N-Triples, with its blank nodes renamed."""
    subject, predicate, object_ = triple
    return f"{_term(subject, labels)} {canonical_term(predicate)} {_term(object_, labels)} .\n"


def _term(term: Term, labels: dict[str, str]) -> str:
    return f"_:{labels[term.label]}" if isinstance(term, BlankNode) else canonical_term(term)


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
