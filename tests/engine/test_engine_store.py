"""What is saved comes back exactly; what is not a saved engine, or a damaged one, is refused by name."""

from __future__ import annotations

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from engine.samples import EX, RSS, Stub, item
from engine.store.manifests import change
from triplewire import IRI, Engine, Literal, Publication, Settings, Subscription, Taxonomy, Triple, parse
from triplewire.errors import StoreError, TriplewireError
from triplewire.extend import Argument, Parameter, Verdict
from triplewire.ir.nodes import ANY, Pattern

QUERIES = {
    "gql": f"SELECT * WHERE ((?a, <{EX}year>, ?c) SUCHTHAT (?c > 2003 AND ?a ISA <= <{EX}B>))",
    "sparql": 'PREFIX e: <http://example.org/> SELECT ?t { ?s e:year ?y ; rss:title ?t FILTER ftcontains(?t, "x*") }',
    "predicates": "mob(?p), ?p > 50",
}


def build(matcher: str) -> Engine:
    taxonomy = Taxonomy.build(
        [(EX + "A", EX + "B"), (EX + "B", EX + "C")], [(EX + "i", EX + "A")], [(EX + "A", "ä 'a'")]
    )
    engine = Engine(
        matcher=matcher,
        taxonomy=taxonomy,
        settings=Settings(max_bindings=7),
        operators={"mob": Stub("mob", 1, {"p": [], "q": []})},
    )
    # the rule comes before the one that it names
    late = f"search <{EX}T> t register t where t.<{EX}year> > 3"
    other = Engine()
    named = other.subscribe(late, "mdv", id="Late")
    engine.subscribe(named)
    engine.subscribe(f"search Late l register l where l.<{EX}year> < 9", "mdv", id="early")
    engine.unsubscribe("Late")
    engine.subscribe(named)
    for language, query in QUERIES.items():
        engine.subscribe(query, language, id=f"über {language}", prefixes={"z": EX}, base=EX)
    return engine


OPERATORS = {"mob": Stub("mob", 1, {"p": [], "q": []})}


def test_round_trip(matcher: str, tmp_path: Path) -> None:
    engine = build(matcher)
    assert [s.id for s in engine.subscriptions][:2] == ["early", "Late"]
    engine.save(tmp_path / "a")
    loaded = Engine.load(tmp_path / "a", operators=OPERATORS)
    assert loaded.subscriptions == engine.subscriptions
    assert [s.warnings for s in loaded.subscriptions] == [s.warnings for s in engine.subscriptions]
    loaded.save(tmp_path / "b")
    assert contents(tmp_path / "a") == contents(tmp_path / "b")  # matching learns of operators, and saves it
    publications = [item("p", "xyz", 5), item("q", "x")]
    assert list(loaded.match(publications)) == list(engine.match(publications))


@pytest.mark.parametrize("length", [12, 13, 16])
def test_a_long_cycle(matcher: str, length: int, tmp_path: Path) -> None:
    """The join network lists the solutions of cycles through up to twelve variables."""
    edges = [(number, (number + 1) % length) for number in range(length)]
    engine = Engine(matcher=matcher)
    engine.subscribe(f"SELECT * {{ {' . '.join(f'?v{a} <{EX}p{a}> ?v{b}' for a, b in edges)} }}", id="cycle")
    engine.subscribe(f"SELECT ?a {{ ?a <{EX}p0> ?b . ?b <{EX}p1> ?a }}", id="there and back")
    engine.save(tmp_path)
    triples = [Triple(IRI(f"{EX}{a}"), IRI(f"{EX}p{a}"), IRI(f"{EX}{b}")) for a, b in edges]
    (match,) = Engine.load(tmp_path).match(Publication("p", tuple(triples)))
    assert (match.subscription, len(match.bindings)) == ("cycle", 1)


def contents(folder: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in folder.iterdir()}


