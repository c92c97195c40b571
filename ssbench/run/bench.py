"""What several runs share: sockets, workers, a token, local workers, a local Swift.

A :class:`Bench` owns them. A :class:`Companion` accompanies the runs of a bench for somebody else: it watches
the cluster, or receives results while they come in.
"""

from __future__ import annotations

import logging
import os
import shlex
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Protocol

import zmq

from ssbench.base.errors import KeyFileError, UsageError
from ssbench.base.interruption import Interrupts
from ssbench.base.own_processes import check_memory_available
from ssbench.base.socket_folders import socket_folder
from ssbench.document.columns import format_plural
from ssbench.fleet import keys, wire
from ssbench.fleet.addresses import BindAddress, is_loopback
from ssbench.fleet.fleet import Fleet
from ssbench.fleet.sockets import MasterSockets
from ssbench.results.block import Goal, Sink
from ssbench.results.cluster_observation import ClusterObserver
from ssbench.results.run_description import RunSummary
from ssbench.run import worker_messages
from ssbench.run.bench_options import BenchOptions, NamedStore, RunOptions, RunSide, refuse_past_moment
from ssbench.run.benchmark_run import BenchmarkRun, RunOutcome
from ssbench.run.core_split import choose_cores
from ssbench.run.folders import reserve_stats_path
from ssbench.run.group_run import make_users_even, refuse_sides
from ssbench.run.load_samples import import_local_swift
from ssbench.run.progress import WorkerView
from ssbench.run.run_workers import (
    FINDING_SECONDS,
    LocalWorkers,
    find_waiting_workers,
    mark_worker_left,
    note_ended_workers,
)
from ssbench.run.setup import find_existing_objects, refuse_missing_features, refuse_other_host
from ssbench.run.tokens import TokenSource
from ssbench.run.trial_swift import TrialSwift
from ssbench.scenario.existing_objects import refuse_writes
from ssbench.scenario.master_shares import take_master_share
from ssbench.scenario.model import Scenario, make_upload_scenario
from ssbench.scenario.names import make_account_names
from ssbench.scenario.store_kinds import STORE_KINDS
from ssbench.store.stores import STORE, Credentials

if TYPE_CHECKING:
    from ssbench.results.cluster_observation import ClusterObserver

_log = logging.getLogger(__name__)

#: Job ids of at most this many users are in flight; a larger number is taken for a mistake.
_MAX_USERS = 10_000_000

#: So many keys are named.
_MAX_NAMED_KEYS = 10


class TrialStore(AbstractContextManager["TrialStore"], Protocol):
    """A store that runs are made against, started on this machine for them; a context manager."""

    @property
    def version(self) -> str:
        """The version of its software, once it is started."""

    @property
    def log_directory(self) -> Path:
        """Where its servers write their logs."""

    def restart_ended(self) -> None:
        """Start those of its servers again that have ended."""

    def credentials(self, *, all_accounts: bool) -> Credentials:
        """Return credentials of a user, or of one who may use ``all_accounts``."""


