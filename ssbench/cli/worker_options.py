"""The options of ``ssbench-worker``."""

from __future__ import annotations

import argparse
import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ssbench.base import text_values
from ssbench.base.version import __version__
from ssbench.cli import options
from ssbench.cli.options import (
    COUNT,
    COUNT_OR_0,
    FILE,
    FOLDER,
    Argument,
    SocketAsked,
    ValueKind,
    add_options,
    make_argument_type,
    non_negative_int,
)
from ssbench.cli.parser import Parser

_IGNORED_HELP = "ignored, and accepted for scripts of ssbench 0.x: use run-scenario {}"

#: Characters of the name of a site, at most.
_MAX_SITE_CHARACTERS = 64


@dataclass(frozen=True, kw_only=True)
class WorkerAsked(SocketAsked):
    """What the program is asked."""

    worker_id: int | None
    zmq_host: str
    concurrency: int
    idle_exit: float | None
    runs: int | None
    end_with_stdin: bool
    exit_with_stdin: bool
    site: str | None
    allow: Sequence[Path]
    retries: int | None
    profile_count: int
    profile_file: Path | None


def parser() -> Parser:
    """Return the parser."""
    made = Parser(
        prog="ssbench-worker",
        example="ssbench-worker --zmq-host master-host --concurrency 500 1",
        description=f"Make the requests that an ssbench-master hands out (ssbench {__version__}). A worker"
        " waits for a master without a time limit and serves one run after another. It ends with Ctrl-C or"
        " 'ssbench-master kill-workers'.",
    )
    made.add_argument("--version", action="version", version=f"ssbench {__version__}")
    add_options(
        made,
        Argument(
            "worker_id",
            ValueKind("worker_id", non_negative_int),
            "number of this worker, unique in the fleet; the master chooses one if it is omitted",
            settings={"nargs": "?"},
        ),
        Argument(
            "--zmq-host", ValueKind("HOST", _parse_host), "name or address of the master's host", "127.0.0.1"
        ),
        *options.SOCKET_OPTIONS,
        Argument(
            "-c --concurrency",
            COUNT,
            "maximum number of requests in flight, and of connections to one server",
            64,
        ),
        Argument(
            "--idle-exit",
            ValueKind("TIME", make_argument_type(text_values.parse_seconds)),
            "exit with code 0 after this long without an operation, such as 10m",
            default_text="never",
        ),
        Argument(
            "--runs", COUNT, "exit with code 0 after working for N masters", default_text="serve any number"
        ),
        Argument(
            "--end-with-stdin",
            None,
            "exit when standard input is closed, as by the end of the ssh connection that started it",
        ),
        Argument(
            "--site",
            ValueKind("NAME", _parse_site),
            "where this worker is, such as a room or a town: reports have figures by site",
        ),
        Argument(
            "--allow",
            FOLDER,
            "allow runs to upload files from DIR, for scenarios whose bodies are files (default: none); may"
            " be repeated",
            default=[],
            repeated=True,
        ),
        # A worker of ssbench 0.x had these, which run-scenario has now.
        Argument("--retries", COUNT_OR_0, _IGNORED_HELP.format("--retries")),
        Argument("--batch-size", COUNT, _IGNORED_HELP.format("--batch-size")),
        Argument("-p --profile-count", COUNT_OR_0, "write a profile of the first N jobs; 0 means none", 0),
        Argument("-v --verbose", None, "log DEBUG lines too"),
        Argument("--profile-file", FILE, argparse.SUPPRESS),
        Argument("--exit-with-stdin", None, argparse.SUPPRESS),
    )
    return made


def _parse_site(text: str) -> str:
    """Return the name of a site: 1 to 64 printable characters."""
    if not text.strip() or len(text) > _MAX_SITE_CHARACTERS or not text.isprintable():
        raise argparse.ArgumentTypeError(
            f"{text!r}: expected 1 to {_MAX_SITE_CHARACTERS} printable characters"
        )
    return text.strip()


def _parse_host(text: str) -> str:
    """Return a host without the brackets that an IPv6 address may have; refuse one with a port."""
    host = text[1:-1] if text.startswith("[") and text.endswith("]") else text
    if ":" in host:
        try:
            ipaddress.ip_address(host)
        except ValueError:
            raise argparse.ArgumentTypeError(
                f"{text!r}: expected a host or an IP address alone (the ports are --zmq-work-port and"
                " --zmq-results-port)"
            ) from None
    return host
