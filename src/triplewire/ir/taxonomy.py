"""The class taxonomy, and the relations between a node and a class (semantics, section 4).

Classes may have several superclasses; cycles are refused. Instances come from the taxonomy and from the publication's
own rdf:type triples. `triplewire.read.taxonomy` reads files.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from functools import cached_property
from itertools import chain
from typing import Any, TypeAlias
from weakref import WeakKeyDictionary

from triplewire.argument_checks import expect, plain_text
from triplewire.bounded_cache import BoundedCache
from triplewire.errors import TaxonomyError
from triplewire.ir.alike import AlikeNames
from triplewire.ir.entailment import MOST_ABOVE, NONE, Edges, Properties, reachable
from triplewire.ir.nodes import Label, Relation
from triplewire.model.namespaces import PREDECLARED, beside
from triplewire.model.publication import Graph
from triplewire.model.terms import IRI, RDF_TYPE, RDFS, BlankNode, Literal, Node, Term, made_iri

Pairs: TypeAlias = Iterable[tuple[str, str]]
_LONGEST_NAME = 1_024  # characters of a literal that may be the name of a class or instance in a namespace
_MOST_COMPARED = 2_000  # classes that are compared with an unknown one
_LONG_WAY = 500  # classes
_SHOWN = 20  # classes of a cycle that an error names
DECLARES = frozenset((PREDECLARED["owl"] + "Class", RDFS + "Class", PREDECLARED["skos"] + "Concept"))
"""An instance of one of these is a class, even if nothing else is stated about it."""


@dataclass(frozen=True, repr=False)
class Taxonomy:
    """Classes with their direct superclasses, instances with their direct classes, names, properties for entailment,
    and classes that are the same: each is a superclass of the other.

    All keys and values are IRIs without brackets, except the keys of `names`, which are texts. `build` makes a
    taxonomy, `changed` another one of it. It never changes itself.
    """

    superclasses: Edges = field(default_factory=dict)
    classes_of: Edges = field(default_factory=dict)
    names: Edges = field(default_factory=dict)
    properties: Properties = field(default_factory=Properties)
    equivalents: Edges = field(default_factory=dict)

    def __repr__(self) -> str:
        return f"<Taxonomy: {len(self.superclasses)} classes below others, {len(self.classes_of)} instances>"

    @classmethod
    def build(
        cls,
        subclasses: Pairs,
        instances: Pairs = (),
        names: Pairs = (),
        *,
        classes: Iterable[str] = (),
        superproperties: Pairs = (),
        domains: Pairs = (),
        ranges: Pairs = (),
        equivalents: Pairs = (),
    ) -> Taxonomy:
        """A taxonomy of pairs: (class, superclass), (instance, class), (IRI, name), (property, superproperty),
        (property, class), (class, class that is the same). `classes`: IRIs that are classes, whatever else is stated
        about them.

        A pair of a class and itself is ignored. Raises `TaxonomyError`, which names a cycle.
        """
        named = _grouped((text, iri) for iri, text in names)
        properties = Properties(_grouped(superproperties), _grouped(domains), _grouped(ranges))
        same = _grouped(pair for a, b in equivalents if a != b for pair in ((a, b), (b, a)))
        both_ways = ((a, b) for a, others in same.items() for b in others)
        superclasses = _grouped(chain(((a, b) for a, b in subclasses if a != b), both_ways))
        declared = ((iri, RDFS + "Class") for iri in classes)
        taxonomy = cls(superclasses, _grouped(chain(instances, declared)), named, properties, same)
        _refuse_cycles(taxonomy.superclasses, taxonomy.superclasses, same)
        return taxonomy

    def changed(
        self, *, add: Taxonomy | None = None, remove: Taxonomy | None = None, drop: Iterable[str] = ()
    ) -> Taxonomy:
        """This taxonomy without what `remove` states, and without anything that is stated about the IRIs in `drop`
        (classes, instances, properties), and then with what `add` states.

        What is to be removed need not be there. What was below a dropped class is not put below what was above it.
        Raises `ArgumentError` for other arguments, and `TaxonomyError`, which names a cycle.
        """
        for name, part in (("add", add), ("remove", remove)):
            if part is not None:
                expect(f"Taxonomy.changed({name}=...)", part, Taxonomy, "a Taxonomy", "Taxonomy.build(pairs) makes one")
        where, wanted, example = "Taxonomy.changed(drop=...)", "IRIs (texts)", 'such as ["http://example.org/Bird"]'
        expect(where, drop, Iterable, wanted, example)
        dropped = [drop] if isinstance(drop, str) else list(drop)
        for iri in dropped:
            expect(where, iri, str, wanted, example)
        added, removed, gone = add or EMPTY, remove or EMPTY, frozenset(map(plain_text, dropped))
        pairs = zip(self._tables().items(), added._tables().values(), removed._tables().values(), strict=True)
        tables = {name: _changed(table, adds, removes, gone, name) for (name, table), adds, removes in pairs}
        _refuse_cycles(tables["superclasses"], added.superclasses, tables["equivalents"])
        new = Taxonomy.of_tables(tables)
        if "subclasses" in vars(self):  # where all of it was worked out, the rest of it still holds
            vars(new)["subclasses"] = _reversed_again(self.subclasses, self.superclasses, new.superclasses)
        if "instances" in vars(self):
            vars(new)["instances"] = _reversed_again(self.instances, self.classes_of, new.classes_of)
        return new

    def restricted(self, is_of: Callable[[str], bool]) -> Taxonomy:
        """What is stated of the classes and properties of which this holds: their superclasses, names, instances, and
        classes that are the same."""

        def is_kept(name: str, key: str, value: str) -> bool:
            if name in ("names", "classes_of"):  # rows about what is on their right
                return is_of(key if value in DECLARES else value)
            is_same = name in ("superclasses", "equivalents") and value in self.equivalents.get(key, NONE)
            return is_of(key) or (is_same and is_of(value))

        tables = {
            name: {
                key: frozenset(value for value in values if is_kept(name, key, value)) for key, values in table.items()
            }
            for name, table in self._tables().items()
        }
        return Taxonomy.of_tables({n: {key: row for key, row in table.items() if row} for n, table in tables.items()})

    def __getstate__(self) -> dict[str, object]:
        """Without what has been worked out of it."""
        return {part.name: getattr(self, part.name) for part in fields(self)}

    @cached_property
    def classes(self) -> frozenset[str]:
        """Every class that has or is a superclass, has an instance, or is declared as a class or concept."""
        declared = (iri for iri, classes in self.classes_of.items() if not classes.isdisjoint(DECLARES))
        return frozenset(self.superclasses).union(declared, *self.superclasses.values(), *self.classes_of.values())

    @cached_property
    def subclasses(self) -> Edges:
        """Class -> the classes directly below it."""
        return _grouped((above, cls) for cls, classes in self.superclasses.items() for above in classes)

    @cached_property
    def instances(self) -> Edges:
        """Class -> its direct instances."""
        return _grouped((cls, instance) for instance, classes in self.classes_of.items() for cls in classes)

    @cached_property
    def caches(self) -> WeakKeyDictionary[object, Any]:
        """What others have worked out of this taxonomy: who did -> what it is. Kept as long as both are there."""
        return WeakKeyDictionary()

    @cached_property
    def _closure(self) -> BoundedCache[str, frozenset[str]]:
        """Class -> itself and its ancestors."""
        return BoundedCache()

    def at_or_above(self, cls: str) -> frozenset[str]:
        """The class and all its ancestors."""
        if cls not in self.superclasses:  # any name of a publication, which is not kept
            return frozenset((cls,))
        known = self._closure.get(cls)
        if known is None:
            known = self._with_ancestors(cls)
            self._closure.put(cls, known, len(known), MOST_ABOVE)
        return known

    def _with_ancestors(self, cls: str) -> frozenset[str]:
        """The same, from what is known of its ancestors. Of a deep hierarchy not all is kept: of a long way up, what
        is above its middle as well, so that the next way is shorter."""
        above, waiting, passed = {cls}, [cls], []
        while waiting:
            lower = waiting.pop()
            known = self._closure.get(lower) if lower in self._closure else None
            fresh = (self.superclasses.get(lower, NONE) if known is None else known) - above
            above |= fresh
            if known is None:
                passed.append(lower)
                waiting.extend(fresh)
        if len(passed) > _LONG_WAY and not self.equivalents:  # else the middle may be as far from itself
            self.at_or_above(passed[len(passed) // 2])
        return frozenset(above)

    def resolve(self, cls: IRI | Label) -> frozenset[str]:
        """The known classes that a subscription's class name means; none for an unknown name.

        A label means the class of its IRI where that is known, else any class of that name, by exact code points.
        """
        iri = cls.value if isinstance(cls, IRI) else cls.iri
        if iri in self.classes:
            return frozenset((iri,))
        if isinstance(cls, IRI):
            return NONE
        return (self.names.get(cls.text, NONE) | frozenset((cls.text,))) & self.classes

    def class_like(self, cls: IRI | Label) -> str:
        """The class, or for a label the name, that is nearly the unknown one; "" where none is, or there are many."""
        if len(self.classes) > _MOST_COMPARED:
            return ""
        if isinstance(cls, IRI):
            return self._alike[0].nearest(cls.value[:_LONGEST_NAME])
        return self._alike[1 if cls.iri else 2].nearest(cls.text[:_LONGEST_NAME])

    @cached_property
    def _alike(self) -> tuple[AlikeNames, AlikeNames, AlikeNames]:
        """The IRIs of classes, what a label stands for in a namespace, and what it does without one."""
        names = {name for name, iris in self.names.items() if not iris.isdisjoint(self.classes)}
        ends = {re.split(r"[/#:]", iri)[-1] for iri in self.classes}
        return AlikeNames(self.classes), AlikeNames(names | ends), AlikeNames(names | set(self.classes))

    def meant(self, cls: IRI | Label) -> frozenset[str]:
        """The same as `resolve`, but an unknown class means the class of that IRI, which rdf:type triples may name."""
        known = self.resolve(cls)
        if known:
            return known
        return frozenset((cls.value,) if isinstance(cls, IRI) else filter(None, (cls.iri, cls.text)))

    def stands_for(self, node: Term, cls: IRI | Label) -> frozenset[str]:
        """The IRIs for which a node stands: its own, or for a literal those of the classes and instances of that name.

        The literal is resolved in the same way as the class name `cls`.
        """
        if isinstance(node, IRI):
            return frozenset((node.value,))
        if not isinstance(node, Literal):
            return NONE
        names = self.names.get(node.lexical, NONE) | frozenset((node.lexical,))
        if isinstance(cls, Label) and cls.iri and len(node.lexical) <= _LONGEST_NAME:
            names |= frozenset(filter(None, (beside(node.lexical, cls.text, cls.iri),)))
        return names

    def holds(self, node: Term, relation: Relation, cls: IRI | Label, graph: Graph) -> bool:
        """Does the node, in a publication with this graph, stand in the relation to the class?"""
        return self._witness(node, relation, cls, graph) is not None

    def path(self, node: Term, relation: Relation, cls: IRI | Label, graph: Graph) -> tuple[str, ...] | None:
        """The path from the node to the class, both included, as IRIs or texts; None where the relation does not hold.

        It goes up from the node. For the ancestor relation it goes down, from the node's class to the class below it.
        """
        witness = self._witness(node, relation, cls, graph)
        if witness is None:
            return None
        start, direct, meant = witness
        climb = self._climb(meant, direct)[::-1] if relation is Relation.ANCESTOR else self._climb(direct, meant)
        shown = node.lexical if isinstance(node, Literal) else start
        return tuple(dict.fromkeys((shown, *climb)))

    def _witness(self, node: Term, relation: Relation, cls: IRI | Label, graph: Graph) -> tuple[str, str, str] | None:
        """The IRI for which the node stands, its direct class (itself if it is a class), and the class that is
        meant."""
        meant = self.meant(cls)
        for start, direct, is_class in self.readings(node, relation, cls, graph):
            if relation is Relation.DIRECT and is_class:
                classes = meant & self.superclasses.get(direct, NONE)
            elif relation is Relation.DIRECT:
                classes = meant & {direct}
            elif relation is Relation.ANCESTOR:
                classes = frozenset(m for m in meant if direct in self.at_or_above(m))
            else:
                classes = meant & self.at_or_above(direct)
            if classes:
                return start, direct, min(classes)
        return None

    def readings(
        self, node: Term, relation: Relation, named: IRI | Label, graph: Graph
    ) -> Iterator[tuple[str, str, bool]]:
        """For each meaning of the node: the IRI for which it stands, a class, and whether the node is that class."""
        if relation is Relation.SUBCLASS:  # SPARQL's rdfs:subClassOf*: terms, not names
            if isinstance(node, IRI):
                yield node.value, node.value, True
            return
        if isinstance(node, BlankNode):
            for cls in _types(node, graph):
                yield str(node), cls, False
        for start in sorted(self.stands_for(node, named)):
            if start in self.classes:
                yield start, start, True
            for cls in sorted(self.classes_of.get(start, NONE)) + _types(made_iri(start), graph):
                yield start, cls, False

    def _climb(self, lower: str, upper: str) -> list[str]:
        """A shortest path up from one class to another, both included."""
        came_from: dict[str, str] = {lower: ""}
        level = [lower]
        while level and upper not in came_from:
            pairs = [(parent, cls) for cls in level for parent in sorted(self.superclasses.get(cls, NONE))]
            level = list(dict.fromkeys(parent for parent, _ in pairs if parent not in came_from))
            for parent, cls in pairs:
                came_from.setdefault(parent, cls)
        way = [upper]
        while came_from[way[-1]]:
            way.append(came_from[way[-1]])
        return way[::-1]

    def to_json(self) -> dict[str, dict[str, list[str]]]:
        """All tables, sorted, for `from_json`."""
        tables = self._tables()
        return {name: {key: sorted(values) for key, values in sorted(tables[name].items())} for name in tables}

    def _tables(self) -> dict[str, Edges]:
        tables = {name: getattr(self, name) for name in _TABLES}
        return tables | {name: getattr(self.properties, name) for name in _PROPERTY_TABLES}

    @classmethod
    def of_tables(cls, tables: Mapping[str, Edges]) -> Taxonomy:
        """The taxonomy of all tables by name, which have no cycle."""
        properties = Properties(**{name: tables[name] for name in _PROPERTY_TABLES})
        return cls(**{name: tables[name] for name in _TABLES}, properties=properties)

    @classmethod
    def from_json(cls, rows: Mapping[str, Mapping[str, Iterable[str]]]) -> Taxonomy:
        """The taxonomy that `to_json` wrote. Raises `KeyError` where a table is missing, `ValueError` where it is
        malformed, and `TaxonomyError` on a cycle."""
        optional = {"equivalents": {}, **rows}  # which earlier versions did not write
        tables = {table: _table(optional[table]) for table in (*_TABLES, *_PROPERTY_TABLES)}
        _refuse_cycles(tables["superclasses"], tables["superclasses"], tables["equivalents"])
        return cls.of_tables(tables)


_TABLES = ("superclasses", "classes_of", "names", "equivalents")
_PROPERTY_TABLES = ("above", "domains", "ranges")

EMPTY = Taxonomy()
"""No classes: only the publication's own rdf:type triples count."""


