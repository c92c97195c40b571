"""The options that show a run in a browser while it is running: ``--web`` and ``--web-open``."""

from __future__ import annotations

import argparse
import logging
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING

from ssbench.base import own_processes
from ssbench.base.errors import UsageError
from ssbench.cli import archives
from ssbench.cli.options import Argument, OptionParser, ValueKind, add_options
from ssbench.monitoring.metrics_options import parse_listen_address

if TYPE_CHECKING:
    from ssbench.monitoring.sink import LivePage
    from ssbench.results.block import Sink
    from ssbench.run.bench import Bench
    from ssbench.scenario.model import Scenario

_log = logging.getLogger(__name__)

#: This host alone, at any port that is free.
_LOCAL_ADDRESS = ("127.0.0.1", 0)


def add_arguments(parser: OptionParser) -> None:
    """Add the options."""
    add_options(
        parser,
        Argument(
            "--web",
            ValueKind("[ADDRESS:]PORT", parse_listen_address),
            "serve the page of --html while the run lasts, at a URL that is logged; other hosts reach it only"
            " where an address is given",
            default_text="no page; without a value, any port of 127.0.0.1",
            settings={"nargs": "?", "const": _LOCAL_ADDRESS},
        ),
        Argument("--web-open", None, "open that page in the browser of this desktop; implies --web"),
    )


@dataclass(frozen=True, slots=True)
class _PageCompanion:
    """A :class:`~ssbench.run.bench.Companion`: one page for all runs."""

    page: LivePage
    #: It does not watch the cluster.
    observer: None = None

    def open_sinks(self, scenario: Scenario, bench: Bench) -> AbstractContextManager[list[Sink]]:
        """Return what tells the page of the runs of a bench."""
        return nullcontext([self.page.sink(bench.so_far)])


@contextmanager
def companion(arguments: argparse.Namespace) -> Iterator[_PageCompanion | None]:
    """Serve the page where it was asked for; raises UsageError where that is not possible."""
    where = arguments.web or (_LOCAL_ADDRESS if arguments.web_open else None)
    if where is None:
        yield None
        return
    given: Path | None = arguments.stats_file
    with suppress(OSError):  # which is reported where the file is written
        if given is not None and given.exists() and not given.is_file():
            raise UsageError(f"--web reads the stat file, and {given} is not a regular file")
    # Only here: a run without it does without an HTTP server.
    from ssbench.monitoring.sink import LivePage

    address, port = where
    with LivePage(address, port, archives.choose_folder(arguments) if arguments.ab else None) as page:
        _log.info("Live page, for anyone who knows this URL: %s", page.url)
        if arguments.web_open:
            _open_browser(page.url)
        yield _PageCompanion(page)


def _open_browser(url: str) -> None:
    """Open a URL without waiting for the browser, nor letting it write on the terminal."""
    import webbrowser  # here, as `subprocess` below: the help of a command does without

    try:
        webbrowser.get()
    except webbrowser.Error:
        _log.warning("--web-open: no browser was found; open the page yourself")
        return
    command = [*own_processes.make_python_command("webbrowser"), "-t", url]
    Thread(target=_run_browser, args=(command,), name="browser", daemon=True).start()


def _run_browser(command: list[str]) -> None:
    import subprocess

    quiet = subprocess.DEVNULL
    subprocess.run(  # noqa: S603 - Python's own module
        command, stdin=quiet, stdout=quiet, stderr=quiet, start_new_session=True, check=False
    )
