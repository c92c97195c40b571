"""A run in a real browser while it is running, and what the page shows at its end."""

from __future__ import annotations

import re
import signal
from pathlib import Path

import pytest
from chromium import BROWSER, DRIVER, chromium
from processes import Fleet
from runs import write_scenario

from ssbench.base.errors import ExitCode

#: The text of the page.
TEXT = "return document.querySelector('main').innerText"
#: What tells the state of the page.
STATE = "return document.documentElement.dataset.live"


@pytest.mark.skipif(not (BROWSER and DRIVER), reason="chromium and chromedriver are not installed")
def test_a_run_is_shown_while_it_goes_on_and_ends_as_its_report(fleet: Fleet, tmp_path: Path) -> None:
    report = tmp_path / "report.html"
    with chromium(tmp_path) as browser:
        run = fleet.run(
            write_scenario(tmp_path),
            *("--noop", "--workers", 1, "-r", 600, "--rate", 100, "--metrics", "web", "--html", report),
        )
        url = run.wait_for(r"Live page, for anyone who knows this URL: (http://127\.0\.0\.1:\d+/[\w-]+/)")[1]
        browser.requests()  # those of its own first page
        browser.show(url, 1600, "light")
        browser.wait_for(f"{STATE} == 'running' && document.querySelector('figure .plot canvas')")
        browser.run(
            "document.querySelector('.series').click(); window.kept = document.querySelector('canvas')"
        )
        before = browser.run(TEXT)
        assert "RUNNING" in before
        browser.wait_for(f"{TEXT} != {before!r}")
        browser.wait_for(f"{TEXT}.includes('Load generator: CPU')")
        # A chart gets new data, and what the reader chose stays.
        assert browser.run("return window.kept.isConnected")
        assert browser.run("return document.querySelector('.series[aria-pressed=false]') != null")
        # Somebody else who looks, and leaves before the end.
        browser.run(
            "window.other = new EventSource('events'); window.other.onerror = () => window.other.close()"
        )
        run.signal(signal.SIGINT)
        browser.wait_for(f"{STATE} == 'ended'")
        assert run.end() == ExitCode.INTERRUPTED, run.err
        live = browser.run(TEXT)
        assert "INTERRUPTED" in live
        assert browser.console() == []
        assert {each.partition("/events")[0].rstrip("/") for each in browser.requests()} == {url.rstrip("/")}
        browser.show(report.as_uri(), 1600, "light")
        browser.wait_for("return document.documentElement.dataset.charts == 'ready'")
        assert browser.run(TEXT) == live
    assert not re.search("Traceback|live page", run.err)
