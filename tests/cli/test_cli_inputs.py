"""What a command is given: a query on the command line, addresses, contexts, taxonomies; inputs that hold nothing."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from contextlib import suppress
from pathlib import Path

import pytest

from cli.conftest import FILES
from cli.runner import triplewire
from triplewire.cli.pipeline.session import subscription_files
from triplewire.cli.report import MOST_KINDS
from triplewire.config import Settings

TITLES = "SELECT ?t WHERE { ?s <http://e.org/title> ?t }"


@pytest.mark.parametrize(
    "arguments",
    [
        [TITLES, "a.ttl", "b.ttl"],
        ["--query", TITLES, "a.ttl", "b.ttl"],
        ["--query", TITLES, "--publications", "a.ttl", "b.ttl"],
        ["--language", "SparQL", TITLES, "--publications", "a.ttl", "b.ttl"],
        ["--language", "Gql", "SELECT ?t WHERE (?s, <http://e.org/title>, ?t)", "a.ttl", "b.ttl"],
    ],
)
def test_a_query_on_the_command_line(folder: Path, arguments: list[str]) -> None:
    done = triplewire("match", *arguments)
    assert (done.code, done.err) == (0, "")
    assert [(row["subscription"], row["bindings"][0]["t"]["value"]) for row in done.rows] == [
        ("query", "Olympic games in Rio"),
        ("query", "Winter"),
    ]


def test_a_subscription_file_instead_of_a_query(folder: Path) -> None:
    done = triplewire("match", "title.rq", "a.ttl")
    assert [row["subscription"] for row in done.rows] == ["title"]


def test_a_query_beside_files_and_from_standard_input(folder: Path) -> None:
    row = json.dumps({"id": "other", "language": "SPARQL", "query": TITLES})
    done = triplewire("match", "--query", TITLES, "--subscriptions", "-", "--publications", "a.ttl", stdin=row.encode())
    assert [row["subscription"] for row in done.rows] == ["other", "query"]


def test_a_wrong_query_is_refused(folder: Path) -> None:
    done = triplewire("match", "SELECT ?t, ?u WHERE { ?s ?t ?u }", "a.ttl")
    assert (done.code, done.out) == (1, "")
    assert "refused subscription query:1:10: found ','" in done.err
    assert "did you mean SELECT ?t ?u?" in done.err


def test_a_language_without_a_query_is_refused(folder: Path) -> None:
    done = triplewire("match", "--language", "gql", "title.rq", "a.ttl")
    assert done.code == 2
    assert "--language: there is no query on the command line whose language this is" in done.err


@pytest.mark.parametrize("command", ["match", "explain"])
def test_an_address_is_not_fetched(folder: Path, command: str) -> None:
    done = triplewire(command, TITLES, "https://example.org/feed.xml")
    assert done.code == 2
    assert "https://example.org/feed.xml is an address, and nothing is fetched" in done.err
    assert "curl -sL https://example.org/feed.xml | triplewire" in done.err


@pytest.mark.parametrize(
    "address", ["jdbc:postgresql://db/users#queries", "sqlite:users.db#queries", "postgresql://db/x"]
)
def test_a_table_is_for_the_pipeline(folder: Path, address: str) -> None:
    done = triplewire("match", "--subscriptions", address, "a.ttl")
    assert done.code == 2
    assert f"{address} names a table or a topic, which only triplewire pipeline reads" in " ".join(done.err.split())


EMPTY = {"an empty folder": "empty", "an empty file": "nothing.ttl", "a page of JSON": "page.json", "a pipe": "-"}


@pytest.mark.parametrize("source", EMPTY.values(), ids=EMPTY)
@pytest.mark.parametrize("command", [["match", TITLES], ["explain", TITLES], ["read"]], ids=lambda command: command[0])
def test_nothing_in_is_said(folder: Path, command: list[str], source: str) -> None:
    (folder / "empty").mkdir()
    (folder / "nothing.ttl").touch()
    (folder / "page.json").write_text('{"error": "rate limit exceeded"}')
    done = triplewire(*command, source)
    assert done.code == 1
    assert not done.out or "the publication has no triples" in done.out
    assert len(done.err.splitlines()) == 1
    assert ("standard input" if source == "-" else source) in done.err
    allowed = triplewire(*command, source, "--allow-empty")
    assert allowed.code == (1 if source == "page.json" else 0)


def test_an_empty_file_beside_others_is_said(folder: Path) -> None:
    (folder / "nothing.ttl").touch()
    done = triplewire("match", TITLES, "a.ttl", "nothing.ttl")
    assert (done.code, len(done.rows)) == (1, 1)
    assert "refused publication nothing.ttl: the file is empty" in done.err


@pytest.mark.parametrize("source", ["empty", "nothing.jsonl", "nothing.rq", "blank.jsonl", "-"])
def test_no_subscription_is_said(folder: Path, source: str) -> None:
    (folder / "empty").mkdir()
    (folder / "nothing.jsonl").touch()
    (folder / "nothing.rq").touch()
    (folder / "blank.jsonl").write_text("\n")
    for command in (["match", "--publications", "a.ttl", "--subscriptions"], ["check"]):
        done = triplewire(*command, source)
        said = done.err if command[0] == "match" else done.out
        assert (done.code, len(said.splitlines())) == (1, 1)
        assert ("standard input" if source == "-" else source) in said
        assert triplewire(*command, source, "--allow-empty").code == (1 if source == "nothing.rq" else 0)


@pytest.mark.parametrize(("source", "said"), [
    ("empty", "warning empty: the folder holds no file"),
    ("nothing.jsonl", "warning nothing.jsonl: the file is empty"),
    ("blank.jsonl", "warning blank.jsonl: there is no subscription in it"),
])  # fmt: skip
def test_an_index_may_begin_without_subscriptions(folder: Path, source: str, said: str) -> None:
    (folder / "empty").mkdir()
    (folder / "nothing.jsonl").touch()
    (folder / "blank.jsonl").write_text("\n")
    built = triplewire("pipeline", "index", "--subscriptions", source, "--output", "index")
    changed = triplewire("pipeline", "subscribe", "--index", "index", source)
    assert (built.code, changed.code) == (0, 0)
    assert [done.err.splitlines()[0] for done in (built, changed)] == [said, said]
    full = triplewire("pipeline", "subscribe", "--index", "index", "title.rq")
    assert "warning" not in full.err


LINK = "it is a link to a folder, which is not followed: name that folder itself"
GONE = "cannot be read: No such file or directory"
LOCKED = "cannot be read: Permission denied"


def _boxes(folder: Path) -> None:
    """A folder with two folders, each with a publication and a query."""
    for name in ("box/one", "box/two"):
        (folder / name).mkdir(parents=True)
        (folder / name / f"{name[-3:]}.ttl").write_text(FILES["a.ttl"])
        (folder / name / f"{name[-3:]}.rq").write_text(TITLES)


def test_links_below_a_folder(folder: Path) -> None:
    """Those to folders are not followed, as they may lead in circles. What is left out is said."""
    _boxes(folder)
    (folder / "box/one/linked").symlink_to(folder / "box/two")
    (folder / "box/one/broken.rq").symlink_to("nowhere")
    (folder / "box/one/file.ttl").symlink_to(folder / "b.ttl")
    done = triplewire("match", "--subscriptions", "box/one", "--publications", "box/one")
    assert [(row["publication"].rsplit("/", 1)[1], row["subscription"]) for row in done.rows] == [
        ("file.ttl", "one"),
        ("one.ttl", "one"),
    ]
    assert {
        f"refused subscription broken box/one/broken.rq: it {GONE}",
        f"refused subscription box/one/linked: {LINK}",
        f"refused publication box/one/broken.rq: the file {GONE}",
        f"refused publication box/one/linked: {LINK}",
    } <= set(done.err.splitlines())
    assert f"box/one/linked: error: {LINK}" in triplewire("check", "box/one").out.splitlines()


UNREADABLE = [  # a command, what it says, and a text of the rest, which goes on
    ("read box --format nquads", f"refused publication box/two: the folder {LOCKED}", "one.ttl"),
    ("read box/two", f"refused publication box/two: the folder {LOCKED}", ""),
    ("read box/two/two.ttl a.ttl", f"refused publication box/two/two.ttl: the file {LOCKED}", "a.ttl"),
    ("match title.rq box/two a.ttl", f"refused publication box/two: the folder {LOCKED}", "a.ttl"),
    ("match box/two/two.rq a.ttl", f"refused subscription two box/two/two.rq: it {LOCKED}", ""),
    ("match box/two a.ttl", f"refused subscription box/two: the folder {LOCKED}", ""),
    ("match title.rq a.ttl --taxonomy box", f"triplewire: box/two: the folder {LOCKED}", ""),
    ("check box/two", "0 subscriptions: 1 error, 0 warnings", f"box/two: error: the folder {LOCKED}"),
]


def _without_rights() -> list[str]:
    """The command, as a user for whom folders may be locked."""
    command = [sys.executable, "-m", "triplewire"]
    if os.geteuid():
        return command
    if shutil.which("setpriv") is None:
        pytest.skip("there is no setpriv here, and root may read everything")
    rights = "-dac_override,-dac_read_search"
    return ["setpriv", "--bounding-set", rights, "--inh-caps", rights, *command]


@pytest.mark.skipif(os.name == "nt", reason="rights are set otherwise there")
@pytest.mark.usefixtures("without_kernels")
@pytest.mark.parametrize(("arguments", "said", "rest"), UNREADABLE, ids=[row[0] for row in UNREADABLE])
def test_what_may_not_be_read_is_said(folder: Path, arguments: str, said: str, rest: str) -> None:
    _boxes(folder)
    (folder / "box/two").chmod(0)
    done = subprocess.run([*_without_rights(), *arguments.split()], capture_output=True, text=True, check=False)
    (folder / "box/two").chmod(0o700)
    assert done.returncode == (74 if "--taxonomy" in arguments else 1)
    assert said in done.stderr.splitlines()
    assert rest in done.stdout


BEHIND_A_LOCK = [  # commands that name what lies in a folder that may not be looked into
    "match title.rq box/two/two.ttl --refusals told.jsonl",
    "pipeline run --input box/two/two.ttl --subscriptions title.rq --output out",
    "pipeline run --input box/two/*.ttl --subscriptions title.rq --output out --streaming",
    "backtest --subscription title.rq --archive box/two/two.ttl --output out.jsonl",
]


@pytest.mark.skipif(os.name == "nt", reason="rights are set otherwise there")
@pytest.mark.usefixtures("without_kernels")
@pytest.mark.parametrize("arguments", BEHIND_A_LOCK)
def test_what_lies_behind_a_locked_folder_may_be_there(folder: Path, arguments: str) -> None:
    _boxes(folder)
    (folder / "box/two").chmod(0)
    done = subprocess.run([*_without_rights(), *arguments.split()], capture_output=True, text=True, check=False)
    (folder / "box/two").chmod(0o700)
    assert "Permission denied" in done.stderr
    assert "box/two/" in done.stderr
    assert "no such file" not in done.stderr
    assert "not exist" not in done.stderr
    assert done.returncode in (1, 74)


PRINTING = """
print("loaded")

