"""The distributions of sizes: what a scenario may say, and what is drawn."""

from __future__ import annotations

import json
import math
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from statistics import NormalDist
from textwrap import dedent

import msgspec
import numpy as np
import pytest
from chi_square import misfit
from golden_words import GoldenWords

from ssbench.base.errors import ScenarioError
from ssbench.reports import products
from ssbench.results.current import RECORD_HEADER, decode_run, encode_run
from ssbench.results.run_description import RunDescription
from ssbench.scenario.draws import Workload
from ssbench.scenario.model import Scenario, SizeClass, make_owner
from ssbench.scenario.scenario_reading import check_scenario_text, read_scenario
from ssbench.scenario.sizes import Histogram, Lognormal

DRAWS = 20_000

SCENARIO = """
name: sizes
sizes:
- {{name: one, size: {}}}
initial_files: {{one: 10}}
profile: {{create: 1}}
operation_count: 1
user_count: 1
"""


def read(size: object, folder: Path | str = ".") -> SizeClass:
    return check_scenario_text(SCENARIO.format(json.dumps(size)), f"{folder}/x").size_classes[0]


def drawn(size_class: SizeClass, initial: bool = False) -> list[int]:
    count = DRAWS if initial else 1
    each = msgspec.convert(msgspec.to_builtins(size_class) | {"initial_files": count}, SizeClass)
    workload = Workload(Scenario("sizes", (each,), 1), 3)
    if initial:
        return [size for *_, size in workload.initial_objects()]
    return [size for *_, size in islice(workload.draws(), DRAWS)]


def normal(size: int) -> float:
    """Return the part of the sizes of the lognormal distribution below that are at most a size."""
    ends = [NormalDist(math.log(20_000), 1.2).cdf(math.log(end)) for end in (1000, size + 0.5, 1_000_000)]
    return (min(ends[1], ends[2]) - ends[0]) / (ends[2] - ends[0])


DISTRIBUTIONS: dict[str, tuple[object, Callable[[int], float]]] = {
    "uniform": ({"uniform": "1kB..4kB"}, lambda size: (size - 999) / 3001),
    "lognormal": (
        {"lognormal": {"median": "20kB", "sigma": 1.2}, "min": "1kB", "max": "1MB"},
        normal,
    ),
    "histogram": (
        {"histogram": {"1..100": 60, "101..200": 0, "201..1000": 35, "5000": 5}},
        lambda size: (
            0.6 * min(size, 100) / 100 + 0.35 * min(max(size - 200, 0), 800) / 800 + 0.05 * (size >= 5000)
        ),
    ),
}


@pytest.mark.parametrize("initial", [False, True], ids=["run", "initial objects"])
@pytest.mark.parametrize("kind", DISTRIBUTIONS)
def test_sizes_are_distributed_as_asked(kind: str, initial: bool) -> None:
    size, at_most = DISTRIBUTIONS[kind]
    size_class = read(size)
    found = drawn(size_class, initial)
    assert min(found) >= size_class.size_min
    assert max(found) <= size_class.size_max
    # Bins with about a fortieth of the draws each.
    everything = range(size_class.size_min, size_class.size_max)
    ends = sorted({everything[bisect_left(everything, n / 40, key=at_most)] for n in range(1, 39)})
    shares = np.diff([0.0, *map(at_most, ends), 1.0])
    counts = np.bincount(np.searchsorted(ends, found), minlength=len(ends) + 1)
    assert misfit(counts.tolist(), shares.tolist()) < 1
    deviation = np.std(found) / math.sqrt(DRAWS)
    assert abs(np.mean(found) - size_class.mean_size) < 4 * deviation


def test_the_sizes_of_a_file(tmp_path: Path) -> None:
    (tmp_path / "sizes.txt").write_text("# bytes, objects\n100 5\n4kB\t3  # some\n\n1MB\n100 1\n")
    size_class = read({"file": "sizes.txt"}, tmp_path)
    assert size_class.shape == Histogram(((100, 100, 6.0), (4000, 4000, 3.0), (10**6, 10**6, 1.0)))
    assert (size_class.size_min, size_class.size_max) == (100, 10**6)
    counts = Counter(drawn(size_class))
    assert misfit([counts[100], counts[4000], counts[10**6]], [0.6, 0.3, 0.1]) < 1
    assert str(size_class.shape) == "3 weighted sizes"


@pytest.mark.parametrize("size", [5000, "5kB", {"fixed": "5kB"}, {"fixed": 5000}])
def test_a_fixed_size_is_two_equal_ends(size: object) -> None:
    assert read(size) == SizeClass("one", 5000, 5000, 10, {"create": 1.0})


@pytest.mark.parametrize("size", ["5kB..6kB", {"uniform": "5kB..6kB"}])
def test_a_uniform_size_is_two_ends(size: object) -> None:
    assert read(size) == SizeClass("one", 5000, 6000, 10, {"create": 1.0})


