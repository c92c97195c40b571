"""Envelopes of planted stores: their limits are found, in the time that was asked for."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from golden_words import GoldenWords
from json_records import valid
from planted_envelope import (
    SERVICE,
    STORES,
    EnvelopeBench,
    PlantedStore,
    find_true_limit,
    find_true_rate,
)

from ssbench.base.errors import ExitCode, GateResult, StatFileError, UsageError
from ssbench.comparison.envelope_report import make_envelope_json
from ssbench.comparison.family import judge_family
from ssbench.comparison.store_limits import Envelope, LoggedRun, parse_envelope_condition
from ssbench.plans import plan_work
from ssbench.plans.envelope_work import ENVELOPE_OPERATIONS, ENVELOPE_SIZES, EnvelopeWork
from ssbench.plans.plan_work import Conclusion, carry_out_work
from ssbench.reports import products
from ssbench.reports.products import Product
from ssbench.run import plan
from ssbench.run.bench_options import BenchOptions, RunOptions
from ssbench.run.benchmark_run import RunOutcome
from ssbench.run.plan import PlanSettings
from ssbench.scenario.conditions import parse_conditions
from ssbench.scenario.model import Scenario


def measure(
    bench: EnvelopeBench,
    monkeypatch: pytest.MonkeyPatch,
    minutes: float = 8.0,
    *,
    resumes: bool = False,
    **how: Any,
) -> Conclusion[Any]:
    monkeypatch.setattr(plan_work, "Bench", bench)
    monkeypatch.setattr(plan, "time", bench)  # the clock is that of its runs
    options = RunOptions(stats_file=bench.folder / "e.stat.gz", seed=1)
    how = {"sizes": ["1MB"], "operations": ["read"], **how}
    return carry_out_work(
        EnvelopeWork(options, minutes, **how), BenchOptions(workers=1), PlanSettings(resumes=resumes)
    )


@pytest.mark.parametrize("store", STORES, ids=[each.name for each in STORES])
def test_the_limit_of_a_store_is_found(
    store: PlantedStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found: Envelope = measure(EnvelopeBench(store, tmp_path, 1), monkeypatch).found
    (cell,) = found.cells
    assert cell.users is not None
    assert cell.at_least is store.at_least
    assert (cell.beyond is None) is store.at_least
    if store.at_least:
        assert cell.bounded_by == "the load generator"
        assert cell.users >= store.users
        assert 0.85 * cell.rate < cell.rate_low < cell.rate
        return
    truth = find_true_limit(store, cell.condition)
    assert cell.users_low <= truth <= cell.users_high + 1
    if not store.failing(64):  # where failures begin at once, the line of a search is far from it
        assert cell.users_high - cell.users_low <= 0.35 * truth
    assert cell.rate_low <= find_true_rate(store, cell.condition) <= cell.rate_high
    assert cell.moved == pytest.approx(cell.rate * 1e6, rel=0.01)
    assert cell.bounded_by == (
        "the store: requests fail (HTTP 503)" if store.failing(64) else "the store: latency"
    )
    assert cell.one_user is not None
    assert cell.one_user.p50 == pytest.approx(SERVICE, rel=0.05)


def test_logs_are_read_of_the_run_beyond_each_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    asked: list[tuple[str, str]] = []

    def examine(path: Path, operation: str) -> LoggedRun:
        assert path.is_file()
        asked.append((path.name, operation))
        if operation == "create":
            raise UsageError("no line is of this run")
        return LoggedRun(file=path.name, headline="Slow: d1 on n1", slow=("d1 on n1",))

    monkeypatch.setattr(EnvelopeWork, "examine_run", staticmethod(examine))
    found: Envelope = measure(
        EnvelopeBench(STORES[0], tmp_path, 1), monkeypatch, operations=["write", "read"]
    ).found
    write, read = found.cells
    assert write.beyond is not None
    assert read.beyond is not None
    for (file, operation), cell, wanted in zip(asked, found.cells, ("create", "read"), strict=True):
        assert cell.beyond is not None
        assert re.fullmatch(rf"e\.{cell.name}-{cell.beyond.users}(\.\d)?\.stat\.gz", file)
        assert operation == wanted
    assert write.bounded_by == "the store: latency"
    assert write.by_logs is not None
    assert write.by_logs.headline == "Not known: no line is of this run"
    assert "1MB.write: who bounds it is not known: no line is of this run" in caplog.text
    assert read.bounded_by == "the store: latency; by its logs d1 on n1"
    assert "Reading the logs for 1MB.read (2 of 2)" in caplog.text


def test_what_logs_of_all_limits_lack_is_said_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def examine(path: Path, operation: str) -> LoggedRun:
        raise StatFileError(f"{path}: no result has a transaction id")

    monkeypatch.setattr(EnvelopeWork, "examine_run", staticmethod(examine))
    measure(EnvelopeBench(STORES[0], tmp_path, 1), monkeypatch, operations=["write", "read"])
    (said,) = [each for each in caplog.messages if "transaction id" in each]
    assert said == "1MB.write, 1MB.read: who bounds them is not known: no result has a transaction id"


def test_an_envelope_is_reported_though_its_logs_cannot_be_understood(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def examine(path: Path, operation: str) -> LoggedRun:
        raise IndexError(f"{operation} of {path.name}")

    monkeypatch.setattr(EnvelopeWork, "examine_run", staticmethod(examine))
    (cell,) = measure(EnvelopeBench(STORES[0], tmp_path, 1), monkeypatch).found.cells
    assert cell.bounded_by == "the store: latency"
    assert cell.by_logs.headline.startswith("Not known: IndexError: read of e.")


def test_an_envelope_is_reported_though_the_reading_of_logs_is_interrupted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def examine(path: Path, operation: str) -> LoggedRun:
        if operation == "read":
            raise KeyboardInterrupt
        return LoggedRun(file=path.name, headline="Slow: d1 on n1", slow=("d1 on n1",))

    monkeypatch.setattr(EnvelopeWork, "examine_run", staticmethod(examine))
    concluded = measure(EnvelopeBench(STORES[0], tmp_path, 1), monkeypatch, operations=["write", "read"])
    write, read = concluded.found.cells
    assert write.by_logs is not None
    assert read.by_logs is None
    assert read.users is not None
    assert concluded.code is ExitCode.INTERRUPTED
    assert "Not all logs were read (interrupted)" in " ".join(concluded.found.notes)


@pytest.mark.parametrize(
    ("minutes", "deletion", "operations"),
    [
        (6.0, 0.0, ["write", "read"]),
        (20.0, 0.0, ["write", "read"]),
        # What a run of writes has created takes as long to delete.
        (20.0, 0.012, ["write", "read"]),
        (20.0, 0.012, ["write", "read", "delete", "list"]),
        (6.0, 0.012, ["write"]),
    ],
)
def test_a_plan_keeps_its_time_within_five_per_cent(
    minutes: float, deletion: float, operations: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = EnvelopeBench(STORES[0], tmp_path, 2, deletion=deletion)
    found: Envelope = measure(bench, monkeypatch, minutes, operations=operations).found
    assert bench.now - 1e9 == pytest.approx(60 * minutes, rel=0.05)
    (mixed,) = found.mixed
    # 65 reads and 25 writes of 90, each at 80 a second at most.
    assert mixed.asked == pytest.approx(0.7 * 80, rel=0.2)
    assert mixed.lasted
    assert found.seconds == pytest.approx(bench.now - 1e9, rel=0.02)


@pytest.mark.long
def test_an_hour_for_all_sizes_and_operations_is_an_hour(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With its uploads: of all objects at first, and later of those that were deleted."""
    bench = EnvelopeBench(STORES[0], tmp_path, 7, deletion=0.004, uploading=0.02)
    usual = {"sizes": ENVELOPE_SIZES, "operations": ENVELOPE_OPERATIONS}
    found: Envelope = measure(bench, monkeypatch, 60.0, **usual).found
    assert bench.now - 1e9 == pytest.approx(3600, rel=0.05)
    assert len(found.cells) == 16
    assert all(each.users for each in found.cells)
    (mixed,) = found.mixed
    assert mixed.seconds > 0.05 * 3600
    assert mixed.lasted
    assert found.not_asked == ("Listings were tried with objects of 1kB only.",)


