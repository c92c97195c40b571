"""Two sides in one run."""

from __future__ import annotations

import argparse
import csv
import io
from types import SimpleNamespace

import numpy as np
import pytest
from result_rows import block
from simulated_runs import reads

from ssbench.cli import sides
from ssbench.comparison.sides import compare_sides
from ssbench.errors import UsageError
from ssbench.export import write_csv
from ssbench.fleet.wire import RunParameters
from ssbench.names import side_of
from ssbench.reports.figures import object_path
from ssbench.results import RunDescription, RunSummary
from ssbench.run.options import BenchOptions, RunOptions, Side
from ssbench.run.places import container_places
from ssbench.run.summary import describe
from ssbench.run_results import RunResultsWriter, open_results
from ssbench.scenario.model import Scenario, SizeClass
from ssbench.statistics import Slowest
from ssbench.swift.credentials import Session
from ssbench.worker.requests import Run

NAMES = ("old", "new")


def words(seed, change):
    """The words for p50 of 40 runs of a minute."""
    random = np.random.default_rng(seed)
    runs = (reads(random, 60, change, sides=NAMES) for _ in range(40))
    return [compare_sides(each).find("read", None, "p50").word for each in runs]


def test_sides_that_are_alike_are_seldom_called_different():
    assert sum(word != "no difference shown" for word in words(1, 1.0)) <= 5


def test_ten_per_cent_are_found_in_a_minute():
    assert words(2, 1.1).count("slower") >= 36


def test_every_figure_of_both_sides_stands_in_a_row():
    found = compare_sides(reads(np.random.default_rng(3), 60, 1.3, sides=NAMES))
    assert (found.before, found.after) == NAMES
    assert [row.operation for row in found.rows] == ["READ", "ALL"]
    change = found.find("read", None, "p50")
    assert change.before == pytest.approx(0.01, rel=0.1)
    assert change.low < 0.3 < change.high
    assert found.find("read", None, "p95").low is not None
    assert found.find("read", None, "p99").low is None  # 50 a second and side: 8 s for 4 beyond p99
    assert found.find("read", None, "rate") is None


def test_a_run_without_sides_is_refused():
    with pytest.raises(ValueError, match="no two sides"):
        compare_sides(reads(np.random.default_rng(4), 20))


def test_half_of_the_objects_belong_to_each_side_in_no_order():
    found = side_of(np.arange(1, 10_001))
    assert found.mean() == pytest.approx(0.5, abs=0.02)
    assert abs(np.corrcoef(found[1:], found[:-1])[0, 1]) < 0.05
    assert [side_of(number) for number in range(1, 50)] == found[:49].tolist()
    assert side_of(np.int64(2**32 - 1)) == side_of(2**32 - 1)


def parameters(**changes):
    changes.setdefault("storage_urls", ["http://a/v1/x", "http://b/v1/x"])
    return RunParameters(run_id=1, size_classes=["s"], size_ranges=[(1, 1)], sided=True, **changes)


@pytest.mark.parametrize(
    "given", [parameters(), parameters(storage_urls=["http://a/v1/x"], side_policies=["gold", "tin"])]
)
def test_a_worker_sends_each_object_to_its_side(monkeypatch, given):
    run = Run(given, 1)
    seen = []
    perform = run._perform

    def note_url(job, url, history):
        seen.append(url)
        return perform(job, url, history)

    def note_container(_run, target):
        seen.append(target.container)

    monkeypatch.setattr(run, "_perform", note_url)
    monkeypatch.setattr(run, "_builders", {1: (None, note_container)})
    for number in range(1, 30):
        run.perform((number, 1, 0, 7, number, 0), None)
        side = side_of(number)
        url, container = seen[-2:]
        assert url == given.storage_urls[side if len(given.storage_urls) > 1 else 0]
        policy = f"_{given.side_policies[side]}" if given.side_policies else ""
        assert container == f"ssbench_000007{policy}"
    run.close()