def touched(before: Taxonomy, after: Taxonomy, classes: Iterable[str] = ()) -> set[str]:
    """The IRIs and names whose relation to some class, as `Taxonomy.readings` has it, may differ between two
    taxonomies; with those at or below the `classes`, and their instances."""
    changed = _differing(before.superclasses, after.superclasses) | (before.classes ^ after.classes) | set(classes)
    below = reachable(changed, lambda cls: before.subclasses.get(cls, NONE) | after.subclasses.get(cls, NONE))
    nodes = below | _differing(before.classes_of, after.classes_of)
    for taxonomy in (before, after):
        nodes.update(*(taxonomy.instances.get(cls, NONE) for cls in below))
    named = _differing(before.names, after.names)
    for names in (before.names, after.names):
        named.update(text for text, iris in names.items() if not nodes.isdisjoint(iris))
    return nodes | named


def _types(node: Node, graph: Graph) -> list[str]:
    """The classes that the publication states for a node."""
    return [cls.value for cls in graph.objects(node, RDF_TYPE) if isinstance(cls, IRI)]


def _grouped(pairs: Pairs) -> Edges:
    values_of: dict[str, set[str]] = defaultdict(set)
    for key, value in pairs:
        values_of[key].add(value)
    return {key: frozenset(values) for key, values in values_of.items()}


