"""How objects are used, against planted popularity and a cache that is simulated step by step."""

from __future__ import annotations

import math
import tracemalloc
from collections import OrderedDict
from pathlib import Path

import numpy as np
import pytest
from logged_traffic import BEGAN, swift_line

from ssbench.logs.log_files import LogFile
from ssbench.logs.logged_requests import RequestColumns, read_requests
from ssbench.logs.request_formats import find_request_format
from ssbench.traffic import object_uses

SHARES = (0.01, 0.1, 0.3)


def zipf_ids(exponent: float, objects: int, uses: int, seed: int = 3) -> np.ndarray:
    weights = np.arange(1, objects + 1, dtype=float) ** -exponent
    ids = np.random.default_rng(seed).choice(objects, uses, p=weights / weights.sum())
    return np.unique(ids, return_inverse=True)[1]


@pytest.mark.parametrize("objects", [20_000, 100_000])
@pytest.mark.parametrize("exponent", [0.6, 0.8, 1.0, 1.2])
def test_the_exponent_is_found_though_many_objects_were_never_used(exponent: float, objects: int) -> None:
    counts = object_uses.count_numbers(zipf_ids(exponent, objects, 100_000))
    assert object_uses.find_zipf_exponent(counts) == pytest.approx(exponent, abs=0.05)


@pytest.mark.parametrize("seed", [1, 2])
def test_the_exponent_does_not_make_up_for_a_rough_number_of_objects(seed: int) -> None:
    counts = object_uses.count_numbers(zipf_ids(1.2, 20_000, 54_000, seed))
    assert object_uses.find_zipf_exponent(counts) == pytest.approx(1.2, abs=0.03)


def lru_hits(ids: np.ndarray, sizes: np.ndarray, share: float) -> tuple[float, float]:
    """Return the hit ratios by uses and by bytes of a cache for a share of all bytes."""
    room, hits, hit_bytes = share * sizes.sum(), 0, 0.0
    cached: OrderedDict[int, None] = OrderedDict()
    used = 0.0
    for each in ids.tolist():
        if each in cached:
            cached.move_to_end(each)
            hits += 1
            hit_bytes += sizes[each]
        else:
            cached[each] = None
            used += sizes[each]
            while used > room and len(cached) > 1:
                used -= sizes[cached.popitem(last=False)[0]]
    return hits / len(ids), hit_bytes / sizes[ids].sum()


@pytest.mark.parametrize("exponent", [0.7, 1.1])
def test_hit_ratios_are_those_of_a_cache(exponent: float) -> None:
    ids = zipf_ids(exponent, 2000, 20_000)
    ones = np.ones(ids.max() + 1)
    sizes = np.random.default_rng(1).lognormal(8, 1, len(ones))
    by_objects = object_uses.find_hit_ratios(ids, ones, SHARES)
    by_bytes = object_uses.find_hit_ratios(ids, sizes, SHARES)
    for place, share in enumerate(SHARES):
        assert by_objects[place] == pytest.approx(lru_hits(ids, ones, share)[0], abs=0.02)
        assert by_bytes[place] == pytest.approx(lru_hits(ids, sizes, share)[1], abs=0.02)


def test_without_uses_there_is_no_hit_ratio() -> None:
    assert np.isnan(object_uses.find_hit_ratios(np.zeros(0, np.int64), np.zeros(0), SHARES)).all()


def test_distances_are_in_uses() -> None:
    [(_, distances)] = object_uses.find_distances(np.array([0, 1, 0, 0, 1]), np.full(2, -1))
    assert distances.tolist() == [0, 0, 2, 1, 3]


def test_an_upload_of_what_is_not_there_is_no_use(tmp_path: Path) -> None:
    log = tmp_path / "log"
    steps = [("GET", "a", 200), ("PUT", "b", 201), ("PUT", "a", 201), ("GET", "b", 404), ("DELETE", "b", 204)]
    steps += [("PUT", "b", 201), ("HEAD", "b", 200)]
    log.write_text(
        "".join(
            swift_line(BEGAN + place, method, f"/v1/a/c/{name}", status, received=5 * (method == "PUT"))
            for place, (method, name, status) in enumerate(steps)
        )
    )
    found = object_uses.find_object_uses(read_requests([LogFile(log, "n")], find_request_format("swift")))
    assert found.rows.tolist() == [0, 1, 2, 4, 5, 6]
    assert found.creates.tolist() == [False, True, False, False, True, False]
    assert found.deletes.tolist() == [False, False, False, True, False, False]
    assert len(found.used) == 3
    assert sorted(object_uses.count_numbers(found.used).tolist()) == [1, 2]
    assert found.sizes.tolist() == [5, 5]


def find_uses_of_old_and_new(
    log: Path, new: int, *, old_uploads: float = 0.4, seed: int = 4
) -> tuple[object_uses.ObjectUses, RequestColumns]:
    """Return 12,000 uses of 2,000 objects that were there, and uploads of new ones at any time."""
    random = np.random.default_rng(seed)
    old = zipf_ids(0.9, 2000, 12_000, seed)
    steps = [
        (moment, "PUT" if is_upload else "GET", f"old{number}")
        for moment, number, is_upload in zip(
            random.random(len(old)), old, random.random(len(old)) < old_uploads, strict=True
        )
    ]
    steps += [(moment, "PUT", f"new{number}") for number, moment in enumerate(random.random(new))]
    log.write_text(
        "".join(
            swift_line(BEGAN + 1000 * moment, method, f"/v1/a/c/{name}", sent=9, received=9)
            for moment, method, name in sorted(steps)
        )
    )
    requests = read_requests([LogFile(log, "n")], find_request_format("swift"))
    return object_uses.find_object_uses(requests), requests


@pytest.mark.parametrize("new", [0, 300, 3000])
def test_objects_that_were_there_and_begin_with_an_upload_are_not_new(tmp_path: Path, new: int) -> None:
    found, requests = find_uses_of_old_and_new(tmp_path / "log", new)
    assert np.count_nonzero(found.creates) > new + 500
    level = object_uses.level_first_uploads(found, requests)
    # Some 700 that were there begin with an upload.
    assert np.count_nonzero(level.creates) == pytest.approx(new, abs=150 + 3 * math.sqrt(new))
    assert not np.any(level.creates & ~found.creates)
    moments = level.rows[np.flatnonzero(level.creates)] / len(requests)
    assert np.count_nonzero(moments < 0.5) == pytest.approx(len(moments) / 2, abs=60)
    assert np.array_equal(np.flatnonzero(level.are_used), np.unique(level.ids[~level.creates]))


@pytest.mark.parametrize("new", [5, 300, 3000])
def test_uploads_at_an_even_rate_are_of_new_objects(tmp_path: Path, new: int) -> None:
    found, requests = find_uses_of_old_and_new(tmp_path / "log", new, old_uploads=0.0)
    assert np.count_nonzero(found.creates) == new
    assert object_uses.level_first_uploads(found, requests) is found


def most_memory_of_hit_ratios(uses: int) -> int:
    ids = np.random.default_rng(1).integers(0, 1000, uses)
    tracemalloc.start()
    try:
        object_uses.find_hit_ratios(ids, np.ones(1000), (0.1,))
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_hit_ratios_need_no_memory_for_more_uses() -> None:
    few, many = map(most_memory_of_hit_ratios, (300_000, 900_000))
    assert many - few < 2 * 600_000