def test_what_is_reported_of_an_object_is_the_container_of_its_side():
    scenario = Scenario("s", (SizeClass("small", 1, 1, 1, (1, 1, 1, 1)),), 1, operation_count=1, policy="tin")
    run = RunDescription(scenario, sides=("x", "y"), side_policies=("p", "q"))
    for number in range(1, 10):
        slowest = Slowest(0.1, 0, "tx", 1.0, 1, 1, 0, 3, number)
        policy = "pq"[side_of(number)]
        assert object_path(run, slowest) == f"ssbench_000003_{policy}/small_{number:06d}"
    assert run.container(3, None) == "ssbench_000003_tin"
    assert RunDescription(scenario, sides=("x", "y")).container(3, 1) == "ssbench_000003_tin"
    fleet = SimpleNamespace(
        parameters=SimpleNamespace(trans_id_extra=None, storage_urls=["http://a"]),
        dispatcher=SimpleNamespace(living=list),
    )
    options = RunOptions(sides=(Side("x", policy="p"), Side("y", policy="q")))
    assert describe(1, scenario, 1, fleet, BenchOptions(workers=1), options).side_policies == ("p", "q")


def test_an_export_has_the_container_of_each_side(tmp_path):
    scenario = Scenario("s", (SizeClass("small", 1, 1, 1, (1, 1, 1, 1)),), 1, operation_count=9)
    path = tmp_path / "run.stat.gz"
    writer = RunResultsWriter(path, RunDescription(scenario, sides=("x", "y"), side_policies=("p", "q")))
    rows = [(1, 0, 1, 3, number, 1, 0.1, 0.2, 100.0, 200, 0) for number in range(1, 10)]
    writer.add(block(rows, ["tx"] * 9))
    writer.end(RunSummary(ended=0.0))
    out = io.BytesIO()
    write_csv(open_results(path), out)
    found = [row["container"] for row in csv.DictReader(io.StringIO(out.getvalue().decode()))]
    assert found == [f"ssbench_000003_{'pq'[side_of(number)]}" for number in range(1, 10)]


class Tokens:
    session = Session(("http://a", "http://b"), "t")

    def renew(self):
        return Session(("http://a", "http://b"), "new")


def test_each_side_gets_all_containers():
    scenario = Scenario("s", (), 1, operation_count=1, policy="tin")
    urls = RunOptions(sides=(Side("x", "http://a"), Side("y", "http://b")))
    places = container_places(scenario, urls, Tokens())
    assert [place.session.storage_urls for place in places] == [("http://a",), ("http://b",)]
    assert [place.policy for place in places] == ["tin", "tin"]
    assert places[1].renew() == Session(("http://b",), "new")
    policies = RunOptions(sides=(Side("x", policy="p"), Side("y", policy="q")))
    assert [place.policy for place in container_places(scenario, policies, Tokens())] == ["p", "q"]
    assert [place.policy for place in container_places(scenario, RunOptions(), Tokens())] == ["tin"]


def arguments(*ab, **changes):
    return argparse.Namespace(
        **{"ab": list(ab), "local_swift": False, "auth_storage_urls": None, "policy": None, **changes}
    )


def test_the_option():
    assert sides.parse(arguments()) == ()
    found = sides.parse(arguments("old=http://a:8080/v1/AUTH_x/", "new=https://b/v1/AUTH_x"))
    assert found == (Side("old", "http://a:8080/v1/AUTH_x"), Side("new", "https://b/v1/AUTH_x"))
    assert sides.parse(arguments("a=gold", "b=tin"))[1] == Side("b", policy="tin")


@pytest.mark.parametrize(
    "side", ["a=http://me:secret@h/v1/x", "a b=http://me:secret@h/v1/x", "a=ftp://me:secret@h"]
)
def test_a_url_with_a_password_is_refused_and_not_shown(side):
    with pytest.raises(UsageError) as error:
        sides.parse(arguments(side, "b=http://h/v1/y"))
    assert "secret" not in str(error.value)


@pytest.mark.parametrize(
    ("wrong", "changes", "why"),
    [
        (("a", "b=x"), {}, "is not NAME=URL"),
        (("a=", "b=x"), {}, "is not NAME=URL"),
        (("a b=x", "b=y"), {}, "is not NAME=URL"),
        (("a=x", "a=y"), {}, "same name"),
        (("a=x", "b=x"), {}, "are the same"),
        (("a=x", "b=http://h/v1/a"), {}, "either two storage URLs"),
        (("a=ftp://h", "b=http://h/v1/a"), {}, "is not the URL"),
        (("a=http://g/v1/a", "b=http://h/v1/a"), {"local_swift": True}, "--local-swift"),
        (("a=http://g/v1/a", "b=http://h/v1/a"), {"auth_storage_urls": ["http://x"]}, "leave out -S"),
        (("a=x", "b=y"), {"policy": "z"}, "leave out -p"),
    ],
)
def test_wrong_values_are_named(wrong, changes, why):
    with pytest.raises(UsageError, match=why):
        sides.parse(arguments(*wrong, **changes))
