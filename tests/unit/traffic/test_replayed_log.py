"""What is replayed of a log: which operations on which objects, and what has to exist first."""

from __future__ import annotations

import gzip
import logging
import random
import tracemalloc
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from full_run import write_full_run
from golden_words import GoldenWords
from logged_traffic import BEGAN, swift_line

from ssbench.base.errors import UsageError
from ssbench.logs.logged_requests import REQUEST_KINDS, RequestColumns
from ssbench.logs.request_formats import REQUEST_FORMATS
from ssbench.run import bars
from ssbench.scenario.replay_source import Replay
from ssbench.scenario.replayed import fit_to_replay
from ssbench.scenario.scenario_reading import check_scenario_text
from ssbench.traffic import object_uses, replayed_log
from ssbench.traffic.replayed_log import (
    ReplayOrder,
    find_moment,
    make_replay,
    parse_replay_order,
    read_replay,
    write_replay_text,
)

#: Seconds, method, path below the version, status, bytes that came or went.
Row = tuple[float, str, str, int, int]


def write_log(path: Path, rows: Sequence[Row], *, seconds: float = 0.01) -> Path:
    lines = []
    for moment, method, name, status, moved in rows:
        bodies = {"received": moved} if method == "PUT" else {"sent": moved}
        lines.append(swift_line(BEGAN + moment, method, f"/v1/{name}", status, seconds=seconds, **bodies))
    path.write_text("".join(lines))
    return path


def read_rows(tmp_path: Path, rows: Sequence[Row], words: str = "", **options: float) -> Replay:
    path = write_log(tmp_path / "proxy.log", rows, **options)
    return read_replay(parse_replay_order(f"{path} {words}"))


def list_jobs(replay: Replay) -> list[tuple[str, int, int]]:
    """Return the operation of each request, its object and its bytes."""
    names = [replay.names[place] for place in replay.operations]
    return [*zip(names, replay.items.tolist(), replay.sizes.tolist(), strict=True)]


def test_an_order_is_logs_and_words_behind_them() -> None:
    assert parse_replay_order("a.log") == ReplayOrder(("a.log",))
    assert parse_replay_order("'my logs/a' b.log from 10:00 to 11:00 speed 2.5 copies 3 format rgw") == (
        ReplayOrder(("my logs/a", "b.log"), "10:00", "11:00", 2.5, 3, "rgw")
    )
    assert parse_replay_order("a format nginx template '$remote_addr [$time_iso8601]'").template == (
        "$remote_addr [$time_iso8601]"
    )


@pytest.mark.parametrize(
    "text",
    [
        "speed 2",
        "a.log speed",
        "a.log speed 2 speed 3",
        "a.log speed 2 sped 3",
        "a.log speed 0",
        "a.log speed nan",
        "a.log copies 1.5",
        "a.log format apache",
        "a.log from noon",
        "a.log from 25:00",
        "'a.log",
    ],
)
def test_a_wrong_order_says_what_was_expected(text: str, golden_words: GoldenWords) -> None:
    with golden_words.raises(ValueError):
        parse_replay_order(text)


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        ("sped 2", "sped: no such log file; did you mean speed?"),
        ("form 10:00", "form: no such log file; did you mean format or from?"),
        ("speed=2", "speed=2: no such log file; did you mean speed?"),
        ("b.log", "^b.log: no such log file$"),
    ],
)
def test_words_with_a_slip_are_no_logs(tmp_path: Path, words: str, meant: str) -> None:
    with pytest.raises(UsageError, match=meant.replace("?", r"\?")):
        read_rows(tmp_path, [(0.0, "GET", "a/c/o", 200, 5)], words)
    with pytest.raises(UsageError, match=meant.replace("?", r"\?")):
        read_replay(parse_replay_order(f"{write_full_run(tmp_path / 'run.stat.gz')} {words}"))


def test_moments_are_those_of_the_day_of_the_log() -> None:
    first = find_moment("2026-11-21T23:30:05", 0.0)
    assert find_moment("23:30", first) == first - 5
    assert find_moment("00:15:01", first) == first + 44 * 60 + 56  # of the next day
    assert find_moment("90s", first) == first + 90
    assert find_moment("2026-11-22T00:30:05+01:00", 0.0) == first


