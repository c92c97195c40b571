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
        ["--swift-logs", "nowhere.log"],
        ["--log-format", "{nothing"],
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
    "words",
    [
        ["--swift-logs", "nowhere.log"],
        ["--swift-logs", "TMP/proxy.log", "--json", "TMP/proxy.log", "--force"],
        ["--log-format", "{method} {path} {transaction_id} {request_time} {source}"],
    ],
)
def test_what_is_refused_of_logs(
    words: list[str],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
    golden_words: GoldenWords,
) -> None:
    (tmp_path / "proxy.log").write_text("a line\n")
    common = ["envelope", "--workers", "1", "--results-dir", str(tmp_path), "-S", "http://x", "-T", "token"]
    golden_words(refuse([*common, *(each.replace("TMP", str(tmp_path)) for each in words)], capsys, caplog))
    assert (tmp_path / "proxy.log").read_text() == "a line\n"


def list_further_words(words: Sequence[str], folder: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Return the words that make an envelope again, besides those of what is measured."""
    found: list[str] = []

    def keep(_asked: object, _place: object, work: EnvelopeWork, *_: object, **_by_name: object) -> ExitCode:
        assert work.further_words is not None
        found.append(" ".join(work.further_words))
        return ExitCode.OK

    monkeypatch.setattr(run_scenario, "_carry_out_plan", keep)
    assert main(["envelope", "--results-dir", str(folder), *words]) == 0
    return found[0]


@pytest.mark.parametrize(
    ("words", "again"),
    [
        ("--local-swift", "--local-swift"),
        ("--local-swift=2.37.4 --minutes 90 --json a.json --label b -q", "--local-swift=2.37.4"),
        (
            "--store old=2.37.4 --store new=2.38.3 --swift-config +ratelimit",
            "--store old=2.37.4 --store new=2.38.3 --swift-config +ratelimit",
        ),
        (
            "--local-swift --swift-config proxy-server:filter:tempauth:user_a_b=secret --verify",
            "--local-swift --verify --swift-config proxy-server:filter:tempauth:user_a_b=(hidden)",
        ),
        (
            "--store swift --store a=http://proxy/v1/AUTH_a -A http://proxy/auth -U a:b -K secret",
            "--store swift --store a=http://proxy/v1/AUTH_a",
        ),
        (
            "-S s3+http://proxy -U a:b -K secret --retries 0 --fail-if envelope.1MB.read.rate<9 --workers 2",
            "--storage-url s3+http://proxy --retries 0 --workers 2 --fail-if envelope.1MB.read.rate<9",
        ),
        (
            "--local-swift --expect-workers 8@60 --zmq-key fleet.key",
            "--local-swift --expect-workers 8@60 --zmq-key fleet.key",
        ),
    ],
)
def test_a_report_has_the_options_to_make_it_again_without_secrets(
    words: str, again: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSBENCH_CONFIG", "")
    assert list_further_words(words.split(), tmp_path, monkeypatch) == again


def test_options_of_a_file_and_of_variables_are_among_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = tmp_path / "own.toml"
    settings.write_text(
        "local-swift = true\nworkers = 3\nverify = true\nfail-if = ['envelope.4kB.read.rate < 5']\n"
        "retries = 2\nlabel = 'mine'\n"
    )
    monkeypatch.setenv("SSBENCH_CONFIG", str(settings))
    monkeypatch.setenv("SSBENCH_NETWORK_TIMEOUT", "7")
    assert list_further_words(["--retries", "1", "--workers=4"], tmp_path, monkeypatch) == (
        "--local-swift --network-timeout 7 --retries 1 --verify --workers 4"
        " --fail-if envelope.4kB.read.rate < 5"
    )


def test_the_help_has_what_is_measured_unless_others_are_asked_for(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(SystemExit):
        main(["envelope", "--help"])
    words = " ".join(capsys.readouterr().out.split())
    assert f"default: {','.join(ENVELOPE_SIZES)})" in words
    assert f"measure: {', '.join(ENVELOPE_OPERATIONS)} (default: all" in words
