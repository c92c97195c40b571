"""The report as a page of HTML, without a browser: what is in it, what is not, how large it gets."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from full_run import write_full_run
from old_formats import failure, msgpack_file, success
from result_rows import block, many

from ssbench.cli import options
from ssbench.cli.master import main
from ssbench.document.elements import (
    BLUE,
    Chart,
    Curve,
    Document,
    Heat,
    Note,
    Section,
    Tile,
    Tiles,
    Tone,
    Verdict,
)
from ssbench.document.renderers.html import ShownTimes, draw_chart, find_shown_times, make_page_parts
from ssbench.reports import json as json_report
from ssbench.reports import run_charts
from ssbench.reports.writing import ReportOptions, make_run_report
from ssbench.results.block import Failure
from ssbench.results.reading import open_results
from ssbench.results.result_fields import ResultMark
from ssbench.results.run_description import (
    Gap,
    LoadSample,
    MasterFacts,
    RunDescription,
    RunSummary,
    StageFacts,
    WorkerFacts,
)
from ssbench.results.writer import RunResultsWriter
from ssbench.scenario.model import Scenario, SizeClass, Stage
from ssbench.statistics.over_time import MAX_BINS
from ssbench.statistics.run_statistics import RunStatistics
from ssbench.statistics.summary import summarize

DATA = Path(__file__).parents[3] / "data"
MOST_BYTES = 1_000_000


class Page(HTMLParser):
    """What a page would load, its headings and its texts."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.loads: list[str] = []
        self.tags: list[str] = []
        self.headings: list[str] = []
        self.texts: list[str] = []
        self.charts: list[dict[str, Any]] = []
        self._open: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self._open.append(tag)
        self.loads += [
            value or ""
            for name, value in attrs
            if name in {"src", "href", "action", "data", "srcset"} and not (value or "").startswith("#")
        ]
        self.charts += [json.loads(value or "") for name, value in attrs if name == "data-chart"]

    def handle_endtag(self, tag: str) -> None:
        while self._open and self._open.pop() != tag:
            pass

    def handle_data(self, data: str) -> None:
        where = self._open[-1] if self._open else ""
        if where in {"h1", "h2", "figcaption"}:
            self.headings.append(data.strip())
        if where not in {"script", "style"}:
            self.texts.append(data)


def statistics(path: Path) -> RunStatistics:
    return summarize(open_results(path), ("worker", "storage_url"), over_time=True)


def page(numbers: RunStatistics) -> tuple[str, Page]:
    text = make_run_report("html", numbers, ReportOptions())
    assert len(text.encode()) < MOST_BYTES
    made = Page(text)
    assert made.loads == ["data:,"]
    assert "iframe" not in made.tags
    assert "link" in made.tags
    return text, made


def test_every_part_and_nothing_that_a_name_could_do(tmp_path: Path) -> None:
    text, made = page(statistics(write_full_run(tmp_path / "run.stat.gz")))
    titles = ["Operations", "Over time", "Latency", "Warnings", "Errors", "Slowest operations"]
    for heading in (
        *titles,
        "Workers",
        "Storage URLs",
        "Cluster",
        "Parameters",
        "Latency",
        "Users",
        "Throughput",
    ):
        assert heading in made.headings, heading
    assert "Füll <b>&|" in made.headings
    assert "w </script> @all" in made.texts
    assert "2 of 4 operations failed (50.0 %): 1 x HTTP 503, 1 x lost worker." in made.texts
    assert "tx1" in made.texts
    assert {"b", "img"}.isdisjoint(made.tags)
    assert made.tags.count("script") == text.count("</script>") == 2


@pytest.mark.parametrize("name", ["version-1-known.stat.gz", "version-1-noop.stat.gz"])
def test_short_runs(name: str) -> None:
    _, made = page(statistics(DATA / name))
    assert "Over time" in made.headings
    assert ("Latency" in made.headings) == ("known" in name)


OLD = {
    "mixed": [success(0, 1e9), success(1, 1e9 + 3), failure(2, 1e9 + 1)],
    "one": [success()],
    "errors": [failure()],
    "empty": [],
}