def test_what_the_log_needs_first_is_prepared_and_what_must_not_exist_is_not(tmp_path: Path) -> None:
    replay = read_rows(
        tmp_path,
        [
            (0.0, "GET", "AUTH_a/c/read", 200, 700),
            (0.1, "GET", "AUTH_a/c/missing", 404, 70),
            (0.2, "PUT", "AUTH_a/c/new", 201, 300),
            (0.3, "GET", "AUTH_a/c/new", 200, 300),
            (0.4, "PUT", "AUTH_a/c/new", 201, 400),
            (0.5, "DELETE", "AUTH_a/c/new", 204, 0),
            (0.6, "PUT", "AUTH_a/c/new", 201, 500),
            (0.7, "GET", "AUTH_a/c/part", 206, 90),
            (0.8, "HEAD", "AUTH_a/c/head", 200, 0),
            (0.9, "PUT", "AUTH_a/c/read", 201, 100),
            (1.0, "DELETE", "AUTH_a/c/gone", 404, 0),
            (1.1, "GET", "AUTH_a/c", 200, 10),
            (1.2, "PUT", "AUTH_a/c", 202, 0),
            (1.3, "COPY", "AUTH_a/c/head", 201, 0),
            (1.4, "GET", "AUTH_a/c/head", 304, 0),
        ],
    )
    # read, part and head are prepared, in the order in which they come.
    assert replay.initial_sizes.tolist() == [0, 700, 90, 395]  # the size of head is the median
    assert replay.written.tolist() == [False, True, False, False]
    assert list_jobs(replay) == [
        ("read", 1, 0),  # its size changes later: it is not checked
        ("get_missing", 4, 0),
        ("create", 5, 300),
        ("read", 5, 0),
        ("update", 5, 400),
        ("delete", 5, 0),
        ("create", 5, 500),
        ("range", 2, 90),
        ("head", 3, 395),
        ("update", 1, 100),
        ("delete_missing", 6, 0),
        ("list", 0, 0),
        ("copy", 7, 3),  # to a new object, of the third
        ("conditional", 3, 0),
    ]
    assert replay.moments.tolist() == pytest.approx(np.array([*range(12), 13, 14]) / 10, abs=1e-6)
    source = replay.source
    assert (source.requests, source.objects, source.prepared, source.left_out) == (14, 6, 3, 1)
    assert (source.containers, source.accounts) == (1, 1)


def test_an_upload_that_does_not_say_its_size_has_that_of_what_is_read_of_it(tmp_path: Path) -> None:
    """A manifest; a load balancer that does not count what comes in."""
    replay = read_rows(
        tmp_path,
        [
            (0.0, "PUT", "AUTH_a/c/large%3Fmultipart-manifest%3Dput", 201, 400),
            (0.1, "GET", "AUTH_a/c/large", 200, 7_000_000),
            (0.2, "PUT", "AUTH_a/c/never%3Fmultipart-manifest%3Dput", 201, 400),
            (0.3, "PUT", "AUTH_a/c/plain", 201, 80),
            (0.4, "GET", "AUTH_a/c/early", 200, 5_000_000),
            (0.5, "PUT", "AUTH_a/c/refused%3Fmultipart-manifest%3Dput", 503, 400),
            (0.6, "PUT", "AUTH_a/c/early%3Fmultipart-manifest%3Dput", 201, 400),
            (0.7, "GET", "AUTH_a/c/early", 200, 3000),
        ],
    )
    assert [size for name, _, size in list_jobs(replay) if name == "update"] == [3000]
    assert [size for name, _, size in list_jobs(replay) if name == "create"] == [
        7_000_000,
        3_501_500,
        80,
        400,
    ]
    log = tmp_path / "haproxy.log"
    log.write_text(
        "".join(
            f"10.0.1.2:1 [06/Feb/2009:12:14:{second}.655] f s/s 0/0/0/9/9 {status} {sent} - - ---- 1/1/1/1/0"
            f' 0/0 "{method} /v1/a/c/o HTTP/1.1"\n'
            for second, status, sent, method in ((14, 201, 250, "PUT"), (15, 200, 4096, "GET"))
        )
    )
    assert list_jobs(read_replay(parse_replay_order(f"{log} format haproxy")))[0] == ("create", 2, 4096)