def test_a_lognormal_distribution_without_ends_has_them_far_away() -> None:
    shape = read({"lognormal": {"median": 1000, "sigma": 1}}).shape
    assert shape == Lognormal(1000, 1.0, 19, 54598)


def test_a_size_does_not_change_what_else_is_drawn() -> None:
    """The draws of another shape differ in the sizes alone."""
    draws = [
        [draw[:3] for draw in islice(Workload(Scenario("s", (each,), 4), 1).draws(), 3000)]
        for each in (
            SizeClass("a", 1, 2**53, 5, (3, 4, 2, 1)),
            SizeClass("a", 1, 2**40, 5, (3, 4, 2, 1), Lognormal(1000, 2.0, 1, 2**40)),
        )
    ]
    assert draws[0] == draws[1]


@pytest.mark.parametrize(
    "size",
    [
        "many",
        -1,
        "9kB..1kB",
        {},
        {"fixed": 1, "uniform": "1..2"},
        {"fixed": "1..2"},
        {"uniform": "1..2", "min": 1},
        {"lognormal": {"median": 5}},
        {"lognormal": {"median": 0, "sigma": 1}},
        {"lognormal": {"median": 5, "sigma": 0}},
        {"lognormal": {"median": 5, "sigma": True}},
        {"lognormal": {"median": 5, "sigma": 1}, "min": 9, "max": 8},
        {"lognormal": {"median": 5, "sigma": 0.1}, "min": "1GB", "max": "2GB"},
        {"lognormal": {"median": 5, "sigma": 1}, "min": "1..2"},
        {"histogram": {}},
        {"histogram": {"1kB": "much"}},
        {"histogram": {"1kB": 0}},
        {"histogram": {"large": 1}},
        {"file": "none.txt"},
        {"file": 5},
    ],
)
def test_a_wrong_size_is_told(size: object, tmp_path: Path, golden_words: GoldenWords) -> None:
    with pytest.raises(ScenarioError) as caught:
        read(size, tmp_path)
    (line,) = str(caught.value).splitlines()
    assert line.startswith(f"{tmp_path}/x:4: sizes[0].size: ")
    golden_words(line)


@pytest.mark.parametrize(
    "text",
    [
        "5kB\nmany\n",
        "5kB 1 2\n",
        "5kB -1\n",
        "5kB nan\n",
        "# none\n5kB 0\n",
        "\n".join(map(str, range(10_001))),
        "\x80",
    ],
)
def test_a_wrong_file_of_sizes_is_told(text: str, tmp_path: Path, golden_words: GoldenWords) -> None:
    (tmp_path / "sizes.txt").write_bytes(text.encode("latin-1"))
    with pytest.raises(ScenarioError, match=r"sizes\.txt") as caught:
        read({"file": "sizes.txt"}, tmp_path)
    golden_words(str(caught.value))


def test_all_faults_are_told_at_once(golden_words: GoldenWords) -> None:
    text = SCENARIO.format("{fixed: no}, size_min: 5").replace("user_count: 1", "user_count: 0")
    with pytest.raises(ScenarioError) as caught:
        check_scenario_text(text, "x")
    told = str(caught.value)
    assert len(told.splitlines()) == 3
    golden_words(told)


def test_a_stat_file_keeps_the_distribution() -> None:
    size_classes = tuple(read(size) for size, _ in DISTRIBUTIONS.values())
    run = RunDescription(Scenario("sizes", size_classes, 1, 1))
    assert decode_run(encode_run(run)[RECORD_HEADER.size :]).scenario.size_classes == size_classes


def test_objects_of_another_distribution_are_of_another_owner() -> None:
    size, _ = DISTRIBUTIONS["lognormal"]
    size_class = read(size)
    others = [SizeClass(*size_class.__getstate__()[:5]), read(size | {"min": "2kB"})]
    scenario = Scenario("sizes", (size_class,), 1)
    assert make_owner(scenario, size_class) not in {make_owner(scenario, other) for other in others}


def test_the_example_in_the_documentation(tmp_path: Path) -> None:
    text = (Path(__file__).parents[3] / "doc" / "scenarios.rst").read_text("utf-8")
    example = text.partition("\nSizes\n-----\n")[2].partition("yaml\n")[2].partition("\n``size``")[0]
    file = tmp_path / "example.yaml"
    file.write_text(
        dedent(example)
        + "name: example\ninitial_files: {page: 1, photo: 1, part: 1, record: 1}\nprofile: {read: 1}\n"
        + "operation_count: 1\nuser_count: 1\n"
    )
    scenario = read_scenario(str(file))
    assert [str(each.shape) for each in scenario.size_classes] == [
        "lognormal, median 20 kB, sigma 1.2",
        "histogram, 60.0 % 200 kB to 1 MB, 35.0 % 1 MB to 4 MB, 5.00 % 12 MB",
        "None",
        "None",
    ]
    told = "".join(products.make_product_parts(products.Product.OUTLOOK, "text", scenario))
    assert "page: 1 object of 1 kB to 1 MB (lognormal, median 20 kB, sigma 1.2)" in " ".join(told.split())
