"""Scenarios that are made of logs: of a known one, of traffic of other origin, and what does not fit."""

from __future__ import annotations

import itertools
import math
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import yaml
from golden_words import GoldenWords
from logged_traffic import (
    BEGAN,
    KNOWN_SCENARIO,
    swift_line,
    write_minutes_log,
    write_scenario_log,
    write_uses_log,
)

from ssbench.base.errors import UsageError
from ssbench.logs.log_files import LogFile
from ssbench.logs.logged_requests import REQUEST_KINDS, RequestColumns, read_requests
from ssbench.logs.request_formats import find_request_format
from ssbench.scenario import chosen_objects
from ssbench.scenario.chosen_objects import draw_cycle
from ssbench.scenario.scenario_reading import check_scenario_text
from ssbench.traffic import object_uses
from ssbench.traffic.made_scenario import (
    MIN_IN_BIN,
    make_bands,
    make_classes,
    make_scenario,
    make_size_ranges,
)
from ssbench.traffic.traffic_figures import (
    CACHE_SHARES,
    TRAFFIC_FIGURES,
    Traffic,
    compute_figures,
    sum_windows,
)

KNOWN = """
name: known
sizes: [{name: one, size: {lognormal: {median: 20kB, sigma: 1.2}}}]
initial_files: {one: 2000}
profile: {read: 1}
container_count: 5
stages: [{seconds: 80, rate: 150}, {seconds: 60, rate: 80}]
user_count: 16
arrivals: {burst: 4}
"""


def read_log(path: Path, form: str = "swift") -> Traffic:
    return Traffic(read_requests([LogFile(path, "n")], find_request_format(form)))


def figures_of(traffic: Traffic) -> dict[str, float]:
    return dict(zip((each.title for each in TRAFFIC_FIGURES), compute_figures(traffic), strict=True))


@pytest.mark.parametrize(
    "exponent", [pytest.param(0.6, marks=pytest.mark.long), 0.9, pytest.param(1.2, marks=pytest.mark.long)]
)
def test_a_known_scenario_comes_back(tmp_path: Path, exponent: float) -> None:
    first, second = tmp_path / "first.log", tmp_path / "second.log"
    write_scenario_log(first, check_scenario_text(KNOWN_SCENARIO % exponent, "known"), 5)
    traffic = read_log(first)
    made = check_scenario_text(make_scenario(traffic, "made").text, "made")
    assert made.operation_names == {"read", "head", "list", "create", "update", "delete"}
    write_scenario_log(second, made, 6)
    log, again = figures_of(traffic), figures_of(read_log(second))
    for kind in ("read", "head", "list", "put", "delete"):
        assert again[kind] == pytest.approx(log[kind], abs=0.02)
    for rank in (5, 25, 50, 75, 95):
        assert again[f"size of objects, p{rank}"] == pytest.approx(log[f"size of objects, p{rank}"], rel=0.05)
    for side in (log, again):
        assert side["Zipf exponent"] == pytest.approx(exponent, abs=0.05)
    assert again["requests a second"] == pytest.approx(log["requests a second"], rel=0.05)
    assert again["objects"] == pytest.approx(log["objects"], rel=0.02)
    assert again["dispersion at 1 s"] == pytest.approx(log["dispersion at 1 s"], rel=0.2)
    for share in CACHE_SHARES:
        name = f"hit ratio by objects, {100 * share:g} % cached"
        # Of the ten hottest objects only the mean is known: other seeds have up to 0.028 (bench/traffic.py).
        assert again[name] == pytest.approx(log[name], abs=0.03)
    assert again["containers"] == log["containers"]


def zipf_uses(exponent: float) -> np.ndarray:
    weights = np.arange(1, 4001, dtype=float) ** -exponent
    return np.random.default_rng(5).choice(4000, 40_000, p=weights / weights.sum())


def in_bursts(ids: np.ndarray) -> np.ndarray:
    """Put the uses of each object into a twentieth of the time."""
    random = np.random.default_rng(6)
    begins = random.random(ids.max() + 1) * 0.95
    return ids[np.argsort(begins[ids] + 0.05 * random.random(len(ids)))]


