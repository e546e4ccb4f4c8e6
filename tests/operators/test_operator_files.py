"""Operators of a Python file: `--operators FILE.py` for each command, what is wrong with a file, and the pipeline."""

from __future__ import annotations

import ast
import pickle
import subprocess
import sys
from pathlib import Path

import pytest

from cli.runner import triplewire
from triplewire import Engine
from triplewire.encode.schema import to_batch
from triplewire.errors import OperatorError
from triplewire.operators.files import OperatorFile, operators_of, read_operator_files
from triplewire.pipeline.filter import IndexFilter
from triplewire.pipeline.jobs import compile_filter
from triplewire.read import read

HOLDS = """
from __future__ import annotations
from dataclasses import dataclass
from triplewire.extend import Parameter

@dataclass
class Holds:
    name: str = "holds"
    parameters: tuple[Parameter, ...] = (Parameter("number"),)

    def evaluate(self, publication, arguments):
        text = next(t.object.lexical for t in publication.triples if t.predicate.value == "urn:x-true")
        return arguments[0].lexical in text.split()

operators = (Holds(),)
"""
OTHER = HOLDS.replace('"holds"', '"also"')
EVENTS = "".join(f'<urn:e{n}> <urn:x-true> "{n} 7" <urn:e{n}> .\n' for n in range(3))
QUERIES = {
    "one.pred": "holds(1)",
    "all.rq": 'SELECT ?e { ?e <urn:x-true> ?t FILTER op:holds("7") }',
    "two.gql": "SELECT ?e WHERE (?e, <urn:x-true>, ?t) AND CALL holds(2)",
    "both.pred": "holds(7), also(0)",
}
WANTED = {("urn:e1", "one"), ("urn:e2", "two"), ("urn:e0", "both"), *((f"urn:e{n}", "all") for n in range(3))}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory with publications, queries and two files of operators."""
    monkeypatch.chdir(tmp_path)
    Path("queries").mkdir()
    for name, text in {**{f"queries/{n}": q for n, q in QUERIES.items()}, "events.nq": EVENTS}.items():
        Path(name).write_text(text)
    Path("holds.py").write_text(HOLDS)
    Path("also.py").write_text(OTHER)
    return tmp_path


GIVEN = ("--subscriptions", "queries", "--publications", "events.nq")


@pytest.mark.parametrize(
    "more", [("--operators", "holds.py", "--operators", "also.py"), ("--operators=holds.py", "--operators=also.py")]
)
@pytest.mark.parametrize("matcher", ["reference", "trie"])
@pytest.mark.usefixtures("folder")
def test_match(matcher: str, more: tuple[str, ...]) -> None:
    done = triplewire("match", *GIVEN, "--matcher", matcher, "--format", "jsonl", *more)
    assert (done.code, done.err) == (0, "")
    assert {(row["publication"], row["subscription"]) for row in done.rows} == WANTED


@pytest.mark.usefixtures("folder")
def test_without_the_file_the_name_is_not_known() -> None:
    done = triplewire("match", *GIVEN, "--format", "jsonl", "--matcher", "reference")
    assert done.code == 1
    assert "there is no operator 'holds'; known: conforms, distanceFrom" in done.err


@pytest.mark.usefixtures("folder")
def test_explain() -> None:
    done = triplewire("explain", "--subscription", "one", *GIVEN, "--operators", "holds.py", "--operators", "also.py")
    assert done.code == 0
    assert done.out.count("one matches urn:e1") == 1
    assert done.out.count("one does not match") == 2
    assert 'holds("1") is false' in done.out


@pytest.mark.usefixtures("folder")
def test_the_filter_of_the_pipeline_takes_the_text_along() -> None:
    files = read_operator_files(["holds.py", "also.py"])
    packed = compile_filter("queries", operators=files)
    travelled: IndexFilter = pickle.loads(pickle.dumps(packed))  # as Spark sends it
    Path("holds.py").unlink()
    (batch, refused) = travelled([to_batch(list(read("events.nq")))])
    pairs = zip(batch.column("publication").to_pylist(), batch.column("subscription").to_pylist(), strict=True)
    assert set(pairs) == WANTED
    assert refused.num_rows == 0
    changed = compile_filter("queries", operators=(files[1], replace_text(files[0])))
    assert changed.version != packed.version
    assert compile_filter(Engine()).version == compile_filter(Engine(), operators=()).version


def replace_text(file: object) -> object:
    return type(file)(file.path, file.text + "\n")  # type: ignore[call-arg, attr-defined]  # an OperatorFile


@pytest.mark.usefixtures("folder")
def test_another_process_runs_the_text() -> None:
    """A worker has neither the file nor what this process has imported."""
    packed = compile_filter("queries", operators=read_operator_files(["holds.py", "also.py"]))
    Path("filter").write_bytes(pickle.dumps(packed))
    Path("holds.py").unlink()
    code = (
        "import pickle; from triplewire.encode.schema import to_batch; from triplewire.read import read;"
        "(found, _) = pickle.load(open('filter', 'rb'))([to_batch(list(read('events.nq')))]);"
        "print([(row['publication'], row['subscription']) for row in found.to_pylist()])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert set(ast.literal_eval(done.stdout)) == WANTED


WRONG = {
    "there is no such file": (None, "file.py: it cannot be read: no such file or directory"),
    "no Python": ("x = = 1\n", "file.py:1: it is no Python: invalid syntax"),
    "no UTF-8": (b"\xff\xfe", "it is no UTF-8 text"),
    "no attribute": ("x = 1\n", "it has no attribute 'operators'"),
    "not iterable": ("operators = 1\n", "its operators cannot be listed: TypeError"),
    "raises": ("x = 1\ny = 1 / 0\n", "file.py:2: it raised while it was run: ZeroDivisionError: division by zero"),
    "exits": ("raise SystemExit\n", "file.py:1: it raised while it was run: SystemExit"),
    "is cancelled": ("import asyncio\nraise asyncio.CancelledError\n", "it raised while it was run: CancelledError"),
    "exits while it is listed": ("operators = (exit(1) for _ in '1')\n", "cannot be listed: SystemExit: 1"),
    "imports what is not there": (
        "import no_such_module\n",
        "file.py:1: it raised while it was run: ModuleNotFoundError",
    ),
    "no operator": ("operators = [1]\n", "number 1 of its operators has no name of letters"),
    "a class": (HOLDS + "operators = (Holds,)\n", "number 1 of its operators is the class Holds, not an object of it"),
    "no parameters": (HOLDS + "operators = (Holds(parameters=['x']),)\n", "(holds) has no tuple of Parameter"),
    "no method": (HOLDS + "operators = (Holds(),)\nHolds.evaluate = None\n", "(holds) has no method evaluate"),
    "a name that no text can write": (HOLDS + "operators = (Holds('a b'),)\n", "('a b')"),
    "a name twice": (HOLDS + "operators *= 2\n", "the name 'holds' is taken by an operator of file.py"),
    "a name that is built in": (HOLDS + "operators = (Holds('locIn'),)\n", "'locIn' is taken by an installed operator"),
    "a budget of another name": (
        HOLDS + "Holds.budget_per_hours = 3\n",
        "'budget_per_hours', which means nothing",
    ),
    "retries of another name": (HOLDS + "Holds.retry = 3\n", "(holds) has an attribute 'retry', which means nothing"),
    "a timeout of another name": (HOLDS + "Holds.time_out = 3\n", "did you mean timeout?"),
    "a check of another name": (HOLDS + "Holds.check_constant = print\n", "did you mean check_constants?"),
    "a budget that is none": (
        HOLDS + "Holds.budget_per_hour = '3'\n",
        "(holds) has budget_per_hour = '3'",
    ),
    "other forms that are none": (
        HOLDS + "Holds.other_forms = (Parameter('x'),)\n",
        "(holds) has other_forms = (Parameter(name='x', unit=''),), which is no tuple of tuples of Parameter",
    ),
    "two forms of a length": (
        HOLDS + "Holds.other_forms = ((Parameter('x'),),)\n",
        "(holds) has two forms with as many parameters (1, 1)",
    ),
    "other forms of another name": (HOLDS + "Holds.other_form = ()\n", "did you mean other_forms?"),
    "retries without end": (
        HOLDS + "Holds.retries = 10**6\n",
        "which is not an integer from 0 to 10",
    ),
}


@pytest.mark.parametrize(("text", "said"), WRONG.values(), ids=WRONG.keys())
@pytest.mark.usefixtures("folder")
def test_what_is_wrong_with_a_file(text: str | bytes | None, said: str) -> None:
    if text is not None:
        Path("file.py").write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(OperatorError) as error:
        operators_of(read_operator_files(["file.py"]))
    assert said in str(error.value)
    assert error.value.remedy
    done = triplewire("match", *GIVEN, "--operators", "file.py")
    assert done.code == 2
    assert "Invalid value for --operators" in done.err


@pytest.mark.usefixtures("folder")
def test_attributes_of_ones_own_are_left_alone() -> None:
    own = "host, memo, names, versions_of, region, batch = 'h', {}, ['a'], {}, 1, 2"
    text = HOLDS.replace("    def evaluate", f"    {own}\n    def isolate(self): pass\n    def evaluate")
    assert "holds" in operators_of([OperatorFile("own.py", text)])


@pytest.mark.parametrize("matcher", ["reference", "trie"])
@pytest.mark.usefixtures("folder")
def test_a_built_in_operator_is_replaced_where_that_is_asked_for(matcher: str) -> None:
    Path("own.py").write_text(HOLDS.replace('"holds"', '"locIn"'))
    Path("near.pred").write_text("locIn(2)")
    given = ("--subscriptions", "near.pred", "--publications", "events.nq", "--operators", "own.py")
    done = triplewire("match", *given, "--matcher", matcher, "--format", "jsonl")
    assert (done.code, "or --replace-operators" in done.err) == (2, True)
    done = triplewire("match", *given, "--replace-operators", "--matcher", matcher, "--format", "jsonl")
    assert (done.code, done.err) == (0, "")
    assert [row["publication"] for row in done.rows] == ["urn:e2"]
    done = triplewire("explain", "--subscription", "near", *given, "--replace-operators")
    assert done.out.count("near matches urn:e2") == 1


@pytest.mark.usefixtures("folder")
def test_all_forms_are_listed() -> None:
    (row,) = [row for row in triplewire("operators", "--json").rows if row["name"] == "locWithin"]
    assert [formal["name"] for formal in row["parameters"]] == ["latitude", "longitude", "distance"]
    assert row["other_forms"] == [[{"name": "place", "unit": ""}, {"name": "distance", "unit": "m"}]]
    assert "place, distance (m)" in triplewire("operators").out


@pytest.mark.parametrize(("option", "name"), [("--stats", "deep"), ("--engine", "run/_learned.json")])
@pytest.mark.usefixtures("folder")
def test_what_is_nested_too_deeply_to_be_statistics(option: str, name: str) -> None:
    Path("run").mkdir()
    Path(name).write_text("[" * 200_000)
    done = triplewire("operators", option, name.removesuffix("/_learned.json"))
    assert (done.code, f"Invalid value for {option}" in done.err) == (2, True)


@pytest.mark.usefixtures("folder")
def test_replaced_operators_of_other_commands() -> None:
    Path("own.py").write_text(HOLDS.replace('"holds"', '"locIn"'))
    Path("queries/near.pred").write_text("locIn(2)")
    own = ("--operators", "own.py", "--operators", "holds.py", "--operators", "also.py", "--replace-operators")
    listed = triplewire("operators", *own, "--json")
    (row,) = [row for row in listed.rows if row["name"] == "locIn"]
    assert [parameter["name"] for parameter in row["parameters"]] == ["number"]
    assert triplewire("check", "queries", *own).code == 0
    assert triplewire("pipeline", "index", "--subscriptions", "queries", "--output", "index", *own).code == 0
    Path("more.pred").write_text("locIn(1)")
    assert triplewire("pipeline", "subscribe", "more.pred", "--index", "index", *own).code == 0
    assert triplewire("pipeline", "unsubscribe", "more", "--index", "index", *own).code == 0


@pytest.mark.usefixtures("folder")
def test_two_files_never_share_a_name() -> None:
    Path("again.py").write_text(HOLDS)
    done = triplewire("match", *GIVEN, "--operators", "holds.py", "--operators", "again.py", "--replace-operators")
    assert (done.code, "'holds' is taken by an operator of holds.py" in done.err) == (2, True)


@pytest.mark.parametrize("command", [("explain", "--subscription", "one", *GIVEN)])
@pytest.mark.usefixtures("folder")
def test_wrong_usage_of_the_other_commands(command: tuple[str, ...]) -> None:
    assert triplewire(*command, "--operators", "absent.py").code == 2
    pipeline = ("pipeline", "run", "--input", "events.nq", "--subscriptions", "queries", "--output", "out")
    assert triplewire(*pipeline, "--operators", "absent.py").code == 2
    assert not Path("out").exists()
