"""A device of a real Swift that a command of the run fails, and another one repairs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from ssbench.local_swift import LocalSwift
from ssbench.results.reading import open_results
from ssbench.statistics.summary import summarize


@pytest.mark.long
def test_a_device_that_fails_shows_its_time_within_a_second(tmp_path: Path) -> None:
    with LocalSwift() as swift:
        (mark,) = swift.directory.glob("**/object*/**/.ismount") or swift.directory.glob("**/.ismount")
        words = [
            "-f",
            "size=2kB mix=get objects=20",
            "-u",
            "2",
            "--rate",
            "15",
            "-r",
            "18",
            "-c",
            "2",
        ]
        words += [
            "--workers",
            "1",
            "--retries",
            "0",
            "-s",
            str(tmp_path / "run"),
            "--json",
            str(tmp_path / "j"),
        ]
        events = [
            "--at",
            "11s",
            f"rm {mark}; echo failed",
            "--at",
            "14s",
            f"touch {mark}",
            "--at",
            "15",
            "sleep 99",
        ]
        ended = subprocess.run(
            [
                sys.executable,
                "-m",
                "ssbench.cli.master",
                "run-scenario",
                *words,
                *events,
                "--html",
                "page.html",
            ],
            env={**os.environ, "ST_AUTH": swift.auth_url, "ST_USER": swift.user, "ST_KEY": swift.key},
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
    assert ended.returncode == 1, ended.stderr  # operations failed
    with_failures = [each for each in open_results(tmp_path / "run.gz").blocks() if each.failures]
    failed = np.concatenate([each.completed[each.failed] for each in with_failures])
    found = summarize(open_results(tmp_path / "run.gz"))
    fault, repair, hung = found.events
    assert fault.facts.began is not None
    assert (fault.facts.output, fault.facts.exit_code) == ("failed\n", 0)
    assert abs((fault.start or 0) - 11) < 1
    assert 0 <= failed.min() - fault.facts.began < 1
    assert fault.fell
    assert fault.before is not None
    assert fault.during is not None
    assert fault.before.failed == 0
    assert fault.during.failed > 0
    assert all(cause.startswith("HTTP 50") for cause in fault.during.causes)
    # Swift looks at its devices again with each request.
    assert repair.facts.began is not None
    assert failed.max() - repair.facts.began < 1.5
    assert (hung.facts.exit_code, hung.facts.ended) == (None, None)
    assert "(sleep 99) had not ended when the benchmark did, and was killed" in ended.stderr
    assert "before" in ended.stdout
    assert [each["facts"]["at"] for each in json.loads((tmp_path / "j").read_text())["events"]] == [
        11,
        14,
        15,
    ]
    assert "touch " in (tmp_path / "page.html").read_text()