def test_an_empty_engine(matcher: str, tmp_path: Path) -> None:
    Engine(matcher=matcher).save(tmp_path)
    assert Engine.load(str(tmp_path)).subscriptions == ()


def test_saving_again_leaves_no_old_files(matcher: str, tmp_path: Path) -> None:
    engine = Engine(matcher=matcher)
    engine.save(tmp_path)
    engine.subscribe("SELECT * { ?s ?p ?o }", id="a")
    engine.save(tmp_path)
    each_once(tmp_path)
    assert [s.id for s in Engine.load(tmp_path).subscriptions] == ["a"]


def each_once(folder: Path) -> None:
    """No file of an earlier state is left, nor one half written."""
    parts = sorted(file.name.split(".")[0] or file.name for file in folder.iterdir())
    assert parts[0] == ".lock"
    assert parts[1:] in (["manifest", "subscriptions", "taxonomy"], ["index", "manifest", "subscriptions", "taxonomy"])


def test_settings_may_be_given_anew(matcher: str, tmp_path: Path) -> None:
    engine = Engine(matcher=matcher, settings=Settings(max_bindings=1))
    engine.subscribe("SELECT * { ?s ?p ?o }")
    engine.save(tmp_path)
    assert len(Engine.load(tmp_path).match(item("p", "x"))[0].bindings) == 1
    assert len(Engine.load(tmp_path, settings=Settings()).match(item("p", "x"))[0].bindings) == 3