def test_a_mixed_load_does_not_last_where_the_condition_no_longer_holds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its rate is that of the open loop all the time, and nothing fails."""
    slow = PlantedStore("slow", lambda *_: 20.0, lambda _: 0.0, 0)

    class Bench(EnvelopeBench):
        def run(self, scenario: Scenario, options: RunOptions, **more: Any) -> RunOutcome:
            self.store = slow if scenario.rate else STORES[0]
            return super().run(scenario, options, **more)

    for wanted, figure in [("", r"read\.1MB\.p99"), ("p99 <= 1.6s and errors <= 1%", "p99")]:
        conditions = parse_conditions(wanted, grouped=True) if wanted else ()
        bench = Bench(STORES[0], tmp_path / figure[:3], 8)
        bench.folder.mkdir()
        found: Envelope = measure(bench, monkeypatch, 8.0, wanted=conditions).found
        (mixed,) = found.mixed
        assert not mixed.lasted
        said = mixed.shortfalls[-1]
        assert re.fullmatch(rf"{figure} 3\.\d+s \(expected <= [\d.]+m?s\)", said)
        text = "".join(products.make_product_parts(Product.ENVELOPE, "text", found, None))
        assert f"It did not last: {'; '.join(mixed.shortfalls)}." in " ".join(text.split())


def test_the_mixed_load_is_run_without_an_operation_that_has_no_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise its time would be left over."""
    fails = PlantedStore("fails", lambda *_: 1.0, lambda _: 1.0, 0)

    class Bench(EnvelopeBench):
        def run(self, scenario: Scenario, options: RunOptions, **more: Any) -> RunOutcome:
            self.store = fails if [*scenario.size_classes[0].weights] == ["create", "delete"] else STORES[0]
            return super().run(scenario, options, **more)

    bench = Bench(STORES[0], tmp_path, 2)
    found: Envelope = measure(bench, monkeypatch, 10.0, operations=["write", "read", "delete"]).found
    assert bench.now - 1e9 == pytest.approx(600, rel=0.05)
    assert found.notes == ("The mixed load has no delete: no limit is known of 1MB.delete.",)
    assert len(found.mixed) == 1


