"""What made scenarios do not say of logs: each sentence, and logs of which it is not said."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from logged_traffic import BEGAN, swift_line, write_minutes_log, write_uses_log
from said import NO_SCAN

from ssbench.logs.log_files import LogFile
from ssbench.logs.logged_requests import read_requests
from ssbench.logs.request_formats import find_request_format
from ssbench.traffic import made_scenario
from ssbench.traffic.made_scenario import make_scenario
from ssbench.traffic.traffic_figures import Traffic


def remarks_on(log: Path, form: str = "swift") -> list[str]:
    return [
        *make_scenario(Traffic(read_requests([LogFile(log, "n")], find_request_format(form))), "m").remarks
    ]


def remarks_of(log: Path, beginning: str, form: str = "swift") -> list[str]:
    """Return what is said of a log that begins so."""
    return [each for each in remarks_on(log, form) if each.startswith(beginning)]


def zipf_uses(objects: int, uses: int, exponent: float = 0.9) -> list[int]:
    """Draw uses of objects, of which those with low numbers are the most popular."""
    weights = np.arange(1, objects + 1, dtype=float) ** -exponent
    drawn: list[int] = np.random.default_rng(5).choice(objects, uses, p=weights / weights.sum()).tolist()
    return drawn


def write_reads(log: Path, reads: list[tuple[str, int]], rate: float = 50.0) -> None:
    """Write a log of reads, each of a path below a version and of a size."""
    log.write_text(
        "".join(
            swift_line(BEGAN + place / rate, "GET", f"/v1/{path}", sent=size)
            for place, (path, size) in enumerate(reads)
        )
    )


# -- Uses ------------------------------------------------------------------------------------------


def test_a_scan_in_listing_order_does_not_fit(tmp_path: Path) -> None:
    log = tmp_path / "log"
    write_uses_log(log, [f"o{number:05d}" for _ in range(4) for number in range(1000)])
    assert remarks_of(log, f"{NO_SCAN}: 100 % of reads are in the order of a listing, 10 in a row or more")


def test_a_scan_that_is_a_small_part_of_all_reads_does_not_fit(tmp_path: Path) -> None:
    """Each night all objects are read, which is less than a tenth."""
    log = tmp_path / "log"
    uses = zipf_uses(300, 4000)
    write_uses_log(log, [f"o{each:04d}" for each in [*uses[:2000], *range(300), *uses[2000:]]])
    assert remarks_of(log, f"{NO_SCAN}: 7 % of reads")


def test_a_scan_among_reads_of_other_containers_does_not_fit(tmp_path: Path) -> None:
    """It asks for each object twice, as programs do that look at one first."""
    log = tmp_path / "log"
    uses = zipf_uses(300, 1200)
    write_reads(
        log,
        [
            (f"a/{each}", 9)
            for pair in enumerate(uses)
            for each in (f"one/o{pair[0] // 2:04d}", f"two/o{pair[1]:04d}")
        ],
    )
    assert remarks_of(log, f"{NO_SCAN}: 50 % of reads")


def test_reads_that_no_listing_explains_are_no_scan(tmp_path: Path) -> None:
    log = tmp_path / "log"
    # Each hot object is read several times, some in a row.
    write_uses_log(log, [f"o{each:04d}" for each in zipf_uses(300, 20_000, 1.2)])
    assert not remarks_of(log, NO_SCAN)
    # Named by time, and read soon after their uploads.
    log.write_text(
        "".join(
            swift_line(BEGAN + place + lag, method, f"/v1/a/c/o{place:05d}", status, received=9, sent=9)
            for place in range(500)
            for lag, method, status in ((0.0, "PUT", 201), (0.5, "HEAD", 200), (0.6, "GET", 200))
        )
    )
    assert not remarks_of(log, NO_SCAN)


@pytest.mark.parametrize("first_status", [200, 404])
def test_reads_behind_what_has_the_first_names_are_no_scan(tmp_path: Path, first_status: int) -> None:
    """The newest have the first names and are read at once, or something is looked for in vain each time."""
    log, random = tmp_path / "log", np.random.default_rng(4)
    log.write_text(
        "".join(
            swift_line(BEGAN + place + lag, method, f"/v1/a/c/o{number:05d}", status, received=9, sent=9)
            for place in range(1, 1000)
            for lag, method, number, status in (
                (0.0, "PUT", 50_000 - place, 201),
                (0.2, "GET", 50_000 - place if first_status == 200 else 0, first_status),
                (0.4, "GET", 50_000 - int(random.integers(place)), 200),
            )
        )
    )
    assert not remarks_of(log, NO_SCAN)


def test_objects_named_by_time_that_are_read_all_together_are_a_scan(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text(
        "".join(
            swift_line(BEGAN + place + lag, method, f"/v1/a/c/o{place:05d}", status, received=9, sent=9)
            for lag, method, status in ((0.0, "PUT", 201), (900, "GET", 200))
            for place in range(500)
        )
    )
    assert remarks_of(log, f"{NO_SCAN}: 96 % of reads")


def test_a_flash_crowd_does_not_fit(tmp_path: Path) -> None:
    log = tmp_path / "log"
    random = np.random.default_rng(1)
    quiet = [(place / 10, int(each)) for place, each in enumerate(random.integers(0, 500, 6000))]
    crowd = [
        (301 + place / 100, 7 if each < 0.8 else place) for place, each in enumerate(random.random(5000))
    ]
    log.write_text(
        "".join(
            swift_line(BEGAN + moment, "GET", f"/v1/a/c/o{name:04d}", sent=9)
            for moment, name in sorted(quiet + crowd)
        )
    )
    assert remarks_of(log, "a flash crowd does not fit")


def test_short_lives_do_not_fit(tmp_path: Path) -> None:
    log = tmp_path / "log"
    steps = [("PUT", 201), ("GET", 200), ("DELETE", 204)]
    log.write_text(
        "".join(
            swift_line(BEGAN + number + place / 4, method, f"/v1/a/c/o{number}", status, received=5, sent=5)
            for number in range(300)
            for place, (method, status) in enumerate(steps)
        )
    )
    assert remarks_of(log, "short lives do not fit: 300 uploads deleted")


# -- When --------------------------------------------------------------------------------------------


def test_many_requests_at_once_among_few_do_not_fit(tmp_path: Path) -> None:
    """What cron starts at each full minute."""
    log = tmp_path / "log"
    log.write_text(
        "".join(
            swift_line(BEGAN + 60 * minute + number / 99, "GET", f"/v1/a/c/o{number}", sent=9)
            for minute in range(60)
            for number in range(30)
        )
    )
    assert remarks_of(log, "bursts do not fit: the dispersion at 1 s is 30.0, of a scenario's 1.")


def test_minutes_that_differ_within_stages_do_not_fit(tmp_path: Path) -> None:
    """A job each five minutes, in a log so long that a stage has as much."""
    log = tmp_path / "log"
    write_minutes_log(log, [5.0 if minute % 5 == 2 else 1.0 for minute in range(180)])
    assert remarks_of(log, "bursts do not fit: the dispersion at 60 s is ", "ibm-cos")


@pytest.mark.parametrize("minutes", [12, 180])
def test_minutes_of_independent_users_fit(tmp_path: Path, minutes: int) -> None:
    log = tmp_path / "log"
    write_minutes_log(log, [2.0] * minutes)
    assert not remarks_of(log, "bursts", "ibm-cos")


# -- Sizes -------------------------------------------------------------------------------------------


def test_sizes_of_what_is_read_often_do_not_fit(tmp_path: Path) -> None:
    """Large objects are uploaded in parts of one name and read as a whole, small ones are read often."""
    log = tmp_path / "log"
    steps = [
        *(("PUT", f"large{number}", 8_000_000) for number in range(20) for _ in range(4)),
        *(("GET", f"large{number}", 32_000_000) for number in range(20)),
        *(("GET", f"small{number}", 1000) for _ in range(50) for number in range(20)),
    ]
    np.random.default_rng(1).shuffle(steps)
    log.write_text(
        "".join(
            swift_line(BEGAN + place, method, f"/v1/a/c/{name}", 200, received=size, sent=size)
            if method == "GET"
            else swift_line(BEGAN + place, method, f"/v1/a/c/{name}", 201, received=size)
            for place, (method, name, size) in enumerate(steps)
        )
    )
    assert remarks_of(log, "sizes do not fit: a") == [
        "sizes do not fit: an upload has 8 MB on average, of a scenario 3.68 MB",
        "sizes do not fit: a read has 628 kB on average, of a scenario 3.68 MB",
    ]


@pytest.mark.parametrize("exponent", [0.7, 1.1])
def test_small_objects_that_are_popular_do_not_fit(tmp_path: Path, exponent: float) -> None:
    log = tmp_path / "log"
    sizes = np.geomspace(1000, 1_000_000, 1000).astype(int).tolist()
    write_reads(log, [(f"a/c/o{each}", sizes[each]) for each in zipf_uses(1000, 12_000, exponent)])
    found = remarks_of(log, "sizes do not fit: those of uses are off by a factor of ")
    assert len(found) == 1
    assert remarks_of(log, "sizes do not fit: a cache of ")


@pytest.mark.parametrize("exponent", [0.5, 0.8, 1.0])
@pytest.mark.parametrize("sigma", [0.5, 1.5])
def test_sizes_that_do_not_depend_on_popularity_fit(tmp_path: Path, exponent: float, sigma: float) -> None:
    log = tmp_path / "log"
    sizes = (20_000 * np.random.default_rng(8).lognormal(0, sigma, 1000)).astype(int).tolist()
    write_reads(log, [(f"a/c/o{each}", sizes[each]) for each in zipf_uses(1000, 12_000, exponent)])
    assert not remarks_of(log, "sizes do not fit")


def test_hit_ratios_by_bytes_are_not_blamed_on_sizes_if_reuse_does_not_fit(tmp_path: Path) -> None:
    log = tmp_path / "log"
    write_uses_log(log, np.random.default_rng(1).integers(12, size=8000).tolist())
    assert remarks_of(log, "reuse does not fit")
    assert not remarks_of(log, "sizes do not fit")


def test_sizes_that_are_not_known_are_not_compared(tmp_path: Path) -> None:
    """Most requests ask whether an object is there, which says no size."""
    log = tmp_path / "log"
    sizes = np.geomspace(1000, 1_000_000, 100).astype(int).tolist()
    for is_known in (range(100), range(40)):
        log.write_text(
            "".join(
                swift_line(
                    BEGAN + place / 50,
                    "GET" if each in is_known else "HEAD",
                    f"/v1/a/c/o{each}",
                    sent=sizes[each] if each in is_known else 0,
                )
                for place, each in enumerate(zipf_uses(100, 3000, 0.8))
            )
        )
        found = remarks_of(log, "sizes do not fit: those")
        assert bool(found) == (is_known == range(100))


def ranges_log(path: Path, lengths: list[int]) -> None:
    path.write_text(
        "".join(
            swift_line(BEGAN + place / 20, "GET", f"/v1/a/c/o{place % 40}", 206, sent=each)
            for place, each in enumerate(lengths)
        )
        + "".join(swift_line(BEGAN + place, "GET", f"/v1/a/c/o{place}", sent=90_000) for place in range(40))
    )


def test_ranges_of_several_lengths_do_not_fit(tmp_path: Path) -> None:
    log = tmp_path / "log"
    ranges_log(log, [1000, 4000, 64_000] * 200)
    assert remarks_of(log, "ranges") == [
        "ranges do not fit: they have 1 kB to 64 kB (9 of 10), 23 kB on average, of a scenario all 4 kB"
    ]
    ranges_log(log, [*[4000] * 590, *[2000] * 10])
    assert not remarks_of(log, "ranges")


# -- Where -------------------------------------------------------------------------------------------


def container_reads(uses: list[int], containers: list[int], account: str = "a") -> list[tuple[str, int]]:
    """Return reads of objects, each of which is in a container."""
    return [(f"{account}/c{containers[each]}/o{each}", 100) for each in uses]


def test_containers_that_are_used_unevenly_do_not_fit(tmp_path: Path) -> None:
    log = tmp_path / "log"
    write_reads(
        log, container_reads(zipf_uses(500, 5000), [0 if each % 10 else each // 10 for each in range(500)])
    )
    found = remarks_of(log, "containers do not fit: Gini's coefficient of their requests is 0.")
    assert len(found) == 1


@pytest.mark.parametrize("exponent", [0.5, 1.2])
@pytest.mark.parametrize("containers", [2, 10, 100])
def test_containers_with_as_many_objects_fit_though_some_are_popular(
    tmp_path: Path, exponent: float, containers: int
) -> None:
    log = tmp_path / "log"
    places = (np.random.default_rng(4).permutation(500) % containers).tolist()
    write_reads(log, container_reads(zipf_uses(500, 5000, exponent), places))
    assert not remarks_of(log, "containers")


def test_more_containers_than_a_scenario_has_do_not_fit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(made_scenario, "_MAX_CONTAINERS", 40)
    log = tmp_path / "log"
    write_reads(log, container_reads(zipf_uses(500, 5000), [each % 50 for each in range(500)]))
    assert remarks_of(log, "containers") == ["containers do not fit: the log has 50, a scenario 40"]


def test_several_accounts_do_not_fit(tmp_path: Path) -> None:
    log = tmp_path / "log"
    uses, one = zipf_uses(500, 5000), [0] * 500
    write_reads(log, [*container_reads(uses, one), *container_reads(uses[:1250], one, "b")])
    assert remarks_of(log, "accounts") == [
        "accounts do not fit: the log has 2, of which one has 80 % of the requests, a scenario has one"
    ]
    # Those of who looks after the store.
    write_reads(log, [*container_reads(uses, one), *container_reads(uses[:50], one, "b")])
    assert not remarks_of(log, "accounts")


# -- How many objects there are --------------------------------------------------------------------


@pytest.mark.parametrize(("reads", "objects"), [(0, "1,000"), (1, "2,000"), (6, "2,000")])
def test_uploads_and_deletes_that_come_in_parts_of_a_log_do_not_fit(
    tmp_path: Path, reads: int, objects: str
) -> None:
    """Objects are uploaded, read, and then deleted, all after others were read."""
    log = tmp_path / "log"
    steps = [*[("GET", 200)] * reads, ("PUT", 201), *[("GET", 200)] * 4, ("DELETE", 204)]
    log.write_text(
        "".join(
            swift_line(
                BEGAN + (1000 * part + number) / 100,
                method,
                f"/v1/a/c/{part < reads}-{number * 7 % 1000}",
                status,
                sent=9,
            )
            for part, (method, status) in enumerate(steps)
            for number in range(1000)
        )
    )
    (found,) = remarks_of(
        log, f"uploads and deletes do not fit: the log has {objects} objects, a scenario 2,"
    )
    assert found.endswith(" because its uploads and deletes come at an even rate")
