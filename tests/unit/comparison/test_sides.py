"""Two sides in one run."""

from __future__ import annotations

import argparse
import csv
import io
import json
import sys
from collections import Counter
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from msgspec import structs
from result_rows import slow_result
from simulated_runs import SCENARIO, Store, reads

from ssbench.base.errors import ClusterError, GateResult, UsageError
from ssbench.cli import auth_options, sides
from ssbench.comparison.archive import make_earlier_run, make_entry
from ssbench.comparison.comparison_verdict import Word, judge_change_condition, judge_comparison
from ssbench.comparison.noise_floor import NoiseFloors
from ssbench.comparison.sides import _difference, compare_sides, measure_side_differences
from ssbench.reports import products, run_tables
from ssbench.reports import writing as reports
from ssbench.reports.key_figures import format_object_path
from ssbench.reports.products import Product
from ssbench.reports.writing import ReportOptions
from ssbench.results.block import ResultBlock, RowCollector
from ssbench.results.export import write_csv
from ssbench.results.reading import open_results
from ssbench.results.run_description import RunDescription, RunSummary
from ssbench.results.writer import RunResultsWriter
from ssbench.run.group_run import (
    ContainerSet,
    halve_scenario,
    make_group_runs,
    make_run_parameters,
    make_users_even,
    merge_container_sets,
    refuse_sides,
)
from ssbench.run.options import BenchOptions, RunOptions, RunSide, recorded_options
from ssbench.run.run_records import make_run_description
from ssbench.run.tokens import TokenSource
from ssbench.scenario.conditions import parse_condition
from ssbench.scenario.draws import Arrivals
from ssbench.scenario.model import Scenario, SizeClass, Stage, UserGroup, make_owner
from ssbench.scenario.operations import READ
from ssbench.statistics.collector import ObjectCounts
from ssbench.statistics.latencies import select_latencies
from ssbench.statistics.run_verdict import Outcome
from ssbench.statistics.summary import make_collector, make_statistics
from ssbench.store.credentials import Credentials, Session
from ssbench.store.swift.auth import authenticate_swift

NAMES = ("old", "new")


def words(seed, change, floors=None, store=None, count=40):
    """The words for p50 of runs of a minute."""
    random = np.random.default_rng(seed)
    runs = (reads(random, 60, change, sides=NAMES, store=store) for _ in range(count))
    return [compare_sides(each, floors=floors).find(None, None, "p50").word for each in runs]


def test_sides_that_are_alike_are_seldom_called_different():
    assert sum(word != "no difference shown" for word in words(1, 1.0)) <= 5


def test_a_sixth_is_found_in_a_minute():
    assert words(2, 1.16).count("slower") >= 36


def history(random, count, store=None):
    """Earlier runs in which nothing was changed."""
    return NoiseFloors(
        [
            [
                make_earlier_run(make_entry(reads(random, 60, sides=NAMES, store=store), "f", 1, 1))
                for _ in range(count)
            ]
        ]
    )


def test_earlier_equal_runs_tell_what_differs_from_run_to_run():
    """The noise of a side that lasts as long as a run is not in the run."""
    store = Store(alike=0.95, own=True, placement=0.02)
    random = np.random.default_rng(5)
    without = sum(word != "no difference shown" for word in words(6, 1.0, store=store))
    floors = [history(random, 8, store) for _ in range(4)]
    with_history = sum(
        word != "no difference shown"
        for seed, each in enumerate(floors, 6)
        for word in words(seed, 1.0, each, store, count=10)
    )
    assert without >= 4
    assert with_history <= 3


def test_ten_per_cent_are_found_with_earlier_runs():
    floors = history(np.random.default_rng(5), 8)
    assert words(2, 1.1, floors).count("slower") >= 34
    said = compare_sides(reads(np.random.default_rng(1), 60, sides=NAMES), floors=floors)
    assert said.judgment.endswith("is that of 8 earlier equal runs")


def test_percentiles_that_are_lower_bounds_are_not_compared():
    found = measure_side_differences(reads(np.random.default_rng(3), 12, sides=NAMES))
    assert (("ALL", None), "p50") in found
    bounded = reads(np.random.default_rng(3), 12, sides=NAMES)
    some = bounded.sides[0].numbers.total
    kept = structs.replace(some, due=structs.replace(some.due, waited=some.last_byte))
    assert _difference((kept, kept), 0.5) is None


