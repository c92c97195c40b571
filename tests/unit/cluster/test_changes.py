"""What changed between two runs: the server that changed is named, by its part and size, and nobody else."""

from __future__ import annotations

import json
import math
import shutil
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from genuine_logs import DATA, RUN, write_stat_file
from golden_words import GoldenWords
from simulated_cluster import Cause, Shape, changes_of, simulate

from ssbench.cli.archives import open_stat_file
from ssbench.cli.master import main
from ssbench.cluster.changes import (
    Changes,
    _measure_difference,
    compare_joined_runs,
    describe_changes,
)
from ssbench.cluster.joined_run import OBJECT, Device, JoinedLines
from ssbench.reports.part_changes import (
    LONGER,
    NO_CHANGE_SHOWN,
    SHORTER,
)
from ssbench.results.run_description import RunSummary
from ssbench.results.writer import RunResultsWriter
from ssbench.scenario.operations import CREATE

FILES = ("before", "after")


def shown(changes: Changes) -> list[tuple[str, str, str]]:
    """Servers that are said to have changed: who, the part, and how."""
    return [
        (change.name.split()[0] if change.level == "device" else change.name, change.part, change.verdict)
        for change in changes.changes
        if change.verdict != NO_CHANGE_SHOWN and change.level != "operation"
    ]


@pytest.mark.parametrize(
    ("cause", "expected"),
    [
        (Cause(devices=(1,), seconds=0.01), ("d1", "own", SHORTER)),
        (Cause(devices=(1,), seconds=0.01, where="commit", only="writes"), ("d1", "writes", SHORTER)),
        (Cause(proxy=1, seconds=0.01), ("p1", "own part", SHORTER)),
        (Cause(proxy=1, seconds=0.01, where="before"), ("p1", "way", SHORTER)),
    ],
    ids=["own", "writes", "own part", "way"],
)
def test_what_was_repaired_is_named_and_nobody_else(cause: Cause, expected: tuple[str, str, str]) -> None:
    changes = changes_of(cause, Cause())
    # Deletes are of a device's own times too.
    assert expected in shown(changes)
    assert {name for name, _, _ in shown(changes)} == {expected[0]}
    change = next(each for each in changes.changes if each.verdict == SHORTER and each.level != "operation")
    assert change.judged.low < change.judged.seconds < change.judged.high < 0
    assert change.judged.seconds == pytest.approx(-0.01, abs=0.0015)
    assert any(
        expected[0] in sentence and " less beside its peers" in sentence
        for sentence in describe_changes(changes)
    )
    # The same run the other way round became slower.
    slower = shown(changes_of(Cause(), cause))
    assert (*expected[:2], LONGER) in slower
    assert {(name, verdict) for name, _, verdict in slower} == {(expected[0], LONGER)}


@pytest.mark.long
@pytest.mark.parametrize("seconds", [0.02, 0.03])
@pytest.mark.parametrize("ring", ["fresh", "grown"])
def test_a_device_that_became_slower_before_its_clock_is_not_said_to_be_faster(
    seconds: float, ring: str
) -> None:
    shape = Shape(devices=12, nodes=4, requests=1500, ring=ring, sigma=0.5)
    after = Cause(devices=(1,), seconds=seconds, where="before", only="writes")
    found = shown(changes_of(Cause(), after, shape))
    assert found == [("d1", "before", LONGER)]
    assert shown(changes_of(after, Cause(), shape)) == [("d1", "before", SHORTER)]


def test_a_container_server() -> None:
    changes = changes_of(Cause(container=1, seconds=0.01), Cause())
    assert [(part, verdict) for _, part, verdict in shown(changes)] == [("updates", SHORTER)]
    update = next(each for each in changes.changes if (each.name, each.part) == ("create", "update"))
    assert (update.verdict, update.difference.seconds) == (SHORTER, pytest.approx(-0.01, abs=0.0015))


def test_what_all_devices_have_in_common_is_of_the_cluster_not_of_one(golden_words: GoldenWords) -> None:
    changes = changes_of(Cause(devices=tuple(range(12)), seconds=0.01), Cause())
    assert shown(changes) == []
    read = next(each for each in changes.changes if (each.name, each.part) == ("read", "server"))
    assert read.verdict == SHORTER
    assert any(
        sentence.startswith("read: ") and " less (" in sentence for sentence in describe_changes(changes)
    )
    golden_words(describe_changes(changes))


@pytest.mark.long
def test_equal_runs_show_no_difference() -> None:
    shape = Shape(devices=4, nodes=3, requests=600, sigma=0.5)
    found = [changes_of(Cause(), Cause(), shape, 10 + seed) for seed in range(12)]
    # p < 0.01 for all comparisons of a pair together.
    assert sum(any(each.verdict != NO_CHANGE_SHOWN for each in changes.changes) for changes in found) <= 1
    assert all(changes.comparisons > 25 for changes in found)
    intervals = [each.judged for changes in found for each in changes.changes]
    inside = np.mean([each.low <= 0 <= each.high for each in intervals])
    assert inside == pytest.approx(0.95, abs=0.04)


def test_a_device_with_a_new_name_is_not_compared() -> None:
    before, after = (simulate(seed, Cause(), Shape(devices=4, nodes=3, requests=600)) for seed in (1, 2))
    renamed = [Device(each.node, each.server, "d9") if each.name == "d1" else each for each in after.devices]
    changes = compare_joined_runs(before, replace(after, devices=renamed), FILES)
    assert (changes.gone, changes.new) == (["d1 on n1"], ["d9 on n1"])
    assert not any(each.name in ("d1 on n1", "d9 on n1") for each in changes.changes)
    assert any(sentence.startswith("Only before: d1 on n1.") for sentence in describe_changes(changes))


