"""Comparisons of runs, at the level of their figures."""

from __future__ import annotations

import itertools
import math
from pathlib import Path

import noise
import numpy as np
import pytest

from ssbench.cli.master import main
from ssbench.comparison import FIGURES, RunFigures, Sample, compare
from ssbench.comparison.change import between, mann_whitney
from ssbench.comparison.conditions import check, judge
from ssbench.comparison.formats import FORMATS, markdown, text
from ssbench.comparison.listing import as_text, listing
from ssbench.conditions import parse

KNOWN = Path(__file__).parents[1] / "data" / "version-1-known.stat.gz"

P50, RATE, ERRORS = FIGURES["p50"], FIGURES["rate"], FIGURES["errors"]


def run(name="r", facts=None, operation="READ", **values):
    samples = {
        figure: value if isinstance(value, Sample) else Sample(value) for figure, value in values.items()
    }
    return RunFigures(name, {(operation, None): samples, ("ALL", None): samples}, facts or {})


def samples(*values):
    return [Sample(value) for value in values]


def medians(random, runs, change=1.0):
    """The p50 of runs of 20 s at 100/s: noise alike from second to second, and 2 % from run to run."""
    level = np.repeat(noise.correlated(random, runs, 20, 0.8, 0.05), 100, axis=1)
    level += random.normal(0, 0.02, (runs, 1))
    return np.median(change * np.exp(level + random.normal(0, 0.6, level.shape)), axis=1)


def called(random, runs, change=1.0):
    """Of 40 comparisons, how many were called slower, and how many anything else but no difference."""
    words = [
        between(P50, samples(*medians(random, runs)), samples(*medians(random, runs, change))).word
        for _ in range(40)
    ]
    return words.count("slower"), words.count("faster")


def test_runs_of_one_store_are_seldom_called_different():
    assert sum(called(np.random.default_rng(1), 5)) <= 5


def test_ten_per_cent_are_found():
    slower, faster = called(np.random.default_rng(2), 8, 1.1)
    assert slower >= 36
    assert faster == 0


def test_single_runs_give_no_verdict():
    assert called(np.random.default_rng(3), 1, 1.1) == (0, 0)
    found = compare([run(p50=1.0)], [run(p50=2.0)])
    assert not found.repeated
    assert "runs were not repeated: no verdict" in found.judgment
    assert found.find("read", None, "p50").word is None


def test_the_interval_of_single_runs_is_within_them():
    change = between(P50, [Sample(1.0, 0.03)], [Sample(1.1, 0.04)])
    assert change.change == pytest.approx(0.1)
    assert change.low == pytest.approx(1.1 * math.exp(-0.05) - 1)
    assert change.high == pytest.approx(1.1 * math.exp(0.05) - 1)
    assert between(P50, [Sample(1.0)], [Sample(1.1, 0.04)]).low is None
    one_and_two = between(P50, [Sample(1.0, 0.03)], [Sample(1.1, 0.04), Sample(1.1, 0.04)])
    assert one_and_two.high == pytest.approx(1.1 * math.exp(math.hypot(0.03, 0.04 / math.sqrt(2))) - 1)


def test_two_or_three_runs_have_an_interval_and_no_word():
    change = between(P50, samples(1, 1.01), samples(2, 2.01, 2.02))
    assert change.low > 0.9
    assert change.word is None
    assert "fewer than 4 runs a side" in compare([run(p50=1.0)] * 2, [run(p50=1.0)] * 3).judgment


def test_welch():
    """Against an example worked by hand: logarithms with means 1 and 1.5, variances 1/3 and 5/3."""
    before = [math.exp(value) for value in (0.5, 1.5, 0.5, 1.5)]
    after = [math.exp(value) for value in (0, 1, 2, 3)]
    change = between(P50, samples(*before), samples(*after))
    error = math.sqrt(1 / 12 + 5 / 12)
    freedom = 0.25 / ((1 / 12) ** 2 / 3 + (5 / 12) ** 2 / 3)
    assert freedom == pytest.approx(4.1538, abs=1e-4)
    half = (math.log1p(change.high) - math.log1p(change.low)) / 2
    assert half == pytest.approx(2.7415 * error, rel=0.002)  # t(0.975) of 4.15 degrees of freedom
    assert change.word == "no difference shown"


@pytest.mark.parametrize(
    ("figure", "factor", "word"),
    [(P50, 1.2, "slower"), (P50, 0.8, "faster"), (RATE, 1.2, "faster"), (RATE, 0.8, "slower")],
)
def test_the_word_depends_on_what_more_means(figure, factor, word):
    before = [1.0, 1.01, 0.99, 1.0]
    after = [value * factor for value in before]
    assert between(figure, samples(*before), samples(*after)).word == word


def test_changes_within_the_noise_bound_are_none():
    same = samples(*[1.0] * 4)
    assert between(P50, same, samples(*[1.009] * 4)).word == "no difference shown"
    assert between(P50, same, samples(*[1.011] * 4)).word == "slower"
    assert between(P50, same, samples(*[1.011] * 4), noise=0.02).word == "no difference shown"


def test_errors_are_compared_as_shares():
    change = between(ERRORS, samples(0, 0, 0, 0.001), samples(0.02, 0.021, 0.02, 0.019))
    assert change.word == "more errors"
    assert change.change == pytest.approx(0.01975)
    assert between(ERRORS, samples(0), samples(0.1)).low is None


def test_one_side_only():
    found = compare([run(p50=1.0)], [run(operation="CREATE", p50=2.0)])
    assert found.find("read", None, "p50").after is None
    assert [row.operation for row in found.rows] == ["READ", "CREATE", "ALL"]
    assert found.find("delete", None, "p50") is None


