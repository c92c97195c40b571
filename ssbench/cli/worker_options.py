"""The options of ``ssbench-worker``."""

from __future__ import annotations

import argparse
import ipaddress
from pathlib import Path

from ssbench.base import text_values
from ssbench.base.version import __version__
from ssbench.cli import options
from ssbench.cli.options import make_argument_type, non_negative_int, positive_int
from ssbench.cli.parser import Parser

#: Characters of the name of a site, at most.
_MAX_SITE_CHARACTERS = 64


def parser() -> Parser:
    """Return the parser."""
    made = Parser(
        prog="ssbench-worker",
        example="ssbench-worker --zmq-host master-host --concurrency 500 1",
        description=f"Make the requests that an ssbench-master hands out (ssbench {__version__}). A worker"
        " waits for a master without a time limit and serves one run after another. It ends with Ctrl-C or"
        " 'ssbench-master kill-workers'.",
    )
    made.add_argument(
        "worker_id",
        nargs="?",
        type=non_negative_int,
        help="number of this worker, unique in the fleet; the master chooses one where it is left out",
    )
    made.add_argument("--version", action="version", version=f"ssbench {__version__}")
    made.add_argument(
        "--zmq-host",
        metavar="HOST",
        type=_parse_host,
        default="127.0.0.1",
        help="name or address of the master's host (default: %(default)s)",
    )
    options.add_shared_zmq_arguments(made)
    made.add_argument(
        "-c",
        "--concurrency",
        metavar="N",
        type=positive_int,
        default=64,
        help="maximum number of requests in flight, and of connections to one server (default: %(default)s)",
    )
    made.add_argument(
        "--idle-exit",
        metavar="TIME",
        type=make_argument_type(text_values.parse_seconds),
        help="exit with code 0 after so long without an operation, such as 10m (default: never)",
    )
    made.add_argument(
        "--runs",
        metavar="N",
        type=positive_int,
        help="exit with code 0 once N masters that gave it work have gone (default: serve any number)",
    )
    made.add_argument(
        "--end-with-stdin",
        action="store_true",
        help="exit when standard input is closed, as by the end of the ssh connection that started it",
    )
    made.add_argument(
        "--site",
        metavar="NAME",
        type=_parse_site,
        help="where this worker is, such as a room or a town: reports have figures by site",
    )
    made.add_argument(
        "--allow-bodies",
        metavar="DIR",
        type=Path,
        action="append",
        default=[],
        help="allow runs to upload files from DIR, for scenarios whose bodies are files (default: none);"
        " may be repeated",
    )
    _add_ignored(made)
    made.add_argument(
        "-p",
        "--profile-count",
        metavar="N",
        type=non_negative_int,
        default=0,
        help="write a profile of the first N jobs; 0 means none (default: %(default)s)",
    )
    made.add_argument("-v", "--verbose", action="store_true", help="log DEBUG lines too")
    made.add_argument("--profile-file", type=Path, help=argparse.SUPPRESS)
    made.add_argument("--exit-with-stdin", action="store_true", help=argparse.SUPPRESS)
    return made


def _add_ignored(parser: Parser) -> None:
    """Add the options that a worker of ssbench 0.x had and that run-scenario has now."""
    parser.add_argument(
        "--retries",
        metavar="N",
        type=non_negative_int,
        help="ignored, and accepted for scripts of ssbench 0.x: use run-scenario --retries",
    )
    parser.add_argument(
        "--batch-size",
        metavar="N",
        type=positive_int,
        default=1,
        help="ignored, and accepted for scripts of ssbench 0.x: use run-scenario --batch-size",
    )


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
