"""Carries out the commands of ``tutorial.rst`` and makes its pictures: ``python doc/make_tutorial.py``.

It needs what the tutorial needs, and Chromium with its chromedriver. It takes some four minutes of a machine
that does nothing else: where a run was not good, such as on a host that was shared, the pictures stay as they
are, and the exit code is 1. With a folder as its argument the new ones are there in any case.
"""

from __future__ import annotations

import base64
import html
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests" / "helpers"))

from chromium import Chromium, chromium  # noqa: E402  # beside the tests

PICTURES = ROOT / "doc" / "tutorial"
BLOCK = re.compile(r"^\.\. code-block:: sh\n   :name: (\w+)\n\n((?:   .*\n|\n)+)", re.MULTILINE)

#: The size of pictures of pages, in pixels; lines of a terminal at most.
WIDTH, HEIGHT, LINES = 1100, 720, 38

#: Where the pictures of pages begin that do not begin at the top.
PARTS = {"users": "figure"}

#: What a step says where its picture would not be that of a good run on a quiet machine.
NOT_GOOD = re.compile(
    r"^(?:(?:UNDECIDED|FAILED|NOT DELIVERED): |ERROR:"
    r"|! .*(?: was shared| stalled| overloaded| is not reliable)).*",
    re.MULTILINE,
)

#: Seconds that a step may take at most, and after which a page of a run is photographed.
PATIENCE, LIVE = 1800.0, 12.0


class Shell:
    """A shell in which all commands are carried out, so that what one sets the next one has."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("ST_", "OS_"))}
        settings = {"SSBENCH_RESULTS_DIR": "results", "SSBENCH_REPORT": "summary"}
        self._process = subprocess.Popen(
            ["bash"],
            stdin=subprocess.PIPE,
            cwd=folder,
            text=True,
            env=kept | settings | {"PATH": path, "COLUMNS": "80"},
        )

    def begin(self, name: str, commands: str) -> Path:
        """Carry out commands; return the file in which their output will be."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{{\n{commands}\n}} > {name}.out 2> {name}.err; touch {name}.done\n")
        self._process.stdin.flush()
        return self.folder / f"{name}.out"

    def wait(self, name: str) -> None:
        """Wait for their end."""
        end = time.monotonic() + PATIENCE
        while not (self.folder / f"{name}.done").exists():
            assert time.monotonic() < end, name
            assert self._process.poll() is None, name
            time.sleep(0.2)

    def close(self) -> None:
        """End the shell, and what it started."""
        assert self._process.stdin is not None
        self._process.stdin.write("kill %1 2> /dev/null; wait\n")
        self._process.stdin.close()
        self._process.wait()


def terminal(commands: str, output: str) -> str:
    """Return a picture of a terminal as SVG."""
    lines = [*(f"$ {line}" for line in commands.strip().split("\n")), *output.rstrip().split("\n")]
    if len(lines) > LINES:
        lines[LINES - 1 :] = ["..."]
    columns = max(80, *map(len, lines))
    texts = "".join(
        f'<text x="12" y="{18 * row + 26}" fill="{"#8ab4f8" if line.startswith("$ ") else "#e6edf3"}">'
        f"{html.escape(line)}</text>"
        for row, line in enumerate(lines)
        if line.strip()
    )
    wide, high = 8 * columns + 24, 18 * len(lines) + 24
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {wide} {high}" width="{wide}" height="{high}">'
        f'<rect width="100%" height="100%" rx="8" fill="#1b1f24"/><g xml:space="preserve"'
        f' font-family="ui-monospace, Menlo, Consolas, monospace" font-size="13">{texts}</g></svg>\n'
    )


def photograph(browser: Chromium, url: str, file: Path, at: str = "body") -> None:
    """Save a part of a page as a picture, from the first element that a selector ``at`` finds."""
    browser.show(url, WIDTH, "light", HEIGHT)
    browser.wait_for("return document.querySelector('figure canvas')", PATIENCE)
    time.sleep(LIVE if url.startswith("http:") else 1)
    browser.run(
        f"document.documentElement.style.scrollBehavior = 'auto';"
        f" document.querySelector('{at}').scrollIntoView()"
    )
    time.sleep(1)
    file.write_bytes(base64.b64decode(browser.tool("Page.captureScreenshot", format="png")["data"]))


def read(file: Path) -> str:
    """Return what is in a file, nothing where it is not there yet."""
    return file.read_text("utf-8") if file.exists() else ""


def main() -> None:
    """Carry out each step, and make its picture."""
    text = (ROOT / "doc" / "tutorial.rst").read_text("utf-8")
    wanted = set(re.findall(r"^\.\. image:: tutorial/(.*)$", text, re.MULTILINE))
    said = []
    with tempfile.TemporaryDirectory() as name, chromium(Path(name)) as browser:
        folder = Path(name)
        pictures = Path(sys.argv[1]) if len(sys.argv) > 1 else folder / "pictures"
        pictures.mkdir(parents=True, exist_ok=True)
        shell = Shell(folder)
        try:
            for step, indented in BLOCK.findall(text):
                commands = re.sub("^   ", "", indented, flags=re.MULTILINE).strip()
                print(step, flush=True)
                out = shell.begin(step, commands)
                if "--metrics web" in commands:
                    while not (url := re.search(r"Live page.*(http://\S+)", read(out.with_suffix(".err")))):
                        time.sleep(0.2)
                    photograph(browser, url[1], pictures / f"{step}.png")
                shell.wait(step)
                if f"{step}.svg" in wanted:
                    (pictures / f"{step}.svg").write_text(terminal(commands, out.read_text("utf-8")), "utf-8")
                if (page := folder / f"{step}.html").exists():
                    photograph(browser, page.as_uri(), pictures / f"{step}.png", PARTS.get(step, "body"))
                err = out.with_suffix(".err").read_text("utf-8")
                for line in err.split("\n"):
                    if line.startswith(("ERROR", "WARNING")):
                        print("  ", line)
                said += [f"{step}: {found}" for found in NOT_GOOD.findall(f"{out.read_text('utf-8')}\n{err}")]
        finally:
            shell.close()
        if said:
            sys.exit("\n".join(["The pictures stay as they are, because a run was not good:", *said]))
        for file in pictures.iterdir():
            shutil.copy(file, PICTURES)


if __name__ == "__main__":
    main()
