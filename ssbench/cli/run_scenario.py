"""``ssbench-master run-scenario``: run a benchmark and report on it.

Its options are in :mod:`ssbench.cli.run_scenario_options`.
"""

from __future__ import annotations

import argparse
import logging
import os
import secrets
import shlex
import socket
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path

import zmq

from ssbench import __version__
from ssbench.cli import auth_options, invocation, zmq_options
from ssbench.cli.output_file import standard_output
from ssbench.cli.profiling import Profiling
from ssbench.cli.report_printer import ReportPrinter
from ssbench.errors import ExitCode, UsageError
from ssbench.fleet import wire
from ssbench.fleet.addresses import BindAddress
from ssbench.fleet.dispatch import Dispatcher
from ssbench.fleet.exchange import Exchange
from ssbench.names import run_mark
from ssbench.reports import ReportOptions
from ssbench.run.interrupts import Interrupts
from ssbench.run.local_workers import LocalWorkers
from ssbench.run.master import Master, RunOutcome, RunSettings, describe_run
from ssbench.run.socket_folder import socket_folder
from ssbench.run.stats_path import reserve
from ssbench.run_results.writer import RunResultsWriter
from ssbench.scenario.model import Scenario
from ssbench.scenario.reading import load, override
from ssbench.scenario.shipped import shipped
from ssbench.swift.credentials import Credentials, Session

_log = logging.getLogger(__name__)

#: Job ids of at most so many users are in flight; more could not be told apart from a mistake.
_MOST_USERS = 10_000_000


def run(arguments: argparse.Namespace) -> ExitCode:
    """Run the benchmark; raises SsbenchError where it cannot be begun."""
    if arguments.list_scenarios:
        with standard_output() as out:
            out.writelines(f"{name:20}  {purpose}\n" for name, purpose in shipped())
        return ExitCode.OK
    if not arguments.scenario_file:
        raise UsageError(
            "-f/--scenario-file is required (--list-scenarios lists those that ship with ssbench)"
        )
    scenario = _scenario(arguments)
    batch_size = arguments.batch_size
    if batch_size > scenario.user_count:
        _log.warning("A batch of %d is cut to the user count, %d", batch_size, scenario.user_count)
        batch_size = scenario.user_count
    with ExitStack() as stack:
        return _Run(arguments, scenario, batch_size, stack).carry_out()


def _scenario(arguments: argparse.Namespace) -> Scenario:
    scenario = override(
        load(arguments.scenario_file),
        user_count=arguments.user_count,
        operation_count=arguments.op_count,
        run_seconds=arguments.run_seconds,
        container_count=arguments.container_count,
        delete_after=arguments.delete_after,
        policy=arguments.policy,
    )
    if scenario.user_count > _MOST_USERS:
        raise UsageError(f"{scenario.user_count} users are more than {_MOST_USERS}")
    return scenario