@pytest.mark.parametrize("results", OLD.values(), ids=OLD)
def test_old_files(tmp_path: Path, results: list[dict[str, object]]) -> None:
    path = tmp_path / "old.stat"
    path.write_bytes(msgpack_file([results]))
    _, made = page(statistics(path))
    assert ("Over time" in made.headings) == bool(results)


def test_names_in_the_data_of_charts_end_no_script(tmp_path: Path) -> None:
    path = tmp_path / "run.stat.gz"
    classes = tuple(SizeClass(name, 1, 1, 1, {"read": 1.0}) for name in ("</script><img src=x>", "<!--"))
    writer = RunResultsWriter(path, RunDescription(Scenario("s", classes, 1, operation_count=2)))
    writer.add(block([(1, n % 2, 1, 0, n, 1, 0.1, 0.2, 1e9 + n, 200, 0) for n in range(8)], [None] * 8))
    writer.end(RunSummary(1e9 + 9))
    text, made = page(statistics(path))
    assert "img" not in made.tags
    assert text.count("</script>") == text.count("<script>") == 2
    assert "<!--" not in text.replace("<!DOCTYPE", "")


def large(path: Path) -> Path:
    """A run of two days, with more of everything than there will ever be."""
    names = [f"class{number}" for number in range(3)]
    classes = tuple(SizeClass(name, 1, 10, 1, (1.0, 1.0, 1.0, 1.0)) for name in names)
    scenario = Scenario("l" * 3000, classes, 10**6, run_seconds=2e5, data={"text": "x" * 10**6})
    urls = tuple(f"http://{number}.example/{'u' * 500}" for number in range(300))
    writer = RunResultsWriter(path, RunDescription(scenario, storage_urls=urls, options={"o": "p" * 10**6}))
    count, random = 20_000, np.random.default_rng(3)
    for first in range(0, count, 20_000):
        here = np.arange(20_000)
        failures = {row: Failure(f"cause {row} {'c' * 300}", "", {}) for row in range(0, 4000, 10)}
        last = random.lognormal(-3, 2, len(here))
        last[list(failures)] = np.nan
        columns = {
            "operation": here % 4,
            "size_class": here % 3,
            "worker": here % 210,
            "last_byte": last,
            "completed": 1e9 + (first + here) * 2e5 / count,
            "storage_url": here % 210,
            "trans_id": ["t" * 900] * len(here),
        }
        made = many(range(len(here)), **columns)
        made.failures.update(failures)
        writer.add(made)
    warnings = tuple(f"{number} {'w' * 5000}" for number in range(1000))
    facts = tuple(WorkerFacts(number, "h" * 100) for number in range(300))
    writer.end(RunSummary(1e9 + 2e5, warnings=warnings, workers=facts))
    return path


def test_a_run_of_any_length_stays_small(tmp_path: Path) -> None:
    _, made = page(statistics(large(tmp_path / "run.stat.gz")))
    assert "and 10 more; --json has all of them" in made.texts
    assert all(len(table[0]) <= MAX_BINS for chart in made.charts for table in chart["tables"])


def test_of_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "report.html"
    arguments = ["report-scenario", "-s", str(DATA / "version-1-known.stat.gz"), "--html", str(file)]
    assert main(arguments) == 0
    assert f"Wrote {file}" in capsys.readouterr().err
    assert file.read_text().startswith("<!DOCTYPE html>")
    assert main(arguments) == 2
    assert f"{file}: exists already" in capsys.readouterr().err


