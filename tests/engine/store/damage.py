"""Opens damaged copies of a saved engine, many in one process, and says how each ends. Run as a program.

    python damage.py KIND FOLDER COUNT SEED       prints {outcome: [how many, some of the cases]} as JSON

Each group of cases is tried in a child process, so that one that ends in a signal is told, and the rest goes on. The
kernels are loaded before, once. A case is right where opening is refused with `StoreError`, or all answers are those of
the engine as it was saved. Kinds:

    digits    each digit of the manifest, replaced by each other digit
    flips     random bits of all files
    spread    single bits evenly over the index; of all files, the CRC-32 alone is asked for
    arrays    numbers of each array replaced, with all hashes made to fit: nobody can say that the answers are wrong,
              so "ended" counts as well, which is matching without a signal or an error that is not ours
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from triplewire import IRI, Engine, Literal, Publication, Taxonomy, Triple
from triplewire.engine.store import directory
from triplewire.engine.store.arrays import map_arrays
from triplewire.engine.store.manifest import MANIFEST, manifest_text, read_manifest
from triplewire.errors import StoreError, TriplewireError
from triplewire.model.terms import RDF_TYPE, XSD

EX = "http://example.org/"
GROUP = 500  # cases of one child process
SECONDS = 20  # that one case may take
Attempt = Callable[[Any], str]


def build(many: int) -> Engine:
    """An engine whose index has arrays of all sorts. `many`: how many subscriptions of each sort."""
    taxonomy = Taxonomy.build(
        [(EX + "A", EX + "B"), (EX + "B", EX + "C")], [(EX + "i", EX + "A")], [(EX + "A", "alpha")]
    )
    engine = Engine(taxonomy=taxonomy)
    texts = [
        "SELECT ?t {{ ?s e:title ?t ; e:year ?y FILTER ftcontains(?t, 'w{n}') FILTER(?y > {n}) }}",
        "ASK {{ ?s e:title ?t FILTER ftcontains(?t, 'w{m}*') FILTER ftcontains(?t, 'word' USING STEMMING 'en') }}",
        "SELECT ?s {{ ?s e:title ?t FILTER CONTAINS(?t, 'x{n}') FILTER(LANG(?t) = 'en') }}",
        "SELECT ?a ?b {{ ?a e:p{m} ?b . ?b e:q{m} ?c }}",
        "SELECT ?a ?c {{ ?a e:p{m} ?b . ?b e:back ?a ; ?c ?d }}",
        "SELECT ?a ?d {{ ?a e:p{m} ?b . ?c e:q{m} ?d . ?e e:title ?f }}",
        "ASK {{ ?s e:p{m} {n} }}",
        "SELECT ?s {{ {{ ?s e:p{m} {n} }} UNION {{ ?s e:q{m} 'v{n}' }} }}",
        "SELECT ?s {{ ?s ?p ?o FILTER(?o >= {n}) FILTER(?o < {m}000) }}",
        "SELECT ?s {{ ?s e:day ?d FILTER(?d < '20{k}-01-01T00:00:00Z'^^xsd:dateTime) ; e:p{m} ?x }}",
        "SELECT ?s {{ ?s e:p{m} ?x OPTIONAL {{ ?x e:q{m} ?y }} FILTER(STRLEN(STR(?x)) > {k}) }}",
        "SELECT ?s {{ ?s a e:K{m} ; e:p1 ?x ; e:p2 ?y FILTER(STRSTARTS(?x, 'v{k}')) }}",
    ]
    head = f"PREFIX e: <{EX}> PREFIX xsd: <{XSD}> "
    for n in range(many):
        for number, text in enumerate(texts):
            text = text.format(n=n, m=n % 11, k=10 + n % 90).replace(" ; e:p", " . ?s e:p", 1)
            try:
                engine.subscribe(head + text, id=f"q{number}-{n}")
            except TriplewireError:
                engine.subscribe(head + f"ASK {{ ?s e:r{n} ?o }}", id=f"q{number}-{n}")
        gql = f"SELECT * WHERE ((?a, <{EX}year>, ?c) SUCHTHAT (?c > {n} AND ?a ISA <= <{EX}{'ABC'[n % 3]}>))"
        engine.subscribe(gql, "gql", id=f"g{n}")
        engine.subscribe(f"(x, <{EX}p{n % 11}>, {n})".join(("SELECT * WHERE ", "")), "gql", id=f"h{n}")
        engine.subscribe(f"search <{EX}K{n % 11}> c register c where c.<{EX}p{n % 11}> > {n}", "mdv", id=f"m{n}")
    engine.subscribe(f"search m0 l register l where l.<{EX}year> < 9", "mdv", id="over")
    return engine


def publications() -> list[Publication]:
    """Some that match a part of them."""
    drawn, some = random.Random(1), []
    for number in range(12):
        subject, triples = IRI(f"{EX}s{number}"), []
        for _ in range(12):
            m = drawn.randrange(11)
            triples.append(Triple(subject, IRI(f"{EX}p{m}"), Literal(str(drawn.randrange(60)), XSD + "integer")))
            triples.append(Triple(subject, IRI(f"{EX}q{m}"), Literal(f"v{drawn.randrange(60)}")))
            triples.append(Triple(subject, IRI(f"{EX}p{m}"), IRI(f"{EX}t{m}")))
            triples.append(Triple(IRI(f"{EX}t{m}"), IRI(f"{EX}q{m}"), Literal("end")))
            triples.append(Triple(IRI(f"{EX}t{m}"), IRI(f"{EX}back"), subject))
        title = " ".join(f"w{drawn.randrange(60)} x{drawn.randrange(60)}" for _ in range(5)) + " words"
        triples += [
            Triple(subject, IRI(f"{EX}title"), Literal(title, language="en") if number % 2 else Literal(title)),
            Triple(subject, IRI(f"{EX}year"), Literal(str(drawn.randrange(60)), XSD + "integer")),
            Triple(subject, IRI(f"{EX}day"), Literal("2015-01-01T00:00:00Z", XSD + "dateTime")),
            Triple(subject, RDF_TYPE, IRI(EX + ("A" if number % 3 else f"K{number % 11}"))),
        ]
        some.append(Publication(f"p{number}", tuple(dict.fromkeys(triples))))
    return some


def answers(engine: Engine) -> list[object]:
    """All matches, with their bindings as a set, and refusals."""
    result = engine.match(publications())
    found: list[object] = [
        (one.publication, one.subscription, one.truncated, frozenset(frozenset(b.items()) for b in one.bindings))
        for one in result
    ]
    return found + [str(refusal) for refusal in result.refusals]


def ended(folder: Path, right: Sequence[object], verify: bool) -> str:
    """How opening an engine, and matching with it, ends."""
    try:
        engine = Engine.load(folder, verify=verify)
    except StoreError:
        return "refused"
    except TriplewireError as error:
        return f"refused as {type(error).__name__}"
    except Exception as error:  # whatever it is, it is told
        return f"raw {type(error).__name__}: {error}"
    try:
        return "right" if answers(engine) == right else "wrong"
    except Exception as error:
        return f"raw {type(error).__name__} while matching: {error}"


# --- many cases ------------------------------------------------------------------------------------------------------


def tried(cases: Sequence[Any], attempt: Attempt) -> Iterator[tuple[Any, str]]:
    """The outcome of each case, or the signal in which its process ended."""
    at = 0
    while at < len(cases):
        group = cases[at : at + GROUP]
        read, write = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(read)
            for case in group:
                signal.alarm(SECONDS)
                os.write(write, json.dumps(attempt(case)[:200]).encode() + b"\n")
            os._exit(0)
        os.close(write)
        done = 0
        with open(read) as lines:
            for line in lines:
                yield group[done], json.loads(line)
                done += 1
        _, status = os.waitpid(child, 0)
        if done < len(group):
            yield group[done], f"signal {os.waitstatus_to_exitcode(status)}"
            done += 1
        at += done


def flipped(file: Path, bit: int, attempt: Callable[[], str]) -> str:
    """The outcome with one bit of a file changed."""
    with open(file, "r+b") as stream:
        for changed in (True, False):
            stream.seek(bit >> 3)
            byte = stream.read(1)[0]
            stream.seek(bit >> 3)
            stream.write(bytes([byte ^ 1 << (bit & 7)]))
            stream.flush()
            if changed:
                outcome = attempt()
    return outcome


def data_files(folder: Path) -> list[Path]:
    """The files of a saved engine, without the lock."""
    return sorted(file for file in folder.iterdir() if not file.name.startswith("."))


def digits(folder: Path, right: Sequence[object], count: int, drawn: random.Random) -> Iterator[tuple[Any, str]]:
    """Each digit of the manifest."""
    file = folder / MANIFEST
    text = file.read_bytes()

    def attempt(case: tuple[int, int, bool]) -> str:
        place, digit, verify = case
        file.write_bytes(text[:place] + b"%d" % digit + text[place + 1 :])
        return ended(folder, right, verify)

    places = [place for place, byte in enumerate(text) if chr(byte).isdigit()]
    cases = [(p, d, d % 2 > 0) for p in places for d in range(10) if d != text[p] - 48]
    yield from tried(cases if not count else drawn.sample(cases, min(count, len(cases))), attempt)
    file.write_bytes(text)


def flips(folder: Path, right: Sequence[object], count: int, drawn: random.Random) -> Iterator[tuple[Any, str]]:
    """Random bits, in each file as many as it has its share of, but for the manifest, which gets a tenth."""
    files = data_files(folder)
    sizes = [file.stat().st_size for file in files]
    weights = [size if file.name != MANIFEST else sum(sizes) // 10 for file, size in zip(files, sizes, strict=True)]
    cases = []
    for number in drawn.choices(range(len(files)), weights, k=count):
        bit = drawn.randrange(8 * sizes[number])
        cases += [(number, bit, verify) for verify in (False, True)]
    yield from tried(cases, lambda case: flipped(files[case[0]], case[1], lambda: ended(folder, right, case[2])))


def spread(folder: Path, right: Sequence[object], count: int, drawn: random.Random) -> Iterator[tuple[Any, str]]:
    """Single bits of the index, evenly over it."""
    directory.SMALL = -1
    (file,) = folder.glob("index.*")
    size = 8 * file.stat().st_size
    bits = [size * number // count + drawn.randrange(size // count) for number in range(count)]
    yield from tried(bits, lambda bit: flipped(file, bit, lambda: ended(folder, right, False)))


def arrays(folder: Path, right: Sequence[object], count: int, drawn: random.Random) -> Iterator[tuple[Any, str]]:
    """Numbers of each array, with hashes that fit."""
    manifest = read_manifest(folder)
    (file,) = folder.glob("index.*")
    content, whole = file.read_bytes(), map_arrays(file, manifest["index"]["arrays"]).arrays
    cases = [(name, place, drawn.randrange(1 << 30)) for name in whole if whole[name].size for place in range(count)]

    def attempt(case: tuple[str, int, int]) -> str:
        name, kind, seed = case
        array, own = whole[name].copy().reshape(-1), random.Random(seed)
        places = [own.randrange(len(array)) for _ in range(1 + kind % 3)]
        for place in places:
            array[place] = _other(array[place], array, own)
        begin = manifest["index"]["arrays"][name][2]
        aside = folder.with_name("changed.bin")
        aside.write_bytes(content[:begin] + array.tobytes() + content[begin + array.nbytes :])
        os.replace(aside, file)  # an engine that is still open has mapped the other one
        size, sha, crc = directory._hashes(file)
        entry = {**manifest["files"]["index"], "bytes": size, "sha256": sha, "crc32": crc}
        files = {**manifest["files"], "index": entry}
        (folder / MANIFEST).write_bytes(manifest_text({**manifest, "files": files}))
        outcome = ended(folder, right, False)
        return "ended" if outcome == "wrong" else outcome

    yield from tried(cases, attempt)


def _other(value: Any, array: Any, drawn: random.Random) -> Any:
    """Another number in its place: near to it, one that is elsewhere in the array, an extreme one, or with a bit
    changed."""
    if array.dtype.kind not in "iu":
        return array[drawn.randrange(len(array))] if drawn.random() < 0.5 else array.dtype.type(not value)
    limits, number, elsewhere = np.iinfo(array.dtype), int(value), int(array[drawn.randrange(len(array))])
    bit = number ^ 1 << drawn.randrange(8 * array.itemsize - 1)
    other = drawn.choice([number + 1, number - 1, elsewhere, limits.max, limits.min, bit])
    return array.dtype.type(min(max(other, limits.min), limits.max))


KINDS = {"digits": digits, "flips": flips, "spread": spread, "arrays": arrays}


def main(kind: str, folder: str, count: str, seed: str) -> None:
    """Try the cases of a kind, and print the outcomes."""
    right = answers(Engine.load(folder, verify=True))
    assert len(right) > 100
    outcomes: dict[str, list[Any]] = {}
    for case, outcome in KINDS[kind](Path(folder), right, int(count), random.Random(int(seed))):
        outcomes.setdefault(outcome, []).append(case)
    print(json.dumps({outcome: [len(cases), *cases[:3]] for outcome, cases in outcomes.items()}))


if __name__ == "__main__":
    main(*sys.argv[1:])