def test_settings_have_their_units(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = measure(EnvelopeBench(STORES[0], tmp_path, 3), monkeypatch, 2.0)
    settings = dict(made.found.settings)
    assert settings["network timeout"] == "20 s"
    assert settings["give up after"] == "60 s"
    assert settings["block size"] == "65,536 bytes"
    assert settings["retries"] == "10"
    text = "".join(products.make_product_parts(Product.ENVELOPE, "text", made.found, None))
    assert "connect timeout  10 s" in text
    assert valid(make_envelope_json(made.found), "envelope")["settings"] == settings


def test_each_cell_gets_its_part_of_the_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bench = EnvelopeBench(STORES[0], tmp_path, 3)
    found: Envelope = measure(
        bench, monkeypatch, 10, sizes=["4kB", "1MB"], operations=["write", "read", "list"]
    ).found
    assert [each.name for each in found.cells] == [
        "4kB.write",
        "4kB.read",
        "1MB.write",
        "1MB.read",
        "4kB.list",
    ]
    assert all(each.runs > 4 and each.users for each in found.cells)
    assert found.not_asked == (
        "Not tried, as it was not asked for: objects of 1kB, objects of 64kB, objects of 16MB, delete.",
        "Listings were tried with objects of 4kB only.",
    )


def test_two_stores_are_measured_in_turn_and_compared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    slots, bucket = STORES[:2]
    bench = EnvelopeBench(slots, tmp_path, 6, others={"new-1": bucket})
    condition = parse_envelope_condition("envelope.new-1.1MB.read.rate < 20")
    made = measure(bench, monkeypatch, 16.0, stores=["old", "new-1"], fail_if=[condition])
    found: Envelope = made.found
    assert [(each.name, each.store, each.size_name) for each in found.cells] == [
        ("old.1MB.read", "old", "1MB"),
        ("new-1.1MB.read", "new-1", "1MB"),
    ]
    for cell, store in zip(found.cells, (slots, bucket), strict=True):
        assert cell.users_low <= find_true_limit(store, cell.condition) <= cell.users_high + 1
    assert [(each.store, each.lasted) for each in found.mixed] == [("old", True), ("new-1", True)]
    assert found.stores is not None
    assert judge_family(found.stores).headline.startswith("slower: 1MB.read ops/s (-")  # 80 and 40
    assert bench.now - 1e9 == pytest.approx(60 * 16, rel=0.05)
    assert made.code is ExitCode.OK
    text = "".join(products.make_product_parts(Product.ENVELOPE, "text", found, None))
    assert "new-1 against old: slower: 1MB.read ops/s" in " ".join(text.split())
    assert len(valid(make_envelope_json(found), "envelope")["stores"]["rows"]) == 1


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> EnvelopeBench:
    """The bench of an envelope that was not interrupted."""
    bench = EnvelopeBench(STORES[0], tmp_path_factory.mktemp("whole"), 4)
    with pytest.MonkeyPatch.context() as patch:
        measure(bench, patch)
    return bench


def never_examine(path: Path, operation: str) -> LoggedRun:
    pytest.fail("the logs of an envelope that goes on later were read")


@pytest.mark.parametrize(("done", "absence"), [(1, 20.0), (5, 20.0), (5, 3600.0), (-1, 20.0)])
def test_an_envelope_that_was_interrupted_goes_on_as_if_it_had_not_been(
    done: int, absence: float, whole: EnvelopeBench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is done next follows from the stat files. Time between calls is not spent. -1: the mixed load."""
    bench = EnvelopeBench(STORES[0], tmp_path, 4, ends_after=done % len(whole.runs))
    monkeypatch.setattr(EnvelopeWork, "examine_run", None if absence > 20 else staticmethod(never_examine))
    with pytest.raises(KeyboardInterrupt):
        measure(bench, monkeypatch)
    assert len(bench.runs) == done % len(whole.runs) + 1
    monkeypatch.setattr(EnvelopeWork, "examine_run", None)
    bench.runs.pop()
    bench.now += absence
    bench.ends_after = None
    found: Envelope = measure(bench, monkeypatch, resumes=True).found
    assert [(each.user_count, each.run_seconds) for each in bench.runs[:-1]] == [
        (each.user_count, each.run_seconds) for each in whole.runs[:-1]
    ]
    assert found.cells[0].runs == len(whole.runs) - 1


@pytest.mark.parametrize(
    ("text", "result", "code"),
    [
        ("envelope.1MB.read.rate < 50", GateResult.PASSED, ExitCode.OK),
        ("envelope.1MB.read.rate < 5000", GateResult.FAILED, ExitCode.THRESHOLD),
        ("envelope.1MB.read.rate < 80", GateResult.UNDECIDED, ExitCode.UNDECIDED),
        ("envelope.1MB.read.users <= 200", GateResult.FAILED, ExitCode.THRESHOLD),
        ("envelope.1MB.read.mb_per_s > 50", GateResult.FAILED, ExitCode.THRESHOLD),
    ],
)
def test_conditions(
    text: str, result: GateResult, code: ExitCode, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = measure(
        EnvelopeBench(STORES[0], tmp_path, 5), monkeypatch, fail_if=[parse_envelope_condition(text)]
    )
    assert made.found.conditions[0].result is result
    assert made.code is code


@pytest.mark.parametrize(
    "how",
    [
        {"fail_if": [parse_envelope_condition("envelope.4kB.read.rate < 5")]},
        {"minutes": 0.05},
        {"operations": ["reed"]},
        {"wanted": parse_conditions("p99 > 50ms", grouped=True)},
        {"wanted": parse_conditions("list.p99 <= 50ms", grouped=True)},
        {"sizes": ["4 parsecs"]},
        {"sizes": ["100TB", "4kB"]},
    ],
)
def test_what_cannot_be_measured(
    how: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, golden_words: GoldenWords
) -> None:
    with golden_words.raises(UsageError):
        measure(EnvelopeBench(STORES[0], tmp_path, 1), monkeypatch, **how)
