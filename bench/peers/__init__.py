"""Systems that people use today for standing queries, measured beside the engine on the same workloads.

A system is a program that is started with a folder and talks in lines of JSON (`bench.peers.serving`):

    FOLDER/queries.jsonl        [id, [tuple, ...]]: all tuples have to hold in one publication
    FOLDER/publications.jsonl   [id, [[subject, predicate, object, words or null], ...]]

A tuple is `[subject, predicate, object]` or `[subject, predicate, variable, [word, ...]]`: the words are all in the one
literal. Terms are written as in N-Triples, `?x` is a variable, and `*` stands for anything. The words of a literal are
cut beforehand, and are null where it is no plain text.

The program says `{"seconds", "bytes"}` once it has registered all queries: how long that took, and by how much its
memory grew. Seconds are the processor's, of all its threads, so that other programs on the machine count little. Then
it answers each line of its input with `{"seconds"}`: `pass` after one pass through all publications, and `answers FILE`
after it has written there, for each publication, a line `[id, [query id, ...]]`. It ends when its input does. How to
add one: `docs/peers.md`.
"""
