"""Arrays of the index "trie" that belong together, as its kernels take them."""

from __future__ import annotations

from typing import Any, NamedTuple


class AtomTable(NamedTuple):
    """Where atoms lie (`triplewire.select.trie.atom_tables`)."""

    keys: Any  # atom -> its key (`triplewire.kernels.trie.stars`)
    slots: Any  # hash table over the keys
    asked: Any  # shape (terms + 2, 4)
    dense: Any


class RangeAtoms(NamedTuple):
    """The range atoms by predicate (`triplewire.select.trie.atom_tables`)."""

    offset: Any
    atom: Any
    test: Any  # shape (range atoms, 4): what each asks (`triplewire.kernels.trie.windows`)
    first: int  # the first range atom


class Sink(NamedTuple):
    """Where the atoms of a subject are collected."""

    seen: Any  # bits by atom, and one more, which stands for no atom
    wanted: Any  # shape (keys, 2): keys that are looked up in the hash table, and scratch
    atoms: Any


class RunAtoms(NamedTuple):
    """The atoms of each run of triples with one subject (`triplewire.select.trie.walk.SubjectAtoms`)."""

    first: Any  # run -> its first triple; one entry more
    publication_run: Any  # publication -> its slice of the runs
    atom_offset: Any  # run -> its slice of `atoms`
    atoms: Any
    span_offset: Any  # run -> its slice of `span_atom` and `span_ends`
    span_atom: Any
    span_ends: Any  # shape (range atoms, 2): the ranks that are satisfied; of windows, the triples with the values
    most: Any  # shape (runs, 4): the largest numbers of objects of one predicate
    multi: Any  # run -> do tests hold of two objects of one predicate?
    object: Any  # triple -> its object, as in the batch
    below: Any  # shape (range groups, terms): the places of values (`triplewire.clauses.features`)
    upto: Any


class Predicates(NamedTuple):
    """The subjects and predicates of a batch's triples."""

    subject: Any
    predicate: Any
    term: Any  # batch term -> the segment's term id, or -1


class TrieArrays(NamedTuple):
    """A set-trie (`triplewire.select.trie.build.SetTrie`)."""

    nodes: Any  # flat (`triplewire.kernels.trie.subsets`)
    root: Any
    before: int  # items of other tries, whose places come first
    need: Any
    subscription: Any
    tail: Any  # labels that are all to be there (`triplewire.kernels.trie.subsets`)
    star: Any  # row >> BLOCK -> the stars before those rows << BLOCK_ROWS, and the bits of those that are stars
    first_range: int
    range_test: Any  # shape (range atoms, 4): what each asks (`triplewire.kernels.trie.windows`)
    window_low: Any  # window -> the rank of its lower bound
    window_high: Any


class Bounds(NamedTuple):
    """The bounds of clauses (`triplewire.kernels.trie.bounds`), and what they say of the publication at hand. A verdict
    or a number of objects counts where it is marked with the publication's mark."""

    offset: Any
    bounds: Any
    verdict: Any  # bound -> mark << 2 | verdict
    most: Any  # predicate -> the most objects that a subject has
    stamp: Any  # predicate -> mark; the last one is of the publication itself


class WalkSpace(NamedTuple):
    """What one walk at a time works with (`triplewire.select.trie.walk.Workspace`). All bits are clear in between."""

    atom_bits: Any  # of the labels that are present
    star_bits: Any
    span_of: Any  # range atom -> its row in the spans
    queue: Any  # second words of nodes whose children are to be looked at
    hits: Any  # nodes reached
    odd: Any  # of these, those whose children are found in another way
    tails: Any  # tails whose first label is present
    rest: Any  # nodes whose items are not handed out at a glance
    reached_bits: Any  # of the nodes that earlier subjects of the publication have reached
    reached: Any  # and these nodes
    subscription_bits: Any  # to drop repetitions with
    clause_bits: Any


class WalkOutput(NamedTuple):
    """Where a walk puts what it finds."""

    subscription: Any  # accepted; those of a publication are the slice `offset`
    check: Any  # places of clauses to check; those of a publication are the slice `check_offset`
    star_list: Any
    offset: Any
    check_offset: Any
    visited: Any  # nodes; and the two ends that the last publication had, or would have had


class Limits(NamedTuple):
    """What bounds the solutions in the publication at hand."""

    mark: int
    subjects: int
    degree: int  # the most triples of a subject
    cap: int  # `max_bindings`
    safe: int  # clauses with codes up to this one have at most `cap` solutions