def test_steps_of_the_log_are_no_change() -> None:
    before, after = (simulate(seed, Cause(), Shape(devices=4, nodes=3, requests=600)) for seed in (1, 2))
    same, more = (np.full(len(run.lines), seconds) for run, seconds in ((before, 0.0006), (after, 0.0007)))
    changes = compare_joined_runs(
        replace(before, lines=replace(before.lines, seconds=same)),
        replace(after, lines=replace(after.lines, seconds=more)),
        FILES,
    )
    assert shown(changes) == []


def test_the_command_line(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    after = write_stat_file(tmp_path / "after.stat.gz")
    before = tmp_path / "before.stat.gz"
    shutil.copy(after, before)
    logs = [str(DATA / "run-proxy.log"), str(DATA / "run-object.log")]
    words = ["-q", "attribute", str(after), "--swift-logs", *logs]
    out = tmp_path / "changes.json"
    assert main([*words, "--compare", str(before), "--json", str(out)]) == 0
    found = json.loads(out.read_text())
    assert found["format"] == "ssbench attribution changes"
    # Forty requests are too few to say anything.
    assert found["answer"][0] == "Inconclusive: these are too few requests of the same kind in both runs."
    text = capfd.readouterr().out
    assert "What changed between two runs" in text
    assert "Inconclusive" in text
    for more, message in (
        (["--compare", str(after)], "names the run that is to be compared with it"),
        (["--compare-logs", *logs], "--compare-logs are logs of the run of --compare"),
        (["--compare", str(before), "--trace", "x"], "without --transaction, --trace and --otlp"),
        (["--compare", "nothing.stat"], "nothing.stat"),
    ):
        assert main([*words, *more]) == 2
        assert message in capfd.readouterr().err


def test_the_two_sides_of_one_run_are_compared(tmp_path: Path) -> None:
    one = write_stat_file(tmp_path / "one.stat.gz")
    sided = tmp_path / "sided.stat.gz"
    with open_stat_file(one) as results:
        blocks = [
            block.having(group=np.arange(len(block), dtype=np.uint16) % 2) for block in results.blocks()
        ]
    writer = RunResultsWriter(sided, replace(RUN, sides=("policy=gold", "policy=silver")))
    for block in blocks:
        writer.add(block)
    writer.end(RunSummary(ended=1795300895.0))
    out = tmp_path / "changes.json"
    logs = [str(DATA / "run-proxy.log"), str(DATA / "run-object.log")]
    words = ["-q", "attribute", str(sided), "--swift-logs", *logs, "--compare", str(sided)]
    assert main([*words, "--json", str(out)]) == 0
    found = json.loads(out.read_text())
    assert [found[when]["operations"] for when in ("before", "after")] == [21, 20]
    assert [found[when]["file"] for when in ("before", "after")] == [
        f"{sided}, side policy=gold",
        f"{sided}, side policy=silver",
    ]
    assert found["warnings"] == []


def test_a_probability_is_of_either_direction() -> None:
    found = _measure_difference([0.0, 2.0], [3.0, 5.0])
    # t = 3 / sqrt(2), of two degrees of freedom: 1 - t / sqrt(2 + t^2) on both sides together.
    assert found.probability == pytest.approx(1 - math.sqrt(4.5 / 6.5))
    assert found.seconds == 3.0
    assert found.low < 0 < found.high
    assert _measure_difference([3.0, 5.0], [0.0, 2.0]).probability == found.probability


def test_a_change_is_what_is_after_less_what_is_before() -> None:
    for change in changes_of(Cause(), Cause(devices=(1,), seconds=0.01)).changes:
        assert change.after - change.before == pytest.approx(change.difference.seconds), change


def test_a_node_of_which_one_device_is_compared_is_not_compared_besides() -> None:
    changes = changes_of(Cause(), Cause(), Shape(devices=4, nodes=3, requests=600))
    of_node = Counter(each.name.partition(" on ")[2] for each in changes.changes if each.level == "device")
    several = {
        node for node in of_node if len({e.name for e in changes.changes if e.name.endswith(node)}) > 2
    }
    assert {each.name for each in changes.changes if each.level == "node"} == several
    assert 0 < len(several) < len(of_node)


def test_operations_that_lack_a_line_are_not_compared() -> None:
    before, after = (simulate(seed, Cause(), Shape(devices=4, nodes=3, requests=300)) for seed in (1, 2))
    whole = compare_joined_runs(before, after, FILES)
    lines = before.lines
    writes = np.unique(lines.operation[before.operations.code[lines.operation] == CREATE.code])[:20]
    lost = np.isin(lines.operation, writes) & (lines.of == OBJECT)
    lost &= np.append(True, lines.operation[1:] != lines.operation[:-1])  # the first line of each
    kept = JoinedLines(**{name: getattr(lines, name)[~lost] for name in JoinedLines.__slots__})
    changes = compare_joined_runs(replace(before, lines=kept), after, FILES)
    assert lost.sum() == len(writes) == 20
    assert (whole.before.complete, whole.before.operations) == (300, 300)
    assert changes.before.complete == 280
    assert changes.before.compared == whole.before.compared - 20
    assert changes.after == whole.after

    def times_of(found: Changes, part: str) -> int:
        return sum(each.times[0] for each in found.changes if each.level == "device" and each.part == part)

    assert times_of(changes, "writes") <= times_of(whole, "writes") - 40

    def of_creates(found: Changes, part: str) -> int:
        return sum(each.times[0] for each in found.changes if (each.name, each.part) == ("create", part))

    # What clients waited is known without any line.
    assert of_creates(changes, "client") == of_creates(whole, "client") > 0
    assert of_creates(changes, "server") <= of_creates(whole, "server") - 20