def by_sessions(ids: np.ndarray) -> np.ndarray:
    """Let each object be used again after times that differ a thousandfold."""
    random = np.random.default_rng(7)
    moments = np.cumsum(random.lognormal(0, 2.5, len(ids)))
    order = np.argsort(ids, kind="stable")
    begins = np.searchsorted(ids[order], np.arange(ids.max() + 2))
    spread = np.empty(len(ids))
    for begin, end in itertools.pairwise(begins):
        own = moments[begin:end] - moments[begin] if end > begin else moments[begin:end]
        spread[begin:end] = (random.random() + own / (own[-1] + 1 if len(own) else 1)) % 1.0
    return ids[order][np.argsort(spread)]


@pytest.mark.parametrize("exponent", [0.6, 0.9, 1.2])
@pytest.mark.parametrize("arrange", [np.asarray, in_bursts, by_sessions])
def test_uses_that_no_scenario_of_ours_made_have_the_same_hit_ratios(exponent: float, arrange) -> None:
    used = np.unique(arrange(zipf_uses(exponent)), return_inverse=True)[1]
    counts = object_uses.count_numbers(used)
    text = yaml.safe_dump(
        {
            "popularity": {"counts": [list(each) for each in make_bands(counts)]},
            "reuse": {"classes": [[least, own] for least, own in make_classes(used, counts)]},
        }
    )
    made = check_scenario_text(KNOWN + text, "made")
    assert made.popularity is not None
    assert made.reuse is not None
    order = draw_cycle(made.popularity, made.reuse, len(counts), len(counts), np.random.default_rng(8))
    drawn = np.array(order, np.int64)
    ones = np.ones(len(counts))
    log = object_uses.find_hit_ratios(used, ones, CACHE_SHARES)
    again = object_uses.find_hit_ratios(drawn, ones, CACHE_SHARES)
    middle = len(used) // 2
    halves = [np.unique(each, return_inverse=True)[1] for each in (used[:middle], used[middle:])]
    null = [
        abs(one - other)
        for one, other in zip(
            *(object_uses.find_hit_ratios(each, np.ones(each.max() + 1), CACHE_SHARES) for each in halves),
            strict=True,
        )
    ]
    for own, its, noise in zip(log, again, null, strict=True):
        assert its == pytest.approx(own, abs=max(0.03, noise))


# Events of objects that come and go: (part of the log, method, name).
Events = list[tuple[float, str, str]]


def static(random: np.random.Generator, *, burst: float = 1.0) -> Events:
    """Let objects be used that were there before, each within a part of the time."""
    ids = zipf_uses(0.9)[:20_000]
    begins = random.random(4000) * (1 - burst)
    return [
        (begins[each] + burst * part, "GET", f"s{each}")
        for each, part in zip(ids.tolist(), random.random(len(ids)).tolist(), strict=True)
    ]


def sessions(random: np.random.Generator, life: float, *, deletes: bool = True) -> Events:
    """Let objects be used at drawn moments between upload and delete."""
    made: Events = []
    for number in range(2000):
        begin, own = random.random(), life * random.exponential()
        moments = begin + own * random.random(random.geometric(0.2))
        made.append((begin, "PUT", f"n{number}"))
        made += [(moment, "GET", f"n{number}") for moment in moments if moment < 1]
        made += [(begin + own, "DELETE", f"n{number}")] if deletes and begin + own < 1 else []
    return made


def of_any_age(random: np.random.Generator, *, oldest: bool) -> Events:
    """Let each object that is there be used alike, and the oldest be deleted, or any."""
    there, made, number = [f"a{each}" for each in range(1500)], [], 1500
    for moment in np.arange(25_000) / 25_000:
        if (part := random.random()) < 0.06:
            there.append(f"a{number}")
            made.append((moment, "PUT", there[-1]))
            number += 1
        elif part < 0.12:
            made.append((moment, "DELETE", there.pop(0 if oldest else random.integers(len(there)))))
        else:
            made.append((moment, "GET", there[random.integers(len(there))]))
    return made