def test_mann_whitney_is_exact():
    """Against counting all ways to deal out the ranks."""
    for first, second in ((2, 3), (4, 4), (3, 5)):
        everything = range(first + second)
        counts = []
        for chosen in itertools.combinations(everything, first):
            others = [each for each in everything if each not in chosen]
            counts.append(sum(b > a for a in chosen for b in others))
        for chosen in itertools.combinations(everything, first):
            others = [each for each in everything if each not in chosen]
            above = sum(b > a for a in chosen for b in others)
            least = min(above, first * second - above)
            expected = min(1, 2 * sum(count <= least for count in counts) / len(counts))
            assert mann_whitney(chosen, others) == pytest.approx(expected)
    assert mann_whitney([1] * 41, [2]) is None


def test_it_warns_of_what_should_have_been_the_same():
    one, two = {"scenario": "a", "users": "4", "seed": "1"}, {"scenario": "a", "users": "8", "seed": "2"}
    found = compare([run(facts=one, p50=1.0)], [run(facts=two, p50=1.0)])
    assert found.warnings == ("users differs: 4 before, 8 after", "seed differs: 1 before, 2 after")
    mixed = compare([run(facts=one, p50=1.0), run(facts=two, p50=1.0)], [run(facts=one, p50=1.0)])
    assert mixed.warnings == ("users differs: 4 and 8 before, 4 after",)
    assert compare([run(facts=one, p50=1.0)], [run(facts=one, p50=1.0)]).warnings == ()


def repeated():
    before = [
        run(f"b{index}", p50=0.010 + index * 1e-5, rate=500.0 + index, errors=0.0) for index in range(4)
    ]
    after = [
        run(f"a{index}", p50=0.012 + index * 1e-5, rate=500.0 - index, errors=0.001) for index in range(4)
    ]
    return compare(before, after)


def test_text():
    lines = text(repeated()).splitlines()
    assert lines[0] == "before: b0 and 3 more (4 runs)"
    assert lines[2].startswith("shown: READ p50 slower (+20.")
    assert max(map(len, lines)) <= 80
    assert any(line.split()[-2:] == ["none", "shown"] for line in lines)
    assert "no verdict" in text(compare([run(p50=1.0)], [run(p50=1.0)]))


def test_columns_with_nothing_in_them_are_left_out():
    found = compare([run(p50=1.0)], [run(p50=2.0)])
    assert text(found).splitlines()[4].split() == ["operation", "figure", "before", "after", "change"]
    assert "| before | after | change |\n| --- | --- | --- | --- | --- |\n" in markdown(found)
    assert FORMATS.keys() == {"text", "csv", "markdown", "json"}


@pytest.mark.parametrize(
    ("condition", "failed"),
    [
        ("read.p50 > +10%", True),
        ("read.p50 > +30%", False),
        ("p50 > 11ms", True),
        ("rate < -5%", False),
        ("errors > 0.05%", True),
        ("delete.p50 > +10%", True),
        ("mb_per_s < 1", True),
    ],
)
def test_conditions(condition, failed):
    parsed = parse(condition, relative=True)
    check(parsed)
    assert judge(repeated(), parsed).failed is failed


def test_conditions_on_what_is_not_compared():
    for wrong in ("read.max > +10%", "errors > 3", "retries > 3"):
        with pytest.raises(ValueError, match="compared"):
            check(parse(wrong, relative=True))


def test_a_table_of_configurations():
    runs = [
        run(facts={"scenario": "4K", "users": "64"}, rate=rate, p99=0.02, mb_per_s=4e6)
        for rate in (99.0, 101.0)
    ] + [run(facts={"scenario": "1M", "users": "64"}, rate=9.0)]
    lines = as_text(listing(runs)).splitlines()
    assert lines[0].split() == ["scenario", "runs", "GET/s", "all/s", "MB/s", "p99", "ms"]
    assert lines[1].split()[:6] == ["4K", "2", "100", "+-1.0", "%", "100"]
    assert lines[2].split() == ["1M", "1", "9", "9", "-", "-"]


def test_texts_of_stat_files_move_no_cursor():
    runs = [run(facts={"scenario": "4K\x1b[2J"}, rate=1.0), run(facts={"scenario": "1M"}, rate=9.0)]
    assert "4K\ufffd[2J" in as_text(listing(runs))
    found = compare([run("a\x1b", p50=1.0)], [run(p50=2.0)])
    assert "\x1b" not in markdown(found) + text(found)


def test_markdown_shows_names_as_they_are():
    found = compare(
        [run("<img src=x>", operation="A|B", p50=1.0)], [run("@all `x`", operation="A|B", p50=2.0)]
    )
    shown = markdown(found)
    assert r"before: \<img src=x\> (1 run)" in shown
    assert "after:  @\u2060all \\`x\\` (1 run)" in shown
    assert r"| A\|B | p50 ms |" in shown


def test_a_file_that_is_given_twice_is_named(capsys):
    assert main(["compare", str(KNOWN), str(KNOWN)]) == 0
    assert f"! {KNOWN.name} was given 2 times\n" in capsys.readouterr().out
    assert main(["compare", *[str(KNOWN)] * 3]) == 0
    assert f"{KNOWN.name} was given 3 times" in capsys.readouterr().err


def test_one_run_without_sides_is_not_enough(capsys):
    assert main(["compare", str(KNOWN)]) == 2
    assert "two stat files, as in 'ssbench-master compare last-1 last'" in capsys.readouterr().err