def test_an_upload_of_no_byte_of_which_bytes_are_read_has_these(tmp_path: Path) -> None:
    """A copy at S3, and what points to segments; some clients upload an empty object first."""
    replay = read_rows(
        tmp_path,
        [
            (0.0, "PUT", "AUTH_a/c/copy", 201, 0),
            (0.1, "GET", "AUTH_a/c/copy", 200, 9000),
            (0.2, "PUT", "AUTH_a/c/empty", 201, 0),
            (0.3, "GET", "AUTH_a/c/empty", 200, 0),
            (0.4, "PUT", "AUTH_a/c/first", 201, 0),
            (0.5, "PUT", "AUTH_a/c/first", 201, 700),
            (0.6, "GET", "AUTH_a/c/first", 200, 700),
        ],
    )
    made = [(name, size) for name, _, size in list_jobs(replay) if name != "read"]
    assert made == [("create", 9000), ("create", 0), ("create", 0), ("update", 700)]


@pytest.mark.parametrize("status", [401, 403, 412, 416])
def test_what_was_refused_is_not_made(tmp_path: Path, status: int) -> None:
    """Who asks for thousands of names without a token would have their objects made."""
    rows = [(place / 10, "GET", f"AUTH_x/c/o{place}", status, 131) for place in range(20)]
    replay = read_rows(
        tmp_path, [*rows, (3.0, "GET", "AUTH_a/c/o", 200, 9), (4.0, "GET", "AUTH_a/c/o", 503, 0)]
    )
    assert list_jobs(replay) == [("read", 1, 9), ("read", 1, 0)]
    assert (replay.source.prepared, replay.source.left_out, replay.source.accounts) == (1, 20, 1)


def test_an_object_of_more_than_one_piece_is_as_large_as_that(tmp_path: Path) -> None:
    """No store takes more at once: it was uploaded in segments."""
    replay = read_rows(
        tmp_path,
        [
            (0.0, "GET", "AUTH_a/c/old", 200, 20 << 30),
            (0.1, "PUT", "AUTH_a/c/new%3Fmultipart-manifest%3Dput", 201, 400),
            (0.2, "GET", "AUTH_a/c/new", 200, 6 << 30),
            (0.3, "GET", "AUTH_a/c/small", 200, 5 << 30),
        ],
    )
    assert replay.initial_sizes.tolist() == [0, 5 << 30, 5 << 30]
    assert list_jobs(replay)[1] == ("create", 3, 5 << 30)
    assert any(each.endswith("5 GiB, which they get: 2 objects") for each in replay.source.doubts)


@pytest.mark.parametrize("seed", range(3))
def test_unknown_sizes_are_medians_of_containers(tmp_path: Path, seed: int) -> None:
    """As they are defined, container by container."""
    random = np.random.default_rng(seed)
    rows: list[Row] = []
    sizes: dict[str, list[int]] = {}
    for number in range(200):
        home, size = f"c{random.integers(40)}", int(random.integers(1, 10_000)) * int(random.random() < 0.5)
        rows.append((number / 9, "GET" if size else "HEAD", f"AUTH_a/{home}/o{number}", 200, size))
        sizes.setdefault(home, []).extend([size] * bool(size))
    usual = int(np.median([size for own in sizes.values() for size in own]))
    expected = [
        size or (int(np.median(own)) if (own := sizes[name.split("/")[1]]) else usual)
        for _, _, name, _, size in rows
    ]
    assert read_rows(tmp_path, rows).initial_sizes.tolist() == [0, *expected]


def test_a_log_may_have_no_request_for_an_object(tmp_path: Path) -> None:
    replay = read_rows(tmp_path, [(0.0, "GET", "AUTH_a/c", 200, 10), (1.0, "HEAD", "AUTH_a", 204, 0)])
    assert list_jobs(replay) == [("list", 0, 0), ("head_account", 0, 0)]
    assert (replay.source.objects, replay.source.prepared, replay.source.early_requests) == (0, 0, None)
    assert check_scenario_text(write_replay_text(replay), "--replay").user_count


def test_a_part_of_which_no_byte_came_is_not_as_long_as_the_longest(tmp_path: Path) -> None:
    replay = read_rows(tmp_path, [(0.0, "GET", "AUTH_a/c/o", 206, 50), (1.0, "GET", "AUTH_a/c/o", 206, 0)])
    assert list_jobs(replay) == [("range", 1, 50), ("range", 1, 1)]