def test_an_open_loop_with_stages_and_a_generator_that_stood_still(tmp_path: Path) -> None:
    path = tmp_path / "run.stat.gz"
    classes = (SizeClass("tiny", 1, 10, 1, {"read": 1.0}),)
    plan = (Stage(10.0, (2, 2), (100.0, 100.0)), Stage(10.0, (2, 2), (100.0, 200.0)))
    scenario = Scenario("s", classes, 2, run_seconds=20.0, stages=plan)
    writer = RunResultsWriter(path, RunDescription(scenario, stages=("calm", "<storm>")))
    here = np.arange(2000)
    completed = 1e9 + here / 100
    columns = {"stage": here // 1000, "due": completed - 0.05, "started": completed - 0.02, "last_byte": 0.02}
    delayed = {"marks": np.where(here == 77, int(ResultMark.DELAYED), 0)}
    columns["last_byte"] = np.where(here == 77, 9.0, 0.02)
    writer.add(many(range(len(here)), operation=here % 2, completed=completed, **columns, **delayed))
    writer.end(
        RunSummary(
            1e9 + 20,
            workers=(WorkerFacts(0, "h", cpu_share=0.5, lag_max=0.25),),
            stages=(StageFacts(1e9, 1e9 + 10, 1000), StageFacts(1e9 + 10, 1e9 + 20, 1500)),
            master=MasterFacts(0.25, 0.125),
            gaps=(Gap(None, 1e9 + 5, 1.5),),
            generator_load=(LoadSample(1e9 + 1, 1.0, 0.5, 0.002, None, 0.25), LoadSample(1e9 + 2, 1.0, 0.75)),
        )
    )
    numbers = statistics(path)
    text, made = page(numbers)
    assert {"Load", "Response time by percentile"} <= set(made.headings)
    assert {"calm", "<storm>", "master"} <= set(made.texts)
    (load,) = run_charts.make_response_time_charts(numbers)
    assert [curve.name for curve in load.curves] == [
        "CREATE",
        "READ",
        "ALL",
        "lateness of all sends",
    ]
    assert "dark grey: the load generator itself stalled" in text
    assert re.search(r"<span>generator CPU</span>\s*<strong>[\d.]+ <small>%</small></strong>", text)
    assert made.charts[0]["marks"] == [[pytest.approx(0.02), "calm"], [pytest.approx(10.02), "<storm>"]]
    cpu, lag = (
        next(
            each
            for each in run_charts.make_time_line_charts(numbers)
            if each.title.startswith(f"Load generator: {word}")
        )
        for word in ("CPU", "lag")
    )
    assert [curve.name for curve in cpu.curves] == ["busiest worker", "master"]
    assert cpu.curves[0].y.tolist() == [50.0, 75.0]
    assert np.isnan(cpu.curves[1].y).all()
    assert lag.curves[0].y[0] == pytest.approx(2.0)
    assert cpu.curves[0].x.tolist() == pytest.approx([0.52, 1.52])
    assert "The latency of 1 operation is left out, because a worker itself stalled." in text
    assert len(numbers.slowest) == 20
    assert numbers.slowest[0].latency < 1
    assert numbers.over_time is not None
    assert np.nanmax(numbers.over_time.operations[None].maximum) < 1


def test_a_comparison(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page_file, runs = tmp_path / "compare.html", [write_full_run(tmp_path / f"{n}.stat.gz") for n in range(3)]
    files = ["compare", str(runs[0]), "--to", str(runs[1]), str(runs[2])]
    assert main([*files, "--html", str(page_file)]) == 0
    assert "no verdict" in capsys.readouterr().out
    text = page_file.read_text()
    made = Page(text)
    assert len(text.encode()) < MOST_BYTES
    assert made.loads == ["data:,"]
    # Too few operations for latency by percentile.
    assert {"0 to 1 and 1 more", "All operations"} <= set(made.headings)
    assert "0: w </script> @all; likewise in 2 more runs" in made.texts
    assert main([*files, "--html", str(page_file)]) == 2
    assert main(["compare", *map(str, runs), "--html", str(tmp_path / "x.html")]) == 2
    assert "leave out --html" in capsys.readouterr().err


def test_two_sides_of_a_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, page_file = tmp_path / "run.stat.gz", tmp_path / "compare.html"
    classes = (SizeClass("tiny", 1, 10, 1, {"read": 1.0}),)
    run = RunDescription(Scenario("s", classes, 2, run_seconds=20.0), sides=("old", "<new>"))
    writer = RunResultsWriter(path, run)
    here = np.arange(2000)
    columns = {"completed": 1e9 + here / 100, "last_byte": 0.01 + 0.01 * (here % 2), "group": here % 2}
    writer.add(many(range(len(here)), operation=1, **columns))
    writer.end(RunSummary(1e9 + 20))
    numbers = summarize(open_results(path), options.ReportFiles((("html", path),), force=False).by)
    _, made = page(numbers)
    assert "Sides" in made.headings
    assert {"old", "<new>"} <= set(made.texts)
    (old, new) = json_report.make_run_report_record(numbers, ReportOptions()).sides
    assert (old.side, new.side) == ("old", "<new>")
    assert [each.operation for each in new.operations] == ["all", "read"]
    assert new.operations[0].figures.last_byte.percentiles["50"] == pytest.approx(0.02)
    whole = tmp_path / "whole.html"
    assert main(["report-scenario", "-s", str(path), "--html", str(whole), "--report", "summary"]) == 0
    assert "two sides, old and <new>: figures are of both together;" in capsys.readouterr().out
    made = Page(whole.read_text())
    assert made.headings[:2] == ["s", "Changes"]
    words = next(each for each in made.texts if each.startswith("old to <new>:"))
    assert "slower: ALL p50 (+100" in words
    assert "class='verdict bad'" in whole.read_text()
    assert "These figures are of both sides together, old and <new>." in made.texts
    assert main(["compare", str(path), "--html", str(page_file)]) == 0
    capsys.readouterr()
    assert {"old to <new>", "READ: latency by percentile"} <= set(Page(page_file.read_text()).headings)


def test_a_page_of_two_sides_has_the_verdict_of_compare_by_the_same_history(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Pages assumed 2 % for what differs from run to run, where compare had it from earlier runs."""

    def write(path: Path, factor: float) -> Path:
        classes = (SizeClass("tiny", 1, 10, 1, {"read": 1.0}),)
        run = RunDescription(Scenario("s", classes, 2, run_seconds=20.0), sides=("old", "new"))
        writer = RunResultsWriter(path, run)
        here = np.arange(2000)
        latency = np.where(here % 2, 0.01 * factor, 0.01)
        columns = {"completed": 1e9 + here / 100, "last_byte": latency, "group": here % 2}
        writer.add(many(range(len(here)), operation=1, **columns))
        writer.end(RunSummary(1e9 + 20))
        return path

    folder, page_file = tmp_path / "results", tmp_path / "page.html"
    for number, factor in enumerate((1.0, 3.0, 0.5, 2.0, 4.0)):
        write(folder / f"{number}.stat.gz", factor)
    path = write(tmp_path / "run.stat.gz", 2.0)
    for more, word in (
        ([], "slower: ALL p50 (+100"),
        (["--results-dir", str(folder)], "no difference shown (detectable: "),
    ):
        assert main(["compare", str(path), *more]) == 0
        assert word in capsys.readouterr().out
        html = ["--html", str(page_file), "--force", "--report", "summary"]
        assert main(["report-scenario", "-s", str(path), *html, *more]) == 0
        words = next(each for each in Page(page_file.read_text()).texts if each.startswith("old to new:"))
        assert word in words
        capsys.readouterr()


@pytest.mark.parametrize(
    ("seconds", "low", "high"), [([0.5, 250.0], 0.0, 254.99), ([90.0, 190.0], 88.0, 192.0)]
)
def test_charts_over_time_begin_with_the_run_at_the_earliest(
    seconds: list[float], low: float, high: float
) -> None:
    """Their margin was before it: -5 s of a run of four minutes."""
    x = np.array(seconds)
    chart = Chart("t", "u", [Curve("c", x, x, "#000")], axis="time")
    shown = find_shown_times(Document("d", [chart]))
    assert (shown.low, shown.high) == (pytest.approx(low), pytest.approx(high))


def test_charts_over_time_show_the_run_though_the_cluster_was_seen_long_before_it() -> None:
    def chart(first: float, last: float, *, wider: bool = False) -> Chart:
        return Chart("t", "", [Curve("c", np.array([first, last]), np.ones(2), BLUE)], wider=wider)

    for charts in ([chart(0, 50), chart(-600, 99, wider=True)], [chart(-600, 99, wider=True), chart(0, 50)]):
        times = find_shown_times(Document("d", charts))
        assert (times.low, times.high) == (0.0, 51.0)
        for each in charts:
            assert json.loads(draw_chart(each, times).data)["times"] == [0, 51]
    assert find_shown_times(Document("d", [])).low < find_shown_times(Document("d", [])).high
    assert find_shown_times(Document("d", [chart(3, 3)])).low < 3


def test_the_data_of_a_chart() -> None:
    x, nan = np.array([1.0, 2.0, 4.0]), math.nan
    low = Curve("low", x, np.array([1.0, nan, 1 / 3]), "#000000")
    other = Curve("other", x[::-1], np.array([4.0, 2.0, 1.0]), "#000001", labels=("c", "b", "a"))
    high = Curve("high", x, np.array([5.0, math.inf, 123456.7]), "#000002", down_to=0)
    drawn = json.loads(draw_chart(Chart("t", "ms", [low, other, high], axis="users"), ShownTimes(0, 1)).data)
    # What has the same x is one table, and x ascends.
    assert drawn["tables"] == [
        [[1, 2, 4], [1, None, 0.33333], [5, None, 123460]],
        [[1, 2, 4], [1, 2, 4]],
    ]
    assert [curve["name"] for curve in drawn["curves"]] == ["low", "high", "other"]
    assert drawn["order"] == [0, 2, 1]  # of the legend, which is that of the chart
    assert drawn["bands"] == [[1, 0]]
    assert drawn["curves"][2]["labels"] == ["a", "b", "c"]
    assert "times" not in drawn
    assert not any("path" in curve for curve in drawn["curves"])
    assert "ticks" not in drawn


def test_a_line_goes_from_point_to_point_in_their_own_order() -> None:
    x, y = np.array([68.6, 43.7, 72.6, 105.4]), np.array([10.0, 35.3, 45.9, 59.8])
    curve = Curve("p50", x, y, "#000000", labels=("1", "2", "4", "8"))
    drawn = json.loads(
        draw_chart(Chart("t", "ops/s", [curve], axis="ms", ticks=(50, 100)), ShownTimes(0, 1)).data
    )
    [found] = drawn["curves"]
    assert [found["labels"][place] for place in found["path"]] == ["1", "2", "4", "8"]
    assert drawn["ticks"] == [50, 100]


def test_the_cells_of_a_heat_map() -> None:
    counts = np.array([[0, 3, 0, 1], [0, 0, 0, 0]])
    heat = Heat(np.array([0.0, 1.0, 2.0]), np.array([1.0, 2.0, 4.0, 8.0, 16.0]), counts)
    drawn = json.loads(draw_chart(Chart("t", "ms", [], log=True, heat=heat), ShownTimes(0, 2)).data)["heat"]
    assert drawn == {"x": [0, 1, 2], "y": [1, 2, 4, 8, 16], "columns": [[1, 3, 0, 1], []]}
    # Of a long run columns are put together.
    many_ = Heat(np.arange(1002.0), np.array([1.0, 2.0]), np.ones((1001, 1), np.int64))
    drawn = json.loads(draw_chart(Chart("t", "ms", [], log=True, heat=many_), ShownTimes(0, 2)).data)["heat"]
    assert len(drawn["x"]) == len(drawn["columns"]) + 1 <= 257
    assert sum(cells[1] for cells in drawn["columns"]) == 1001
    assert drawn["x"][-1] == 1001


def test_parts_have_names_of_their_own() -> None:
    inner = [Section(title, [Note("n")]) for title in ("Over time", "Head", "<i>", "Contents")]
    found = make_page_parts(Document("d", [*inner, Note("x")], Verdict(Tone.GOOD, "v")))
    ids = [each.id for each in found]
    assert ids == ["contents", "head", "verdict", "over-time", "part-1", "i", "part-3", "part-4"]
    for each in found:
        assert f"id={each.id}" in each.html.partition(">")[0]
    titles = [Section(f"{n % 2}", [Note("n")]) for n in range(4)]
    assert len({each.id for each in make_page_parts(Document("d", titles))}) == 2 + len(titles)


def test_the_picture_of_a_tile() -> None:
    assert 'points="0.0,27.0 60.0,2.0 120.0,14.5"' in tile_of([0.0, math.nan, 2.0, 1.0])
    assert tile_of(range(1000)).count(",") == 59
    assert "svg" not in tile_of([math.nan, 1.0])


def tile_of(values: Sequence[float]) -> str:
    return make_page_parts(Document("d", [Tiles([Tile("t", "1", values=values)])]))[-1].html
