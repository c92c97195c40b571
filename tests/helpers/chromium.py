"""A headless Chromium, driven over the WebDriver protocol of its chromedriver."""

from __future__ import annotations

import base64
import json
import os
import re
import shutil
import subprocess
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

#: What has to be installed; None where it is not.
DRIVER = shutil.which("chromedriver")
BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")

_OPTIONS = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars"]


class Chromium:
    """One page at a time."""

    def __init__(self, address: str, profile: Path) -> None:
        self._address = address
        options = {"args": [*_OPTIONS, f"--user-data-dir={profile}"], "binary": BROWSER}
        wanted = {
            "goog:chromeOptions": options,
            "goog:loggingPrefs": {"browser": "ALL", "performance": "ALL"},
        }
        made = self._call("POST", "/session", {"capabilities": {"alwaysMatch": wanted}})
        self._session = f"/session/{made['sessionId']}"

    def _call(self, method: str, path: str, body: object = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        headers = {"Content-Type": "application/json"}
        request = urllib.request.Request(self._address + path, data, headers, method=method)
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.load(answer)["value"]

    def _post(self, path: str, body: object) -> Any:
        return self._call("POST", self._session + path, body)

    def tool(self, command: str, **parameters: object) -> Any:
        """Send a command of the DevTools protocol."""
        return self._post("/goog/cdp/execute", {"cmd": command, "params": parameters})

    def show(self, url: str, width: int, scheme: str, height: int = 900) -> None:
        """Load a page on a screen of a width, light or dark."""
        self.tool(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=False,
        )
        self.tool("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
        self._post("/url", {"url": url})

    def run(self, script: str) -> Any:
        """Return what a script returns."""
        return self._post("/execute/sync", {"script": script, "args": []})

    def wait_for(self, script: str, patience: float = 60.0) -> None:
        """Wait until a script returns something true."""
        end = time.monotonic() + patience
        while not self.run(script):
            assert time.monotonic() < end, script
            time.sleep(0.05)

    def console(self) -> list[dict[str, Any]]:
        """Return what came to the console since it was last asked for, but for what is only told."""
        entries: list[dict[str, Any]] = self._post("/se/log", {"type": "browser"})
        return [entry for entry in entries if entry["level"] in {"WARNING", "SEVERE"}]

    def requests(self) -> list[str]:
        """Return the URLs that were asked for since this was last asked for.

        Without those that reach no network: ``data:``, and ``chrome:`` of the browser's own first page, which
        may still load when another is shown.
        """
        found = []
        for entry in self._post("/se/log", {"type": "performance"}):
            message = json.loads(entry["message"])["message"]
            if message["method"] == "Network.requestWillBeSent":
                found.append(message["params"]["request"]["url"])
        return [url for url in found if not url.startswith(("data:", "chrome:"))]

    def picture(self, path: Path) -> None:
        """Save the whole page as a picture."""
        made = self.tool("Page.captureScreenshot", format="png", captureBeyondViewport=True)
        path.write_bytes(base64.b64decode(made["data"]))

    def close(self) -> None:
        self._call("DELETE", self._session)


@contextmanager
def chromium(folder: Path) -> Iterator[Chromium]:
    """Start a browser that keeps its files in a folder."""
    with _driver() as port:
        browser = Chromium(f"http://127.0.0.1:{port}", folder / "profile")
        try:
            yield browser
        finally:
            browser.close()


@contextmanager
def _driver() -> Iterator[str]:
    """Start chromedriver, again where somebody else took the port that it had chosen for IPv4 and IPv6.

    It answers that a session has ended before it has removed the session's temporary folder, which stays if
    it is told to end then. So it has a folder for these, with a short path: a socket is there.
    """
    assert DRIVER
    for _ in range(5):
        with (
            tempfile.TemporaryDirectory(prefix="ssbench-chromium-") as folder,
            subprocess.Popen(
                [DRIVER, "--port=0"], stdout=subprocess.PIPE, text=True, env={**os.environ, "TMPDIR": folder}
            ) as driver,
        ):
            try:
                assert driver.stdout
                said = []
                for line in driver.stdout:
                    said.append(line)
                    if found := re.search(r"successfully on port (\d+)", line):
                        yield found[1]
                        return
            finally:
                driver.terminate()
        assert any("port not available" in line for line in said), said
    raise AssertionError(said)