def test_the_scenario_of_a_replay_says_what_it_does(tmp_path: Path) -> None:
    rows = [(moment / 10, "GET", f"AUTH_a/c{moment % 3}/o", 200, 2000) for moment in range(20)]
    replay = read_rows(
        tmp_path,
        [
            *rows,
            (2.0, "GET", "AUTH_a/c0/none", 404, 10),
            (2.05, "HEAD", "AUTH_a/c3", 404, 0),
            (2.1, "GET", "AUTH_a/c0/o", 206, 7),
        ],
    )
    scenario = fit_to_replay(check_scenario_text(write_replay_text(replay, 2.0), "--replay"), replay)
    assert scenario.operation_count == len(replay) == 23
    assert scenario.rate == pytest.approx(2 * 23 / 2.1)
    assert replay.find_speed(scenario) == pytest.approx(2)
    assert scenario.container_count == 4
    assert scenario.operation_table.named("get_missing").method == "GET"
    assert scenario.operation_table.named("head_container_missing").method == "HEAD"
    (own,) = scenario.size_classes
    assert own.initial_files == 3
    assert own.weights == {"read": 20, "range": 1, "get_missing": 1, "head_container_missing": 1}


def test_progress_of_reading_a_log_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    drawn: list[str] = []  # on a terminal
    monkeypatch.setattr(bars, "_draw", lambda what, *_arguments, **_options: drawn.append(what))
    monkeypatch.setattr(bars, "_LINE_SECONDS", 0.0)
    monkeypatch.setattr(replayed_log, "_ROWS_AT_ONCE", 13)
    read_rows(tmp_path, [(moment / 10, "GET", "AUTH_a/c/o", 200, 2000) for moment in range(20)])
    assert drawn == ["Lines read", "Requests looked at", "Requests made ready"]
    said = [each.partition(", ")[0] for each in caplog.messages]
    assert said == [
        "Lines read: 20",
        *(f"Requests {what}: {count} of 20" for what in ("looked at", "made ready") for count in (13, 20)),
    ]


def test_lines_in_the_order_of_their_ends_are_replayed_in_that_of_their_beginnings(tmp_path: Path) -> None:
    lines = [
        swift_line(BEGAN + 1, "GET", "/v1/AUTH_a/c/second", sent=20, seconds=0.1),
        swift_line(BEGAN, "PUT", "/v1/AUTH_a/c/first", 201, received=10, seconds=5),
    ]
    path = tmp_path / "proxy.log"
    path.write_text("".join(lines))
    replay = read_replay(ReplayOrder((str(path),)))
    assert list_jobs(replay) == [("create", 2, 10), ("read", 1, 20)]
    assert replay.moments.tolist() == [0, 1]


@pytest.mark.parametrize("words", ["", "copies 2"])
def test_a_log_in_many_parts_is_the_same_replay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: str
) -> None:
    random = np.random.default_rng(3)
    how = [("GET", 200), ("GET", 404), ("GET", 206), ("HEAD", 200), ("PUT", 201), ("PUT", 503)]
    how += [("DELETE", 204), ("DELETE", 404), ("COPY", 201), ("POST", 202), ("GET", 304)]
    rows = []
    for moment in range(600):
        method, status = how[int(random.integers(len(how)))]
        place = f"AUTH_{random.integers(3)}/c{random.integers(4)}/o{random.integers(20)}"
        rows.append((moment / 50, method, place, status, int(random.integers(1, 900))))
    rows += [(12.0, "HEAD", "AUTH_1", 204, 0), (12.1, "GET", "AUTH_2/c1", 200, 70)]
    whole = read_rows(tmp_path, rows, words, seconds=0.5)
    monkeypatch.setattr(replayed_log, "_ROWS_AT_ONCE", 13)
    parts = read_rows(tmp_path, rows, words, seconds=0.5)
    assert list_jobs(parts) == list_jobs(whole)
    assert parts.source == whole.source
    assert parts.source.early_requests
    assert write_replay_text(parts) == write_replay_text(whole)
    for name in ("moments", "statuses", "containers", "accounts", "initial_sizes", "written"):
        assert getattr(parts, name).tolist() == getattr(whole, name).tolist()


def test_a_replay_needs_some_100_bytes_for_an_object(monkeypatch: pytest.MonkeyPatch) -> None:
    objects = 200_000
    random = np.random.default_rng(1)
    kind = random.choice([REQUEST_KINDS.index(each) for each in ("put", "read", "head")], objects)
    size = np.where(kind == REQUEST_KINDS.index("head"), -1, random.integers(1, 1_000_000, objects))
    requests = RequestColumns(
        began=BEGAN + np.arange(objects) / 100,
        seconds=np.full(objects, 0.01, np.float32),
        kind=kind.astype(np.uint8),
        status=np.full(objects, 200, np.uint16),
        size=size,
        moved=size.clip(0),
        account=np.zeros(objects, np.uint32),
        container=(np.arange(objects) % 100).astype(np.uint32),
        item=random.permutation(objects) + 1,
        rises=np.zeros(objects, np.bool_),
    )
    for module in (replayed_log, object_uses):
        monkeypatch.setattr(module, "_ROWS_AT_ONCE", 4096)
    tracemalloc.start()
    try:
        assert make_replay(requests, "log").source.objects == objects
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert most < 115 * objects


