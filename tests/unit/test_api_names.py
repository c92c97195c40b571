"""What ``import ssbench`` offers is there: its modules are imported by name, when it is asked for."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from full_run import RUN, write_full_run

import ssbench
from ssbench import api
from ssbench.base.errors import ExitCode
from ssbench.run.benchmark_run import RunOutcome

KNOWN = Path(__file__).parents[1] / "data" / "version-1-known.stat.gz"


@pytest.mark.parametrize("name", ssbench.__all__)
def test_each_public_name_is_there(name: str) -> None:
    assert getattr(ssbench, name) is not None


@pytest.mark.parametrize(("trouble", "code"), [(False, ExitCode.OK), (True, ExitCode.FAILED)])
def test_a_run_whose_clean_up_fails_is_not_good(
    trouble: bool, code: ExitCode, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It comes after the stat file, by which the verdict is made; run-scenario ends with 1."""

    class Bench:
        def __init__(self, _options: object) -> None:
            pass

        def __enter__(self) -> Bench:
            return self

        def __exit__(self, *_: object) -> None:
            pass

        def run(self, *_: Any, **_more: Any) -> RunOutcome:
            return RunOutcome(run_id=1, seed=1, path=KNOWN, count=9, trouble=trouble)

    monkeypatch.setattr(api, "Bench", Bench)
    report = ssbench.run_scenario("very_small", operations=9, local_swift=True)
    monkeypatch.setattr(api.RunVerdict, "exit_code", ExitCode.OK)
    assert report.exit_code is code


def test_runs_are_found_by_reference(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSBENCH_RESULTS_DIR", str(tmp_path))
    for number, label in enumerate(("a", "b", "b")):
        run = replace(RUN, started=1e9 + number, options={**RUN.options, "label": label})
        write_full_run(tmp_path / f"{number}.stat.gz", run)
    assert ssbench.report("last").path == tmp_path / "2.stat.gz"
    assert ssbench.report("last-1").path == tmp_path / "1.stat.gz"
    assert ssbench.report("@a").path == tmp_path / "0.stat.gz"
    assert len(ssbench.compare(["@a"], ["last"]).rows) > 1
    assert ssbench.compare(["@b"], ["@a", "@b"]).runs == (2, 3)
    with pytest.raises(ssbench.SsbenchError, match="@b: 2 runs have this label; one is expected"):
        ssbench.report("@b")
    with pytest.raises(ssbench.SsbenchError, match="there is no last-3, only 3 runs"):
        ssbench.open_results("last-3")
