"""A registry without any index: all rules are asked of all documents by the reference engine, each time.

Also a cache that follows notices, as a repository does, without a database.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from triplewire import Engine, Publication
from triplewire.errors import ReadError
from triplewire.metadata.messages import Change, Notice, Put, RuleText, Told
from triplewire.model.terms import IRI, BlankNode, Term, Triple
from triplewire.read import read_document

Content = dict[str, frozenset[tuple[str, str]]]
"""The statements of resources, by IRI."""

Results = dict[tuple[str, str], list[str]]
"""The resources that a rule of a repository holds, by repository and id."""


@dataclass
class Naive:
    """Documents and rules as they are. `strong`: properties that are strong references; `ended`: rules that are there
    only for those that name them, which say what they said."""

    strong: frozenset[str] = frozenset()
    documents: dict[str, tuple[Triple, ...]] = field(default_factory=dict)
    rules: dict[tuple[str, str], RuleText] = field(default_factory=dict)
    ended: set[tuple[str, str]] = field(default_factory=set)
    _evaluated: tuple[object, Results] = (None, {})  # of which documents and rules, and the results
    _engines: dict[str, tuple[Engine, dict[str, RuleText]]] = field(default_factory=dict)  # with the rules that it has

    def apply(self, changes: Iterable[Change]) -> None:
        """What a document says is what its last version says; a malformed one says nothing."""
        for change in changes:
            self.documents.pop(change.document, None)
            if isinstance(change, Put):
                try:
                    read = read_document(change.content, change.document, base=change.document, split="document")
                except ReadError:
                    continue
                triples = [triple for publication in read for triple in publication.triples]
                self.documents[change.document] = tuple(_apart(triple, change.document) for triple in triples)

    @property
    def triples(self) -> tuple[Triple, ...]:
        """All that the documents say."""
        return tuple(dict.fromkeys(triple for triples in self.documents.values() for triple in triples))

    def results(self) -> Results:
        """Which resources each rule of each repository holds. They are evaluated once, until something changes."""
        state = dict(self.documents), dict(self.rules), set(self.ended)
        if self._evaluated[0] != state:
            self._evaluated = state, self._results_now()
        return self._evaluated[1]

    def _results_now(self) -> Results:
        out: Results = {}
        for repository in {repository for repository, _ in self.rules}:
            own = {name: rule for (owner, name), rule in self.rules.items() if owner == repository}
            engine = self._engine(repository, own)
            held: dict[str, set[str]] = defaultdict(set)
            for match in engine.match([Publication("all", self.triples)]):
                for binding in match.bindings:
                    held[match.subscription] |= {x.value for x in binding.values() if isinstance(x, IRI)}
            out |= {(repository, name): sorted(held[name]) for name in own if (repository, name) not in self.ended}
        return out

    def _engine(self, repository: str, rules: dict[str, RuleText]) -> Engine:
        """An engine with these rules: the one before, if it has some of them and no other."""
        engine, known = self._engines.get(repository, (None, {}))
        if engine is None or not known.items() <= rules.items():
            engine, known = Engine(matcher="reference"), {}
        for name, rule in rules.items():
            if name not in known:
                engine.subscribe(rule.query, "mdv", id=name, prefixes=dict(rule.prefixes), base=rule.base)
        self._engines[repository] = engine, dict(rules)
        return engine

    def caches(self) -> dict[str, Content]:
        """What each repository has in its cache: what its rules hold, and what that refers to strongly."""
        stated: dict[str, set[tuple[str, str]]] = defaultdict(set)
        strongly: dict[str, set[str]] = defaultdict(set)
        for subject, predicate, value in self.triples:
            stated[_name(subject)].add((predicate.value, str(value)))
            if isinstance(value, BlankNode) or (predicate.value in self.strong and isinstance(value, IRI)):
                strongly[_name(subject)].add(_name(value))
        out: dict[str, Content] = {repository: {} for repository, _ in self.rules}
        for (repository, _), resources in self.results().items():
            waiting = list(resources)
            while waiting:
                name = waiting.pop()
                if name in stated and name not in out[repository]:
                    out[repository][name] = frozenset(stated[name])
                    waiting += strongly[name]
        return {repository: cache for repository, cache in out.items() if cache}


def _apart(triple: Triple, document: str) -> Triple:
    """Blank nodes of different documents are different."""
    subject, predicate, value = triple
    return Triple._make((_node(subject, document), predicate, _node(value, document)))


def _node(term: Term, document: str) -> Term:
    return BlankNode(f"{document.rpartition('/')[2]}.{term.label}") if isinstance(term, BlankNode) else term


def _name(term: Term) -> str:
    return term.value if isinstance(term, IRI) else str(term)


class Cache:
    """What a repository has that follows its notices."""

    def __init__(self) -> None:
        self._told: dict[str, Told] = {}
        self._rules: dict[str, set[str]] = defaultdict(set)

    def follow(self, notices: Iterable[Notice]) -> None:
        """Take notices in, and forget what no rule and no strong reference leads to."""
        for notice in notices:
            if isinstance(notice, Told):
                self._told[notice.resource] = notice
                self._rules[notice.resource] |= set(notice.rules)
            else:
                assert set(notice.rules) <= self._rules[notice.resource], f"dropped what was not held: {notice}"
                self._rules[notice.resource] -= set(notice.rules)
        waiting = [name for name in self._told if self._rules[name]]
        reached: set[str] = set()
        while waiting:
            name = waiting.pop()
            if name in self._told and name not in reached:
                reached.add(name)
                waiting += self._told[name].strong
        self._told = {name: told for name, told in self._told.items() if name in reached}

    def results(self) -> dict[str, list[str]]:
        """Rules, and what they hold; those that hold nothing are left out."""
        out: dict[str, list[str]] = defaultdict(list)
        for name, rules in sorted(self._rules.items()):
            for rule in rules:
                out[rule].append(name)
        return dict(out)

    def content(self) -> Content:
        """The statements of all resources in it."""
        return {name: frozenset(told.statements) for name, told in self._told.items()}


def shape(content: Mapping[str, frozenset[tuple[str, str]]]) -> dict[str, object]:
    """A content without the names of blank nodes, which each side chooses."""

    def value(text: str) -> str:
        return "[]" if text.startswith("_:") else text

    named = {name: pairs for name, pairs in content.items() if not name.startswith("_:")}
    blank = [frozenset((p, value(v)) for p, v in pairs) for name, pairs in content.items() if name not in named]
    out: dict[str, object] = {name: sorted((p, value(v)) for p, v in pairs) for name, pairs in named.items()}
    return out | {"[]": sorted(map(sorted, blank))}
