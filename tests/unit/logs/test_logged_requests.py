"""Lines of files as columns of requests: what is counted, what is an error, what is not kept."""

from __future__ import annotations

import gzip
import math
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import msgspec
import numpy as np
import pytest
from golden_words import GoldenWords

from ssbench.base.errors import UsageError
from ssbench.logs import logged_requests
from ssbench.logs.log_files import LogFile
from ssbench.logs.logged_requests import read_requests
from ssbench.logs.request_formats import find_request_format, suggest_format

SWIFT = (
    b"127.0.0.1 127.0.0.1 21/Nov/2026/22/37/46 PUT /v1/AUTH_test/c/o18081 HTTP/1.0 201 - agent AUTH_tk8..."
    b" 4096 - - tx2fb49ad9eae8482080275-006b021d3a - 0.0835 - - 1795300666.876998901 1795300666.960514307 0 -"
)
IBM = b"1219008 REST.GET.OBJECT 8d4fcda3d675bac9 1056 0 1055"


def test_whole_seconds_of_old_swift_are_spread(tmp_path: Path) -> None:
    log = tmp_path / "old.log"
    words = SWIFT.split(b" ")
    log.write_bytes((b" ".join(words[:17]) + b"\n") * 400)
    found = read_requests([LogFile(log, "n")], find_request_format("swift"))
    assert found.whole_seconds == 400
    assert 0.4 < found.began.std() * math.sqrt(12) / 1 < 1.2
    assert {*(found.began // 1).tolist()} == {1795300665.0}


def test_requests_of_a_second_stay_in_the_order_of_the_log(tmp_path: Path) -> None:
    steps = ((b"PUT", 201), (b"GET", 200), (b"DELETE", 204))
    log = tmp_path / "log"
    log.write_bytes(
        b"".join(
            b'10.0.0.1 - - [06/Feb/2019:01:00:%02d +0100] "%b /bucket/%d HTTP/1.1" %d 9 "-" "curl/8"\n'
            % (number // 20, method, number, status)
            for number in range(400)
            for method, status in steps
        )
    )
    found = read_requests([LogFile(log, "n")], find_request_format("nginx"))
    assert found.status.tolist() == [status for _, status in steps] * 400
    assert found.whole_seconds == 1200


def test_another_format_is_an_error_that_names_the_right_one(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_bytes(IBM + b"\n" + IBM + b"\n")
    with pytest.raises(
        UsageError,
        match=r"no line is a request of a client, the first one: .*1219008 REST\.GET.*--format ibm-cos",
    ):
        read_requests([LogFile(log, "n")], find_request_format("swift"), advise=suggest_format)


@pytest.mark.parametrize(("wrong", "is_error"), [(1, False), (2, True)])
def test_more_than_one_line_of_a_hundred_that_cannot_be_read_is_an_error(
    tmp_path: Path, wrong: int, is_error: bool, golden_words: GoldenWords
) -> None:
    log = tmp_path / "log"
    log.write_bytes((IBM + b"\n") * 100 + b"1 REST.GET.OBJECT 8d many\n" * wrong)
    if is_error:
        with golden_words.raises(UsageError):
            read_requests([LogFile(log, "n")], find_request_format("ibm-cos"))
    else:
        found = read_requests([LogFile(log, "n")], find_request_format("ibm-cos"))
        assert (len(found), found.unreadable, found.example) == (100, 1, "1 REST.GET.OBJECT 8d many")


@pytest.mark.parametrize(("others", "is_error"), [(1, False), (99, True)])
def test_lines_of_a_proxy_in_another_layout_are_not_left_out(
    tmp_path: Path, others: int, is_error: bool, golden_words: GoldenWords
) -> None:
    log = tmp_path / "log"
    log.write_bytes(SWIFT + b"\n" + b"1795300666.5 GET /v1/a/c/o 200\n" * others)
    form = find_request_format("swift")
    if is_error:
        with golden_words.raises(UsageError):
            read_requests([LogFile(log, "n")], form, advise=suggest_format)
    else:
        found = read_requests([LogFile(log, "n")], form)
        assert (len(found), found.unreadable) == (1, 1)


@pytest.mark.parametrize(("others", "is_doubt"), [(20, False), (21, True)])
def test_a_log_of_which_far_more_is_left_out_than_read_is_doubted(
    tmp_path: Path, others: int, is_doubt: bool, golden_words: GoldenWords
) -> None:
    log = tmp_path / "log"
    log.write_bytes(SWIFT + b"\n" + b"1795300666.5 GET /bucket/secret 200\n" * others)
    found = read_requests([LogFile(log, "n")], find_request_format("swift"))
    golden_words([found.describe_left_out(), *found.list_doubts()])
    assert len([*found.list_doubts()]) == is_doubt
    assert not any("secret" in each for each in found.list_doubts(shared=True))


def test_few_lines_of_a_wrong_clock_are_left_out(tmp_path: Path, golden_words: GoldenWords) -> None:
    log = tmp_path / "log"
    wrong = [SWIFT.replace(b" 1795300666.8", each) for each in (b" 0.8", b" 1995300666.8")]
    for count, kept in ((197, 199), (198, 198)):
        log.write_bytes(b"\n".join([*wrong, *[SWIFT] * count]))
        found = read_requests([LogFile(log, "n")], find_request_format("swift"))
        assert (len(found), found.unreadable) == (kept, 0)
        assert len(found.item) == len(found.status) == len(found)
    golden_words([*found.list_doubts()])


def test_a_line_without_an_end_counts_once(tmp_path: Path) -> None:
    log = tmp_path / "log"
    begins = SWIFT[: SWIFT.index(b"o18081")]
    long_line = begins + b"x" * 1_000_000 + b" " + SWIFT[:40] + b"\n"
    log.write_bytes((SWIFT + b"\n") * 3 + long_line + (SWIFT + b"\n") * 2)
    found = read_requests([LogFile(log, "n")], find_request_format("swift"))
    assert (len(found), found.unreadable, found.left_out) == (5, 1, 0)
    assert found.example.startswith("127.0.0.1 127.0.0.1 21/Nov/2026")


def test_no_name_is_kept_and_the_key_is_another_each_time(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_bytes(b"1 REST.PUT.OBJECT secret 1\n2 REST.GET.OBJECT secret 1\n3 REST.GET.OBJECT other 1\n")
    one, other = (read_requests([LogFile(log, "n")], find_request_format("ibm-cos")) for _ in range(2))
    assert (one.item == one.item[0]).tolist() == [True, True, False]
    assert one.item[0] != other.item[0]


def test_hostile_files_are_read_to_their_end(tmp_path: Path) -> None:
    """A line of 10 MB, zeros that expand a thousand times, a text of another encoding, a file that is cut."""
    whole = (IBM + b"\n") * 200
    packed = gzip.compress(b"\0" * 20_000_000 + b"\n" + whole + b"x" * 10_000_000 + b"\n" + whole)
    log, other, cut = (tmp_path / name for name in ("bomb.gz", "utf16", "cut.gz"))
    log.write_bytes(packed)
    other.write_bytes(whole.decode().encode("utf-16"))
    cut.write_bytes(gzip.compress(whole)[:-20])
    found = read_requests([LogFile(each, "n") for each in (log, other, cut)], find_request_format("ibm-cos"))
    assert 600 <= len(found) <= 800
    assert found.unreadable <= 4
    (damage,) = found.damage
    assert str(cut) in damage


def test_a_file_without_lines_is_an_error(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_bytes(b"")
    with pytest.raises(UsageError, match="there are no lines"):
        read_requests([LogFile(log, "n")], find_request_format("s3"))


def test_a_request_behind_the_one_before_in_a_listing_is_marked(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_bytes(b"".join(b"%d REST.GET.OBJECT %c 1\n" % (at, name) for at, name in enumerate(b"abda", 1)))
    found = read_requests([LogFile(log, "n")], find_request_format("ibm-cos"))
    assert found.rises.tolist() == [True, True, True, False]
    assert len(found.take(slice(1, 3))) == 2


def test_entries_of_journald_and_records_of_json_are_read(tmp_path: Path) -> None:
    export, records = tmp_path / "export", tmp_path / "records"
    fields = [b"__CURSOR=s=1", b"__REALTIME_TIMESTAMP=1795300666960514", b"_HOSTNAME=p1", b"MESSAGE=" + SWIFT]
    export.write_bytes(b"\n".join(fields) + b"\n\n")
    line = {"log": SWIFT.decode(), "kubernetes": {"pod_name": "proxy-1"}}
    records.write_bytes(msgspec.json.encode(line) + b"\n")
    found = read_requests([LogFile(each, "n") for each in (export, records)], find_request_format("swift"))
    assert (len(found), found.unreadable) == (2, 0)
    assert found.item[0] == found.item[1] != 0


def test_what_a_template_does_not_say_is_kept(tmp_path: Path, golden_words: GoldenWords) -> None:
    log = tmp_path / "log"
    log.write_bytes(b"1795300666.5 GET /v1/a/c/o 200\n")
    form = find_request_format("swift", "{start_time} {method} {path} {status_int}")
    doubts = read_requests([LogFile(log, "n")], form).doubts
    golden_words([each.split(",")[0] for each in doubts])
    assert find_request_format("swift").doubts == ()


def test_a_last_line_that_is_cut_is_no_error_and_no_token_is_shown(tmp_path: Path) -> None:
    log = tmp_path / "log"
    line = SWIFT.replace(b"AUTH_tk8...", b"AUTH_tk8e8317d9b1f")
    log.write_bytes((line + b"\n") * 5 + line[:120])
    found = read_requests([LogFile(log, "n")], find_request_format("swift"))
    assert (len(found), found.unreadable) == (5, 1)
    assert "HTTP/1.0 201" in found.example
    assert "AUTH_tk... " in found.example
    assert "8e8317d9b1f" not in found.example


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        (b"GET /b/k?X-Amz-Signature=0a1b&X-Amz-Date=2 200", "GET /b/k?X-Amz-Signature=...&X-Amz-Date=2 200"),
        (b"GET /b/k?AWSAccessKeyId=a&Signature=0a%2B1b= 200", "GET /b/k?AWSAccessKeyId=a&Signature=... 200"),
        (b"GET /v1/a/c/o%3Ftemp_url_sig%3D0a1b HTTP/1.0", "GET /v1/a/c/o%3Ftemp_url_sig%3D... HTTP/1.0"),
        (b"- AUTH_itk0a1b-2 -", "- AUTH_itk... -"),
    ],
)
def test_no_signature_of_a_line_is_shown(line: bytes, shown: str) -> None:
    assert logged_requests.show_line(line) == shown


def test_logs_of_two_proxies_in_many_runs_are_in_one_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Runs of rows overlap: those of one proxy with those of the other, and by what took long."""
    monkeypatch.setattr(logged_requests, "_ROWS_AT_ONCE", 7)
    monkeypatch.setattr(logged_requests, "_PIECES_A_RUN", 3)
    random = np.random.default_rng(1)
    moments = (random.random(500) * 100_000).astype(int)
    logs = [tmp_path / "a", tmp_path / "b"]
    for log, own in zip(logs, (np.sort(moments[:300]), moments[300:]), strict=True):
        log.write_text("".join(f"{moment} REST.GET.OBJECT {moment:x} {moment}\n" for moment in own))
    found = read_requests([LogFile(log, "n") for log in logs], find_request_format("ibm-cos"))
    assert found.began.tolist() == [each / 1000 for each in sorted(moments.tolist())]
    assert found.size.tolist() == sorted(moments.tolist())  # rows stay whole


def test_requests_of_one_moment_stay_in_the_order_of_the_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """More of them than are looked at together, and in several runs of rows."""
    monkeypatch.setattr(logged_requests, "_ROWS_AT_ONCE", 7)
    monkeypatch.setattr(logged_requests, "_PIECES_A_RUN", 3)
    log = tmp_path / "log"
    log.write_text("".join(f"{5 * (number > 16)} REST.GET.OBJECT a {number}\n" for number in range(60)))
    found = read_requests([LogFile(log, "n")], find_request_format("ibm-cos"))
    assert found.size.tolist() == [*range(60)]


def test_requests_of_a_second_stay_in_the_order_of_the_log_whatever_is_sorted_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Seconds begin and end within runs of rows, one has more than a run, and one proxy logs fractions."""
    monkeypatch.setattr(logged_requests, "_ROWS_AT_ONCE", 7)
    monkeypatch.setattr(logged_requests, "_PIECES_A_RUN", 3)
    log = tmp_path / "log"
    old, new = b" ".join(SWIFT.split(b" ")[:17]), SWIFT.replace(b" PUT ", b" GET ")
    lines = []
    for number in range(300):
        second = min(number // 20, 10)
        lines.append(old.replace(b"37/46", b"37/%02d" % second).replace(b" 4096 ", b" %d " % number))
        if number % 20 == 0:
            lines.append(new.replace(b" 1795300666.8", b" %d.5" % (1795300619 + second)))
    log.write_bytes(b"\n".join(lines))
    found = read_requests([LogFile(log, "n")], find_request_format("swift"))
    uploads = found.is_of("put")
    assert found.size[uploads].tolist() == [*range(300)]
    assert found.whole_seconds == 300
    assert (found.began[1:] >= found.began[:-1]).all()
    seconds = (found.began[uploads] // 1 - 1795300619).astype(int)
    assert np.bincount(seconds).tolist() == [20] * 10 + [100]
    assert 0.4 < (found.began[uploads][-100:] % 1).std() * math.sqrt(12) < 1.2


def test_a_time_that_no_request_takes_is_a_line_that_cannot_be_read(tmp_path: Path) -> None:
    log = tmp_path / "log"
    line = (
        b'{"bucket":"b","time":"2026-11-29T10:00:00.5Z","uri":"GET /b/o HTTP/1.1","http_status":"200",'
        b'"total_time":%b}\n'
    )
    log.write_bytes(line % b"7" + line % b"1e300")
    found = read_requests([LogFile(log, "n")], find_request_format("rgw"))
    assert (len(found), found.unreadable) == (1, 1)


def test_a_number_of_bytes_that_no_request_has_is_a_line_that_cannot_be_read(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_bytes(SWIFT + b"\n" + SWIFT.replace(b" 4096 ", b" 9" + b"0" * 30 + b" ") + b"\n" + SWIFT)
    found = read_requests([LogFile(log, "n")], find_request_format("swift"))
    assert (len(found), found.unreadable) == (2, 1)


def test_no_room_for_a_temporary_file_is_a_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = tmp_path / "log"
    log.write_bytes(IBM + b"\n")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "missing"))
    with pytest.raises(UsageError, match="temporary file, for which TMPDIR names the folder: No such file"):
        read_requests([LogFile(log, "n")], find_request_format("ibm-cos"))


def test_a_full_disk_is_said_once(tmp_path: Path) -> None:
    """What was not written is not tried again where the file is closed, which would be a traceback."""
    program = """
import resource
import numpy as np
from ssbench.base.errors import UsageError
from ssbench.logs.column_files import NamelessFile
resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, 10_000))
file = NamelessFile()
try:
    for _ in range(30):
        file.append(np.zeros(100))
    file.flush()
except UsageError as error:
    print(error)
"""
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
        env={**os.environ, "TMPDIR": str(tmp_path)},
    )
    assert "TMPDIR names the folder: File too large" in done.stdout
    assert done.stderr == ""
