"""Logs of which an entry is several lines, or all of one, as lines: however the bytes come."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from golden_words import GoldenWords
from hypothesis import given
from hypothesis import strategies as st

from ssbench.base.errors import UsageError
from ssbench.logs import log_files, rewriting
from ssbench.logs.log_files import LogFile, LogFileReader, find_log_files
from ssbench.logs.rewriting import _rewrite_document, _rewrite_export, find_rewriter

ID, OTHER = (f"tx{number:021x}-006b021d00" for number in (1, 2))


def pieces(data: bytes, at: list[int]) -> Iterator[bytes]:
    ends = [0, *sorted(each % (len(data) + 1) for each in at), len(data)]
    return (data[begin:end] for begin, end in itertools.pairwise(ends))


some_places = st.lists(st.integers(0, 10**6), max_size=6)

EXPORT = (
    b"__CURSOR=s=1\n__REALTIME_TIMESTAMP=1795300893784001\n_HOSTNAME=n1\nSYSLOG_IDENTIFIER=object-server\n"
    b"MESSAGE=one = 1\n\n"
    b"__CURSOR=s=2\n__REALTIME_TIMESTAMP=17953008937840010000\nMESSAGE=two\n\n"
    b"__CURSOR=s=3\n_HOSTNAME=n3\nwithout a value\n\n"
    b"__CURSOR=s=4\n__REALTIME_TIMESTAMP=x\n_HOSTNAME=n4\nMESSAGE=four\n"
)


@given(some_places)
def test_each_entry_of_journald_with_a_message_is_a_line(at: list[int]) -> None:
    assert b"".join(_rewrite_export(pieces(EXPORT, at))).splitlines() == [
        b"2026-11-21T22:41:33.784001+00:00 n1 object-server: one = 1",
        b"- - journal: two",
        b"- n4 journal: four",
    ]


def test_an_entry_that_is_too_long_is_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rewriting, "MAX_DOCUMENT_BYTES", 40)
    for size, kept in ((39, True), (40, False)):
        begin = b"__CURSOR=1\nMESSAGE="
        whole = [begin + b"x" * (size - len(begin)), b"y\n\n__CURSOR=2\nMESSAGE=next\n\n"]
        found = b"".join(_rewrite_export(iter(whole)))
        assert (b"xy" in found, b"next" in found) == (kept, True)


def records(document: Any, at: list[int] | None = None) -> list[Any]:
    data = json.dumps(document).encode()
    return [json.loads(each) for each in b"".join(_rewrite_document(pieces(data, at or []))).splitlines()]


DOCUMENT = {
    "host": "outer",
    "hits": [
        {"message": f"a {ID}", "hostname": "own"},
        {"message": f"b {ID}"},
        {"host": {"name": "inner"}, "lines": [{"log": f"c {ID}"}, {"log": "no id"}]},
        {"stream": {"host": "labels"}, "values": [["1", f"d {OTHER}"], ["2", "no id"]]},
        [f"e {ID}", [f"f {OTHER}"], {"text": {"deep": f"g {ID}"}}],
    ],
    "number": 7,
}


@given(some_places)
def test_each_record_of_a_document_has_the_host_that_is_named_nearest_to_it(at: list[int]) -> None:
    assert records(DOCUMENT, at) == [
        {"message": f"a {ID}", "hostname": "own"},
        {"message": f"b {ID}", "hostname": "outer"},
        {"log": f"c {ID}", "hostname": "inner"},
        {"message": f"d {OTHER}", "hostname": "labels"},
        {"message": f"e {ID}", "hostname": "outer"},
        {"message": f"f {OTHER}", "hostname": "outer"},
        {"deep": f"g {ID}", "hostname": "outer"},
    ]


def test_a_record_without_a_host_stays_as_it_is() -> None:
    assert records([{"log": f"a {ID}"}, f"b {ID}", 7, None]) == [
        {"message": f"b {ID}", "hostname": ""},
        {"log": f"a {ID}"},
    ]


def test_what_is_no_document_or_too_large_a_one_stays_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    for text in (b'[{"log": ', b"[" * 10**5, b"[1]x"):
        assert b"".join(_rewrite_document(iter([text[:3], text[3:]]))) == text
    data = json.dumps([{"log": f"a {ID}"}]).encode()
    for most, is_read in ((len(data), True), (len(data) - 1, False)):
        monkeypatch.setattr(rewriting, "MAX_DOCUMENT_BYTES", most)
        found = b"".join(_rewrite_document(iter([data[:9], data[9:], *([] if is_read else [b"rest"])])))
        assert found == (data[1:-1].replace(b": ", b":") + b"\n" if is_read else data + b"rest")


@pytest.mark.parametrize(
    ("head", "rewriter"),
    [
        (b"\n __CURSOR=1\n", _rewrite_export),
        (b"__CURSO", None),
        (b' [ {"log": ', _rewrite_document),
        (b'["', _rewrite_document),
        (b"[[", _rewrite_document),
        (b"[1", None),
        (b"{\n", _rewrite_document),
        (b'{"log": "', None),
        (f'{{"a": "{ID}", "b": "{OTHER}"}}\n'.encode(), _rewrite_document),
        (f'{{"a": "{ID}"}}\n'.encode(), None),
        (f'{{"a": "{ID}"}}\n{{"a": "{OTHER}"}}\n'.encode(), None),
        (f"{ID} {OTHER}".encode(), None),
        (b"", None),
    ],
)
def test_what_a_file_is_follows_from_how_it_begins(head: bytes, rewriter: object) -> None:
    assert find_rewriter(head) is rewriter


def read(path: Path, data: bytes) -> list[bytes]:
    path.write_bytes(data)
    return [*LogFileReader(LogFile(path, "n")).chunks()]


def test_lines_come_whole_and_the_last_one_with_an_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "log"
    assert read(path, b"") == []
    assert read(path, b"one\ntwo") == [b"one\n", b"two\n"]
    assert read(path, b"one\ntwo\n") == [b"one\ntwo\n"]
    assert read(path, EXPORT)[0].startswith(b"2026-11-21T22:41:33.784001+00:00 n1 object-server: one")
    monkeypatch.setattr(log_files, "_CHUNK_BYTES", 8)
    lines = b"".join(b"%d abc\n" % number for number in range(100))
    found = read(path, lines)
    assert b"".join(found) == lines
    assert len(found) > 10
    assert all(each.endswith(b"\n") for each in found)
    # Of what has no end for too long the beginning is a line.
    for most, found in ((16, [b"x" * 16 + b"\nnext\n"]), (17, [b"x" * 16 + b"y\nnext\n"])):
        monkeypatch.setattr(rewriting, "_MAX_LINE_BYTES", most)
        assert read(path, b"x" * 16 + b"y\nnext\n") == found
    monkeypatch.setattr(rewriting, "_MAX_LINE_BYTES", 10)
    assert read(path, b"one\n" + b"x" * 100) == [b"one\n", b"x" * 10 + b"\n"]
    assert b"".join(read(path, b"x" * 100 + b"\n" * 9 + b"next\n")) == b"x" * 10 + b"\n" * 9 + b"next\n"


def test_a_folder_without_files_is_no_logs_and_a_node_has_no_slash(
    tmp_path: Path, golden_words: GoldenWords
) -> None:
    with golden_words.raises(UsageError):
        find_log_files([str(tmp_path)])
    log = tmp_path / "a=b.log"
    log.write_text("")
    (found,) = find_log_files([str(log)])  # it is there, so nothing is named
    assert (found.path, found.node, found.named) == (log, "a=b", False)
    for wrong in (f"=/{log}", f"x/y={log}", f"n={log}.1"):
        with pytest.raises(UsageError, match="no such log file"):
            find_log_files([wrong])
    assert find_log_files([f"n={log}", f"m={log}"]) == [LogFile(log, "m", named=True)]