def test_what_never_began_is_known_of_the_run_and_leaves_its_sides_without_a_verdict():
    """Of which side it was is not known, so that percentiles were of what had begun alone, and compared."""
    numbers = reads(np.random.default_rng(3), 60, sides=NAMES)

    def compared(never_begun):
        waited = select_latencies(np.full(never_begun, 9.0))

        def late(part):
            due = structs.replace(part.due, response=part.last_byte, waited=waited)
            return structs.replace(part, due=due)

        sections = [
            structs.replace(late(section), lines=tuple(map(late, section.lines)))
            for section in numbers.sections
        ]
        return compare_sides(replace(numbers, sections=tuple(sections)))

    count = numbers.total.count
    for never_begun, known in (
        (count // 2000, ["p50", "p95", "p99", "errors"]),
        (count // 50, ["p50", "errors"]),
        (count // 3, ["errors"]),
    ):
        found = compared(never_begun)
        assert [[*row.changes] for row in found.rows] == [known, known]
    assert found.judgment.startswith("operations that were due never began")
    assert not found.repeated


def test_sides_are_parts_of_a_run():
    numbers = reads(np.random.default_rng(3), 12, sides=NAMES, mixed=True)
    assert tuple(side.name for side in numbers.sides) == NAMES
    assert not numbers.by_group
    before, after = (side.numbers for side in numbers.sides)
    assert before.total.count + after.total.count == numbers.total.count
    for whole, *parts in zip(numbers.sections, before.sections, after.sections, strict=True):
        assert {each.operation for each in parts} == {whole.operation}
        assert sum(each.count for each in parts) == whole.count
        shares = [each.requests_per_second for each in parts]
        assert sum(shares) == pytest.approx(whole.requests_per_second, rel=0.01)
    titles = [kind.title for kind in run_tables.BREAKDOWN_KINDS if kind.parts(numbers)]
    assert titles == ["Sides"]
    assert not reads(np.random.default_rng(3), 12).sides


def test_every_figure_of_both_sides_stands_in_a_row():
    found = compare_sides(reads(np.random.default_rng(3), 60, 1.3, sides=NAMES))
    assert (found.before, found.after) == NAMES
    assert [row.operation for row in found.rows] == ["READ", "ALL"]
    change = found.find("read", None, "p50")
    assert change.before == pytest.approx(0.01, rel=0.1)
    assert change.low < 0.3 < change.high
    assert found.find("read", None, "p95").low is not None
    assert found.find("read", None, "p99").low is not None
    assert found.find("read", None, "rate") is None
    assert found.find("read", "small", "p50") is change
    assert found.find("read", "big", "p50") is None


def test_sides_of_a_run_with_stages_are_compared_and_their_rates_have_no_interval():
    plan = (Stage(20, (2, 2)), Stage(20, (8, 8)))
    run = RunDescription(replace(SCENARIO, stages=plan), sides=NAMES, stages=("1", "2"))
    facts = SimpleNamespace(run=run, size_classes=("small",), summary=None, warnings=(), current=True)
    random = np.random.default_rng(3)
    completed = 1e9 + np.concatenate([np.linspace(0.1, 20, 800), np.linspace(20.1, 40, 3200)])
    side = random.integers(0, 2, len(completed))
    latency = 0.01 * np.exp(random.normal(0, 0.3, len(completed))) * np.where(side, 1.2, 1.0)
    columns = {"operation": np.ones(len(side), int), "completed": completed, "last_byte": latency}
    collector = make_collector(facts)
    stage = (completed > 1e9 + 20).astype(int)
    collector.add(ResultBlock(len(side), {**columns, "group": side, "stage": stage}))
    numbers = make_statistics(collector, facts)
    for each in numbers.sides:
        assert [section.rate_interval for section in each.numbers.sections] == [None, None]
        assert [line.rate_interval for line in each.numbers.total.lines] == [None, None]
    found = compare_sides(numbers).find(None, None, "p50")
    assert found.low < 0.2 < found.high
    made = json.loads(reports.make_run_report("json", numbers, ReportOptions()))
    figures = [each["operations"][0]["figures"] for each in made["sides"]]
    assert [(each["ops_interval"], each["last_byte"]["intervals"]) for each in figures] == [(None, {})] * 2


def test_a_run_that_is_too_short_for_intervals_has_no_verdict():
    short = compare_sides(reads(np.random.default_rng(3), 5, 1.5, sides=NAMES))
    assert short.find("read", None, "p50").change == pytest.approx(0.5, abs=0.2)
    said = products.find_writer(Product.COMPARISON, "text")(short)
    assert "no verdict" in said
    assert "too short" in said
    assert "no difference" not in said
    assert "Student" not in said
    assert not short.repeated


def test_a_run_without_sides_is_refused():
    with pytest.raises(ValueError, match="no two sides"):
        compare_sides(reads(np.random.default_rng(4), 20))


def scenario(**changes):
    changes.setdefault("operation_count", 9)
    return Scenario(
        "s",
        (SizeClass("small", 1, 1, 5, (1, 1, 1, 1)), SizeClass("big", 9, 9, 1, (1, 0, 0, 0))),
        **{"user_count": 4, **changes},
    )


POLICIES = RunSide("x", policy="p"), RunSide("y", policy="q")
URLS = RunSide("x", "http://a"), RunSide("y", "http://b")
ACCOUNTS = RunSide("x"), RunSide("y")


def test_each_side_has_half_of_the_load():
    stages = Stage(5, (4, 8)), Stage(5, None, (10.0, 20.0))
    whole = make_users_even(scenario(user_count=7, rate=5.0, stages=stages))
    assert (whole.user_count, whole.stages) == (8, stages)
    assert make_users_even(scenario(stages=(Stage(5, (1, 3)),))).stages == (Stage(5, (2, 4)),)
    assert make_users_even(scenario()) == scenario()
    halves = [halve_scenario(whole, side, policy) for side, policy in ((0, None), (1, "q"))]
    assert [each.operation_count for each in halves] == [5, 4]
    assert [each.policy for each in halves] == [None, "q"]
    for each in halves:
        assert (each.user_count, each.rate) == (4, 2.5)
        assert each.stages == (Stage(5, (2, 4)), Stage(5, None, (5.0, 10.0)))
        assert [(found.initial_files, found.share) for found in each.size_classes] == [(3, 5), (1, 1)]
        # so that the initial objects of either are not taken for those of another scenario
        assert [make_owner(each, found) for found in each.size_classes] == [
            make_owner(whole, found) for found in whole.size_classes
        ]


def test_what_is_not_possible_is_refused_at_once():
    def drawn(**weights):
        return replace(scenario(), size_classes=(SizeClass("small", 1, 1, 5, weights),))

    refuse_sides(drawn(copy=1))
    with pytest.raises(UsageError, match="tempurl: not possible in a run of two sides"):
        refuse_sides(drawn(tempurl=1))
    with pytest.raises(UsageError, match="--ab: not possible with a scenario that has groups of users"):
        refuse_sides(replace(scenario(), groups=(UserGroup("web", scenario().size_classes, 1),)))


@pytest.mark.parametrize("kind", ["even", "poisson"])
def test_operations_of_both_sides_are_due_by_turns(kind):
    plan = Stage(10, None, (20.0, 60.0)), Stage(5, None, (60.0, 60.0))
    loads = [part.load for part in make_group_runs(scenario(stages=plan, arrivals=kind), 3, None, POLICIES)]
    due = [load._arrivals.take(10_000) for load in loads]
    whole = Arrivals(plan, kind, 3).take(10_000)
    if kind == "even":
        assert sorted(due[0] + due[1]) == pytest.approx(whole)
        assert due[0] == pytest.approx(whole[::2])
    else:
        assert not {*due[0]} & {*due[1]}
        assert len(due[0]) + len(due[1]) == pytest.approx(len(whole), abs=120)


def test_both_sides_draw_the_same_operations_on_objects_of_other_names():
    first, second = make_group_runs(scenario(), 6, None, POLICIES)
    assert [first.state.next_jobs(5, 0.0, None)] == [second.state.next_jobs(5, 0.0, None)]
    assert (first.names, second.names) == (["a-small", "a-big"], ["b-small", "b-big"])
    # What is particular to some names is on the other side with the next seed.
    first, second = make_group_runs(scenario(), 7, None, POLICIES)
    assert (first.names[0], second.names[0]) == ("b-small", "a-small")
    assert (first.group, second.group) == (0, 1)


def test_each_side_has_a_place():
    def places(sides):
        return [part.places[0] for part in make_group_runs(scenario(policy="tin"), 1, None, sides)]

    one = ContainerSet("ssbench", "tin", 100)
    assert places(()) == [one]
    assert places(POLICIES) == [replace(one, policy="p"), replace(one, policy="q")]
    assert places(URLS) == [replace(one, storage_url="http://a"), replace(one, storage_url="http://b")]
    assert places(ACCOUNTS) == [one, replace(one, account=1)]
    assert merge_container_sets([one, replace(one, container_count=7), replace(one, account=1)]) == [
        one,
        replace(one, account=1),
    ]


def described(run, side):
    return format_object_path(run, slow_result(operation=READ.code, container=3, object=5, group=side))


def test_what_is_reported_of_an_object_is_the_container_of_its_side():
    run = RunDescription(scenario(policy="tin"), sides=("x", "y"), side_policies=("p", "q"))
    assert [described(run, side) for side in (0, 1)] == [
        "ssbench_000003_p/small_000005",
        "ssbench_000003_q/small_000005",
    ]
    now = replace(run, side_policies=(), side_prefixes=("b", "a"))
    assert [described(now, side) for side in (0, 1)] == [
        "ssbench_000003_tin/b-small_000005",
        "ssbench_000003_tin/a-small_000005",
    ]
    fleet = SimpleNamespace(
        parameters=SimpleNamespace(trans_id_extra=None),
        storage_urls=["http://a"],
        roster=SimpleNamespace(living=list),
    )
    options = RunOptions(sides=POLICIES)
    made = make_run_description(1, scenario(), 1, fleet, BenchOptions(workers=1), options)
    assert (made.side_policies, made.side_prefixes) == (("p", "q"), ("b", "a"))


def test_an_export_has_the_container_of_each_side(tmp_path):
    path = tmp_path / "run.stat.gz"
    run = RunDescription(scenario(), sides=("x", "y"), side_policies=("p", "q"), side_prefixes=("a", "b"))
    writer = RunResultsWriter(path, run)
    for side in (0, 1):
        rows = RowCollector()
        rows.common["group"] = side
        rows.rows += [rows.pack(1, 0, 1, 3, number, 1, 0.1, 0.2, 100.0, 200) for number in (1, 2)]
        rows.trans_ids += ["tx"] * 2
        writer.add(rows.take())
    writer.end(RunSummary(ended=0.0))
    out = io.BytesIO()
    write_csv(open_results(path), out)
    found = [
        (row["group"], row["container"], row["object"])
        for row in csv.DictReader(io.StringIO(out.getvalue().decode()))
    ]
    assert found == [
        (name, f"ssbench_000003_{policy}", f"{prefix}-small_{number:06d}")
        for name, policy, prefix in (("x", "p", "a"), ("y", "q", "b"))
        for number in (1, 2)
    ]


class Tokens:
    sessions = (Session(("http://a/v1/one",), "t"), Session(("http://a/v1/two",), "u"))

    def renewing(self, account):
        def renew():
            self.sessions = tuple(
                replace(each, token="new") if number == account else each
                for number, each in enumerate(self.sessions)
            )

        return renew


def test_a_place_has_the_session_of_its_account():
    tokens = Tokens()
    other, url = (
        ContainerSet("ssbench", None, 1, account=1),
        ContainerSet("ssbench", None, 1, storage_url="http://b"),
    )
    assert other.session(tokens.sessions) == Session(("http://a/v1/two",), "u")
    assert other.renewing(tokens)() == Session(("http://a/v1/two",), "new")
    assert url.session(tokens.sessions) == Session(("http://b",), "t")
    assert url.renewing(tokens)() == Session(("http://b",), "new")
    tokens.renewing = lambda _account: None
    assert url.renewing(tokens) is None


def test_the_parameters_of_a_session():
    session = Session(("http://a", "http://b"), "t")
    found = make_run_parameters(1, None, scenario(), RunOptions(), [session], 1)
    assert (found.storage_urls, found.token, found.group) == (["http://a", "http://b"], "t", 1)
    assert make_run_parameters(1, None, scenario(), RunOptions(noop=True), []).token is None
    assert recorded_options(BenchOptions(workers=1), RunOptions(sides=ACCOUNTS), None)["sides"] == [
        "x=account",
        "y=account",
    ]


def test_each_token_is_renewed_that_can_be(monkeypatch):
    asked = Counter()

    def authenticate(credentials, _timeout=10.0):
        asked[credentials.auth_url] += 1
        token = credentials.token or f"{credentials.auth_url}-{asked[credentials.auth_url]}"
        return Session((f"http://{credentials.auth_url}/v1/x",), token, credentials.insecure)

    monkeypatch.setattr("ssbench.store.swift.auth.authenticate_swift", authenticate)
    monkeypatch.setattr("ssbench.store.swift.auth.warn_of_auth_proxy", lambda *_: None)
    keys = [Credentials(version="1.0", auth_url="a"), Credentials(version="1.0", auth_url="b")]
    tokens = TokenSource(keys)
    assert [each.token for each in tokens.sessions] == ["a-1", "b-1"]
    assert tokens.renewing(1)().token == "b-2"
    assert [each._authenticate() for each in tokens.renewals()] == ["a-2", "b-3"]
    assert tokens.sessions[1].token == "b-3"
    given = Credentials(version="none", auth_url="c", token="mine")
    mixed = TokenSource([given, keys[1]])
    assert mixed.renewing(0) is None
    assert [each.possible for each in mixed.renewals()] == [False, True]
    assert mixed.renewals()[1]._authenticate() == "b-5"


def arguments(*ab, **changes):
    return argparse.Namespace(
        **{"ab": list(ab), "local_swift": False, "auth_storage_urls": None, "policy": None, **changes}
    )


def test_the_option():
    assert sides.parse_sides(arguments()) == ()
    found = sides.parse_sides(arguments("old=http://a:8080/v1/AUTH_x/", "new=https://b/v1/AUTH_x"))
    assert found == (RunSide("old", "http://a:8080/v1/AUTH_x"), RunSide("new", "https://b/v1/AUTH_x"))
    assert sides.parse_sides(arguments("a=gold", "b=tin"))[1] == RunSide("b", policy="tin")


@pytest.mark.parametrize(
    "side", ["a=http://me:secret@h/v1/x", "a b=http://me:secret@h/v1/x", "a=ftp://me:secret@h"]
)
def test_a_url_with_a_password_is_refused_and_not_shown(side):
    with pytest.raises(UsageError) as error:
        sides.parse_sides(arguments(side, "b=http://h/v1/y"))
    assert "secret" not in str(error.value)


@pytest.mark.parametrize(
    ("wrong", "changes", "why"),
    [
        (("a", "b=x"), {}, "is not NAME=URL"),
        (("a=", "b=x"), {}, "is not NAME=URL"),
        (("a b=x", "b=y"), {}, "is not NAME=URL"),
        (("a=x", "a=y"), {}, "same name"),
        (("a=x", "b=x"), {}, "are the same"),
        (("a=x", "b=http://h/v1/a"), {}, "both sides are storage URLs, or"),
        (("a=ftp://h", "b=http://h/v1/a"), {}, "is not the URL"),
        (("a=http://g/v1/a", "b=http://h/v1/a"), {"local_swift": True}, "--local-swift"),
        (("a=http://g/v1/a", "b=http://h/v1/a"), {"auth_storage_urls": ["http://x"]}, "leave out -S"),
        (("a=x", "b=y"), {"policy": "z"}, "leave out -p"),
        (("a=@", "b=@f"), {}, "expected swift=@ s3=@"),
        (("s3=@", "b=@f"), {}, "expected both, or none"),
        (("s3=@", "s3=@"), {}, "same name"),
        (("swift=@", "s3=s3+http://h"), {}, "expected both, or none|storage URLs, or"),
        (("a=s3+ftp://h", "b=http://h/v1/a"), {}, "is not the URL"),
        (("a=@f", "b=@f"), {}, "are the same"),
        (("a=@f", "b=gold"), {}, "both sides are storage URLs, or"),
        (("a=@f", "b=@g"), {"local_swift": True}, "with accounts is not for --local-swift"),
        (("a=@f", "b=@g"), {"auth_storage_urls": ["http://x"]}, "leave out -S"),
    ],
)
def test_wrong_values_are_named(wrong, changes, why):
    with pytest.raises(UsageError, match=why):
        sides.parse_sides(arguments(*wrong, **changes))


def with_accounts(tmp_path, one, two, *options):
    """What two files with variables of accounts make, beside options."""
    files = []
    for number, text in enumerate((one, two)):
        files.append(tmp_path / f"{number}.env")
        files[-1].write_text(text)
    parser = argparse.ArgumentParser()
    auth_options.add_auth_arguments(parser)
    given = parser.parse_args(options)
    given.ab = [f"{name}=@{file}" for name, file in zip("ab", files, strict=True)]
    given.sides = (RunSide("a"), RunSide("b"))
    return sides.make_side_credentials(given, {"ST_USER": "nobody", "ST_KEY": "of the environment"})


def test_accounts_come_from_files(tmp_path):
    one = "# the first\nexport ST_USER=t:one ST_KEY='a b $x'\n\nST_AUTH=http://h/auth/v1.0 # there\n"
    two = "ST_USER=t:two\nST_KEY=k\n"
    found = with_accounts(tmp_path, one, two, "-A", "http://g/auth")
    assert [(each.user, each.key, each.auth_url) for each in found] == [
        ("t:one", "a b $x", "http://g/auth"),
        ("t:two", "k", "http://g/auth"),
    ]
    # Both authenticate at one URL, so that the URL does not tell which of them failed.
    for each in found:
        with pytest.raises(ClusterError, match=f"^{each.name}: http://127.0.0.1:1/: cannot"):
            authenticate_swift(replace(each, auth_url="http://127.0.0.1:1/"))
    assert [each.name for each in found] == ["side a", "side b"]
    with pytest.raises(UsageError, match="--ab: b: no way to authenticate"):
        with_accounts(tmp_path, one, two)
    with pytest.raises(UsageError, match="the same credentials"):
        with_accounts(tmp_path, one, one)


@pytest.mark.parametrize("line", ["read -sr secret", "ST_KEY = secret", "ST_KEY='secret", "1=secret"])
def test_a_line_that_is_no_variable_is_named_and_not_shown(tmp_path, line):
    with pytest.raises(UsageError) as error:
        with_accounts(tmp_path, f"ST_USER=x\n{line}\n", "")
    assert "line 2: expected NAME=VALUE" in str(error.value)
    assert "secret" not in str(error.value)


def test_a_file_that_is_not_there(tmp_path):
    given = argparse.Namespace(sides=(RunSide("a"), RunSide("b")), ab=[f"a=@{tmp_path}/none", "b=@x"])
    with pytest.raises(UsageError, match="none: No such file"):
        sides.make_side_credentials(given, {})


def test_what_prints_the_comparison_is_loaded_before_the_run(monkeypatch, tmp_path, caplog):
    print_comparison = sides.make_comparison_printer(argparse.Namespace(results_dir=None))
    for name in ("comparison.document", "comparison.sides", "results.formats", "statistics"):
        monkeypatch.setitem(sys.modules, f"ssbench.{name}", None)
    print_comparison(tmp_path / "none.stat", io.StringIO())
    assert "none.stat" in caplog.text


# -- few objects, and noise of their own --------------------------------------------------------------


def test_few_objects_on_unequal_devices_are_said_and_make_no_difference():
    """Of 20 objects on devices that differ by 30 %, 23 of 60 equal comparisons differed."""
    random, differ = np.random.default_rng(8), 0
    for _ in range(20):
        found = compare_sides(reads(random, 60, sides=NAMES, store=Store(objects=20, differ=0.3)))
        differ += found.find(None, None, "p50").differs
    assert differ <= 2
    assert "of only 10 objects is assumed" in found.judgment
    assert found.warnings[0].startswith("a side has only 10 objects: a difference may be")
    twice = compare_sides(reads(random, 60, 2.5, sides=NAMES, store=Store(objects=20, differ=0.3)))
    assert judge_comparison(twice).word is Word.SLOWER


def test_many_objects_widen_nothing():
    random = np.random.default_rng(8)
    many = compare_sides(reads(random, 60, 1.2, sides=NAMES, store=Store(objects=2000, differ=0.3)))
    assert judge_comparison(many).word is Word.SLOWER
    assert "devices: 2 % a side is assumed" in many.judgment
    assert not many.warnings


def test_objects_count_as_often_as_they_are_used():
    used = ObjectCounts()
    number = np.concatenate([np.repeat(np.arange(10), 5), np.full(50, 10)])
    used.add(ResultBlock(100, {"operation": np.ones(100, int), "object": number}))
    assert used.effective(1) == pytest.approx(100**2 / (10 * 25 + 50**2))
    assert used.effective(0) is None
    used.add(ResultBlock(1, {"operation": np.ones(1, int)}))  # of which nobody knows
    assert used.effective() is None


# -- operations that failed --------------------------------------------------------------------------


def of_failures(change: float = 1.0, **store):
    """A comparison of the sides of a minute, of which operations fail."""
    return compare_sides(reads(np.random.default_rng(4), 60, change, sides=NAMES, store=Store(**store)))


def test_no_difference_is_said_of_sides_of_which_one_fails():
    said = judge_comparison(of_failures(failing=(0.0, 0.4)))
    assert said.word is Word.WORSE
    assert said.headline.startswith("worse: ALL more errors (+")


def test_a_side_that_sheds_load_is_not_called_faster():
    said = judge_comparison(of_failures(0.72, failing=(0.0, 0.3)))
    assert (said.word, said.outcome) == (Word.WORSE_AND_BETTER, Outcome.FAILED)
    assert said.headline.startswith("worse and better: ALL more errors (+")


def test_failures_that_are_alike_are_no_difference_and_the_least_that_would_show_is_said():
    said = judge_comparison(of_failures(failing=(0.01, 0.01)))
    assert said.word is Word.SAME
    assert "points of errors or more)" in said.headline


def test_bursts_of_failures_are_few_events_however_many_operations_they_have():
    found = [of_failures(bursts=count).find(None, None, "errors") for count in (1, 3)]
    assert not any(each.differs for each in found)
    for each in found:
        assert each.low < 0 < each.high
        assert each.after_low <= each.after < each.after_high


@pytest.mark.parametrize(
    ("condition", "failing", "result"),
    [
        ("errors > +1%", (0.0, 0.3), GateResult.FAILED),
        ("errors > +1%", (0.05, 0.05), GateResult.UNDECIDED),
        ("errors > +1%", (0.001, 0.001), GateResult.PASSED),
        ("errors > 5%", (0.0, 0.3), GateResult.FAILED),
        ("errors > 5%", (0.0, 0.05), GateResult.UNDECIDED),
        ("errors > 5%", (0.0, 0.001), GateResult.PASSED),
    ],
)
def test_a_condition_on_failures_of_two_sides_ends_in_three_ways(condition, failing, result):
    found = judge_change_condition(of_failures(failing=failing), parse_condition(condition, relative=True))
    assert found.result is result
    assert bool(found.needs) is (result is GateResult.UNDECIDED)


def test_failures_are_compared_where_latencies_cannot_be():
    """All of one side fails: it has no latencies."""
    found = of_failures(failing=(0.0, 1.0))
    assert judge_comparison(found).word is Word.WORSE
    assert "only shares of failures are compared" in found.judgment


def test_the_two_apis_of_one_account_are_sides():
    found = sides.parse_sides(arguments("swift=@", "s3=@", local_swift=True))
    assert [(side.name, side.api, side.has_account) for side in found] == [
        ("swift", "swift", True),
        ("s3", "s3", True),
    ]
    assert str(found[1]) == "s3=the account, over the API of s3"


def test_urls_of_two_apis_are_sides_with_credentials_of_their_own():
    parser = argparse.ArgumentParser()
    auth_options.add_auth_arguments(parser)
    given = parser.parse_args([])
    given.ab = ["old=http://h/v1/AUTH_a", "new=s3+http://h"]
    given.local_swift, given.policy = False, None
    given.sides = sides.parse_sides(given)
    assert [(side.storage_url, side.api) for side in given.sides] == [
        ("http://h/v1/AUTH_a", "swift"),
        ("s3+http://h", "s3"),
    ]
    environ = {"ST_AUTH": "http://h/auth/v1.0", "ST_USER": "a:u", "ST_KEY": "k", "HOME": "/nonexistent"}
    found = sides.make_side_credentials(given, environ)
    assert [each.storage_urls for each in found] == [("http://h/v1/AUTH_a",), ("s3+http://h",)]
    assert [each.name for each in found] == ["side old", "side new"]
