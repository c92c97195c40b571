"""Retries of clients: requests soon after a failure of the same operation on the same object."""

from __future__ import annotations

import json
import tracemalloc
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from logged_traffic import BEGAN, swift_line, write_uses_log

from ssbench.logs.log_files import LogFile
from ssbench.logs.logged_requests import REQUEST_KINDS, RequestColumns, read_requests
from ssbench.logs.request_formats import find_request_format
from ssbench.reports.products import Product, find_writer
from ssbench.traffic import object_uses
from ssbench.traffic.made_scenario import make_scenario
from ssbench.traffic.retries import find_retries
from ssbench.traffic.traffic_figures import Traffic
from ssbench.traffic.traffic_report import TrafficReport, make_traffic_json

TITLE = "retries within 5 s of a failure"
#: Reads that fail.
OUTAGE = range(3000, 3600)


class Asked(NamedTuple):
    """A request of a test."""

    began: float
    seconds: float = 0.25
    kind: str = "read"
    status: int = 200
    item: int = 7  # 0: for the container
    container: int = 1


def columns_of(asked: list[Asked]) -> RequestColumns:
    own = sorted(asked, key=lambda each: each.began)
    count = len(own)
    return RequestColumns(
        began=BEGAN + np.array([each.began for each in own], np.float64),
        seconds=np.array([each.seconds for each in own], np.float32),
        kind=np.array([REQUEST_KINDS.index(each.kind) for each in own], np.uint8),
        status=np.array([each.status for each in own], np.uint16),
        size=np.zeros(count, np.int64),
        moved=np.zeros(count, np.int64),
        account=np.zeros(count, np.uint32),
        container=np.array([each.container for each in own], np.uint32),
        item=np.array([each.item for each in own], np.int64),
        rises=np.zeros(count, np.bool_),
    )


def read_log(log: Path) -> Traffic:
    return Traffic(read_requests([LogFile(log, "n")], find_request_format("swift")))


@pytest.mark.parametrize(
    ("first", "second", "is_retry"),
    [
        (Asked(0, status=503), Asked(5.25), True),
        (Asked(0, status=503), Asked(5.5), False),
        (Asked(0, 60.0, status=504), Asked(61), True),
        (Asked(0, float("nan"), status=500), Asked(5), True),
        (Asked(0, 60.0, status=504), Asked(59), False),  # before that had failed
        (Asked(0, status=408), Asked(1), True),
        (Asked(0, status=429), Asked(1, status=429), True),
        (Asked(0, status=498), Asked(1), True),
        (Asked(0, status=499), Asked(1), False),
        (Asked(0, status=404), Asked(1), False),
        (Asked(0), Asked(1), False),
        (Asked(0, status=503), Asked(1, item=8), False),
        (Asked(0, status=503), Asked(1, kind="head"), False),
        (Asked(0, status=503), Asked(1, kind="range", status=206), True),  # only its status tells a range
        (Asked(0, status=503, kind="list", item=0), Asked(1, kind="list", item=0), True),
        (Asked(0, status=503, kind="list", item=0), Asked(1, kind="list", item=0, container=2), False),
    ],
)
def test_what_is_a_retry(first: Asked, second: Asked, is_retry: bool) -> None:
    assert find_retries(columns_of([first, second])).tolist() == [1] * is_retry


def test_each_of_several_retries_counts_and_what_follows_a_success_does_not() -> None:
    asked = [Asked(place, status=503 if place < 3 else 200) for place in range(6)]
    assert find_retries(columns_of(asked)).tolist() == [1, 2, 3]


def find_retries_one_by_one(requests: RequestColumns) -> list[int]:
    found, before = [], dict[tuple[int, int, int], tuple[int, float]]()
    for row in range(len(requests)):
        began, status = float(requests.began[row]), int(requests.status[row])
        item, container = int(requests.item[row]), int(requests.container[row])
        key = int(requests.kind[row]), item, 0 if item else container
        if key in before:
            last, ended = before[key]
            if (last >= 500 or last in (408, 429, 498)) and ended <= began <= ended + 5:
                found.append(row)
        before[key] = status, began + float(requests.seconds[row])
    return found


QUARTERS = st.integers(0, 80).map(lambda each: each / 4)
REQUESTS = st.builds(
    Asked,
    QUARTERS,
    QUARTERS,
    st.sampled_from(["read", "put", "list"]),
    st.sampled_from([200, 404, 429, 499, 503]),
    st.integers(0, 2),
    st.integers(1, 2),
)


@given(st.lists(REQUESTS, max_size=60), st.integers(1, 70))
def test_retries_are_those_that_are_found_one_by_one(asked: list[Asked], together: int) -> None:
    requests = columns_of(asked)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(object_uses, "_ROWS_AT_ONCE", together)
        assert find_retries(requests).tolist() == find_retries_one_by_one(requests)


def test_failures_of_long_ago_are_not_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(object_uses, "_ROWS_AT_ONCE", 1024)
    most = []
    for count in (20_000, 60_000):
        requests = columns_of([Asked(each / 100, status=503, item=each + 1) for each in range(count)])
        tracemalloc.start()
        assert not len(find_retries(requests))
        most.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert most[1] < 1.2 * most[0]


def write_outage_log(log: Path) -> None:
    """Write ten minutes of reads, of which those of one minute fail, and so do two retries of each."""
    moments = [
        (place / 10 + again, place) for place in range(6000) for again in range(3 if place in OUTAGE else 1)
    ]
    log.write_text(
        "".join(
            swift_line(
                BEGAN + moment, "GET", f"/v1/a/c/{place % 100}", 503 if place in OUTAGE else 200, sent=9
            )
            for moment, place in sorted(moments)
        )
    )


def test_a_scenario_has_the_rate_without_retries(tmp_path: Path) -> None:
    log = tmp_path / "log"
    write_outage_log(log)
    traffic = read_log(log)
    assert len(traffic.retries) == 1200
    assert int(traffic.rates.sum()) == 7200
    made = make_scenario(traffic, "m")
    stages = yaml.safe_load(made.text)["stages"]
    assert [each["rate"] for each in stages] == pytest.approx([10] * len(stages), rel=0.01)
    assert (
        "left out of the rate: 1,200 of 7,200 requests, which are retries; a run makes its own"
        in made.remarks
    )
    assert not [each for each in made.remarks if each.startswith(("a surge", "bursts"))]


def test_retries_are_in_the_report(tmp_path: Path) -> None:
    log = tmp_path / "log"
    write_outage_log(log)
    report = TrafficReport(read_log(log))
    words = " ".join(find_writer(Product.TRAFFIC, "text")(report).split())
    assert "1 client; retries: 1,200" in words
    assert f"{TITLE} 16.67 % " in words
    document = json.loads(make_traffic_json(report))
    assert document["retries"] == 1200
    figures = {each["name"]: each["log"] for each in document["figures"]}
    assert figures[TITLE] == pytest.approx(1 / 6)
    assert TITLE in "".join(find_writer(Product.TRAFFIC, "html")(report))
    write_uses_log(log, [number % 50 for number in range(400)])
    words = find_writer(Product.TRAFFIC, "text")(TrafficReport(read_log(log)))
    assert "retries" not in words