def uploads_alone(random: np.random.Generator) -> Events:
    """Let new objects be deleted much later, and never be used."""
    parts = random.random((2, 6000)).tolist()
    return [
        *((part, "PUT", f"b{number}") for number, part in enumerate(parts[0])),
        *((part, "DELETE", f"old{number}") for number, part in enumerate(parts[1])),
    ]


def cleanup_at_end(random: np.random.Generator) -> Events:
    """Let objects be read that were there before, an eighth of which is deleted at the end, read or not."""
    made = [(0.95 * part, method, name) for part, method, name in static(random)]
    return made + [(0.95 + 0.05 * random.random(), "DELETE", f"s{number}") for number in range(0, 4000, 8)]


def uploads_until_the_end(random: np.random.Generator) -> Events:
    """Let objects be read that were there before, and others be uploaded, read, and deleted at the end."""
    made = static(random)
    for number in range(500):
        begin = 0.9 * random.random()
        made.append((begin, "PUT", f"n{number}"))
        made += [(begin + (0.95 - begin) * part, "GET", f"n{number}") for part in random.random(3)]
        made.append((0.95 + 0.05 * random.random(), "DELETE", f"n{number}"))
    return made


COMING_AND_GOING: dict[str, Callable[[np.random.Generator], Events]] = {
    "uploaded, used and deleted beside others": lambda random: static(random) + sessions(random, 0.02),
    "in bursts": lambda random: static(random, burst=0.05) + sessions(random, 0.005, deletes=False),
    "nothing else": lambda random: sessions(random, 0.02),
    "lives of half of the log": lambda random: static(random)[:4000] + sessions(random, 0.5),
    "the oldest is deleted": lambda random: of_any_age(random, oldest=True),
    "any is deleted": lambda random: of_any_age(random, oldest=False),
    "what is uploaded is not used": lambda random: static(random) + uploads_alone(random),
    "a part is deleted at the end": cleanup_at_end,
    "what is uploaded is deleted at the end": uploads_until_the_end,
}


@pytest.mark.parametrize(
    ("kind", "form"),
    [*((each, "swift") for each in COMING_AND_GOING), ("nothing else", "ibm-cos"), ("in bursts", "ibm-cos")],
)
def test_objects_that_come_and_go_are_as_many_with_the_same_hit_ratios(
    tmp_path: Path, kind: str, form: str
) -> None:
    events = sorted(COMING_AND_GOING[kind](np.random.default_rng(10)))
    log, again = tmp_path / "log", tmp_path / "again.log"
    if form == "swift":
        log.write_text(
            "".join(
                swift_line(BEGAN + 400 * moment, method, f"/v1/a/c{len(name)}/{name}", sent=9, received=9)
                for moment, method, name in events
            )
        )
    else:
        log.write_text(
            "".join(
                f"{400_000 * moment:.0f} REST.{method}.OBJECT {name}{'' if method == 'DELETE' else ' 9'}\n"
                for moment, method, name in events
            )
        )
    traffic = read_log(log, form)
    made = make_scenario(traffic, "made")
    write_scenario_log(again, check_scenario_text(made.text, "made"), 4)
    found, *halves = map(figures_of, (traffic, *traffic.split()))
    own = figures_of(read_log(again))
    # Chance decides how many are uploaded, and so does an even rate how many are there before.
    assert own["objects"] == pytest.approx(found["objects"], rel=0.05 if kind != "nothing else" else 0.1)
    for share in CACHE_SHARES:
        name = f"hit ratio by objects, {100 * share:g} % cached"
        null = abs(halves[0][name] - halves[1][name])
        assert own[name] == pytest.approx(found[name], abs=max(0.03, null)), name
    assert not any(each.startswith(("reuse", "a scan", "uploads")) for each in made.remarks)


