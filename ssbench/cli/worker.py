"""``ssbench-worker``: make the requests that a master hands out."""

from __future__ import annotations

import logging
import os
import signal
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from ssbench.base import interruption
from ssbench.base.errors import ExitCode, SsbenchError, UsageError
from ssbench.base.version import __version__
from ssbench.cli import options, output_file, own_program, settings
from ssbench.cli.asked import make_asked
from ssbench.cli.own_program import import_faster
from ssbench.cli.worker_options import WorkerAsked, parser
from ssbench.fleet.addresses import format_endpoint
from ssbench.fleet.descriptors import raise_descriptor_limit
from ssbench.run import terminal

if TYPE_CHECKING:
    from ssbench.base.profiling import Profiling
    from ssbench.worker.worker_process import Worker

_log = logging.getLogger(__name__)

_SIGNAL_REASONS = {
    signal.SIGINT: "interrupted",
    signal.SIGTERM: "terminated",
    signal.SIGHUP: "its terminal is closed",
}


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

    from ssbench.base.socket_folders import remove_if_left

    wait_read(0)
    if os.read(0, 1):
        worker.stop("its master ends")
        return
    worker.stop("its master is gone")
    remove_if_left(folder, wait=2.0)


def _make_profiling(asked: WorkerAsked) -> Profiling | None:
    if not asked.profile_count and not asked.profile_file:
        return None
    from ssbench.base.profiling import Profiling

    name = os.getpid() if asked.worker_id is None else asked.worker_id
    return Profiling(f"ssbench-worker-{name}", asked.profile_file)


def _end_with_signals(worker: Worker) -> None:
    import gevent

    for number, name in _SIGNAL_REASONS.items():
        # Under nohup it must not end with the terminal.
        if number != signal.SIGHUP or signal.getsignal(number) != signal.SIG_IGN:
            gevent.signal_handler(number, worker.stop, name)


def _serve_master(asked: WorkerAsked) -> ExitCode:
    raise_descriptor_limit()
    with import_faster():
        import gevent

        from ssbench.base.own_processes import check_memory_available
        from ssbench.fleet.sockets import WorkerSockets
        from ssbench.fleet.wire import MAX_JOBS, UNNUMBERED
        from ssbench.worker.engine import make_engine
        from ssbench.worker.worker_process import Worker, WorkerOptions, launcher_label

    key = options.read_chosen_key(asked)
    work_port, results_port = options.choose_ports(asked)
    if asked.concurrency > MAX_JOBS:
        raise UsageError(f"--concurrency {asked.concurrency}: at most {MAX_JOBS} is possible")
    if asked.retries is not None:
        _log.warning("--retries has no effect on a worker: run-scenario --retries holds for all of them")
    check_memory_available()
    sockets = WorkerSockets(
        format_endpoint(asked.zmq_host, work_port), format_endpoint(asked.zmq_host, results_port), key
    )
    profiling = _make_profiling(asked)
    worker = Worker(
        WorkerOptions(
            UNNUMBERED if asked.worker_id is None else asked.worker_id,
            asked.concurrency,
            asked.idle_exit,
            asked.runs,
            launcher_label(os.environ),
            asked.site or "",
        ),
        sockets,
        partial(make_engine, bodies=asked.allow),
        after_jobs=(asked.profile_count, profiling.end) if profiling and asked.profile_count else None,
    )
    _end_with_signals(worker)
    if asked.exit_with_stdin:
        gevent.spawn(_watch_stdin, worker, Path(asked.zmq_host))
    elif asked.end_with_stdin:
        gevent.spawn(_end_with_stdin, worker)
    _log.info(
        "ssbench-worker %s: %s, %d requests at once, waiting for a master at %s%s",
        __version__,
        "no id" if asked.worker_id is None else f"id {asked.worker_id}",
        asked.concurrency,
        asked.zmq_host,
        " (sealed)" if key else "",
    )
    with ExitStack() as stack:
        if profiling is not None:
            stack.enter_context(profiling)
        return worker.run()


def main(argv: list[str] | None = None) -> int:
    """Run ``ssbench-worker``; return its exit code."""
    if argv is None:
        interruption.handle_interrupts("ssbench-worker")
    try:
        return _main(sys.argv[1:] if argv is None else argv)
    except KeyboardInterrupt:  # where another program calls this
        sys.stderr.write("ssbench-worker: interrupted\n")
        return ExitCode.INTERRUPTED


def _main(argv: Sequence[str]) -> int:
    made = parser()
    if "--exit-with-stdin" not in argv:  # a local one knows all from its master
        from ssbench.cli import master

        try:
            settings.use_settings("worker", made, master.make_command_parsers, argv)
        except SsbenchError as error:
            terminal.write_line(f"ssbench-worker: error: {error}")
            return error.exit_code
    asked = make_asked(WorkerAsked, vars(made.parse_args(argv)))
    try:
        with own_program.explain_memory_errors():
            output_file.set_up_logging(verbose=asked.verbose, time_stamps=True)
            settings.log_settings_files(asked.sources)
            return _serve_master(asked)
    except SsbenchError as error:
        _log.error("%s", error)
        return error.exit_code


if __name__ == "__main__":
    sys.exit(main())