class Bench:
    """A context manager that carries out any number of runs, one after another.

    Entering binds the sockets and raises UsageError or KeyFileError where that fails. Local workers, a token
    and a local Swift are there from the first run on that needs them; those that have ended meanwhile are
    started again. Leaving ends what was started.

    In the main thread it handles SIGINT, SIGTERM and SIGHUP: the first ends a run early, a second one makes
    :meth:`run` raise KeyboardInterrupt where that does no harm. Between runs SIGINT does what it did before.
    One thread at a time may use it, and that which enters must last, because the local Swift ends with it;
    :meth:`interrupt` can be called from any thread.
    """

    def __init__(self, options: BenchOptions) -> None:
        self.options = options
        self._stack = ExitStack()
        self._interrupts = Interrupts(reloads=options.key_file is not None)
        self._address = BindAddress(None)
        self._fleet: Fleet | None = None
        self._local: LocalWorkers | None = None
        self._concurrency = 0
        #: By their settings and the name of the side or the store that has one for itself alone.
        self._trial_stores: dict[tuple[TrialSwift, str], TrialStore] = {}
        #: Those of all runs, each with its credentials and the names of the accounts for which one token is.
        self._tokens: list[tuple[list[Credentials], list[str], TokenSource]] = []
        self._run: BenchmarkRun | None = None

    def __enter__(self) -> Bench:
        with ExitStack() as stack:
            stack.enter_context(self._interrupts)
            with self._interrupts.busy():
                self._begin(stack)
            self._stack = stack.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._fleet = None
        with self._interrupts.busy():
            self._stack.__exit__(kind, value, trace)

    def _begin(self, stack: ExitStack) -> None:
        """Bind the sockets; what is to be ended later goes to ``stack``."""
        if self.options.offer is None or not self._use_waiting_workers(stack, self.options.offer):
            self._listen(stack, self._choose_address(stack))
        if (
            self.options.key_file is None
            and self._address.ip is not None
            and not is_loopback(self._address.ip)
        ):
            _log.warning(
                "Anyone who can connect to %s can obtain jobs and the token: seal the fleet with"
                " 'ssbench-master keygen FILE' and --zmq-key FILE on every host",
                self._address.ip,
            )
        stack.callback(self._stop_local_workers)

    def _listen(self, stack: ExitStack, address: BindAddress) -> Fleet:
        """Bind the sockets at an address, until ``stack`` ends; raises UsageError and KeyFileError."""
        self._address = address
        fleet_key = keys.read_fleet_key(self.options.key_file) if self.options.key_file else None
        check_memory_available()
        sockets = stack.enter_context(MasterSockets(address, fleet_key))
        if fleet_key is not None:
            self._interrupts.reload = lambda: _read_keys_again(sockets)
        self._fleet = Fleet(sockets)
        return self._fleet

    def _use_waiting_workers(self, stack: ExitStack, offer: BindAddress) -> bool:
        """Listen where workers may be waiting; return whether some came, which are used then.

        Where none came, nobody listens there any more: a run measures with local workers or with others.
        """
        ports = f"ports {offer.work_port} and {offer.results_port}"
        with ExitStack() as offered:
            try:
                fleet = self._listen(offered, offer)
            except UsageError as error:
                why = str(error)
            else:
                if found := find_waiting_workers(fleet):
                    _log.info(
                        "Using %s that connected to %s (--workers N: local ones instead)",
                        format_plural(len(found), "worker"),
                        ports,
                    )
                    self.options = replace(self.options, workers=0, address=offer)
                    stack.push(offered.pop_all())
                    return True
                unused = worker_messages.describe_not_ready(fleet.roster.not_ready(time.monotonic()))
                why = f"No worker connected to {ports} within {FINDING_SECONDS:g} s"
                why = f"{why} and can be used: {unused}" if unused else why
        self._fleet = None
        _log.warning(
            "%s: using %s (--workers N: local ones at once; --expect-workers N: wait for others)",
            why,
            format_plural(self.options.workers, "local worker"),
        )
        return False

    def run(
        self,
        scenario: Scenario,
        options: RunOptions | None = None,
        *,
        sinks: Sequence[Sink] = (),
        on_measured: Callable[[RunOutcome], None] | None = None,
        observer: ClusterObserver | None = None,
        goal: Goal | None = None,
    ) -> RunOutcome:
        """Carry out a scenario and return how it went.

        ``sinks`` receive the results beside the stat file. ``on_measured`` is called with the outcome so far
        when the stat file is complete, before what the run created is deleted. ``observer``, an entered one,
        watches the cluster; what it saw is in the summary and in the stat file. ``goal`` receives the
        results too, and ends the benchmark when it is reached.

        Raises SsbenchError where the benchmark cannot begin (a wrong option, no worker, no token, no
        container or initial object can be made), and KeyboardInterrupt; the next run is possible all the
        same. What ends the benchmark after that is in the outcome. What a sink raises ends the run, with its
        stat file and its clean-up, and is raised then.
        """
        options = options or RunOptions()
        scenario = self._check(scenario, options)
        options = replace(options, events=(*scenario.events, *options.events))
        if options.sides:
            scenario = make_users_even(scenario)
        with (
            self._interrupts.busy(),
            reserve_stats_path(options.stats_file, scenario, time.time(), force=options.force) as path,
        ):
            run = self._make(scenario, options, observer=observer, goal=goal)
            with self._going_on(run):
                outcome = run.carry_out(path, sinks, on_measured)
            return run.note_late_interrupt(outcome)

    def prepare(self, scenario: Scenario, options: RunOptions | None = None) -> RunOutcome:
        """Make the containers of a scenario and upload its initial objects, for runs that are ``prepared``.

        What is there already is reused. Returns how it went, without a stat file; raises what :meth:`run`
        does.
        """
        options = options or RunOptions()
        if options.part or options.sides or options.existing or options.prepared:
            raise UsageError("prepare: expected options without part, sides, existing and prepared")
        self._check(scenario, options)
        with self._interrupts.busy():
            run = self._make(make_upload_scenario(scenario), options, prepares=True)
            with self._going_on(run):
                outcome = run.prepare()
            return run.note_late_interrupt(outcome)

    def check(self, scenario: Scenario, options: RunOptions) -> None:
        """Raise what :meth:`run` would raise of a scenario that is wrong for the store; before many runs.

        It authenticates, and starts the local Swift.
        """
        with self._interrupts.busy():
            self._check(scenario, options)
            if options.noop:
                return
            tokens = self._token_source(scenario, options)
            if options.existing is None:
                _choose_container_bases(scenario, tokens)
            refuse_missing_features(scenario, options, tokens)
            refuse_other_host(options, tokens)

    def _check(self, scenario: Scenario, options: RunOptions) -> Scenario:
        """Return what this master does of a scenario; raises UsageError where that cannot be."""
        if not isinstance(scenario, Scenario):
            raise UsageError(
                f"scenario: expected a Scenario, not {scenario!r:.80} (see ssbench.load_scenario)"
            )
        if options.part is not None:
            scenario = take_master_share(scenario, options.part)
        if options.start_at is not None:
            refuse_past_moment(options.start_at, time.time())
        if scenario.user_count > _MAX_USERS:
            raise UsageError(f"{scenario.user_count} users are more than {_MAX_USERS}")
        if options.sides:
            refuse_sides(scenario)
        if options.existing is not None:
            refuse_writes(scenario)
        if scenario.events and not options.allow_events:
            raise UsageError(
                f"events: the scenario runs commands on this host ({scenario.events[0]}, ...):"
                " --allow events lets it, once you have read them"
            )
        self._check_accounts(scenario, options)
        if options.store is not None:
            self._find_store(options.store)
        elif not options.noop and not self.options.local_swift and self.options.credentials is None:
            raise UsageError("credentials or local_swift: one of them is needed, except for no-op runs")
        return scenario

    def _check_accounts(self, scenario: Scenario, options: RunOptions) -> None:
        """Raise UsageError where a scenario cannot be carried out in as many accounts."""
        if scenario.accounts > 1 and options.sides:
            raise UsageError("--ab: not possible with several accounts; each side can be one (NAME=@FILE)")
        if scenario.accounts > 1 and options.existing is not None:
            raise UsageError("existing: not possible with several accounts: expected objects of one")
        given = 1 + len(self.options.further_credentials)
        if options.store is not None and self._find_store(options.store).credentials is not None:
            given = 1
        if given > 1 and not options.sides and not options.noop and given != scenario.accounts:
            raise UsageError(f"accounts: {scenario.accounts} in the scenario, and {given} credentials")

    def _make(self, scenario: Scenario, options: RunOptions, **more: Any) -> BenchmarkRun:
        """Return a run, whose local workers have been started."""
        fleet = self._fleet
        if fleet is None:
            raise RuntimeError("a Bench is a context manager: it has to be entered first")
        local = self._local_workers(scenario.user_count, fleet)
        if self.options.local_swift and not self.options.workers and not fleet.roster.living():
            # Who tries ssbench on one machine has probably forgotten them: say so before Swift starts.
            _log.warning("No worker yet. %s", self._advice(options))
        tokens = None if options.noop else self._token_source(scenario, options)
        options = self._add_versions(options)
        existing = None
        if tokens is not None and options.existing is None:
            scenario = _choose_container_bases(scenario, tokens)
        if options.existing is not None and tokens is not None:
            existing = find_existing_objects(scenario, options, options.existing, tokens)
        return BenchmarkRun(
            scenario if existing is None else existing.scenario(),
            options,
            self.options,
            fleet=fleet,
            work_port=self._address.work_port,
            local_workers=local,
            tokens=tokens,
            advice=self._advice(options),
            existing=existing,
            **more,
        )

    @contextmanager
    def _going_on(self, run: BenchmarkRun) -> Iterator[None]:
        """Let signals, and :meth:`interrupt`, end a run in this context."""
        with self._interrupts.armed(run.interrupt, run.interrupt_at_once):
            self._run = run
            try:
                yield
            finally:
                self._run = None

    def interrupt(self) -> None:
        """End the run in progress early, as Ctrl-C does; without one there is no effect."""
        run = self._run
        if run is not None:
            _log.warning("Interrupted: %s", run.interrupt())

    def workers(self) -> tuple[int, int]:
        """Return how many workers the run in progress can use, and how many are expected."""
        return self._run.workers.counts() if self._run is not None else (0, 0)

    def worker_views(self) -> list[WorkerView]:
        """Return how busy each worker is that the run in progress uses, or used."""
        return self._run.workers.views() if self._run is not None else []

    def so_far(self) -> tuple[Path, RunSummary] | None:
        """Return the stat file of a benchmark in progress, and what else is known of it; None before."""
        return self._run.so_far() if self._run is not None else None

    def capacity(self) -> int:
        """Return how many operations the workers that are there can run at once."""
        return self._fleet.capacity if self._fleet is not None else 0

    def use_local_workers(self, count: int) -> None:
        """Have this many local workers from the next run on; possible where some were started."""
        if not self.options.workers or count < 1:
            raise UsageError("the number of local workers can change where there are some, to 1 or more")
        if count != self.options.workers:
            self._stop_local_workers()
            self.options = replace(self.options, workers=count)

    # -- workers ------------------------------------------------------------------------------

    def _choose_address(self, stack: ExitStack) -> BindAddress:
        """Where to listen; without other workers, none of the ports that other runs may want is taken."""
        options = self.options
        if not options.workers:
            return options.address or BindAddress(None)
        with ExitStack() as made:
            folder = str(made.enter_context(socket_folder()))
            if len(os.fsencode(folder)) + len("/65535") >= zmq.IPC_PATH_MAX_LEN:
                # It is removed at once: no worker would know of it if this process were killed.
                return options.address or BindAddress("127.0.0.1", 0, 0)
            stack.enter_context(made.pop_all())
        return replace(options.address or BindAddress(None), folder=folder)

    def _local_workers(self, users: int, fleet: Fleet) -> LocalWorkers | None:
        """Start local workers, again where they have ended or have no room for this many users."""
        options = self.options
        if not options.workers:
            return None
        concurrency = options.concurrency or min(
            -(-max(users, options.first_room) // options.workers), wire.MAX_JOBS
        )
        if self._local is not None and concurrency > self._concurrency:
            _log.info("The local workers are started again, with room for more users")
            self._stop_local_workers()
        if self._local is None:
            self._concurrency = concurrency
            self._local = LocalWorkers(
                options.workers, self._worker_arguments(fleet.ports, concurrency), profile=options.profile
            )
            started = self._local.workers
        else:
            note_ended_workers(self._local, fleet.roster)
            started = self._local.start_ended()
        for worker in started:
            _log.info(
                "Local worker %d: %s at once, log %s",
                worker.worker_id,
                format_plural(self._concurrency, "operation"),
                worker.log,
            )
        return self._local

    def _worker_arguments(self, ports: tuple[int, int], concurrency: int) -> list[str]:
        arguments = [
            f"--zmq-host={self._address.folder or _reachable_address(self._address.ip)}",
            f"--zmq-work-port={ports[0]}",
            f"--zmq-results-port={ports[1]}",
            f"--concurrency={concurrency}",
            "--allow=/",  # what the master has allowed; it has the same rights
        ]
        if self.options.key_file:
            arguments.append(f"--zmq-key={self.options.key_file}")
        return arguments

    def _stop_local_workers(self) -> None:
        if self._local is not None:
            self._local.stop()
            if self._fleet is not None:
                for worker in self._local.workers:
                    mark_worker_left(worker, self._fleet.roster, "it was told to")
            self._local = None

    def _advice(self, options: RunOptions) -> str:
        """Say what to do, or to wait for, while workers are missing."""
        local, where = self.options.workers, self._address
        if where.ip is None or not where.work_port or (options.expect_workers or 1) <= local:
            if local == 1:
                return "The local worker is starting; if it takes long, see its log"
            return "Local workers are starting; if they take long, see their logs"
        host = "THIS-HOST" if where.ip in {"0.0.0.0", "::"} else where.ip  # noqa: S104 - compared with, not bound
        start = "Start more:" if local else "Start some with --workers N, or on other hosts:"
        key_file = self.options.key_file
        return (
            f"{start} ssbench-worker --zmq-host {host} --zmq-work-port {where.work_port}"
            f" --zmq-results-port {where.results_port}"
            + (f" --zmq-key {shlex.quote(str(key_file))}" if key_file else "")
        )

    # -- Swift --------------------------------------------------------------------------------

    def _find_store(self, name: str) -> NamedStore:
        """Return one of the stores; raises UsageError."""
        for each in self.options.stores:
            if each.name == name:
                return each
        known = ", ".join(each.name for each in self.options.stores)
        raise UsageError(f"store: expected one of {known or 'none'}, not {name!r}")

    def _token_source(self, scenario: Scenario, options: RunOptions) -> TokenSource:
        """Return what authenticates for a run; where stores have names, each of them is tried before."""
        own = [*filter(None, [self.options.credentials, *self.options.further_credentials])]
        self._start_trial_stores([(scenario, *each) for each in self._list_swifts(options)])
        if swifts := self._list_own_swifts(options):
            own = [self._credentials_of(scenario, *each) for each in swifts]
        if any(side.api and not side.storage_url for side in options.sides):
            own = [_over_api(own[0], side.api, f"side {side.name}") for side in options.sides]
        if options.store is None:
            return self._tokens_of(own, scenario)
        found = {}
        for each in self.options.stores:
            swift = _find_store_swift(each)
            started = own if swift is None else [self._credentials_of(scenario, *swift)]
            found[each.name] = self._tokens_of(_of_store(each, started), scenario)
        return found[options.store]

    def start_swifts(self, runs: Iterable[tuple[Scenario, RunOptions]]) -> None:
        """Start the Swifts of runs that are compared with each other, their servers in turn.

        Each run starts those that are missing then. Raises UsageError and ClusterError.
        """
        with self._interrupts.busy():
            asked = []
            for scenario, options in runs:
                self._check(scenario, options)
                if not options.noop:
                    asked += [(scenario, *each) for each in self._list_swifts(options)]
            self._start_trial_stores(asked)

    def _list_own_swifts(self, options: RunOptions) -> list[tuple[TrialSwift, str]]:
        """Return the Swifts of the sides of a run, or else the one that is no store's, if it needs that."""
        if sides := _list_side_swifts(options):
            return sides
        of_stores = options.store and all(each.swift for each in self.options.stores)
        return [(options.swift, "")] if self.options.local_swift and not of_stores else []

    def _list_swifts(self, options: RunOptions) -> list[tuple[TrialSwift, str]]:
        """Return the Swifts of a run, each with the side or store that has it for itself alone."""
        stores = self.options.stores if options.store is not None else ()
        return [*self._list_own_swifts(options), *filter(None, map(_find_store_swift, stores))]

    def _tokens_of(self, credentials: list[Credentials], scenario: Scenario) -> TokenSource:
        """Return what authenticates with some credentials, the same one each time."""
        names = []
        if scenario.accounts > 1 and len(credentials) == 1:
            names = make_account_names(scenario.account_base, scenario.accounts)
        for known, of_names, tokens in self._tokens:
            if (known, of_names) == (credentials, names):
                return tokens
        if not self._tokens:
            self._stack.callback(STORE.end)
        made = TokenSource(credentials, names)
        self._tokens.append((credentials, names, made))
        return made

    def list_access_logs(self, options: RunOptions) -> list[Path]:
        """Return the folders with logs of each request, of Swifts that were started for a run with such."""
        asked = _list_side_swifts(options)
        if not asked and options.store is not None:
            asked = [*filter(None, [_find_store_swift(self._find_store(options.store))])]
        started = [
            self._trial_stores.get(each) for each in asked or [(options.swift, "")] if each[0].access_logs
        ]
        return [each.log_directory for each in started if each is not None]

    def _add_versions(self, options: RunOptions) -> RunOptions:
        """Return the options of a run with the versions and cores of the Swifts that were started for it."""

        def add(swift: TrialSwift, name: str = "") -> TrialSwift:
            started = self._trial_stores.get((swift, name))
            cores = swift.cores or choose_cores(os.sched_getaffinity(0))
            return swift if started is None else replace(swift, version=started.version, cores=cores)

        own = add(options.swift)
        if options.store is not None and (of_store := _find_store_swift(self._find_store(options.store))):
            own = add(*of_store)
        sides = [
            replace(each, swift=add(*of_side)) if (of_side := _find_side_swift(each)) else each
            for each in options.sides
        ]
        return replace(options, swift=own, sides=tuple(sides))

    def _start_trial_stores(self, asked: Iterable[tuple[Scenario, TrialSwift, str]]) -> None:
        """Start those Swifts that are not there already; raises UsageError and ClusterError."""
        made: dict[tuple[TrialSwift, str], TrialStore] = {}
        for scenario, swift, name in asked:
            key = swift, name
            if key not in self._trial_stores and key not in made:
                made[key] = self._make_trial_store(scenario, swift, name)
        if not made:
            return
        import_local_swift().start_swifts([*made.values()])
        for store in made.values():
            self._stack.push(store)
        self._trial_stores.update(made)

    def _credentials_of(self, scenario: Scenario, swift: TrialSwift, name: str) -> Credentials:
        """Return the credentials of a Swift that was started, all of whose servers run."""
        store = self._trial_stores[swift, name]
        store.restart_ended()
        found = store.credentials(all_accounts=scenario.accounts > 1)
        return replace(found, name=name) if name else found

    def _make_trial_store(self, scenario: Scenario, swift: TrialSwift, name: str) -> TrialStore:
        """Return the Swift of a run, not started yet."""
        own = [*swift.policies] or ["gold", "silver"]
        names = {each.partition(":")[0] for each in own}
        asked = dict.fromkeys(filter(None, [scenario.policy, *self.options.policies]))
        described = ", ".join(" ".join(each) for each in swift.describe().items())
        words = f"{swift.release and ' '}{swift.release}{described and ' with '}{described}"
        owner = f" for {name}" if name else ""
        local_swift = import_local_swift()
        made: TrialStore = local_swift.LocalSwift(
            policies=[*own, *(each for each in asked if each not in names)],
            layout=local_swift.Layout(replicas=swift.replicas, access_logs=swift.access_logs),
            swift_settings=swift.settings,
            swift_filters=swift.filters,
            release=swift.release,
            title=f"the local Swift{words}{owner}",
        )
        _log.info("Starting a Swift%s on this machine%s", words, owner)
        return made


def _over_api(credentials: Credentials, api: str, name: str) -> Credentials:
    """Return the credentials by which the account of a bench is reached over an API."""
    urls = tuple(filter(None, [STORE_KINDS[api].prefix]))
    return replace(credentials, storage_urls=urls, name=name)


def _find_side_swift(side: RunSide) -> tuple[TrialSwift, str] | None:
    """Return the Swift that is started for a side, and the name of what has it."""
    return None if side.swift is None else (side.swift, f"side {side.name}")


def _list_side_swifts(options: RunOptions) -> list[tuple[TrialSwift, str]]:
    """Return the Swifts that are started for the sides of a run, each with the name of what has it."""
    return [*filter(None, map(_find_side_swift, options.sides))]


def _find_store_swift(store: NamedStore) -> tuple[TrialSwift, str] | None:
    """Return the Swift that is started for a store, and the name of what has it.

    Stores that name their API share one where they are the same, and so have none for themselves alone.
    """
    return None if store.swift is None else (store.swift, "" if store.api else f"store {store.name}")


def _of_store(store: NamedStore, own: Sequence[Credentials]) -> list[Credentials]:
    """Return the credentials of a store of a bench that has credentials of its ``own``."""
    if store.credentials is not None:
        return [store.credentials]
    return [_over_api(each, store.api, f"store {store.name}") if store.api else each for each in own]


def _choose_container_bases(scenario: Scenario, tokens: TokenSource) -> Scenario:
    """Return a scenario whose containers can have their names in every store; raises UsageError."""

    def choose(base: str) -> str:
        for session in tokens.sessions:
            base = STORE.container_base(session, base)
        return base

    groups = tuple(
        replace(each, container_base=None if each.container_base is None else choose(each.container_base))
        for each in scenario.groups
    )
    return replace(scenario, container_base=choose(scenario.container_base), groups=groups)


def _read_keys_again(sockets: MasterSockets) -> None:
    """Read the list of the workers' keys again, and say what has changed; a wrong one changes nothing."""
    try:
        added, revoked = sockets.read_keys_again()
    except KeyFileError as error:
        _log.error("The keys stay as they were: %s", error)
        return
    changes = [*_format_names(added, "added"), *_format_names(revoked, "revoked")]
    _log.info("Keys read again: %s", "; ".join(changes) or "as before")


def _format_names(names: Sequence[str], what: str) -> list[str]:
    more = " and more" if len(names) > _MAX_NAMED_KEYS else ""
    return [f"{what} {', '.join(names[:_MAX_NAMED_KEYS])}{more}"] if names else []


def _reachable_address(bind_ip: str | None) -> str:
    """Where a worker on this host finds a master that binds there."""
    if bind_ip in {None, "*", "0.0.0.0"}:  # noqa: S104 - compared with, not bound
        return "127.0.0.1"
    return "::1" if bind_ip == "::" else str(bind_ip)


# -- Companions: observers of the cluster, receivers of results ------------------------------------


class Companion(Protocol):
    """What an option of run-scenario asks for; it lasts for all runs of a program."""

    @property
    def observer(self) -> ClusterObserver | None:
        """What watches the cluster; None where it does not."""

    def open_sinks(self, scenario: Scenario, bench: Bench) -> AbstractContextManager[list[Sink]]:
        """Return a context for one run, or for several of one scenario: the sinks of their results.

        Entering raises UsageError where one cannot be made.
        """


class Companions:
    """Several companions as one."""

    def __init__(self, companions: Sequence[Companion]) -> None:
        self._companions = companions
        #: What watches the cluster.
        self.observer = next((each.observer for each in companions if each.observer is not None), None)

    @contextmanager
    def open_sinks(self, scenario: Scenario, bench: Bench) -> Iterator[list[Sink]]:
        """Yield the sinks of all; raises UsageError where one cannot be made."""
        with ExitStack() as stack:
            yield [
                sink
                for each in self._companions
                for sink in stack.enter_context(each.open_sinks(scenario, bench))
            ]