def test_accounts_of_the_log_go_to_ours_in_turn(tmp_path: Path) -> None:
    rows = [(each / 10, "GET", f"AUTH_{'abc'[each % 3]}/c{each // 3}/o", 200, 9) for each in range(9)]
    replay = read_rows(tmp_path, [*rows, (1.0, "HEAD", "AUTH_b", 204, 0), (1.1, "GET", "AUTH_z", 200, 9)])
    assert replay.source.accounts == 3
    assert replay.accounts.tolist() == [0, 1, 2] * 3
    assert list_jobs(replay)[-2:] == [("head_account", 1, 0), ("list_account", 0, 0)]
    for accounts, containers in ((1, 9), (2, 6), (3, 3)):
        text = write_replay_text(replay)
        scenario = check_scenario_text(text, "--replay", changes=[("accounts", accounts)])
        assert fit_to_replay(scenario, replay).container_count == containers


def test_copies_are_on_objects_and_in_containers_of_their_own(tmp_path: Path) -> None:
    rows = [
        (0.0, "GET", "AUTH_a/c/o", 200, 9),
        (0.1, "PUT", "AUTH_a/d/new", 201, 5),
        (0.2, "COPY", "AUTH_a/c/o", 201, 0),
    ]
    replay = read_rows(tmp_path, rows, "copies 3")
    assert list_jobs(replay) == [
        *(("read", number, 9) for number in (1, 2, 3)),
        *(("create", number, 5) for number in (4, 6, 8)),
        *(("copy", number, source) for number, source in ((5, 1), (7, 2), (9, 3))),
    ]
    assert replay.moments.tolist() == pytest.approx([0, 0, 0, 0.1, 0.1, 0.1, 0.2, 0.2, 0.2], abs=1e-6)
    assert replay.containers[1:].tolist() == [0, 2, 4, 1, 0, 3, 2, 5, 4]
    assert replay.rate == pytest.approx(9 / 0.2)
    assert replay.find_factor(30 / 0.2) == pytest.approx(10)  # times the 3 of the log


def test_a_part_of_the_log_needs_what_that_part_needs(tmp_path: Path) -> None:
    rows = [
        (0.0, "PUT", "AUTH_a/c/o", 201, 50),
        (10.0, "GET", "AUTH_a/c/o", 200, 50),
        (20.0, "DELETE", "AUTH_a/c/o", 204, 0),
    ]
    replay = read_rows(tmp_path, rows, "from 5s to 19s")
    assert [name for name, *_ in list_jobs(replay)] == ["read"]
    assert replay.initial_sizes.tolist() == [0, 50]
    with pytest.raises(UsageError, match=r"no request of the log began then; it is from 2026-11-21T22:26:40"):
        read_rows(tmp_path, rows, "from 30s")
    with pytest.raises(UsageError, match="is not after"):
        read_rows(tmp_path, rows, "from 20s to 0s")


@pytest.mark.parametrize("words", ["format rgw", "template '$remote_addr'"])
def test_the_stat_file_of_a_run_has_no_format_of_lines(words: str, golden_words: GoldenWords) -> None:
    with golden_words.raises(UsageError):
        read_replay(parse_replay_order(f"a.stat.gz {words}"))


def test_requests_that_began_before_a_write_had_ended_are_counted(tmp_path: Path) -> None:
    rows = [
        (0.0, "PUT", "AUTH_a/c/o", 201, 50),
        (0.5, "GET", "AUTH_a/c/o", 200, 50),
        (0.5, "GET", "AUTH_a/c/other", 200, 50),
        (1.5, "GET", "AUTH_a/c/o", 200, 50),
    ]
    assert read_rows(tmp_path, rows, seconds=1.0).source.early_requests == 1
    assert read_rows(tmp_path, rows, seconds=0.1).source.early_requests == 0