def _reversed_again(known: Edges, before: Edges, after: Edges) -> Edges:
    """A table reversed, of which it is known what it was `before` it changed."""
    new = dict(known)
    for key in _differing(before, after):
        there, here = before.get(key, NONE), after.get(key, NONE)
        for value in there - here:
            new[value] = new[value] - {key}
        for value in here - there:
            new[value] = new.get(value, NONE) | {key}
    return new


def _differing(table: Edges, other: Edges) -> set[str]:
    """The keys under which two tables have other values."""
    return set() if table is other else {key for key, _ in table.items() ^ other.items()}


def _changed(table: Edges, added: Edges, removed: Edges, gone: frozenset[str], name: str) -> Edges:
    """The table with this name without those removed, and without the IRIs that are gone, and then with those added."""
    if not (added or removed or gone):
        return table
    new = dict(table)
    if gone:
        keys_gone = NONE if name == "names" else gone  # the keys of names are no IRIs
        new = {key: values - gone for key, values in table.items() if key not in keys_gone}
    for key, values in removed.items():
        new[key] = new.get(key, NONE) - values
    for key, values in added.items():
        new[key] = new.get(key, NONE) | values
    return {key: values for key, values in new.items() if values}


def _table(rows: object) -> Edges:
    """A table as `to_json` wrote it. Raises `ValueError`."""
    if not isinstance(rows, dict):
        raise ValueError("a table of the taxonomy is no object")
    for key, values in rows.items():
        if not (isinstance(values, list) and all(isinstance(text, str) for text in (key, *values))):
            raise ValueError(f"{key!r} has no list of texts")
    return {key: frozenset(values) for key, values in rows.items()}