class Printing:
    name, parameters = "printing", ()

    def check_constants(self, arguments):
        print("checked")
        return ()

    def evaluate(self, publication, arguments):
        print("called")
        return True

operators = (Printing(),)
"""


@pytest.mark.parametrize("command", [["match"], ["explain", "--format", "json"]], ids=["match", "explain"])
def test_what_an_operator_prints_is_no_data(folder: Path, command: list[str]) -> None:
    (folder / "printing.py").write_text(f"{PRINTING}# {command}")  # a text is run once
    done = triplewire(
        *(*command, "--query", "printing()", "--language", "predicates", "--publications", "a.ttl"),
        *("--operators", "printing.py"),
    )
    assert (done.code, len(done.rows)) == (0, 1)
    assert set(done.err.split()) == {"loaded", "checked", "called"}
    for other in (["check", "a.ttl", "--json"], ["operators", "--json"]):
        assert all(triplewire(*other, "--operators", "printing.py").rows)


OPERATORS = """
from triplewire.extend import Parameter

class Failing:
    name, parameters = "failing", (Parameter("x"),)

    def evaluate(self, publication, arguments):
        raise RuntimeError("out of order")

operators = (Failing(),)
"""


def test_refusals_of_one_cause_are_counted(folder: Path) -> None:
    (folder / "failing.py").write_text(OPERATORS)
    (folder / "failing.pred").write_text("failing(1)")
    done = triplewire(
        *("match", "--subscriptions", "failing.pred", "--publications", "a.ttl", "b.ttl", "many.nq"),
        *("--operators", "failing.py", "--refusals", "refusals.jsonl"),
    )
    assert done.code == 1
    first, more = done.err.splitlines()
    assert "refused pair" in first
    assert more.startswith("... and 4 more of this kind: refused pairs: the operator failing failed")
    rows = [json.loads(line) for line in (folder / "refusals.jsonl").read_text().splitlines()]
    assert len({row["subject"] for row in rows}) == 5
    assert {row["kind"] for row in rows} == {"pair"}


def test_warnings_of_one_text_are_counted(folder: Path) -> None:
    rows = [{"id": f"q{n}", "language": "sparql", "query": f"ASK {{ ?s rss:titel {n} }}"} for n in range(5)]
    (folder / "typing.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    done = triplewire("match", "--subscriptions", "typing.jsonl", "--publications", "a.ttl")
    assert done.code == 0
    assert [line.partition(":")[0] for line in done.err.splitlines()] == [
        "warning subscription q0",
        "... and 4 more of this kind",
    ]


def test_warnings_of_very_many_texts_are_counted(folder: Path) -> None:
    """With a taxonomy that lacks their classes, subscriptions would fill the terminal."""
    ask = "SELECT * WHERE ((?s, <urn:p>, ?c) SUCHTHAT (?c ISA <= <http://example.org/C{}>))"
    rows = [{"id": f"q{n}", "language": "gql", "query": ask.format(n)} for n in range(MOST_KINDS + 5)]
    (folder / "classes.jsonl").write_text(
        "".join(json.dumps(row) + "\n" for row in [*rows, rows[-1] | {"id": "again"}])
    )
    (folder / "none.ttl").write_text("<urn:b> <http://www.w3.org/2000/01/rdf-schema#subClassOf> <urn:a> .")
    given = ("--subscriptions", "classes.jsonl", "--publications", "a.ttl")
    *told, more = triplewire("match", *given, "--taxonomy", "none.ttl").err.splitlines()
    assert len(told) == MOST_KINDS
    assert more == "... and 6 warnings of other kinds: triplewire check shows all"
    shown = triplewire("check", "classes.jsonl", "--taxonomy", "none.ttl")
    assert sum("knows no class" in line for line in shown.out.splitlines()) == MOST_KINDS + 6
    first, rest = triplewire("match", *given).err.splitlines()
    assert "no taxonomy is given" in first
    assert rest.startswith(f"... and {MOST_KINDS + 5} more of this kind: no taxonomy is given")


def test_contexts_and_taxonomies(folder: Path) -> None:
    (folder / "page.jsonld").write_text('{"@context": "https://e.org/c", "@id": "http://e.org/x", "title": "Mine"}')
    (folder / "context.json").write_text('{"@context": {"title": "http://e.org/title"}}')
    (folder / "more.tsv").write_text("http://e.org/Weather\thttp://e.org/Thing\n")
    context = ["--context", "https://e.org/c=context.json"]
    assert triplewire("match", TITLES, "page.jsonld", *context).rows[0]["publication"].endswith("page.jsonld")
    assert "Mine" in triplewire("read", "page.jsonld", *context).out
    assert triplewire("match", TITLES, "page.jsonld", "--context", "https://e.org/c=absent.json").code == 2
    isa = "SELECT ?s WHERE ((?s, *, *) SUCHTHAT (?s ISA <= <http://e.org/Thing>))"
    arguments = ["match", "--language", "gql", isa, "b.ttl", "--taxonomy"]
    assert len(triplewire(*arguments, "classes.tsv", "--taxonomy", "more.tsv").rows) == 1
    assert not triplewire(*arguments, "classes.tsv").rows


def test_only_matches_and_the_only_subscription(folder: Path) -> None:
    query = 'SELECT ?t { ?s <http://e.org/title> ?t FILTER ftcontains(?t, "winter") }'
    done = triplewire("explain", query, "a.ttl", "b.ttl", "--only-matches")
    assert done.code == 0
    assert done.out.count("query ") == done.out.count("query matches") == 1
    several = triplewire("explain", "--subscriptions", "title.rq", "--subscriptions", "year.gql", "a.ttl")
    assert several.code == 2
    assert "name one of the subscriptions: title, year" in several.err


def test_shell_completion() -> None:
    environment = {
        **os.environ,
        "_TRIPLEWIRE_COMPLETE": "complete_bash",
        "COMP_WORDS": "triplewire ch",
        "COMP_CWORD": "1",
    }
    done = subprocess.run(
        [sys.executable, "-m", "triplewire"], env=environment, capture_output=True, text=True, check=False
    )
    assert done.stdout.split() == ["check"], done.stderr


@pytest.mark.parametrize(("raised", "stays"), [(None, False), (KeyboardInterrupt, False), (ValueError, True)])
def test_the_log_of_a_command_that_reads_a_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, raised: type[BaseException] | None, stays: bool
) -> None:
    """What fails names the log."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    log = tmp_path / f"triplewire-spark-{os.getpid()}.log"
    with suppress(KeyboardInterrupt, ValueError), subscription_files([], Settings(), None, {}, ""):
        log.write_text("said by Spark")
        if raised is not None:
            raise raised
    assert log.exists() == stays


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("check", "ASK { ?s ?p ?o }"), 2, "ASK { ?s ?p ?o } does not exist; write the query into a file, query.rq"),
        (
            ("match", TITLES, "a.ttl", "--output", "gone/x.jsonl"),
            73,
            "gone/x.jsonl cannot be written: there is no folder {folder}/gone; name another place",
        ),
    ],
)
def test_what_is_not_there_is_named(folder: Path, arguments: tuple[str, ...], code: int, said: str) -> None:
    done = triplewire(*arguments)
    assert done.code == code
    assert said.replace("{folder}", str(folder)) in " ".join(done.err.split())
