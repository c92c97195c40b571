"""The options that configure the embedded Swift, of runs and of its own command."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from asked_commands import ask
from golden_words import GoldenWords

from ssbench.base.errors import UsageError
from ssbench.run.trial_swift import TrialSwift


def parse(*argv: str) -> TrialSwift:
    asked = ask(*argv)
    of_command = argv[0] == "local-swift"
    source = asked if of_command else asked.swift
    found: TrialSwift = source.make_trial_swift((asked.release or True) if of_command else asked.local_swift)
    return found


def test_options_win_over_the_file(tmp_path: Path) -> None:
    path = tmp_path / "swift.yaml"
    path.write_text("filters: [encryption, ratelimit]\nproxy-server: {app: {x: 1}}")
    options = ("--swift-config", str(path), "--swift-config", "proxy-server:app:x=2")
    found = parse("run-scenario", "-f", "small", "--local-swift", *options, "--swift-config", "+ratelimit")
    assert found.settings == ("proxy-server:app:x=1", "proxy-server:app:x=2")
    assert found.filters == ("encryption", "ratelimit")
    assert found.describe() == {
        "filter encryption": "added",
        "filter ratelimit": "added",
        "proxy-server.x": "2",
    }
    assert parse("local-swift", *options).settings == found.settings
    assert parse("suite", "quick", "--local-swift", *options).settings == found.settings


def test_they_are_for_a_local_swift(golden_words: GoldenWords) -> None:
    assert parse("run-scenario", "-f", "small") == TrialSwift()
    with golden_words.raises(UsageError):
        parse("run-scenario", "-f", "small", "--swift-config", "proxy-server:app:x=1")


def test_a_release_is_given_after_an_equals_sign_alone(
    capsys: pytest.CaptureFixture[str], golden_words: GoldenWords
) -> None:
    run = ("run-scenario", "-f", "small")
    assert parse(*run, "--local-swift=2.37.4").release == "2.37.4"
    assert parse(*run, f"--local-swift={sys.prefix}").release == sys.prefix
    assert parse("local-swift", "--release", "2.37.4").release == "2.37.4"
    for words in (["--local-swift"], ["--local-swift="], ["--local_swift", "--workers", "1"]):
        assert parse(*run, *words) == TrialSwift(), words
    # What follows is the suite, and no release.
    asked = ask("suite", "--local-swift", "quick")
    assert (asked.suite, asked.local_swift) == ("quick", True)
    assert not ask(*run, "--no-local-swift").local_swift
    with pytest.raises(SystemExit):
        parse(*run, "--local-swift=bexar")
    golden_words(capsys.readouterr().err)


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("--swift-config", "/nowhere.yaml"),
        ("--swift-config", "x="),
        ("--swift-config", "proxy-server:filter:foo:x=1"),
        ("--swift-config", "swift:swift-hash:x=1"),
        ("--swift-config", "+ratelimits"),
        ("--swift-config", "+memcache"),
    ],
)
def test_wrong_ones_are_refused_before_anything_is_started(
    option: str, value: str, golden_words: GoldenWords
) -> None:
    with golden_words.raises(UsageError):
        parse("run-scenario", "-f", "small", "--local-swift", option, value)


@pytest.mark.parametrize(
    ("key", "is_secret"),
    [
        ("user_test_tester", True),
        ("encryption_root_secret", True),
        ("super_admin_key", True),
        ("key", True),
        ("auth_token", True),
        ("passwd", True),
        ("token_life", False),
        ("key_file_limit", False),
    ],
)
def test_reports_do_not_show_what_may_be_a_secret(key: str, is_secret: bool) -> None:
    found = TrialSwift(settings=(f"proxy-server:filter:other:{key}=1234=5",)).describe()
    assert found == {f"other.{key}": "(hidden)" if is_secret else "1234=5"}


def test_a_file_with_settings_may_stand_for_a_release(tmp_path: Path) -> None:
    path = tmp_path / "swift.yaml"
    path.write_text("filters: [encryption]")
    source = ask("run-scenario", "-f", "small", "--swift-config", "proxy-server:app:x=2").swift
    assert source.make_trial_swift(str(path)) == TrialSwift(
        settings=("proxy-server:app:x=2",), filters=("encryption",)
    )
    said = {"policies": ["slim:ec:2+1"], "replicas": "2", "filters": ["ratelimit"], "release": "2.37.4"}
    found = source.make_trial_swift(str(path), said, "stores.a")
    assert found == TrialSwift(
        settings=("proxy-server:app:x=2",),
        filters=("encryption", "ratelimit"),
        release="2.37.4",
        policies=("slim:ec:2+1",),
        replicas=2,
    )
    assert found.describe()["policies"] == "slim:ec:2+1"
    assert found.describe()["replicas"] == "2"
    with pytest.raises(UsageError, match="storage policy 'slim:ec:2': expected NAME or"):
        source.make_trial_swift(True, {"policies": ["slim:ec:2"]}, "stores.a")
    with pytest.raises(UsageError, match="no/such' is not a version"):
        source.make_trial_swift("no/such")
