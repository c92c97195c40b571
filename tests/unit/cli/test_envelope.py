"""``ssbench-master envelope``: what is refused before any run."""

from __future__ import annotations

import pytest
from refusals import refuse
from said import NO_NUMBER

from ssbench.cli.master import main
from ssbench.plans.envelope_work import ENVELOPE_OPERATIONS, ENVELOPE_SIZES


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["--minutes", "0"], f"'0' {NO_NUMBER} minutes"),
        (["--minutes", "0.1"], "--minutes 0.1: 16 sizes and operations need "),
        (["--sizes", "4kB,many"], "many"),
        (["--operations", "read,reed"], "--operations: 'reed' is none of write, read, delete, list"),
        (["--holds", "p99 < often"], "p99 < often"),
        (["--fail-if", "read.p99 > 5"], "'read.p99 > 5' is not a condition on an envelope"),
        (["--fail-if", "envelope.2kB.read.rate < 5"], "the envelope has 1kB.write, "),
        (["--resume"], "has no run of an envelope"),
        (["-f", "small"], "-f; did you mean --sizes and --operations (an envelope takes no scenario"),
        (["--scenario-file=x"], "an envelope takes no scenario; run-scenario --find does)?"),
        (["--store", "a=2.37.4", "--store", "b=http://proxy/v1/AUTH_a"], "a Swift to be started is compared"),
    ],
)
def test_what_is_refused(
    words: list[str],
    why: str,
    tmp_path: object,
    capsys: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    common = ["envelope", "--workers", "1", "--results-dir", str(tmp_path), "--local-swift"]
    assert why in refuse([*common, *words], capsys, caplog)


def test_the_help_has_what_is_measured_unless_others_are_asked_for(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(SystemExit):
        main(["envelope", "--help"])
    words = " ".join(capsys.readouterr().out.split())
    assert f"default: {','.join(ENVELOPE_SIZES)})" in words
    assert f"of {', '.join(ENVELOPE_OPERATIONS[:-1])} and {ENVELOPE_OPERATIONS[-1]} (default: all" in words