def _refuse_cycles(superclasses: Edges, roots: Iterable[str], equivalents: Edges) -> None:
    """Raise where a class at or above one of the roots is its own ancestor, other than as one that is the same: such
    classes are one, by the name of the first. The walk is depth first, without recursion."""
    done: set[str] = set()
    members: dict[str, set[str]] = {}
    name_of: dict[str, str] = {}
    for cls in equivalents:
        if cls not in name_of:
            same = reachable({cls}, lambda known: equivalents.get(known, NONE))
            members[min(same)] = same
            name_of.update(dict.fromkeys(same, min(same)))

    def above(cls: str) -> set[str] | frozenset[str]:
        if not members:
            return superclasses.get(cls, NONE)
        same = members.get(cls, {cls})
        return {name_of.get(parent, parent) for member in same for parent in superclasses.get(member, NONE) - same}

    for root in roots:
        way: list[str] = []
        on_way: set[str] = set()
        todo = [(name_of.get(root, root), False)]
        while todo:
            cls, leaving = todo.pop()
            if leaving:
                way.pop()
                on_way.discard(cls)
                done.add(cls)
            elif cls in on_way:
                cycle = [*way[way.index(cls) :], cls]
                if len(cycle) > _SHOWN:
                    missing = f"... ({len(cycle) - _SHOWN} more) ..."
                    cycle = [*cycle[: _SHOWN // 2], missing, *cycle[-_SHOWN // 2 :]]
                raise TaxonomyError(
                    f"the classes form a cycle: {' -> '.join(cycle)}", remedy="remove one of these subclass statements"
                )
            elif cls not in done:
                way.append(cls)
                on_way.add(cls)
                todo.append((cls, True))
                todo.extend((parent, False) for parent in sorted(above(cls)))
