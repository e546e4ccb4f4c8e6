"""Run every kernel once: those that are on disk are loaded, the others are compiled and written.

It is done by a few matches in engines of its own, whose subscriptions and publications use all that there is to use.
The kernels of a matcher are run by its own samples (`triplewire.select.index.WarmUp`).
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from numba.core import event

from triplewire import kernel_cache, plugins
from triplewire.config import Settings
from triplewire.encode.schema import to_batch
from triplewire.engine.engine import Engine
from triplewire.model.operator import Argument, Parameter
from triplewire.model.publication import Publication
from triplewire.model.terms import Literal
from triplewire.operators.order import ORDERS
from triplewire.read import read
from triplewire.select.index import WarmedMaker

QUERIES = (
    "SELECT * { ?s <urn:p> ?o ; <urn:q> ?n FILTER ftcontains(?o, 'one two') FILTER(?n > 1) }",
    "SELECT * { ?s ?p ?o FILTER ftcontains(?o, 'one') FILTER(STRSTARTS(?o, 'one')) }",
    "SELECT * { ?a <urn:p> ?b . ?b <urn:p> ?c }",
    "SELECT ?a { { ?a <urn:p> ?b } UNION { ?a <urn:q> ?b } }",
    "ASK { ?a <urn:p> <urn:s> ; <urn:q> ?b }",
    "SELECT * { ?a <urn:p> ?b . ?b ?c ?d . ?d ?e ?f FILTER(?b != ?d) }",
)
GQL_QUERIES = (
    "SELECT ?d WHERE ((?s, <urn:d>, ?d) SUCHTHAT (?d > '2020-01-01T00:00:00Z'))",
    "SELECT ?n WHERE ((?s, <urn:q>, ?n) SUCHTHAT (?n > 1))",
    "SELECT ?n WHERE ((?s, <urn:q>, ?n) SUCHTHAT (?n = 2))",
    "SELECT ?s WHERE ((?s, <urn:q>, ?n) SUCHTHAT (?s ISA <= <urn:c>))",
)
DATA = b"""<urn:s> <urn:p> "one two" <urn:g> .
<urn:s> <urn:p> <urn:s> <urn:g> .
<urn:s> <http://www.w3.org/1999/02/22-rdf-syntax-ns#type> <urn:c> <urn:g> .
<urn:s> <urn:q> "2"^^<http://www.w3.org/2001/XMLSchema#integer> <urn:g> .
<urn:s> <urn:d> "2021-01-01T00:00:00Z"^^<http://www.w3.org/2001/XMLSchema#dateTime> <urn:g> .
"""
LARGE = b"".join(b'<urn:s> <urn:p> "one %d" <urn:g> .\n' % number for number in range(1_100))
_MANY = 300  # subscriptions: with so many, two segments are merged


class Each(event.Listener):
    """Calls `compiled` with the name of each kernel that has been compiled."""

    def __init__(self, compiled: Callable[[str], None]) -> None:
        self._compiled = compiled

    def on_start(self, event: event.Event) -> None:
        """A kernel is about to be compiled."""

    def on_end(self, event: event.Event) -> None:
        """It is compiled."""
        self._compiled(event.data["dispatcher"].py_func.__qualname__)


def run_kernels(compiled: Callable[[str], None] = lambda name: None) -> None:
    """Run all kernels, also those of the plug-ins that are installed; `compiled` gets the name of each that had to be
    compiled, which takes a few minutes for all."""
    with event.install_listener("numba:compile", Each(compiled)):
        for most in (Settings().max_bindings, 1):  # with 1, the bindings of matches are cut, which has kernels too
            engine = _engine(QUERIES, Settings(max_bindings=most))
            for query in GQL_QUERIES:
                engine.subscribe(query, "gql")
            _match(engine, DATA, LARGE)
            publications = list(read(DATA))
            list(engine.match(2 * publications))
            engine.match_batch(to_batch(publications), on_refusal=lambda refusal: None)
        many = [f"SELECT * {{ ?s <urn:p{number}> ?o ; <urn:q> ?n FILTER(?n > {number}) }}" for number in range(_MANY)]
        for query in many:
            engine.subscribe(query)
        with tempfile.TemporaryDirectory(prefix="triplewire-") as folder:
            file = Path(folder, "many.jsonl")
            rows = ({"id": f"f{n}", "language": "sparql", "query": query} for n, query in enumerate(many))
            file.write_text("".join(json.dumps(row) + "\n" for row in rows))
            engine.load_subscriptions(file)
            table = pa.table({"id": ["p"], "language": ["sparql"], "query": [QUERIES[0]]})
            pq.write_table(table, Path(folder, "one.parquet"))
            engine.load_subscriptions(Path(folder, "one.parquet"))
            engine.save(Path(folder, "saved"))
            Engine.load(Path(folder, "saved"))
        _match(engine, DATA, LARGE)
        for order in ORDERS:
            _call(order)
    run_matchers(compiled)


def run_missing(compiled: Callable[[str], None] = lambda name: None) -> None:
    """As `run_kernels`, but where ours are on disk, only kernels of matchers are run."""
    folder = kernel_cache.folder()
    is_there = folder is not None and kernel_cache.is_complete(folder)
    (run_matchers if is_there else run_kernels)(compiled)


def run_matchers(compiled: Callable[[str], None] = lambda name: None) -> None:
    """Run the kernels that only a matcher has, of all matchers that are installed."""
    with event.install_listener("numba:compile", Each(compiled)):
        for name, maker in plugins.loaded("matcher"):
            if isinstance(maker, WarmedMaker):
                _run(name, maker)


def load_kernels(compiled: Callable[[str], None] = lambda name: None) -> None:
    """Run those that most programs need, and load them so: a second or two. Others are loaded when they are needed."""
    with event.install_listener("numba:compile", Each(compiled)):
        _match(_engine(QUERIES[:5]), DATA, LARGE)
        maker = plugins.find("matcher", plugins.DEFAULT_MATCHER)
        if isinstance(maker, WarmedMaker):
            _run(plugins.DEFAULT_MATCHER, maker)


def _run(name: str, maker: WarmedMaker) -> None:
    """Run the kernels of a matcher. Where that fails, the others go on."""
    try:
        engine = Engine(matcher=name)
        for language, text in maker.warm_up.subscriptions:
            engine.subscribe(text, language)
        _match(engine, *maker.warm_up.documents)
    except OSError:
        raise  # as on a full disk
    except Exception as error:
        plugins.warn_of("matcher", name, error)


def _engine(queries: Sequence[str], settings: Settings | None = None) -> Engine:
    engine = Engine(settings=settings)
    for query in queries:
        engine.subscribe(query)
    return engine


def _match(engine: Engine, *documents: bytes) -> None:
    for document in documents:
        for result in engine.match_files(document):
            list(result)
            result.to_arrow()


def _call(order: str) -> None:
    """Match with operators, called in this order: two conjunctions, whose calls are true and false. The second time,
    the outcomes are known."""
    with tempfile.TemporaryDirectory(prefix="triplewire-") as folder:
        engine = Engine(operators={"is_one": _IsOne()}, operator_order=order, operator_cache=Path(folder, "cache"))
        for query in ("is_one(1), is_one(2)", "is_one(1), is_one(3)"):
            engine.subscribe(query, "predicates")
        for _ in range(2):
            list(engine.match(list(read(DATA))))


class _IsOne:
    """is_one(number)"""

    name = "is_one"
    parameters = (Parameter("number"),)
    version = "1"

    def evaluate(self, publication: Publication, arguments: Sequence[Argument]) -> bool:
        """Is the number 1?"""
        return arguments[0] == Literal("1")