def traffic_of_every_kind(lines: int, objects: int) -> Traffic:
    """Return requests of a thousand seconds, as if read from a log."""
    random = np.random.default_rng(3)
    kinds = ("put", "read", "range", "head", "delete", "list", "other")
    kind = random.choice(len(kinds), lines, p=[0.2, 0.4, 0.1, 0.1, 0.15, 0.03, 0.02])
    kind = np.array([REQUEST_KINDS.index(each) for each in kinds], np.uint8)[kind]
    number = (objects * random.random(lines) ** 2).astype(np.int64)
    statuses = random.choice([200, 304, 404, 503], lines, p=[0.9, 0.04, 0.04, 0.02])
    return Traffic(
        RequestColumns(
            began=BEGAN + np.sort(1000 * random.random(lines)),
            seconds=random.random(lines).astype(np.float32),
            kind=kind,
            status=statuses.astype(np.uint16),
            size=100 + number % 7 * 1000,
            moved=random.integers(1, 10_000, lines),
            account=np.zeros(lines, np.uint32),
            container=(number % 13).astype(np.uint32),
            item=np.where(
                np.isin(kind, [REQUEST_KINDS.index("list"), len(REQUEST_KINDS) - 1]), 0, number + 1
            ),
            rises=random.random(lines) < 0.5,
        )
    )


