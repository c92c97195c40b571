"""The options that configure the embedded Swift, of runs and of its own command."""

from __future__ import annotations

from pathlib import Path

import pytest
from asked_commands import ask

from ssbench.base.errors import UsageError
from ssbench.run.trial_swift import TrialSwift


def parse(*argv: str) -> TrialSwift:
    asked = ask(*argv)
    found: TrialSwift = getattr(asked, "swift", asked).make_trial_swift()
    return found


def test_options_win_over_the_file(tmp_path: Path) -> None:
    path = tmp_path / "swift.yaml"
    path.write_text("filters: [encryption, ratelimit]\nproxy-server: {app: {x: 1}}")
    options = ("--swift-config", str(path), "--swift-set", "proxy-server:app:x=2")
    found = parse("run-scenario", "-f", "small", "--local-swift", *options, "--swift-filter", "ratelimit")
    assert found.settings == ("proxy-server:app:x=1", "proxy-server:app:x=2")
    assert found.filters == ("encryption", "ratelimit")
    assert found.describe() == {
        "filter encryption": "added",
        "filter ratelimit": "added",
        "proxy-server.x": "2",
    }
    assert parse("local-swift", *options).settings == found.settings
    assert parse("suite", "quick", "--local-swift", *options).settings == found.settings


def test_they_are_for_a_local_swift() -> None:
    assert parse("run-scenario", "-f", "small") == TrialSwift()
    with pytest.raises(
        UsageError, match="only the Swift of --local-swift takes settings: leave out --swift-s"
    ):
        parse("run-scenario", "-f", "small", "--swift-set", "proxy-server:app:x=1")


@pytest.mark.parametrize(
    ("option", "value", "message"),
    [
        ("--swift-set", "x", "setting 'x': expected FILE:SECTION:KEY=VALUE"),
        ("--swift-filter", "ratelimits", "did you mean ratelimit"),
    ],
)
def test_wrong_ones_are_refused_before_anything_is_started(option: str, value: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        parse("run-scenario", "-f", "small", "--local-swift", option, value)
