"""Files of other tools: vegeta 12, k6 0.52, hyperfine 1.15 wrote theirs; those of warp follow its source."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import noise
import numpy as np
import pytest
from golden_words import GoldenWords
from hypothesis import given
from hypothesis import strategies as st

from ssbench.base.errors import UsageError
from ssbench.base.text_values import is_foreign_name
from ssbench.cli import master
from ssbench.comparison.comparison_verdict import Word, judge_comparison
from ssbench.comparison.foreign_results import read_foreign_results
from ssbench.comparison.run_comparison import compare_runs
from ssbench.comparison.run_figures import RunFigures

#: What is said of an output of another program that lacks something.
NOT_RESULTS = "not the results that were expected"

DATA = Path(__file__).parents[2] / "data" / "foreign"
CASES = DATA.parent / "cases"
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


def write_vegeta(path: Path, **changes: object) -> Path:
    path.write_text(json.dumps({**json.loads((DATA / "vegeta-1.json").read_text()), **changes}))
    return path


def test_vegeta_whose_requests_fail(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Its percentiles are of all requests: those of refused connections are no latencies of the store."""
    names: dict[str, list[str]] = {"slow": [], "fast": []}
    for side, latency in (("slow", 30e9), ("fast", 0.2e9)):
        for number in range(4):
            latencies = {"50th": latency * (1 + number / 100), "95th": 31e9, "99th": 32e9}
            path = tmp_path / f"{side}-{number}.json"
            names[side].append(str(write_vegeta(path, success=0.41, latencies=latencies)))
    found = values(only_run(Path(names["fast"][0])))
    assert found["errors"] == pytest.approx(0.59)
    assert {"p50", "p95", "p99"}.isdisjoint(found)
    assert master.main(["compare", *names["slow"], "--to", *names["fast"], "--fail-if", "errors > 1%"]) == 5
    out = capsys.readouterr().out
    assert "faster" not in out
    assert "59.0 % of operations failed after" in " ".join(out.split())
    # A few failures beyond a percentile do not change it.
    few = values(only_run(write_vegeta(tmp_path / "few.json", success=1 - 1 / 300, requests=300)))
    assert {"p50", "p95"} <= set(few)


def test_vegeta_of_one_moment_and_of_old_versions(tmp_path: Path) -> None:
    """Where no time passed from the first to the last request, vegeta says how many there were as rate."""
    found = values(
        only_run(write_vegeta(tmp_path / "one.json", duration=0, wait=10**9, rate=300, throughput=300))
    )
    assert {"rate", "mb_per_s"}.isdisjoint(found)
    assert "p50" in found
    said = json.loads((DATA / "vegeta-1.json").read_text())
    del said["throughput"]
    (tmp_path / "old.json").write_text(json.dumps(said))
    assert values(only_run(tmp_path / "old.json"))["rate"] == pytest.approx(300 / (2.990089063 + 0.005299318))


def test_k6_of_its_new_summary() -> None:
    """``--new-machine-readable-summary``: counts for rates, in a list, and latencies of successes."""
    found = values(only_run(DATA / "k6-new.json"))
    assert found == pytest.approx({"rate": 90.0, "mb_per_s": 0.5, "errors": 0.1, "p50": 0.004, "p95": 0.009})


def test_k6_whose_requests_fail(tmp_path: Path) -> None:
    """Latencies are those of the responses that were expected; without these, of all, where few failed."""
    said = json.loads((DATA / "k6-1.json").read_text())
    said["metrics"]["http_req_failed"]["value"] = 0.3
    only = (
        said["metrics"].pop("http_req_duration{expected_response:true}", None)
        or said["metrics"]["http_req_duration"]
    )
    path = tmp_path / "x.json"
    path.write_text(json.dumps(said))
    assert set(values(only_run(path))) == {"rate", "mb_per_s", "errors"}
    said["metrics"]["http_req_duration{expected_response:true}"] = {**only, "med": 7.0}
    path.write_text(json.dumps(said))
    assert values(only_run(path))["p50"] == pytest.approx(0.007)