def test_a_scenario_does_not_depend_on_how_many_lines_are_looked_at_together(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made = []
    for together in (object_uses._ROWS_AT_ONCE, 97):
        monkeypatch.setattr(object_uses, "_ROWS_AT_ONCE", together)
        made.append(make_scenario(traffic_of_every_kind(5000, 150), "made"))
    assert made[0] == made[1]
    assert {"create", "update", "missing", "conditional", "range"} <= set(
        yaml.safe_load(made[0].text)["profile"]
    )
    assert any(each.startswith("short lives") for each in made[0].remarks)


def most_memory_of_a_scenario(lines: int) -> int:
    traffic = traffic_of_every_kind(lines, 500)
    tracemalloc.start()
    try:
        make_scenario(traffic, "made")
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_a_scenario_needs_no_memory_for_more_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(object_uses, "_ROWS_AT_ONCE", 4096)
    monkeypatch.setattr(chosen_objects, "_USES_AT_ONCE", 4096)
    few, many = map(most_memory_of_a_scenario, (40_000, 120_000))
    assert many - few < 2 * 80_000


def test_a_log_of_one_moment_is_a_second_of_a_scenario(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("".join(swift_line(BEGAN, "GET", f"/v1/a/c/o{each % 40}", sent=9) for each in range(200)))
    made = make_scenario(read_log(log), "made")
    assert made.text.startswith("# What users did in 200 requests of one moment, by\n")
    assert yaml.safe_load(made.text)["stages"] == [{"seconds": 1.0, "rate": 200.0}]


def test_lines_of_ibm_become_a_scenario(tmp_path: Path) -> None:
    random = np.random.default_rng(9)
    ids = zipf_uses(0.8)[:5000]
    sizes = random.choice([4096, 70_000, 5_000_000], 4000, p=[0.5, 0.3, 0.2])
    moments = random.exponential(20, len(ids)).cumsum()
    log = tmp_path / "trace"
    with log.open("w") as out:
        for moment, each in zip(moments, ids, strict=True):
            out.write(f"{moment:.0f} REST.GET.OBJECT {each:016x} {sizes[each]}\n")
    made = make_scenario(read_log(log, "ibm-cos"), "made")
    document = yaml.safe_load(made.text)
    assert set(document["sizes"][0]["size"]["histogram"]) == {4096, 70_000, 5_000_000}
    scenario = check_scenario_text(made.text, "made")
    assert scenario.operation_names == {"read"}
    assert f"{ids[0]:016x}" not in made.text
    assert made.remarks == ()


@pytest.mark.parametrize("requests", [1006, 1098, 12_006])
def test_a_log_that_ends_within_a_second_keeps_its_rate(tmp_path: Path, requests: int) -> None:
    log = tmp_path / "trace"
    log.write_text("".join(f"{10 * n} REST.GET.OBJECT {n % 20:016x} 4096\n" for n in range(requests)))
    stages = yaml.safe_load(make_scenario(read_log(log, "ibm-cos"), "made").text)["stages"]
    assert sum(each["seconds"] for each in stages) == pytest.approx((requests - 1) / 100, abs=0.02)
    assert [each["rate"] for each in stages] == pytest.approx([100] * len(stages), rel=0.005)


# -- What is special -------------------------------------------------------------------------------


def test_a_few_objects_that_are_all_deleted_are_a_scenario(tmp_path: Path) -> None:
    log = tmp_path / "log"
    steps = [(number, method) for number in range(20) for method in ("GET", "GET", "DELETE")]
    log.write_text(
        "".join(
            swift_line(BEGAN + place, method, f"/v1/a/c/o{number}", sent=9)
            for place, (number, method) in enumerate(steps)
        )
    )
    made = check_scenario_text(make_scenario(read_log(log), "made").text, "made")
    assert made.reuse is not None
    assert made.reuse.deleted == 1


def test_empty_objects_have_a_byte_where_ranges_are_read(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text(
        "".join(
            swift_line(BEGAN + number / 9, "GET", f"/v1/a/c/o{number % 60}", status, sent=sent)
            for number in range(600)
            for status, sent in [(200, 0) if number % 60 < 30 else (206, 5) if number > 300 else (200, 700)]
        )
    )
    made = make_scenario(read_log(log), "m")
    assert check_scenario_text(made.text, "m").operation_names == {"read", "range"}
    assert yaml.safe_load(made.text)["sizes"][0]["size"]["histogram"][1] == 30
    assert "empty objects do not fit: 30 objects have 1 byte instead" in made.remarks[0]


def test_accounts_and_what_is_asked_for_in_vain_are_no_containers(tmp_path: Path) -> None:
    log = tmp_path / "log"
    write_uses_log(log, [number % 20 for number in range(200)])
    with log.open("a") as out:
        out.writelines(swift_line(BEGAN + 3, "GET", f"/wp{each}.php", 404) for each in range(50))
        out.write(swift_line(BEGAN + 3, "HEAD", "/v1/AUTH_test", 204))
    traffic = read_log(log)
    assert yaml.safe_load(make_scenario(traffic, "m").text)["container_count"] == 1
    figures = figures_of(traffic)
    assert (figures["containers"], figures["accounts"], figures["Gini of containers"]) == (1, 1, 0)


def test_usual_traffic_fits(tmp_path: Path) -> None:
    log = tmp_path / "log"
    write_uses_log(log, [f"o{number:05d}" for number in in_bursts(zipf_uses(0.9))[:20_000]])
    assert make_scenario(read_log(log), "m").remarks == ()


# -- What may go to others -------------------------------------------------------------------------


def test_no_bin_is_of_fewer_than_ten_objects() -> None:
    random = np.random.default_rng(2)
    for sizes in (random.lognormal(10, 3, 500).astype(np.int64), np.repeat([7, 9_000_000], [495, 5])):
        objects = [each for *_, each in make_size_ranges(sizes)]
        assert min(objects) >= MIN_IN_BIN
        assert sum(objects) in {500, 495}
    counts = np.concatenate([random.zipf(1.5, 700).clip(max=5000), [90_000]])
    bands = make_bands(counts)
    assert min(objects for _, objects in bands) >= MIN_IN_BIN
    assert sum(count * objects for count, objects in bands) == pytest.approx(counts.sum(), rel=0.001)


def test_too_few_objects_are_no_scenario(tmp_path: Path, golden_words: GoldenWords) -> None:
    log = tmp_path / "log"
    write_uses_log(log, ["a", "b"] * 50)
    with golden_words.raises(UsageError):
        make_scenario(read_log(log), "m")


def test_what_is_left_out_is_said(tmp_path: Path) -> None:
    log = tmp_path / "log"
    write_uses_log(log, [number % 20 for number in range(200)])
    with log.open("a") as out:
        out.write(swift_line(BEGAN + 3, "PUT", "/v1/a/c", 201))
        out.write(swift_line(BEGAN + 3, "GET", "/v1/a/c/0", 503))
        out.write(swift_line(BEGAN + 3, "GET", "/v1/a/c/none", 404))
    made = make_scenario(read_log(log), "m")
    assert made.remarks[0].startswith("left out: 1 request that no")
    assert made.remarks[1].startswith("left out: 1 failed request,")
    assert made.remarks[2] == "left out: 1 request of operations with fewer than 10 each (missing)"
    assert yaml.safe_load(made.text)["profile"] == {"read": 200}


def test_sizes_of_fewer_than_ten_objects_that_are_in_no_range_are_left_out_and_said(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text(
        "".join(
            swift_line(
                BEGAN + number, "GET", f"/v1/a/c/o{number % 60}", sent=45_000 if number % 60 < 5 else 100
            )
            for number in range(300)
        )
    )
    made = make_scenario(read_log(log), "m")
    assert yaml.safe_load(made.text)["sizes"][0]["size"]["histogram"] == {100: 55}
    assert made.remarks[0] == "left out: the sizes of 5 objects, which have 98 % of all bytes"


def test_weights_of_distances_are_of_ten_requests_or_more() -> None:
    used = in_bursts(zipf_uses(0.9))[:9000]
    used = np.unique(used, return_inverse=True)[1]
    counts = object_uses.count_numbers(used)
    classes = make_classes(used, counts)
    assert {each % MIN_IN_BIN for _, weights in classes for each in weights} == {0}
    # Of each class at most a half of ten is lost, or added.
    assert sum(sum(weights) for _, weights in classes) == pytest.approx(
        len(used) - len(counts), abs=5 * len(make_bands(counts))
    )


def test_few_objects_that_are_created_and_deleted_are_told_in_no_number(tmp_path: Path) -> None:
    log = tmp_path / "log"
    write_uses_log(log, [number % 20 for number in range(400)])
    with log.open("a") as out:
        for number in range(9):
            out.write(swift_line(BEGAN + 1, "PUT", f"/v1/AUTH_test/c/new{number}", 201, received=1000))
            out.write(swift_line(BEGAN + 2, "GET", f"/v1/AUTH_test/c/new{number}", sent=1000))
            out.write(swift_line(BEGAN + 3, "DELETE", f"/v1/AUTH_test/c/{number}", 204))
    made = make_scenario(read_log(log), "m")
    document = yaml.safe_load(made.text)
    assert set(document["profile"]) == {"read"}
    assert document["reuse"].keys() == {"classes"}
    assert "left out: 18 requests of operations with fewer than 10 each (delete, create)" in made.remarks
    check_scenario_text(made.text, "m")


def test_a_log_with_few_requests_of_each_operation_is_no_scenario(
    tmp_path: Path, golden_words: GoldenWords
) -> None:
    log = tmp_path / "log"
    log.write_text(
        "".join(
            swift_line(BEGAN + number, method, f"/v1/a/c/{method}{number}", sent=9)
            for method in ("GET", "HEAD")
            for number in range(8)
        )
    )
    with golden_words.raises(UsageError):
        make_scenario(read_log(log), "m")


def missing_log(path: Path, gets: int, heads: int, unmodified_heads: int = 0) -> Traffic:
    write_uses_log(path, np.random.default_rng(1).permutation(800) % 20)
    with path.open("a") as out:
        for method, status, count in [
            ("GET", 404, gets),
            ("HEAD", 404, heads),
            ("HEAD", 304, unmodified_heads),
        ]:
            out.writelines(swift_line(BEGAN + 3, method, "/v1/AUTH_test/c/7", status) for _ in range(count))
    return read_log(path)


@pytest.mark.parametrize(("gets", "heads", "method"), [(100, 10, "GET"), (10, 100, "HEAD")])
def test_missing_objects_are_asked_for_as_in_the_log(
    tmp_path: Path, gets: int, heads: int, method: str
) -> None:
    made = make_scenario(missing_log(tmp_path / "log", gets, heads), "m")
    document = yaml.safe_load(made.text)
    assert document["profile"] == {"read": 800, "missing": 110}
    assert document["operations"] == [{"name": "missing", "method": method}]
    assert check_scenario_text(made.text, "m").operation_names == {"read", "missing"}
    assert made.remarks == ()


def test_other_methods_of_many_requests_do_not_fit(tmp_path: Path) -> None:
    made = make_scenario(missing_log(tmp_path / "log", 100, 80, 30), "m")
    assert made.remarks[0] == (
        "methods do not fit: 110 requests for missing or unmodified objects had HEAD where a scenario has"
        " GET, or GET where it has HEAD"
    )


# -- When ------------------------------------------------------------------------------------------


def poisson_log(path: Path, rates: list[float]) -> Traffic:
    """Return the traffic of independent users at a rate in each minute."""
    write_minutes_log(path, rates)
    return read_log(path, "ibm-cos")


def test_minutes_that_differ_by_chance_are_alike_in_a_scenario(tmp_path: Path) -> None:
    traffic = poisson_log(tmp_path / "log", [5.0] * 40)
    assert np.ptp(sum_windows(traffic.rates[:-1], 60)) > 40  # of 300
    made = make_scenario(traffic, "m")
    rates = [each["rate"] for each in yaml.safe_load(made.text)["stages"]]
    assert max(rates) / min(rates) < 1.1
    assert not [each for each in made.remarks if each.startswith("bursts")]


def test_minutes_of_one_rate_are_one_stage(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("".join(f"{100 * n} REST.GET.OBJECT {n % 20:016x} 4096\n" for n in range(6001)))
    stages = yaml.safe_load(make_scenario(read_log(log, "ibm-cos"), "made").text)["stages"]
    assert [each["seconds"] for each in stages] == [540.0, 60.0]  # the last one has a request more


def test_minutes_of_another_rate_keep_it(tmp_path: Path) -> None:
    traffic = poisson_log(tmp_path / "log", [5.0] * 19 + [10.0] + [5.0] * 20)
    stages = yaml.safe_load(make_scenario(traffic, "m").text)["stages"]
    assert max(each["rate"] for each in stages) == pytest.approx(
        float(sum_windows(traffic.rates, 60)[19]) / 60, rel=0.001
    )
    assert sum(each["seconds"] for each in stages) == pytest.approx(2400, abs=2)
    waves = poisson_log(tmp_path / "waves", [5 + 2 * math.sin(minute / 6) for minute in range(60)])
    made = make_scenario(waves, "m")
    rates = np.array([each["rate"] for each in yaml.safe_load(made.text)["stages"]])
    assert rates.std() == pytest.approx(2 / math.sqrt(2), rel=0.15)
    assert not [each for each in made.remarks if each.startswith("bursts")]


def test_objects_that_are_uploaded_and_deleted_again_and_again_need_no_others(tmp_path: Path) -> None:
    log = tmp_path / "log"
    steps = [("PUT", 201), ("GET", 200), ("GET", 200), ("DELETE", 204)]
    log.write_text(
        "".join(
            swift_line(BEGAN + place / 50, method, f"/v1/a/c/o{place // 4 % 100}", status, received=9, sent=9)
            for place in range(8000)
            for method, status in steps[place % 4 :][:1]
        )
    )
    made = check_scenario_text(make_scenario(read_log(log), "made").text, "made")
    assert made.size_classes[0].initial_files <= 150


def test_a_log_that_begins_with_an_empty_store(tmp_path: Path) -> None:
    log = tmp_path / "log"
    steps = [("PUT", number) for number in range(250)]
    steps += [("GET", int(number)) for number in zipf_uses(1.0) if number < 250][:3000]
    log.write_text(
        "".join(
            swift_line(
                BEGAN + place / 50, method, f"/v1/a/c/o{number}", received=7 * (method == "PUT"), sent=7
            )
            for place, (method, number) in enumerate(steps)
        )
    )
    traffic = read_log(log)
    made = check_scenario_text(make_scenario(traffic, "made").text, "made")
    assert made.reuse is not None
    # A cycle has as many objects as the log. All were uploaded before the first use; a scenario spreads
    # uploads over the whole run, and so has to begin with objects.
    initial = made.size_classes[0].initial_files
    assert round(initial / (1 - made.reuse.created)) == len(traffic.counts)
    assert initial > 90
    again = tmp_path / "again.log"
    write_scenario_log(again, made, 1)
    # Of the ten hottest only the mean is known.
    hot, own = (object_uses.find_top_share(each.counts, 0.1) for each in (traffic, read_log(again)))
    assert own == pytest.approx(hot, abs=0.1)