class _Run:
    """One run: what is opened here is closed by the stack, in the reverse order, whatever happens."""

    def __init__(
        self, arguments: argparse.Namespace, scenario: Scenario, batch_size: int, stack: ExitStack
    ) -> None:
        self._arguments = arguments
        self._scenario = scenario
        self._batch_size = batch_size
        self._stack = stack
        self._exchange: Exchange | None = None
        self._where = BindAddress(None)
        self._printer: ReportPrinter | None = None
        self._if_interrupted = "the run ends before its benchmark. Ctrl-C again ends it at once"
        self._interrupts = stack.enter_context(Interrupts(self._interrupt, self._interrupt_at_once))
        self._run_id = secrets.randbits(62) + 1
        self._seed: int = secrets.randbits(32) if arguments.seed is None else arguments.seed

    def _interrupt(self) -> str:
        if self._exchange is not None:
            self._exchange.interrupted.set()
        return self._if_interrupted

    def _interrupt_at_once(self) -> bool:
        return self._exchange is not None and self._exchange.end_at_once()

    def carry_out(self) -> ExitCode:
        arguments, scenario = self._arguments, self._scenario
        _log.info("ssbench %s: %s", __version__, scenario.name)
        path = self._stack.enter_context(
            reserve(arguments.stats_file, scenario, time.time(), force=arguments.force)
        )
        needs_credentials = not arguments.noop and not arguments.local_swift
        credentials = auth_options.from_arguments(arguments, os.environ) if needs_credentials else None
        where = self._where = self._address()
        sockets = self._stack.enter_context(zmq_options.bind(arguments, where))
        local = self._start_workers(where.folder or _reachable(where.ip), sockets.ports)
        source = self._token_source(credentials)
        exchange = self._exchange = Exchange(
            sockets,
            Dispatcher(scenario.user_count, self._where.work_port),
            self._parameters(source),
            [each.size_max for each in scenario.size_classes],
            self._batch_size,
            source.renew if source is not None else None,
            arguments.give_up_after,
        )
        master = Master(self._settings(), exchange, partial(self._ensure_containers, source), local)
        self._interrupts.armed = True
        master.prepare()
        if exchange.interrupted.is_set():
            _log.warning("Interrupted before the benchmark began")
            return ExitCode.INTERRUPTED
        exchange.look_after_descriptors(time.monotonic())
        writer = RunResultsWriter(
            path,
            describe_run(
                self._settings(),
                self._run_id,
                socket.gethostname(),
                self._options(),
                exchange.dispatcher.living(),
                exchange.parameters.storage_urls,
            ),
        )
        nothing_to_delete = arguments.noop or arguments.keep_objects
        self._if_interrupted = (
            "no more operations are sent; the report follows. Ctrl-C again ends the run at once, without it"
            if nothing_to_delete
            else "no more operations are sent; the report follows, then the objects that the run created are"
            " deleted. Ctrl-C again ends the run at once and leaves them there"
        )
        try:
            outcome = self._measure(master, writer)
        except KeyboardInterrupt:
            master.say_what_stays()
            raise
        self._if_interrupted = (
            "the run ends now"
            if nothing_to_delete
            else "no more objects are deleted; the others stay. Ctrl-C again ends the run at once"
        )
        # First, so that no clean-up, however long it takes, withholds it.
        self._report(path)
        master.clean_up()
        return self._printed(path, _exit_code(outcome, master, interrupted=self._interrupts.happened))

    def _address(self) -> BindAddress:
        """Where to listen; a run of local workers alone takes none of the ports that others may have."""
        arguments = self._arguments
        if not arguments.workers:
            return zmq_options.address(arguments, "0.0.0.0")  # noqa: S104 - the documented default
        folder = self._private_folder()
        if zmq_options.any_given(arguments) or (arguments.expect_workers or 0) > arguments.workers:
            return zmq_options.address(arguments, "127.0.0.1", folder)
        return BindAddress(None, folder=folder) if folder else BindAddress("127.0.0.1", 0, 0)

    def _private_folder(self) -> str | None:
        """A folder for the sockets of local workers; None where its name is too long for that."""
        folder = str(self._stack.enter_context(socket_folder()))
        return folder if len(os.fsencode(folder)) + len("/65535") < zmq.IPC_PATH_MAX_LEN else None

    def _start_workers(self, master: str, ports: tuple[int, int]) -> LocalWorkers | None:
        arguments = self._arguments
        if not arguments.workers:
            return None
        concurrency = min(-(-self._scenario.user_count // arguments.workers), wire.MAX_JOBS)
        options = [
            f"--zmq-host={master}",
            f"--zmq-work-port={ports[0]}",
            f"--zmq-results-port={ports[1]}",
            f"--concurrency={concurrency}",
            f"--batch-size={self._batch_size}",
        ]
        if key_file := zmq_options.key_file(arguments):
            options.append(f"--zmq-key={key_file}")
        local = self._stack.enter_context(LocalWorkers(arguments.workers, options, profile=arguments.profile))
        for worker in local.workers:
            _log.info(
                "Local worker %d: %d operations at once, log %s", worker.worker_id, concurrency, worker.log
            )
        return local

    def _token_source(self, credentials: Credentials | None) -> TokenSource | None:
        if self._arguments.noop:
            return None
        if credentials is None:
            # Only here: most people have a Swift, and it takes its time.
            from ssbench.local_swift import LocalSwift

            policies = dict.fromkeys(["gold", "silver", self._scenario.policy or "gold"])
            _log.info("Starting a Swift on this machine")
            swift = self._stack.enter_context(LocalSwift(policies=list(policies)))
            credentials = Credentials(version="1.0", auth_url=swift.auth_url, user=swift.user, key=swift.key)
        session = _authenticate(credentials)
        auth_options.warn_of_proxy(credentials, session)
        return TokenSource(credentials, session)

    def _parameters(self, source: TokenSource | None) -> wire.RunParameters:
        arguments, scenario = self._arguments, self._scenario
        session = source.session if source else None
        return wire.RunParameters(
            run_id=self._run_id,
            token=session.token if session else None,
            storage_urls=list(session.storage_urls) if session else [],
            connect_timeout=arguments.connect_timeout,
            network_timeout=arguments.network_timeout,
            request_timeout=arguments.request_timeout,
            retries=arguments.retries,
            retry_404=arguments.retry_404,
            trans_id_extra=self._run_mark(),
            block_size=arguments.block_size,
            noop=arguments.noop,
            container_base=scenario.container_base,
            policy=scenario.policy,
            size_classes=[each.name for each in scenario.size_classes],
            size_ranges=[(each.size_min, each.size_max) for each in scenario.size_classes],
            delete_after=scenario.delete_after,
            insecure=session.insecure if session else False,
            ca_certificates=session.ca_certificates if session else None,
        )

    def _settings(self) -> RunSettings:
        arguments = self._arguments
        return RunSettings(
            scenario=self._scenario,
            seed=self._seed,
            noop=arguments.noop,
            keep_objects=arguments.keep_objects,
            expected_workers=arguments.expect_workers or arguments.workers or 1,
            worker_timeout=arguments.worker_timeout,
            worker_advice=_worker_advice(arguments, self._where),
        )

    def _options(self) -> dict[str, object]:
        arguments = self._arguments
        return {
            "batch_size": self._batch_size,
            "block_size": arguments.block_size,
            "connect_timeout": arguments.connect_timeout,
            "network_timeout": arguments.network_timeout,
            "request_timeout": arguments.request_timeout,
            "retries": arguments.retries,
            "retry_404": arguments.retry_404,
            "give_up_after": arguments.give_up_after,
            "noop": arguments.noop,
            "trans_id_extra": self._run_mark(),
            "keep_objects": arguments.keep_objects,
            "local_workers": arguments.workers,
            "local_swift": arguments.local_swift,
            "sealed": zmq_options.key_file(arguments) is not None,
        }

    def _run_mark(self) -> str | None:
        return None if self._arguments.no_trans_id_extra else run_mark(self._run_id)

    def _ensure_containers(
        self,
        source: TokenSource | None,
        names: Sequence[str],
        policy: str | None,
        concurrency: int,
        advance: Callable[[], None],
        check: Callable[[], None],
    ) -> None:
        exchange = self._exchange
        if source is None or exchange is None:
            return
        from ssbench.swift.containers import ensure_containers

        ensure_containers(
            source.session,
            names,
            policy,
            concurrency,
            advance,
            timeouts=(self._arguments.connect_timeout, self._arguments.network_timeout),
            check=check,
            renew=source.renew,
            trans_id_extra=self._run_mark(),
        )
        if source.session.token != exchange.parameters.token:
            exchange.change(token=source.session.token)

    def _measure(self, master: Master, writer: RunResultsWriter) -> RunOutcome:
        with Profiling("ssbench-master") if self._arguments.profile else nullcontext():
            return master.measure(writer)

    def _report(self, path: Path) -> None:
        arguments = self._arguments
        if self._exchange is not None:
            self._exchange.shut_doors()
        if not arguments.no_default_report:
            self._printer = ReportPrinter()
            name = "csv" if arguments.csv else "text"
            self._printer.print(path, name, ReportOptions(percentile=arguments.pctile))
        _log.info("Results saved to %s", path)
        _log.info("Report on them again with: %s", _report_command(path))

    def _printed(self, path: Path, code: ExitCode) -> ExitCode:
        """Tell of a report that was not printed; returns the exit code, changed where a disk was full."""
        trouble = self._printer.trouble() if self._printer is not None else None
        if trouble is None:
            return code
        _log.warning("The report was not printed (%s). Print it with: %s", trouble.why, _report_command(path))
        return ExitCode.FAILED if trouble.is_failure and code is ExitCode.OK else code


class TokenSource:
    """A session, and the credentials to have a new one; each renewal changes the session's token."""

    def __init__(self, credentials: Credentials, session: Session) -> None:
        self.session = session
        #: Returns a new token; None where the token was given and there is no way to another.
        self.renew: Callable[[], str] | None = None
        if credentials.version != "none":
            self.renew = partial(self._renew, credentials)

    def _renew(self, credentials: Credentials) -> str:
        token = _authenticate(credentials).token or ""
        self.session = replace(self.session, token=token)
        return token


def _authenticate(credentials: Credentials) -> Session:
    # Here, because it brings python-swiftclient and keystoneauth, 0.3 s that --help and --noop do without.
    from ssbench.swift.auth import authenticate

    return authenticate(credentials)


def _reachable(bind_ip: str | None) -> str:
    """Where a worker on this host finds a master that binds there."""
    if bind_ip in {None, "*", "0.0.0.0"}:  # noqa: S104 - compared with, not bound
        return "127.0.0.1"
    return "::1" if bind_ip == "::" else str(bind_ip)


def _worker_advice(arguments: argparse.Namespace, where: BindAddress) -> str:
    """Say what to do, or to wait for, while workers are missing."""
    local = arguments.workers or 0
    if where.ip is None or not where.work_port or (arguments.expect_workers or 1) <= local:
        return f"The {local} local workers are starting; their logs say what keeps them"
    host = "THIS-HOST" if where.ip in {"0.0.0.0", "::"} else where.ip  # noqa: S104 - compared with, not bound
    key = zmq_options.key_file(arguments)
    start = "Start more:" if local else "Start some with --workers N, or on other hosts:"
    return (
        f"{start} ssbench-worker --zmq-host {host} --zmq-work-port {where.work_port}"
        f" --zmq-results-port {where.results_port}"
        + (f" --zmq-key {shlex.quote(str(key))}" if key else "")
        + " ID"
    )


def _report_command(path: Path) -> str:
    name = str(path)
    # A name like an option needs the equals sign.
    option = shlex.quote(f"--stats-file={name}") if name.startswith("-") else f"-s {shlex.quote(name)}"
    return f"{invocation.program()} report-scenario {option}"


def _exit_code(outcome: RunOutcome, master: Master, *, interrupted: bool) -> ExitCode:
    if outcome.error is not None:
        return outcome.error.exit_code
    if interrupted:
        return ExitCode.INTERRUPTED
    if outcome.errors or master.trouble:
        return ExitCode.FAILED
    return ExitCode.OK
