"""Requests of a run by its stat file."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from full_run import RUN, SUMMARY, write_full_run
from logged_traffic import write_uses_log
from old_formats import msgpack_file, success
from result_rows import block

from ssbench.base.errors import StatFileError
from ssbench.cli.master import main
from ssbench.logs.logged_requests import REQUEST_KINDS
from ssbench.logs.request_formats import UNKNOWN_SIZE
from ssbench.results.reading import open_results
from ssbench.results.writer import RunResultsWriter
from ssbench.scenario.operations import OPERATIONS, OperationSettings
from ssbench.traffic.run_requests import find_request_kind, has_stat_file_name, read_run_requests

DATA = Path(__file__).parents[2] / "data"


@pytest.fixture
def stat_file(tmp_path: Path) -> Path:
    return write_full_run(tmp_path / "run.stat.gz")


def test_each_result_is_a_request_in_the_order_in_which_they_began(stat_file: Path) -> None:
    found = read_run_requests(stat_file)
    blocks = [*open_results(stat_file).blocks()]
    codes = np.concatenate([block.operation for block in blocks])
    began = np.concatenate([block.started for block in blocks])
    objects = np.concatenate([block.object for block in blocks])
    assert len(found) == len(codes)
    ended = np.concatenate([block.completed for block in blocks])
    # What never came back has no beginning.
    assert found.began.tolist() == sorted(np.where(np.isnan(began), ended, began).tolist())
    names = [OPERATIONS[code].name for code in codes]
    for kind, own in (("read", {"read"}), ("put", {"create", "update"}), ("delete", {"delete"})):
        assert (found.kind == REQUEST_KINDS.index(kind)).sum() == sum(name in own for name in names)
    about = [name in {"create", "read", "update", "delete"} for name in names]
    assert len(set(found.item[found.item != 0].tolist())) >= len(set(objects[about].tolist()))


def test_a_success_without_a_status_has_not_failed() -> None:
    found = read_run_requests(DATA / "version-1-noop.stat.gz")
    blocks = [*open_results(DATA / "version-1-noop.stat.gz").blocks()]
    failed = sum(int(block.failed.sum()) for block in blocks)
    assert len(found) > failed
    assert (found.status >= 400).sum() == failed


def test_a_success_without_a_status_has_that_of_its_operation(tmp_path: Path) -> None:
    """A no-op run keeps none: what was not modified has no size, and what was missing is not there."""
    codes = {row.name: row.code for row in OPERATIONS}
    writer = RunResultsWriter(tmp_path / "run.stat.gz", RUN)
    rows = [("read", 10), ("conditional", 0), ("missing", 0)]
    writer.add(
        block(
            [
                (codes[name], 0, 1, 0, place, size, 0.1, 0.2, 1e9 + place, -1, 0)
                for place, (name, size) in enumerate(rows)
            ]
        )
    )
    writer.end(SUMMARY)
    found = read_run_requests(tmp_path / "run.stat.gz")
    assert found.status.tolist() == [200, 304, 404]
    assert found.size.tolist() == [10, UNKNOWN_SIZE, UNKNOWN_SIZE]


def test_objects_of_ssbench_0_x_are_told_apart_by_name_and_have_the_order_of_a_listing(
    tmp_path: Path,
) -> None:
    path = tmp_path / "old.stat"
    names = ["tiny_000003", "tiny_000001", "tiny_000003", "tiny_000002"]
    results = [success(completed=1e9 + place, name=name) for place, name in enumerate(names)]
    path.write_bytes(msgpack_file([results[:1], results[1:]]))
    found = read_run_requests(path)
    assert np.argsort(np.argsort(np.unique(found.item))).tolist() == [0, 1, 2]
    first, second, again, last = found.item.tolist()
    assert (first, second < last < first) == (again, True)
    assert found.rises.tolist() == [False, False, True, False]
    assert len(set(found.container.tolist())) == 1


def test_reads_are_in_listing_order_whatever_is_uploaded_between_them(tmp_path: Path) -> None:
    path = tmp_path / "old.stat"
    steps = [(1, 1), (0, 9), (1, 2), (0, 8), (1, 3)]
    results = [success(each, 1e9 + place, name=f"o{number}") for place, (each, number) in enumerate(steps)]
    path.write_bytes(msgpack_file([results]))
    assert read_run_requests(path).rises.tolist() == [False, False, True, False, True]


def test_a_scenario_is_made_of_a_run_of_less_than_a_second(tmp_path: Path) -> None:
    path = tmp_path / "old.stat"
    results = [
        success(int(place >= 20), 1e9 + 0.01 * place, name=f"tiny_{place % 20:06}", size=5000)
        for place in range(60)
    ]
    path.write_bytes(msgpack_file([results]))
    assert main(["traffic", str(path), "-o", str(tmp_path / "made.yaml")]) == 0


def test_requests_that_a_scenario_defines_are_of_the_kind_of_their_method() -> None:
    defined = {
        "get_gone": ("GET", "reads", 128),
        "put_acl": ("PUT", "none", 129),
        "post_own": ("POST", "changes", 130),
    }
    operations = tuple(OperationSettings(name, (), {"path": "/x"}, own) for name, own in defined.items())
    kinds = {row.name: find_request_kind(row, {}) for row in OPERATIONS.with_defined(operations)}
    assert kinds | {"get_gone": "read", "put_acl": "other", "post_own": "post"} == kinds
    assert (kinds["create"], kinds["missing"], kinds["slo"], kinds["list"]) == (
        "put",
        "head",
        "other",
        "list",
    )


def test_looks_for_what_is_missing_are_of_the_kind_of_their_method(tmp_path: Path) -> None:
    by_get = replace(RUN.scenario, operations=(OperationSettings("missing", (), {"method": "GET"}),))
    missing = next(row.code for row in OPERATIONS if row.name == "missing")
    for scenario, kind in ((RUN.scenario, "head"), (by_get, "read")):
        path = tmp_path / f"{kind}.stat.gz"
        writer = RunResultsWriter(path, replace(RUN, scenario=scenario))
        writer.add(block([(missing, 0, 1, 0, 1, 0, 0.1, 0.2, 1e9, 404, 0)]))
        writer.end(SUMMARY)
        assert read_run_requests(path).kind.tolist() == [REQUEST_KINDS.index(kind)]


def test_a_run_and_a_log_are_compared(
    stat_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = tmp_path / "log"
    write_uses_log(log, range(50))
    assert main(["traffic", str(log), "--compare", str(stat_file)]) == 0
    assert "distance" in capsys.readouterr().out
    assert main(["traffic", str(stat_file), str(log)]) == 2
    assert "give one stat file of a run alone" in capsys.readouterr().err


def test_the_last_run_is_compared(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    results = tmp_path / "results"
    results.mkdir()
    stat_file = write_full_run(results / "run.stat.gz")
    monkeypatch.setenv("SSBENCH_RESULTS_DIR", str(results))
    log = tmp_path / "log"
    write_uses_log(log, range(50))
    assert main(["traffic", str(log), "--compare", str(stat_file)]) == 0
    expected = capsys.readouterr().out
    assert main(["traffic", str(log), "--compare", "last"]) == 0
    assert capsys.readouterr().out == expected
    assert main(["traffic", "last", "--results-dir", str(tmp_path)]) == 2  # no run is there


def test_what_is_no_stat_file_is_refused(tmp_path: Path) -> None:
    assert not has_stat_file_name(Path("proxy.log.gz"))
    wrong = tmp_path / "run.stat.gz"
    wrong.write_bytes(b"no results")
    with pytest.raises(StatFileError):
        read_run_requests(wrong)
