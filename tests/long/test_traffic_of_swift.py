"""A scenario that is made of a real Swift's log leaves a log with the same figures."""

from __future__ import annotations

import re
import shlex
import signal
from itertools import chain
from pathlib import Path

import pytest
from processes import Program, run_master

from ssbench.logs.log_files import find_log_files
from ssbench.logs.logged_requests import read_requests
from ssbench.logs.request_formats import find_request_format
from ssbench.results.reading import open_results
from ssbench.traffic.traffic_figures import TRAFFIC_FIGURES, Traffic, compute_figures

KNOWN = """
name: known
sizes: [{name: one, size: {lognormal: {median: 4kB, sigma: 1}}}]
initial_files: {one: 200}
profile: {read: 74, head: 14, update: 6, list: 6}
popularity: {zipf: 0.9}
container_count: 3
rate: 25
run_seconds: 40
user_count: 32
"""


#: The clocks of worker and proxy differ by less, in seconds.
MARGIN = 0.05


def find_start(line: str) -> float:
    """Return when the request of an access line began; 0 of another line."""
    words = line.split()
    return float(words[-4]) if len(words) > 20 and words[-4].replace(".", "").isdigit() else 0.0


def figures_of_run(scenario: Path, log: Path) -> dict[str, float]:
    """Run a scenario on a Swift of its own, whose log is kept; return what the log says.

    The log is that of the benchmark alone: the uploads before it are no traffic of users, and a scenario that
    is made of them creates a number of objects that chance decides.
    """
    variables = log.with_suffix(".env")
    with Program("ssbench.cli.master", ["local-swift", "--env-file", variables]) as swift:
        swift.wait_for("Ctrl-C ends it", 60)
        said = dict(re.findall(r"export (\w+)=(.*)", variables.read_text()))
        said = {name: shlex.split(value)[0] for name, value in said.items()}
        access = ("-A", said["ST_AUTH"], "-U", said["ST_USER"], "-K", said["ST_KEY"])
        stats = log.with_suffix(".stat.gz")
        done = run_master(
            "run-scenario", "-f", scenario, "--workers", 1, *access, "--stats-file", stats, "-k", patience=150
        )
        assert stats.exists(), done.stderr
        blocks = [*open_results(stats).blocks()]
        begin, end = min(each.started.min() for each in blocks), max(each.completed.max() for each in blocks)
        texts = [each.read_text() for each in Path(said["SWIFT_LOGS"]).glob("*proxy*")]
        lines = chain.from_iterable(text.splitlines(keepends=True) for text in texts)
        log.write_text("".join(line for line in lines if begin - MARGIN <= find_start(line) <= end))
        swift.signal(signal.SIGTERM)
        swift.end(60)
    requests = read_requests(find_log_files([str(log)]), find_request_format("swift"))
    assert requests.unreadable == 0
    titles = (each.title for each in TRAFFIC_FIGURES)
    return dict(zip(titles, compute_figures(Traffic(requests)), strict=True))


@pytest.mark.timeout(500)
def test_the_log_of_the_made_scenario_has_the_same_figures(tmp_path: Path) -> None:
    known, made = tmp_path / "known.yaml", tmp_path / "made.yaml"
    known.write_text(KNOWN)
    log = figures_of_run(known, tmp_path / "known.log")
    done = run_master("traffic", tmp_path / "known.log", "-o", made)
    assert done.returncode == 0, done.stderr
    again = figures_of_run(made, tmp_path / "made.log")
    for kind in ("read", "put", "head", "list"):
        assert again[kind] == pytest.approx(log[kind], abs=0.04)
    assert again["objects"] == pytest.approx(log["objects"], rel=0.1)
    assert again["size of objects, p50"] == pytest.approx(log["size of objects, p50"], rel=0.25)
    assert again["uses of an object"] == pytest.approx(log["uses of an object"], rel=0.15)
    assert again["hit ratio by objects, 10 % cached"] == pytest.approx(
        log["hit ratio by objects, 10 % cached"], abs=0.1
    )
    assert again["containers"] == log["containers"]
