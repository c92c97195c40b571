"""``ssbench-worker``: make the requests that a master hands out."""

from __future__ import annotations

import argparse
import ipaddress
import logging
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from ssbench import __version__, interruption, quantities
from ssbench.cli import ending, logs, settings, zmq_options
from ssbench.cli.loading import loading
from ssbench.cli.options import non_negative_int, parsed, positive_int
from ssbench.cli.parser import Parser
from ssbench.errors import ExitCode, SsbenchError, UsageError
from ssbench.fleet.addresses import endpoint
from ssbench.fleet.descriptors import raise_limit
from ssbench.screen import terminal

if TYPE_CHECKING:
    from ssbench.profiling import Profiling
    from ssbench.worker.worker import Worker

_log = logging.getLogger(__name__)

_SIGNALS = {
    signal.SIGINT: "interrupted",
    signal.SIGTERM: "terminated",
    signal.SIGHUP: "its terminal is closed",
}


_LONGEST_SITE = 64


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
        type=_host,
        default="127.0.0.1",
        help="name or address of the master's host (default: %(default)s)",
    )
    zmq_options.add_shared_arguments(made)
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
        type=parsed(quantities.seconds),
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
        type=_site,
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


def _site(text: str) -> str:
    """Return the name of a site: 1 to 64 printable characters."""
    if not text.strip() or len(text) > _LONGEST_SITE or not text.isprintable():
        raise argparse.ArgumentTypeError(f"{text!r}: expected 1 to {_LONGEST_SITE} printable characters")
    return text.strip()


def _host(text: str) -> str:
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


def _end_with_stdin(worker: Worker) -> None:
    """End the worker when its standard input is closed; what comes there is read and dropped."""
    from gevent.socket import wait_read

    try:
        wait_read(0)
        while os.read(0, 65536):
            wait_read(0)
    except OSError:  # a terminal that is gone, or a file
        pass
    worker.stop("its standard input is closed (--end-with-stdin)")


def _watch_stdin(worker: Worker, folder: Path) -> None:
    """End the worker with its master, which closes this pipe, and first writes to it unless it is killed."""
    from gevent.socket import wait_read

    from ssbench.run.folders import remove_if_left

    wait_read(0)
    if os.read(0, 1):
        worker.stop("its master ends")
        return
    worker.stop("its master is gone")
    remove_if_left(folder, wait=2.0)


def _profiling(arguments: argparse.Namespace) -> Profiling | None:
    if not arguments.profile_count and not arguments.profile_file:
        return None
    from ssbench.profiling import Profiling

    name = os.getpid() if arguments.worker_id is None else arguments.worker_id
    return Profiling(f"ssbench-worker-{name}", arguments.profile_file)


def _end_with_signals(worker: Worker) -> None:
    import gevent

    for number, name in _SIGNALS.items():
        # Under nohup it must not end with the terminal.
        if number != signal.SIGHUP or signal.getsignal(number) != signal.SIG_IGN:
            gevent.signal_handler(number, worker.stop, name)


def _serve(arguments: argparse.Namespace) -> ExitCode:
    raise_limit()
    with loading():
        import gevent

        from ssbench.fleet.sockets import WorkerSockets
        from ssbench.fleet.wire import MAX_JOBS, UNNUMBERED
        from ssbench.memory import refuse_too_little
        from ssbench.worker.duty import label
        from ssbench.worker.engine.greenlets import make_engine
        from ssbench.worker.worker import Worker, WorkerOptions

    key = zmq_options.read_key(arguments)
    work_port, results_port = zmq_options.ports(arguments)
    if arguments.concurrency > MAX_JOBS:
        raise UsageError(f"--concurrency {arguments.concurrency}: at most {MAX_JOBS} is possible")
    if arguments.retries is not None:
        _log.warning("--retries has no effect on a worker: run-scenario --retries holds for all of them")
    refuse_too_little()
    sockets = WorkerSockets(
        endpoint(arguments.zmq_host, work_port),
        endpoint(arguments.zmq_host, results_port),
        key,
    )
    profiling = _profiling(arguments)
    worker = Worker(
        WorkerOptions(
            UNNUMBERED if arguments.worker_id is None else arguments.worker_id,
            arguments.concurrency,
            arguments.idle_exit,
            arguments.runs,
            label(os.environ),
            arguments.site or "",
        ),
        sockets,
        partial(make_engine, bodies=arguments.allow_bodies),
        after_jobs=(arguments.profile_count, profiling.end)
        if profiling and arguments.profile_count
        else None,
    )
    _end_with_signals(worker)
    if arguments.exit_with_stdin:
        gevent.spawn(_watch_stdin, worker, Path(arguments.zmq_host))
    elif arguments.end_with_stdin:
        gevent.spawn(_end_with_stdin, worker)
    _log.info(
        "ssbench-worker %s: %s, %d requests at once, waiting for a master at %s%s",
        __version__,
        "no id" if arguments.worker_id is None else f"id {arguments.worker_id}",
        arguments.concurrency,
        arguments.zmq_host,
        " (sealed)" if key else "",
    )
    with ExitStack() as stack:
        if profiling is not None:
            stack.enter_context(profiling)
        return worker.run()


def _parsers() -> Mapping[str, Parser]:
    from ssbench.cli import master

    return master.parsers()


def main(argv: list[str] | None = None) -> int:
    """Run ``ssbench-worker``; return its exit code."""
    if argv is None:
        interruption.begin("ssbench-worker")
    try:
        return _main(sys.argv[1:] if argv is None else argv)
    except KeyboardInterrupt:  # where another program calls this
        sys.stderr.write("ssbench-worker: interrupted\n")
        return ExitCode.INTERRUPTED


def _main(argv: Sequence[str]) -> int:
    made = parser()
    if "--exit-with-stdin" not in argv:  # a local one knows all from its master
        try:
            settings.use("worker", made, _parsers, argv)
        except SsbenchError as error:
            terminal.write_line(f"ssbench-worker: error: {error}")
            return error.exit_code
    arguments = made.parse_args(argv)
    try:
        with ending.short_of_memory():
            logs.set_up(verbose=arguments.verbose, time_stamps=True)
            settings.say_files(arguments)
            return _serve(arguments)
    except SsbenchError as error:
        _log.error("%s", error)
        return error.exit_code


if __name__ == "__main__":
    sys.exit(main())
