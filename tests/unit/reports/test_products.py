"""The table of products and formats: each can be made, and what cannot is refused before anything runs."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from asked_commands import ask
from full_run import write_full_run
from golden_words import GoldenWords
from simulated_cluster import Cause, Shape, changes_of, simulate

from ssbench.base.errors import ExitCode, GateResult, UsageError
from ssbench.cli import master, unfit_options
from ssbench.cli.option_table import RunScenarioAsked
from ssbench.cluster.attribution_report import AttributedRun
from ssbench.cluster.findings import make_attribution
from ssbench.comparison.archive import make_entry
from ssbench.comparison.capacity_report import Capacity, PhaseCapacities, compare_sweeps
from ssbench.comparison.equal_runs import make_equal_run, measure_noise
from ssbench.comparison.family import make_row_run
from ssbench.comparison.run_comparison import compare_runs
from ssbench.comparison.run_figures import make_run_figures
from ssbench.comparison.run_table import RunTable
from ssbench.comparison.store_limits import Envelope
from ssbench.comparison.suite_report import SuiteFindings
from ssbench.comparison.suite_rows import SuiteRow, make_kept_run
from ssbench.comparison.sweep import make_step
from ssbench.comparison.sweep_variables import Variable
from ssbench.document import renderers
from ssbench.logs.log_files import LogFile
from ssbench.logs.logged_requests import read_requests
from ssbench.logs.request_formats import find_request_format
from ssbench.reports import products
from ssbench.reports.conformance_report import make_conformance_report
from ssbench.reports.products import Product
from ssbench.reports.writing import ReportOptions
from ssbench.results.reading import open_results
from ssbench.scenario.scenario_reading import read_scenario
from ssbench.statistics.summary import summarize
from ssbench.store.conformance_checks import CHECKS, Finding, StoreVerdict
from ssbench.traffic.traffic_figures import Traffic
from ssbench.traffic.traffic_report import TrafficReport

PROXY_LOG = Path(__file__).parents[2] / "data" / "swiftlogs" / "proxy.log"


@pytest.fixture(scope="module")
def samples(tmp_path_factory: pytest.TempPathFactory) -> dict[Product, object]:
    """Something real of each product."""
    path = write_full_run(tmp_path_factory.mktemp("products") / "run.stat.gz")
    statistics = summarize(open_results(path), ("worker", "storage_url"), over_time=True)
    figures = [make_run_figures(statistics, name) for name in ("one", "two")]
    entry = make_entry(statistics, path.name, 1, 1)
    steps = (make_step(3, statistics),)
    sweep = Capacity("a sweep", Variable.USERS, steps, (), "it ended", GateResult.PASSED)
    row = make_row_run(statistics)
    joined = simulate(1, Cause(devices=(1,)), Shape(devices=4, nodes=3, requests=400))
    return {
        Product.RUN: statistics,
        Product.COMPARISON: compare_runs(figures[:1], figures[1:]),
        Product.REPEATED: figures,
        Product.CONFIGURATIONS: figures,
        Product.CAPACITY: sweep,
        Product.CAPACITIES: PhaseCapacities((("get", sweep),)),
        Product.SUITE: SuiteFindings("s", (SuiteRow("kv", (make_kept_run(statistics, "run.stat.gz"),)),)),
        Product.NOISE: measure_noise([make_equal_run(statistics, name) for name in ("one", "two")], 0.05),
        Product.ENVELOPE: Envelope((), (), "p99 <= 50 ms", 5.0, "http://proxy/v1/AUTH_a"),
        Product.SUITES: compare_sweeps(sweep, sweep, RunTable(("a", "b"), {"3 users": [[row], [row]]})),
        Product.LIST: [("last", entry)],
        Product.TREND: [entry],
        Product.OUTLOOK: read_scenario("smoke"),
        Product.CHANGES: changes_of(Cause(devices=(1,)), Cause()),
        Product.ATTRIBUTION: AttributedRun(make_attribution(joined)),
        Product.CONFORMANCE: make_conformance_report(
            "http://store", [(CHECKS[0], Finding(StoreVerdict.REFUSED))]
        ),
        Product.TRAFFIC: TrafficReport(
            Traffic(read_requests([LogFile(PROXY_LOG, "proxy")], find_request_format("swift"))),
        ),
    }


@pytest.mark.parametrize(
    ("product", "name"), [(product, name) for product in Product for name in products.format_names(product)]
)
def test_each_product_is_made_in_each_format(
    samples: dict[Product, object], product: Product, name: str
) -> None:
    assert products.has_format(product, name)
    made = products.find_writer(product, name)(samples[product], ReportOptions())
    assert made.endswith("\n")
    if name in {"text", "markdown", "html"}:
        words = {
            Product.RUN: "DELETE",
            Product.COMPARISON: "no verdict",
            Product.REPEATED: "2 runs: one to two",
            Product.CONFIGURATIONS: "GET/s",
            Product.CAPACITY: "it ended",
            Product.CAPACITIES: "1 phase, each to its end",
            Product.SUITE: "1 row, 1 run",
            Product.NOISE: "undecided: 2 equal runs",
            Product.ENVELOPE: "0 of 0 limits are known",
            Product.SUITES: "Before: it ended",
            Product.LIST: "last",
            Product.TREND: "1 run",
            Product.OUTLOOK: "8 operations at once",
            Product.CHANGES: "d1 on n1",
            Product.ATTRIBUTION: "d1 on n1 is slow",
            Product.CONFORMANCE: "refused",
            Product.TRAFFIC: "first half",
        }
        assert words[product] in made
        assert "\x1b" not in made


@pytest.mark.parametrize(
    ("name", "option"),
    [("json", "--json=x"), ("html", "--html=x"), ("junit", "--ci=xml=x"), ("summary_md", "--ci=md=x")],
)
def test_each_option_with_a_file_is_a_format_of_a_run(name: str, option: str) -> None:
    assert {*products.FORMAT_FILES, *products.CI_FORMATS.values()} == {"json", "html", "junit", "summary_md"}
    assert products.has_format(Product.RUN, name)
    assert products.format_file_option(name, Path("x")) == option


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("a.xml", ("junit", "a.xml")),
        ("a.b/c.md", ("summary_md", "a.b/c.md")),
        ("md=-", ("summary_md", "-")),
        ("xml=a.md", ("junit", "a.md")),
        ("a=b.md", ("summary_md", "a=b.md")),
        *((text, None) for text in ("a.txt", "-", "", "md=", "xml")),
    ],
)
def test_the_name_of_a_file_for_ci_says_its_format(
    text: str, found: tuple[str, str] | None, golden_words: GoldenWords
) -> None:
    if found is None:
        with golden_words.raises(ValueError):
            products.parse_ci_file(text)
    else:
        assert products.parse_ci_file(text) == (found[0], Path(found[1]))


def test_a_module_in_the_folder_of_renderers_is_a_format_of_each_product(
    samples: dict[Product, object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "def render(document, view):\n    return f'= {document.title}\\n'\n"
    (tmp_path / "asciidoc.py").write_text(text)
    monkeypatch.setattr(products, "_RENDERER_FOLDER", tmp_path)
    monkeypatch.setattr(renderers, "__path__", [str(tmp_path)])
    monkeypatch.delitem(sys.modules, "ssbench.document.renderers.asciidoc", raising=False)
    for product in Product:
        assert "asciidoc" in products.format_names(product)
        assert products.find_writer(product, "asciidoc")(samples[product], ReportOptions()).startswith("= ")


@pytest.mark.parametrize("name", ["pdf", "__init__", "csv"])
def test_what_is_no_format(name: str) -> None:
    with pytest.raises(KeyError):
        products.find_writer(Product.TREND, name)


def asked(*more: str) -> RunScenarioAsked:
    return ask("run-scenario", "-f", "very_small", "--sweep", "users=1,2", *more)


def test_a_format_that_a_sweep_lacks_is_refused_before_it_begins() -> None:
    with pytest.raises(UsageError, match=r"--ci \(junit\) is for a single run.*; leave it out with --sweep"):
        unfit_options.check_options(asked("--ci", "x.xml"))


def test_a_new_format_of_one_product_cannot_end_a_sweep(monkeypatch: pytest.MonkeyPatch) -> None:
    """A format that was added for runs alone once ended a sweep of hours with a KeyError."""
    monkeypatch.setitem(products.FORMAT_FILES, "yaml", "file for YAML")
    monkeypatch.setitem(products._OTHER_FORMATS[Product.RUN], "yaml", "ssbench.reports.json:make_run_json")
    given = asked()
    # As the option of the format would, which is made when modules are loaded.
    object.__setattr__(given, "yaml", Path("x"))
    with pytest.raises(UsageError, match="--yaml is for a single run"):
        unfit_options.check_options(given)


def test_the_command_line_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["run-scenario", "-f", "very_small", "--noop", "--workers", "1", "--sweep", "users=1,2"]
    assert master.main([*arguments, "--ci", str(tmp_path / "x.xml")]) == ExitCode.USAGE
    others = "a comparison or a suite or two suites or sweeps"
    assert (
        f"--ci (junit) is for a single run or {others}; leave it out with --sweep" in capsys.readouterr().err
    )
