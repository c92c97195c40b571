"""``ssbench-master envelope``: what is refused before any run."""

from __future__ import annotations

import pytest
from golden_words import GoldenWords
from refusals import refuse

from ssbench.cli.master import main
from ssbench.plans.envelope_work import ENVELOPE_OPERATIONS, ENVELOPE_SIZES


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


def test_the_help_has_what_is_measured_unless_others_are_asked_for(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(SystemExit):
        main(["envelope", "--help"])
    words = " ".join(capsys.readouterr().out.split())
    assert f"default: {','.join(ENVELOPE_SIZES)})" in words
    assert f"of {', '.join(ENVELOPE_OPERATIONS[:-1])} and {ENVELOPE_OPERATIONS[-1]} (default: all" in words
