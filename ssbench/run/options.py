"""What runs are carried out with, and how: frozen records, one for a bench and one for each of its runs."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ssbench.errors import UsageError
from ssbench.fleet.addresses import BindAddress
from ssbench.results import OBJECT_TAG
from ssbench.run.error_limit import ErrorLimit
from ssbench.swift.credentials import Credentials


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchOptions:
    """The workers and the Swift that all runs of a bench share.

    ``workers`` processes are started on this machine; each can do ``concurrency`` operations at once (None:
    as many as the runs need). Other workers connect to ``address`` (None: there are none). ``key_file``
    holds the key of a sealed fleet. ``credentials`` say where Swift is; with ``local_swift`` one is started
    on this machine instead, with ``policies`` besides gold, silver and that of the first run. No-op runs
    need neither. ``second_credentials`` are of the second side, in runs whose sides are two accounts.
    With ``profile`` local workers write profiles.

    Raises UsageError when no worker could ever come.
    """

    workers: int = 0
    concurrency: int | None = None
    address: BindAddress | None = None
    key_file: Path | None = None
    credentials: Credentials | None = None
    second_credentials: Credentials | None = None
    local_swift: bool = False
    policies: tuple[str, ...] = ()
    profile: bool = False

    def __post_init__(self) -> None:
        _check("workers", self.workers, 0)
        _check("concurrency", self.concurrency, 1)
        if not self.workers and self.address is None:
            raise UsageError("workers or address: one of them is needed, or no worker can come")


@dataclass(frozen=True, slots=True)
class Side:
    """One of the two sides of a run that compares them: a storage URL, a storage policy, or an account.

    An account has neither: the bench has its credentials.
    """

    name: str
    storage_url: str | None = None
    policy: str | None = None

    def __str__(self) -> str:
        return f"{self.name}={self.storage_url or self.policy or 'account'}"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """How a scenario is run. Times are in seconds.

    ``seed`` draws the same operations again (None: a random one). ``noop`` does everything but the requests.
    ``keep_objects`` leaves what the run created. ``batch_size`` is the most jobs of a message (None: as many
    as there are to send), ``block_size`` the bytes that a worker sends or receives at once.
    ``request_timeout`` bounds a whole attempt of a request (None: three times ``network_timeout``). A request
    that failed for a passing reason is tried again ``retries``
    times, one that found no object ``retry_404`` times. ``give_up_after`` ends a run in which nothing
    succeeds any more (0: never), and so do more failures than ``max_errors`` allows (None: never). With
    ``mark_transactions`` transaction ids in Swift's logs end in a mark of the run. With ``verify`` reads are
    checked against what was written, and initial objects of earlier runs are written again. With
    ``find_warmup``
    reports look for the warm-up by themselves. The run begins with ``expect_workers`` (None: the local ones,
    or the first of others), or with fewer after ``worker_timeout``.

    With two ``sides`` each object belongs to one of them. Both have a storage URL, and the credentials of the
    bench have these two, or both have a policy, or the bench has credentials for each.

    Results go to ``stats_file`` (None: a new file in the folder of :mod:`ssbench.run.state_folder`), which is
    overwritten only with ``force``; ``label`` is kept in it. With ``profile`` the benchmark is profiled.

    Raises UsageError for numbers that are out of range.
    """

    seed: int | None = None
    noop: bool = False
    keep_objects: bool = False
    batch_size: int | None = None
    block_size: int = 65536
    connect_timeout: float = 10.0
    network_timeout: float = 20.0
    request_timeout: float | None = None
    retries: int = 10
    retry_404: int = 0
    give_up_after: float = 60.0
    mark_transactions: bool = True
    expect_workers: int | None = None
    worker_timeout: float = 60.0
    find_warmup: bool = False
    label: str | None = None
    sides: tuple[Side, ...] = ()
    stats_file: Path | None = None
    force: bool = False
    profile: bool = False
    max_errors: ErrorLimit | None = None
    verify: bool = False

    def __post_init__(self) -> None:
        for name in ("batch_size", "block_size", "expect_workers"):
            _check(name, getattr(self, name), 1)
        for name in ("seed", "retries", "retry_404", "give_up_after"):
            _check(name, getattr(self, name), 0)
        for name in ("connect_timeout", "network_timeout", "request_timeout", "worker_timeout"):
            _check(name, getattr(self, name), 1e-9)


def _check(name: str, value: float | None, least: float) -> None:
    if value is not None and not value >= least:
        expected = "a number above 0" if 0 < least < 1 else f"{least:g} or more"
        raise UsageError(f"{name}: expected {expected}, not {value!r}")


def recorded(bench: BenchOptions, run: RunOptions, mark: str | None, tag: str = "") -> dict[str, object]:
    """Return what the stat file keeps of the options, nothing secret.

    ``mark`` is that of transaction ids, ``tag`` that of the names of objects, if there is one.
    """
    return {
        "batch_size": run.batch_size,
        "block_size": run.block_size,
        "connect_timeout": run.connect_timeout,
        "network_timeout": run.network_timeout,
        "request_timeout": run.request_timeout,
        "retries": run.retries,
        "retry_404": run.retry_404,
        "give_up_after": run.give_up_after,
        "max_errors": None if run.max_errors is None else str(run.max_errors),
        "noop": run.noop,
        "verify": run.verify,
        "label": run.label,
        "sides": [str(side) for side in run.sides] or None,
        "warmup": "auto" if run.find_warmup else None,
        "trans_id_extra": mark,
        OBJECT_TAG: tag or None,
        "keep_objects": run.keep_objects,
        "local_workers": bench.workers or None,
        "local_swift": bench.local_swift,
        "sealed": bench.key_file is not None,
    }