def test_a_folder_of_something_else_is_not_touched(matcher: str, tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("dear")
    with pytest.raises(StoreError, match="no saved engine"):
        Engine(matcher=matcher).save(tmp_path)
    assert contents(tmp_path) == {"thesis.txt": b"dear"}
    (tmp_path / "file").write_text("x")
    with pytest.raises(StoreError, match="cannot be written"):
        Engine(matcher=matcher).save(tmp_path / "file")


def test_a_subscription_without_its_text_is_refused_before_anything_is_written(matcher: str, tmp_path: Path) -> None:
    engine = Engine(matcher=matcher)
    engine.subscribe(Subscription("hand", "sparql", "ASK { ?s ?p ?o }", (), Pattern(ANY, ANY, ANY), ask=True))
    with pytest.raises(StoreError, match="hand: its text does not give"):
        engine.save(tmp_path / "new")
    assert not (tmp_path / "new").exists()


def year_of(class_: str, most: int) -> str:
    return f"search {class_} r register r where r.<{EX}year> < {most}"


def test_a_rule_whose_rule_is_gone_keeps_its_meaning(matcher: str, tmp_path: Path) -> None:
    """One that is gone names another, gone or there; one has another meaning now; and all that again, twice."""
    engine = Engine(matcher=matcher)
    for id_, class_, most in [
        ("Gone", f"<{RSS}item>", 2_010), ("There", f"<{RSS}item>", 2_009), ("Other", f"<{RSS}item>", 2_008),
        ("over Gone", "Gone", 2_007), ("GoneToo", "There", 2_006), ("over both", "GoneToo", 2_005),
        ("over Other", "Other", 9_999),
    ]:  # fmt: skip
        engine.subscribe(year_of(class_, most), "mdv", id=id_)
    engine.subscribe(f"search Gone a, Other b register a where a.<{EX}year> < 2006", "mdv", id="of two")
    for id_ in ("Gone", "GoneToo", "Other"):
        assert engine.unsubscribe(id_)
    engine.subscribe(year_of(f"<{RSS}item>", 3), "mdv", id="Other")
    some = [item(f"p{year}", "x", year) for year in range(2_000, 2_012)]
    expected = [(match.publication, match.subscription) for match in engine.match(some)]
    assert {subscription for _, subscription in expected} >= {"over Gone", "over both", "over Other", "of two"}
    for folder in ("a", "b"):
        engine.save(tmp_path / folder)
        loaded = Engine.load(tmp_path / folder)
        assert loaded.subscriptions == engine.subscriptions
        assert [(match.publication, match.subscription) for match in loaded.match(some)] == expected
        engine = loaded
    engine.save(tmp_path / "c", index=False)
    assert Engine.load(tmp_path / "c").subscriptions == engine.subscriptions


def test_rules_of_a_file_keep_their_meaning(matcher: str, tmp_path: Path) -> None:
    rows = [("Gone", year_of(f"<{RSS}item>", 2_010)), ("over", year_of("Gone", 2_006))]
    lines = (json.dumps({"id": id_, "language": "mdv", "query": query}) for id_, query in rows)
    (tmp_path / "rules.jsonl").write_text("\n".join(lines))
    engine = Engine(matcher=matcher)
    assert engine.load_subscriptions(tmp_path / "rules.jsonl") == 2
    engine.unsubscribe("Gone")
    engine.save(tmp_path / "saved")
    loaded = Engine.load(tmp_path / "saved")
    assert [match.subscription for match in loaded.match(item("p", "x", 2_005))] == ["over"]
    assert not loaded.match(item("p", "x", 2_006)).matches


def test_more_rules_that_are_gone_than_can_be_written(tmp_path: Path) -> None:
    rule = parse(year_of(f"<{RSS}item>", 9), "mdv", id="R0")
    for number in range(1, 201):
        rule = parse(f"search R{number - 1} r register r", "mdv", id=f"R{number}", rules={rule.id: rule})
    engine = Engine(matcher="reference")
    engine.subscribe(rule)
    with pytest.raises(StoreError, match="it names a rule that is gone"):
        engine.save(tmp_path / "saved")


def test_a_rule_keeps_the_meaning_that_its_names_had(matcher: str, tmp_path: Path) -> None:
    """Rules in a chain, one that names a class which a later rule is called like, and one that names itself."""
    engine = Engine(matcher=matcher)
    for number in range(50):
        engine.subscribe(f"search R{number + 1} r register r where r.<{EX}year> > {number}", "mdv", id=f"R{number}")
    engine.subscribe(f"search R49 r register r where r.<{EX}year> > 50", "mdv", id="over")
    engine.subscribe(f"search itself r register r where r.<{EX}year> > 50", "mdv", id="itself")
    engine.save(tmp_path)
    assert Engine.load(tmp_path).subscriptions == engine.subscriptions


def test_compiled_rules_in_any_order(matcher: str, tmp_path: Path) -> None:
    other, engine = Engine(matcher=matcher), Engine(matcher=matcher)
    other.subscribe(f"search <{EX}T> t register t where t.<{EX}year> > 0", "mdv", id="R0")
    for number in range(1, 20):
        text = f"search R{number - 1} r register r where r.<{EX}year> > {number}"
        other.subscribe(text, "mdv", id=f"R{number}")
    for one in reversed(other.subscriptions):
        engine.subscribe(one)
    engine.save(tmp_path)
    assert Engine.load(tmp_path).subscriptions == engine.subscriptions


def edit(name: str, change: Callable[[str], str]) -> Callable[[Path], None]:
    def damage(folder: Path) -> None:
        (file,) = folder.glob(name)
        file.write_text(change(file.read_text("utf-8")), "utf-8")

    return damage


def manifest(**changes: object) -> Callable[[Path], None]:
    return lambda folder: change(folder, lambda content: content.update(changes))


def without_hash(text: str) -> str:
    return json.dumps({key: value for key, value in json.loads(text).items() if key != "sha256"})


def remove(name: str) -> Callable[[Path], None]:
    def damage(folder: Path) -> None:
        for file in folder.glob(name):
            file.unlink()

    return damage


DAMAGE = {
    "no manifest": (remove("manifest.json"), "there is no manifest.json"),
    "nothing": (remove("*"), "there is no manifest.json"),
    "manifest cut": (edit("manifest.json", lambda text: text[:-9]), "manifest.json: it is damaged: it is no JSON"),
    "manifest nested": (edit("manifest.json", lambda text: "[" * 200_000), "it is no JSON"),
    "foreign": (manifest(format="recipes"), "not the manifest of a saved engine"),
    "a list": (edit("manifest.json", lambda text: "[]"), "not the manifest of a saved engine"),
    "newer": (manifest(version=4), "version 4, and this Triplewire reads up to 3"),
    "another setting, and not its hash": (
        edit("manifest.json", lambda text: text.replace('"max_bindings": 7', '"max_bindings": 8')),
        "manifest.json: it is damaged: its content is not what was saved",
    ),
    "no hash": (edit("manifest.json", lambda text: without_hash(text)), "its SHA-256 differs"),
    "no version": (manifest(version=None), "states no version"),
    "no matcher": (manifest(matcher=None), "names no matcher"),
    "unknown matcher": (manifest(matcher="magic"), "no matcher named 'magic'"),
    "unknown setting": (manifest(settings={"max_fun": 1}), "settings"),
    "no files": (manifest(files={}), "names no file of subscriptions"),
    "a file elsewhere": (
        manifest(files={"subscriptions": {"name": "../x", "sha256": ""}, "taxonomy": {}}),
        "the file ../x is missing",
    ),
    "subscriptions gone": (remove("subscriptions.*"), "is missing"),
    "taxonomy gone": (remove("taxonomy.*"), "is missing"),
    "a query changed": (edit("subscriptions.*", lambda text: text.replace("2003", "2004")), "the SHA-256 differs"),
    "taxonomy cut": (edit("taxonomy.*", lambda text: text[:-3]), "the SHA-256 differs"),
}


@pytest.mark.parametrize(("damage", "said"), DAMAGE.values(), ids=DAMAGE.keys())
def test_damage_is_named(matcher: str, tmp_path: Path, damage: Callable[[Path], None], said: str) -> None:
    build(matcher).save(tmp_path)
    damage(tmp_path)
    with pytest.raises(TriplewireError) as caught:
        Engine.load(tmp_path, operators=OPERATORS)
    assert said in str(caught.value)


def test_no_directory(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="no saved engine"):
        Engine.load(tmp_path / "nowhere")


def test_an_operator_is_missing(matcher: str, tmp_path: Path) -> None:
    build(matcher).save(tmp_path)
    with pytest.raises(StoreError, match="mob"):
        Engine.load(tmp_path, operators={})


class Near:
    """An operator that keeps what it was asked; it takes no constant that it is told to refuse."""

    name = "near"

    def __init__(self, unit: str, refused: str = "") -> None:
        self.parameters = (Parameter("distance", unit=unit),)
        self.asked: list[str] = []
        self.refused = refused

    def check_constants(self, arguments: tuple[Argument, ...]) -> tuple[str, ...]:
        """Refuse the one."""
        if any(isinstance(term, Literal) and term.lexical == self.refused for term in arguments):
            raise ValueError("not that one")
        return ()

    def evaluate(self, publication: Publication, arguments: tuple[Argument, ...]) -> Verdict:
        """True, and kept."""
        self.asked += [term.lexical for term in arguments if isinstance(term, Literal)]
        return True


@pytest.mark.parametrize("index", [True, False])
def test_operators_of_other_units_get_what_the_texts_say_now(matcher: str, index: bool, tmp_path: Path) -> None:
    engine = Engine(matcher=matcher, operators={"near": Near("m")})
    engine.subscribe("near(5 km)", "predicates", id="n")
    engine.save(tmp_path, index=index)
    for unit, asked in (("m", "5000"), ("km", "5")):
        near = Near(unit)
        assert len(Engine.load(tmp_path, operators={"near": near}).match(item("p", "x"))) == 1
        assert near.asked == [asked]
    with pytest.raises(StoreError, match=r"'n' cannot be compiled again.*'km' measures length"):
        Engine.load(tmp_path, operators={"near": Near("kg")})


@pytest.mark.parametrize(("before", "after"), [(2, 64), (64, 2)])
def test_other_limits_of_branches(matcher: str, before: int, after: int, tmp_path: Path) -> None:
    """The clauses of a subscription depend on them."""
    engine = Engine(matcher=matcher, settings=Settings(max_branches=before))
    values = 'VALUES ?t { "a" "b" "bd" } ?s rss:title ?t FILTER (!regex(?t, "d"))'
    engine.subscribe(f"SELECT ?t {{ {values} }}", id="one of three")
    engine.save(tmp_path)
    loaded = Engine.load(tmp_path, settings=Settings(max_branches=after))
    for title, count in (("a", 1), ("bd", 0), ("c", 0)):
        assert [len(one.match(item("p", title))) for one in (engine, loaded)] == [count] * 2


LATER_REFUSED = {
    "residual": ('SELECT ?t { ?s rss:title ?t FILTER (!regex(?t, "q")) }', "sparql"),
    "evaluated": (f"SELECT ?t {{ ?s rss:title ?t FILTER NOT EXISTS {{ ?s <{EX}no> ?o }} }}", "sparql"),
    "made": (f"CONSTRUCT {{ ?s <{EX}t> ?t }} {{ ?s rss:title ?t . ?s <{EX}year> ?o }}", "sparql"),
    "cut": ("SELECT * { ?subject ?predicate ?object . ?another ?with ?its }", "sparql"),
    "called": ("near(5 km), near(6000 m)", "predicates"),
    "called and more": (
        f"SELECT * {{ ?s <{EX}year> ?object FILTER op:near(7) FILTER NOT EXISTS {{ ?s ?s ?s }} }}",
        "sparql",
    ),
}


@pytest.mark.parametrize("later", [{"max_query_bytes": 16}, {"max_patterns": 1, "max_query_depth": 1}, {}], ids=str)
def test_a_text_that_is_refused_later_refuses_no_more_than_its_own_pairs(later: dict[str, int], tmp_path: Path) -> None:
    engine = Engine(settings=Settings(max_bindings=2), operators={"near": Near("m")})
    for id_, (query, language) in LATER_REFUSED.items():
        engine.subscribe(query, language, id=id_)
    engine.subscribe("ASK { ?s ?p ?o }", id="short")
    assert len(engine.match(item("p", "x"))) == 7
    engine.save(tmp_path)
    loaded = Engine.load(tmp_path, settings=Settings(max_bindings=2, **later), operators={"near": Near("m", "7")})
    result = loaded.match([item("p", "x"), item("q", "x")])
    refused = {refusal.subject.partition(" ")[2] for refusal in result.refusals}
    matched = {match.subscription: match for match in result}
    assert refused.isdisjoint(matched)
    assert {*refused, *matched} == {*LATER_REFUSED, "short"}
    assert refused >= ({"residual", "evaluated"} if "max_query_bytes" in later else {"called and more"})
    assert matched["short"].bindings == engine.match(item("p", "x"))[-1].bindings
    assert matched["made"].construct or matched["made"].truncated
    assert matched["cut"].truncated
    assert len(result.to_arrow()) == len(result)


def test_threads_save_and_load_one_directory(matcher: str, tmp_path: Path) -> None:
    """Each load sees one state or another, whole."""
    engines = [Engine(matcher=matcher), Engine(matcher=matcher)]
    for number, engine in enumerate(engines):
        for value in range(20 + number):
            engine.subscribe(f"ASK {{ ?s ?p {value} }}")
    engines[0].save(tmp_path / "a")

    def save(number: int) -> None:
        for _ in range(10):
            engines[number].save(tmp_path / "a")

    with ThreadPoolExecutor(2) as pool:
        saves = [pool.submit(save, number) for number in range(2)]
        seen = {len(Engine.load(tmp_path / "a").subscriptions) for _ in range(20)}
        for one in saves:
            one.result()
    assert seen <= {20, 21}
    each_once(tmp_path / "a")