def test_latencies_of_the_log_are_those_of_what_went_well(tmp_path: Path) -> None:
    lines = [
        swift_line(
            BEGAN + each, "GET", f"/v1/AUTH_a/c/{each}", 503 if each == 7 else 200, sent=9, seconds=each
        )
        for each in range(1, 8)
    ]
    path = tmp_path / "proxy.log"
    path.write_text("".join(lines))
    (found,) = read_replay(ReplayOrder((str(path),))).source.operations
    assert (found.operation, found.count) == ("read", 7)
    assert (found.p50, found.p95, found.maximum) == (3, 6, 6)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "there are no lines"),
        (
            b"o3 2026-11-21T22:37:46.925 INFO object-server: 127.0.0.1 - - [21/Nov/2026:22:37:46 +0000]"
            b' "PUT /d3/9/AUTH_test/c/o1" 201 - "PUT http://h/v1/AUTH_test/c/o1" "tx1" "p 1" 0.1 "-" 2 0\n',
            r"\(storage servers wrote it: give the log of the proxies\)",
        ),
        (b"\x00\xff" * 5000, "no line is a request of a client"),
        (random.Random(1).randbytes(20_000), "no line is a request of a client"),
        (b'{"bucket":"b","time":"2026-11-22T14:24:05Z"}\n', "no line is a request of a client"),
        (gzip.compress(b"x" * 10_000_000), "no line is a request of a client"),
        (swift_line(BEGAN, "PUT", "/v1/AUTH_a/c", 201).encode(), "no request that can be replayed"),
        (
            swift_line(BEGAN, "GET", "/v1/AUTH_a/c/%zz%00", sent=3).replace("GET", "FROB").encode(),
            "no request",
        ),
    ],
)
def test_hostile_logs_end_in_a_clear_message(tmp_path: Path, data: bytes, message: str) -> None:
    path = tmp_path / "proxy.log.gz"
    path.write_bytes(data)
    with pytest.raises(UsageError, match=message) as error:
        read_replay(ReplayOrder((str(path),)))
    assert "\n" not in str(error.value)


def test_a_line_of_10_mb_is_left_out_and_paths_in_any_encoding_are_read(tmp_path: Path) -> None:
    path = tmp_path / "proxy.log"
    good = swift_line(BEGAN, "GET", "/v1/AUTH_a/%25E2%2598%2583/%2500%25FF%250A", sent=5)
    path.write_text(swift_line(BEGAN + 1, "GET", "/v1/AUTH_a/c/" + "x" * 10_000_000, sent=5) + good)
    replay = read_replay(ReplayOrder((str(path),)))
    assert [name for name, *_ in list_jobs(replay)] == ["read"]


def test_the_moments_of_a_proxy_are_doubted_and_those_of_nginx_are_not(tmp_path: Path) -> None:
    proxy = write_log(tmp_path / "proxy.log", [(1.0, "GET", "AUTH_a/c/o", 200, 9)])
    nginx = tmp_path / "nginx.log"
    nginx.write_text('10.0.0.1 - - [06/Feb/2019:00:00:38 +0000] "GET /c/o HTTP/1.1" 200 9 "-" "-"\n')
    said = [
        any("when it began with a request" in doubt for doubt in read_replay(order).source.doubts)
        for order in (ReplayOrder((str(proxy),)), ReplayOrder((str(nginx),), format="nginx"))
    ]
    assert said == [True, False]


def test_lines_that_cannot_be_read_are_said_without_what_they_say(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = write_log(tmp_path / "proxy.log", [(1.0, "GET", "AUTH_a/c/o", 200, 9)] * 200)
    with path.open("a") as log:
        log.write(swift_line(BEGAN, "GET", "/v1/AUTH_a/c/secret", sent=5).replace(" 200 ", " two "))
    replay = read_replay(ReplayOrder((str(path),)))
    late = REQUEST_FORMATS["swift"].replay_doubts
    assert replay.source.doubts == ("1 line cannot be read", *late)
    assert not any("secret" in doubt for doubt in late)
    assert "1 line cannot be read, such as: 127.0.0.1" in caplog.text
    assert "☃" not in write_replay_text(replay)


def test_a_line_of_a_wrong_clock_is_not_waited_for(tmp_path: Path, golden_words: GoldenWords) -> None:
    rows: list[Row] = [(moment, "GET", "a/c/o", 200, 9) for moment in (0.0, 1.0, 900 * 86_400.0)]
    log = str(write_log(tmp_path / "log", rows))
    with golden_words.raises(UsageError):
        read_replay(ReplayOrder((log,)))
    assert len(read_replay(ReplayOrder((log,), end="10s"))) == 2
