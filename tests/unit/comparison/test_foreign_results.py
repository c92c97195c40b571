"""Files of other tools: vegeta 12, k6 0.52, hyperfine 1.15 wrote theirs; those of warp follow its source."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ssbench.base.errors import UsageError
from ssbench.base.text_values import is_foreign_name
from ssbench.cli import master
from ssbench.comparison.compare import compare_runs
from ssbench.comparison.comparison_verdict import judge_comparison
from ssbench.comparison.foreign_results import read_foreign_results
from ssbench.comparison.run_figures import RunFigures

DATA = Path(__file__).parents[2] / "data" / "foreign"
ALL = ("ALL", None)


def only_run(path: Path) -> RunFigures:
    (runs,) = read_foreign_results(path).sides.values()
    (run,) = runs
    return run


def values(run: RunFigures, key: tuple[str, str | None] = ALL) -> dict[str, float]:
    return {name: sample.value for name, sample in run.rows[key].items()}


def test_vegeta() -> None:
    said = json.loads((DATA / "vegeta-1.json").read_text())
    found = values(only_run(DATA / "vegeta-1.json"))
    # 300 requests support no 99th percentile, whatever vegeta prints.
    assert found == pytest.approx(
        {
            "rate": said["throughput"],
            "mb_per_s": said["bytes_in"]["total"] / 1e6 / (said["duration"] + said["wait"]) * 1e9,
            "p50": said["latencies"]["50th"] / 1e9,
            "p95": said["latencies"]["95th"] / 1e9,
            "errors": 0.0,
        }
    )
    assert only_run(DATA / "vegeta-1.json").started == pytest.approx(1795782453.656, abs=1)


@pytest.mark.parametrize("handled", [False, True])
def test_k6(tmp_path: Path, handled: bool) -> None:
    """``handleSummary`` has the values of a metric one level deeper, and a rate for a value."""
    said = json.loads((DATA / "k6-1.json").read_text())
    path = DATA / "k6-1.json"
    if handled:
        metrics = {name: {"type": "x", "values": each} for name, each in said["metrics"].items()}
        metrics["http_req_failed"]["values"] = {"rate": said["metrics"]["http_req_failed"]["value"]}
        path = tmp_path / "k6.json"
        path.write_text(json.dumps({"metrics": metrics}))
    found = values(only_run(path))
    assert found["rate"] == pytest.approx(said["metrics"]["http_reqs"]["rate"])
    assert found["p50"] == pytest.approx(said["metrics"]["http_req_duration"]["med"] / 1000)
    assert set(found) == {"rate", "mb_per_s", "p50", "p95", "errors"}


def test_commands_of_hyperfine_are_sides(capsys: pytest.CaptureFixture[str]) -> None:
    found = read_foreign_results(DATA / "hyperfine.json")
    assert {side: len(runs) for side, runs in found.sides.items()} == {"sleep 0.01": 10, "sleep 0.02": 10}
    assert master.main(["compare", str(DATA / "hyperfine.json"), "--fail-if", "p50 > +5%"]) == 5
    out = capsys.readouterr().out
    assert "slower: ALL p50" in out
    assert "! results of hyperfine: neither settings nor drift are known" in " ".join(out.split())


def test_a_command_of_hyperfine_that_is_there_twice_is_no_side(tmp_path: Path) -> None:
    """The second would take the place of the first."""
    path = tmp_path / "h.json"
    path.write_text(json.dumps({"results": [{"command": "a", "times": [each]} for each in (1, 2)]}))
    with pytest.raises(UsageError, match="the command 'a' is there twice; -n gives each a name"):
        read_foreign_results(path)


def test_warp(tmp_path: Path) -> None:
    pytest.importorskip("zstandard")
    import zstandard  # noqa: PLC0415 - not before it was found

    columns = (
        "idx thread op client_id n_objects bytes endpoint file error start first_byte end duration_ns cat"
    )
    lines = ["\t".join(columns.split())]
    for number in range(2000):
        begun = f"2026-11-27T12:00:{number // 100:02d}.{number % 100:02d}0000000Z"
        ended = f"2026-11-27T12:00:{number // 100:02d}.{number % 100:02d}{4 if number % 2 else 8}000000Z"
        operation, size = ("GET", 1000) if number % 2 else ("PUT", 500)
        error = "no such key" if number == 1 else ""
        cells = (number, 0, operation, "c", 1, size, "http://h", "f", error, begun, "", ended, 1, "")
        lines.append("\t".join(map(str, cells)))
    path = tmp_path / "warp.csv.zst"
    path.write_bytes(zstandard.compress("\n".join(lines).encode()))
    run = only_run(path)
    assert set(run.rows) == {("READ", None), ("CREATE", None), ALL}
    reads, every = values(run, ("READ", None)), values(run)
    assert reads["p50"] == pytest.approx(0.004, abs=1e-5)
    assert every["p99"] == pytest.approx(0.008, abs=1e-5)
    assert reads["errors"] == pytest.approx(1 / 1000)
    assert every["rate"] == pytest.approx(1999 / 20, rel=0.01)
    assert "p99" not in reads  # 999 succeeded


CASES = DATA.parent / "cases"


def test_warp_with_its_command_below(tmp_path: Path) -> None:
    """Each file of warp ends in a comment, which is no request; newer ones have the column ``cat``."""
    run = only_run(CASES / "51-warp-comment" / "run.csv")
    assert {key[0] for key in run.rows} == {"READ", "CREATE", "DELETE", "HEAD", "ALL"}
    assert run.facts["command"] == "warp mixed --host=127.0.0.1:9000 --duration=1s --full"
    text = (CASES / "51-warp-comment" / "run.csv").read_text().rpartition("# ")[0]
    for comment, command in (
        ("", None),
        ("# warp get --benchdata=x-1 --secret-key=abc --obj.size=4KiB\n# \n", "warp get --obj.size=4KiB"),
    ):
        (tmp_path / "x.csv").write_text(text + comment)
        found = only_run(tmp_path / "x.csv")
        assert found.rows == run.rows
        assert found.facts.get("command") == command


def test_columns_of_warp_are_found_by_their_names(tmp_path: Path) -> None:
    lines = [
        line.split("\t") for line in (CASES / "54-warp-preparation" / "after.csv").read_text().splitlines()
    ]
    moved = ["\t".join([*reversed(line), "new"]) for line in lines if not line[0].startswith("#")]
    (tmp_path / "x.csv").write_text("\n".join(moved))
    assert only_run(tmp_path / "x.csv").rows == only_run(CASES / "54-warp-preparation" / "after.csv").rows


def test_warp_with_the_uploads_of_its_preparation() -> None:
    """Each operation has its own window: slower uploads make no slower reads. There is no row of both."""
    before, after = (only_run(CASES / "54-warp-preparation" / f"{each}.csv") for each in ("before", "after"))
    for run, uploads in ((before, 200), (after, 80)):
        assert set(run.rows) == {("CREATE", None), ("READ", None)}
        assert values(run, ("READ", None))["rate"] == pytest.approx(400, rel=0.01)
        assert values(run, ("READ", None))["mb_per_s"] == pytest.approx(0.4, rel=0.01)
        assert values(run, ("CREATE", None))["rate"] == pytest.approx(uploads, rel=0.01)
    comparison = compare_runs([before] * 4, [after] * 4)
    assert judge_comparison(comparison).headline.startswith("slower: CREATE")
    assert not any(change.differs for row, _, change in comparison.changes() if row.operation == "READ")
    assert (
        "No figure is of all operations; the 7 figures share 5 %" in judge_comparison(comparison).reasons[1]
    )


@pytest.mark.parametrize("name", ["x.json", "x.json.zst"])
def test_totals_of_warp_are_no_runs(tmp_path: Path, name: str) -> None:
    """Without ``--full`` warp writes RUN.json.zst."""
    totals = {"v": 2, "commandline": "warp get", "final": True, "total": {}, "by_op_type": {"GET": {}}}
    data = json.dumps(totals).encode()
    if name.endswith(".zst"):
        zstandard = pytest.importorskip("zstandard")
        data = zstandard.compress(data)
    (tmp_path / name).write_bytes(data)
    with pytest.raises(
        UsageError, match=r"warp wrote totals only: run it with --full, and give the \.csv\.zst"
    ):
        read_foreign_results(tmp_path / name)
    assert is_foreign_name(name)


def test_csv_with_and_without_sides(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "own.csv"
    rows = [
        f"{run},read.p50,{value},{side}" for side, value in (("old", 0.1), ("new", 0.2)) for run in range(4)
    ]
    path.write_text("\n".join(["run,figure,value,side", *rows]) + "\n")
    assert master.main(["compare", str(path)]) == 0
    assert "+100.0 %" in capsys.readouterr().out
    for name in ("a", "b"):
        (tmp_path / f"{name}.csv").write_text("run,figure,value\n1,p50,0.1\n1,rate,5\n2,p50,0.3\n")
    assert master.main(["compare", str(tmp_path / "a.csv"), "--to", str(tmp_path / "b.csv")]) == 0
    assert "before: a.csv 1 and 1 more (2 runs)" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("x.csv", "a,b\n1,2\n", "expected the columns run,figure,value"),
        ("x.csv", "run,figure,value\n1,p50\n", "x.csv:2: expected 3 values, not 2"),
        ("x.csv", "run,figure,value\n1,boot time,2\n", "x.csv:2: figure 'boot time': expected one of"),
        ("x.csv", "run,figure,value\n1,p50,fast\n", "x.csv:2: expected a number, not 'fast'"),
        ("x.csv", "run,figure,value\n1,p50,1\n1,p50,2\n", "x.csv:3: the run '1' has p50 twice"),
        ("x.csv", "run,figure,value\n1,errors,2\n", "ALL errors is 2"),
        ("x.csv", "run,figure,value\n1,p50,nan\n", "ALL p50 is nan"),
        ("x.json", "[1]", "expected JSON of vegeta"),
        ("x.json", "{", "not the results that were expected"),
        ("x.json", '{"latencies": {}, "requests": 1}', "duration is missing"),
        ("x.json", '{"metrics": {}}', "http_reqs is missing"),
        ("x.json", '{"results": [{"command": "a", "times": ["x"]}]}', "not the results that were expected"),
        ("x.csv.zst", "no zstd", "not the results that were expected"),
    ],
)
def test_what_is_none(tmp_path: Path, name: str, text: str, expected: str) -> None:
    path = tmp_path / name
    path.write_text(text)
    if name.endswith(".zst"):
        pytest.importorskip("zstandard")
    with pytest.raises(UsageError) as caught:
        read_foreign_results(path)
    assert expected in str(caught.value)


@given(st.recursive(st.none() | st.floats() | st.text(max_size=5), lambda inner: st.lists(inner, max_size=3)))
def test_any_json_is_read_or_refused_in_a_line(
    tmp_path_factory: pytest.TempPathFactory, value: object
) -> None:
    path = tmp_path_factory.mktemp("any") / "x.json"
    for key in ("latencies", "metrics", "results"):
        path.write_text(json.dumps({key: value, "requests": value, "duration": value}))
        try:
            read_foreign_results(path)
        except UsageError as error:
            assert "\n" not in str(error)  # noqa: PT017


def test_equal_groups_of_runs_are_seldom_called_different(tmp_path: Path) -> None:
    """The rules are those of our own runs: at most 5 of 100 equal pairs. Most of 30 % are seen."""
    chance = np.random.default_rng(7)
    path = tmp_path / "x.csv"

    def differs(change: float) -> bool:
        rows = ["run,figure,value,side"]
        for side, factor in (("a", 1.0), ("b", change)):
            for run in range(8):
                rows += [
                    f"{run},{name},{value * factor * chance.lognormal(0, 0.1)},{side}"
                    for name, value in (("p50", 0.01), ("p95", 0.05), ("rate", 100 / factor**2))
                ]
        path.write_text("\n".join(rows))
        before, after = read_foreign_results(path).sides.values()
        return not judge_comparison(compare_runs(before, after)).headline.startswith("no difference")

    assert sum(differs(1.0) for _ in range(200)) <= 16  # 5 %, and what chance may add in 1 of 40
    assert sum(differs(1.3) for _ in range(20)) >= 18
