"""``ssbench-master envelope``: what is refused before any run."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from golden_words import GoldenWords
from refusals import refuse

from ssbench.base.errors import ExitCode
from ssbench.cli import run_scenario
from ssbench.cli.master import main
from ssbench.plans.envelope_work import ENVELOPE_OPERATIONS, ENVELOPE_SIZES, EnvelopeWork


@pytest.mark.parametrize(
    "words",
    [
        ["--minutes", "0"],
        ["--minutes", "0.1"],
        ["--sizes", "4kB,many"],
        ["--operations", "read,reed"],
        ["--holds", "p99 < often"],
        ["--holds", "rate >= 50"],
        ["--fail-if", "read.p99 > 5"],
        ["--fail-if", "envelope.2kB.read.rate < 5"],
        ["--resume"],
        ["-f", "small"],
        ["--scenario-file=x"],
        ["--store", "a=2.37.4", "--store", "b=http://proxy/v1/AUTH_a"],
    ],
)
def test_what_is_refused(
    words: list[str],
    tmp_path: object,
    capsys: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
    golden_words: GoldenWords,
) -> None:
    common = ["envelope", "--workers", "1", "--results-dir", str(tmp_path), "--local-swift"]
    golden_words(refuse([*common, *words], capsys, caplog))


@pytest.mark.parametrize(
    ("words", "options"),
    [
        ("--local-swift", ["--local-swift"]),
        ("--local-swift=2.37.4", ["--local-swift=2.37.4"]),
        (
            "--store old=2.37.4 --store new=2.38.3 --swift-config +ratelimit",
            ["--swift-config", "...", "--store", "old=2.37.4", "--store", "new=2.38.3"],
        ),
        (
            "--store swift --store a=http://proxy/v1/AUTH_a -A http://proxy/auth -U a:b -K secret",
            ["--store", "swift", "--store", "a=..."],
        ),
    ],
)
def test_a_report_names_the_stores_without_their_addresses(
    words: str, options: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found: list[Sequence[str]] = []

    def keep(_asked: object, _place: object, work: EnvelopeWork, *_: object, **_by_name: object) -> ExitCode:
        found.append(work.store_options)
        return ExitCode.OK

    monkeypatch.setattr(run_scenario, "_carry_out_plan", keep)
    common = ["envelope", "--workers", "1", "--results-dir", str(tmp_path)]
    assert main([*common, *words.split()]) == 0
    assert found == [options]


def test_the_help_has_what_is_measured_unless_others_are_asked_for(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(SystemExit):
        main(["envelope", "--help"])
    words = " ".join(capsys.readouterr().out.split())
    assert f"default: {','.join(ENVELOPE_SIZES)})" in words
    assert f"measure: {', '.join(ENVELOPE_OPERATIONS)} (default: all" in words