def test_equal_commands_of_hyperfine_one_after_the_other(tmp_path: Path) -> None:
    """Executions of one minute are alike: two stretches of them differ though nothing else does."""
    chance = np.random.default_rng(3)

    def verdict(change: float) -> Word:
        level = noise.correlated(chance, 1, 40, 0.9, 0.1)[0]
        times = 0.02 * np.exp(level + chance.normal(0, 0.05, 40))
        times[20:] *= change
        sides = [
            {"command": name, "times": [*part]} for name, part in zip("ab", np.split(times, 2), strict=True)
        ]
        (tmp_path / "h.json").write_text(json.dumps({"results": sides}))
        before, after = read_foreign_results(tmp_path / "h.json").sides.values()
        return judge_comparison(compare_runs(before, after)).word

    assert sum(verdict(1.0) is not Word.SAME for _ in range(40)) <= 3
    assert sum(verdict(3.0) is Word.SLOWER for _ in range(10)) >= 9


@pytest.mark.parametrize("with_times", [False, True])
def test_runs_in_turn_of_a_csv_are_pairs(tmp_path: Path, with_times: bool) -> None:
    """The order of the lines is that of the runs, or a column says when each began."""
    chance = np.random.default_rng(5)

    def differs(change: float) -> bool:
        level = np.cumsum(chance.normal(0, 0.1, 16))
        lines = []
        for place in range(16):
            side = "ab"[place % 4 in {1, 2}]
            value = (
                0.01 * np.exp(level[place // 2 * 2] + chance.normal(0, 0.01)) * (change if side == "b" else 1)
            )
            lines.append(f"{place},p50,{value},{side}" + f",2026-05-01T12:{place:02d}:00Z" * with_times)
        if with_times:
            lines.sort(key=lambda line: line.split(",")[3])
        (tmp_path / "x.csv").write_text("\n".join(["run,figure,value,side" + ",time" * with_times, *lines]))
        before, after = read_foreign_results(tmp_path / "x.csv").sides.values()
        return compare_runs(before, after).find(None, None, "p50").differs

    assert sum(differs(1.0) for _ in range(40)) <= 4
    assert sum(differs(1.05) for _ in range(20)) >= 18


def test_commands_of_hyperfine_are_sides(capsys: pytest.CaptureFixture[str]) -> None:
    found = read_foreign_results(DATA / "hyperfine.json")
    assert {side: len(runs) for side, runs in found.sides.items()} == {"sleep 0.01": 10, "sleep 0.02": 10}
    assert master.main(["compare", str(DATA / "hyperfine.json"), "--fail-if", "p50 > +5%"]) == 5
    out = capsys.readouterr().out
    assert "slower: ALL p50" in out
    assert "! results of hyperfine: settings are not known" in " ".join(out.split())
    assert "the intervals allow for any drift that the runs do not exclude" in " ".join(out.split())


def test_a_command_of_hyperfine_that_is_there_twice_is_no_side(
    tmp_path: Path, golden_words: GoldenWords
) -> None:
    """The second would take the place of the first."""
    path = tmp_path / "h.json"
    path.write_text(json.dumps({"results": [{"command": "a", "times": [each]} for each in (1, 2)]}))
    with golden_words.raises(UsageError):
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


def test_warp_with_the_uploads_of_its_preparation(golden_words: GoldenWords) -> None:
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
    golden_words(judge_comparison(comparison).reasons[1])


@pytest.mark.parametrize("name", ["x.json", "x.json.zst"])
def test_totals_of_warp_are_no_runs(tmp_path: Path, name: str, golden_words: GoldenWords) -> None:
    """Without ``--full`` warp writes RUN.json.zst."""
    totals = {"v": 2, "commandline": "warp get", "final": True, "total": {}, "by_op_type": {"GET": {}}}
    data = json.dumps(totals).encode()
    if name.endswith(".zst"):
        zstandard = pytest.importorskip("zstandard")
        data = zstandard.compress(data)
    (tmp_path / name).write_bytes(data)
    with golden_words.raises(UsageError):
        read_foreign_results(tmp_path / name)
    assert is_foreign_name(name)


def test_without_zstandard_the_ways_out_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, golden_words: GoldenWords
) -> None:
    """It named a package ``ssbench[zstd]``: the one of that name that there is may be of 2013."""
    monkeypatch.setitem(sys.modules, "zstandard", None)
    path = tmp_path / "x.csv.zst"
    path.write_bytes(b"\x28\xb5\x2f\xfd")
    with golden_words.raises(UsageError):
        read_foreign_results(path)


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
        ("x.json", "[1]", "expected JSON of envelope, vegeta"),
        ("x.json", "{", NOT_RESULTS),
        ("x.json", '{"latencies": {}, "requests": 1}', "success is missing"),
        (
            "x.json",
            '{"latencies": {}, "requests": 1, "success": 1, "duration": 0, "wait": 0}',
            "no time passed",
        ),
        ("x.json", '{"latencies": {}, "requests": 0, "success": 0}', "no request"),
        ("x.json", '{"results": {"metrics": []}, "config": {"duration": 0}}', "no time passed"),
        ("x.json", '{"results": [{"command": "a", "mean": 1}]}', "the command 'a' has no times"),
        ("x.json", '{"results": []}', "no command"),
        ("x.csv", "run,figure,value,run\n", "expected the columns run,figure,value"),
        (
            "x.csv",
            "run,figure,value,time\n1,p50,1,noon\n",
            "x.csv:2: expected a time, as 2026-05-01T12:00:00Z",
        ),
        ("x.csv", "run,figure,value,time\n1,p50,1,inf\n", "x.csv:2: expected a time"),
        ("x.csv", "run,figure,value\n1,p50," + "1" * 200_000, "field larger than field limit"),
        ("x.json", '{"metrics": {}}', "http_reqs is missing"),
        ("x.json", '{"results": [{"command": "a", "times": ["x"]}]}', NOT_RESULTS),
        ("x.csv.zst", "no zstd", NOT_RESULTS),
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
        _read_or_refuse(path)


def _read_or_refuse(path: Path) -> None:
    """Read a file and compare its runs, or be refused with one line."""
    try:
        sides = [*read_foreign_results(path).sides.values()]
    except UsageError as error:
        assert "\n" not in str(error)  # noqa: PT017
    else:
        judge_comparison(compare_runs(sides[0], sides[-1]))


#: What other tools wrote, and warp's columns.
GENUINE = {
    each.name: each.read_text()
    for each in (
        *sorted(DATA.glob("*-1.json")),
        DATA / "k6-new.json",
        DATA / "hyperfine.json",
        CASES / "51-warp-comment" / "run.csv",
    )
} | {
    "own.csv": "run,figure,value,side,time\n"
    + "".join(f"{n},p50,{n}.5,{'ab'[n % 2]},{n}\n" for n in range(8))
}

_ODD_VALUES = st.sampled_from([None, 0, -1, 1e308, float("nan"), "", "x", [], {}, True, 10**400])


def _places(value: object, *way: object) -> Iterator[tuple[object, ...]]:
    """Yield the way to each value within a JSON document."""
    yield way
    if isinstance(value, dict | list):
        for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
            yield from _places(inner, *way, key)


@pytest.mark.parametrize("name", [name for name in GENUINE if name.endswith(".json")])
@given(data=st.data())
def test_a_genuine_document_with_another_or_missing_value(
    tmp_path_factory: pytest.TempPathFactory, name: str, data: st.DataObject
) -> None:
    document = json.loads(GENUINE[name])
    for _ in range(data.draw(st.integers(1, 3))):
        *way, last = data.draw(
            st.sampled_from([each for each in _places(document) if each] or [("results",)])
        )
        inner = document
        for key in way:
            inner = inner[key]
        if data.draw(st.booleans()):
            inner[last] = data.draw(_ODD_VALUES)
        else:
            inner.pop(last, None) if isinstance(inner, dict) else inner.pop(last)
    path = tmp_path_factory.mktemp("changed") / "x.json"
    path.write_text(json.dumps(document))
    _read_or_refuse(path)


@pytest.mark.parametrize("name", GENUINE)
@given(data=st.data())
def test_a_genuine_file_with_other_bytes(
    tmp_path_factory: pytest.TempPathFactory, name: str, data: st.DataObject
) -> None:
    written = bytearray(GENUINE[name].encode())
    for _ in range(data.draw(st.integers(1, 4))):
        begin = data.draw(st.integers(0, max(0, len(written) - 1)))
        cut = data.draw(st.integers(0, 20))
        written[begin : begin + cut] = data.draw(
            st.binary(max_size=6) | st.sampled_from([b"\t", b'"', b"\n", b"\0", b"9" * 400])
        )
    path = tmp_path_factory.mktemp("changed") / name
    path.write_bytes(written)
    _read_or_refuse(path)


@pytest.mark.long
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
