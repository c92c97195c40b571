"""What a run finds or makes in the cluster before its benchmark: containers, objects, signatures.

:class:`StoreSetup` does all of it, in steps that are functions here. First the run checks that the store can
do what the scenario needs. For reads without a token the master makes signatures, so that workers need no
key. Then containers are made and initial objects uploaded.

Initial objects can be prepared once for many runs, which know their sizes from the scenario. Those that are
there already are found by listing containers, and only these are checked one by one.
"""

from __future__ import annotations

import logging
import math
import random
import time
from array import array
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import accumulate, product
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from ssbench.base.errors import ClusterError, ContainersError, LackingStoreError, UsageError
from ssbench.base.untrusted import TooMuchError, read_lines
from ssbench.document.columns import format_plural
from ssbench.fleet.fleet import GroupWorkers
from ssbench.fleet.phase import Pace, StagedPace
from ssbench.fleet.worker_state import Task
from ssbench.run.bars import ProgressBar, TransferAmount
from ssbench.run.bench_options import ExistingIn, RunOptions
from ssbench.run.group_run import ContainerSet, GroupRun, accounts_of_sessions, merge_container_sets
from ssbench.run.loop import MasterLoop
from ssbench.run.ownership import Ownership
from ssbench.run.phases import FirstTries, InitialUploads, ObjectCheck
from ssbench.run.tokens import TokenSource
from ssbench.scenario.draws import Arrivals, Workload
from ssbench.scenario.existing_objects import ExistingObjects
from ssbench.scenario.forecast import BYTES_PER_SECOND, SECONDS_PER_REQUEST, forecast_scenario
from ssbench.scenario.model import SCENARIO_KEYS, Scenario, SizeClass, Stage, explain_replacement, make_owner
from ssbench.scenario.names import (
    MAX_CONTAINER_NAME_BYTES,
    MAX_OBJECT_NAME_BYTES,
    container_stem,
    match_object_name,
    may_be_container,
    segments_container,
    split_container_number,
    tagged_object_stem,
    versioned_container,
)
from ssbench.scenario.operations import (
    CHECK,
    CREATE,
    SLO,
    UPDATE,
    UPLOAD_IF_MISSING,
    OperationKind,
    OperationSettings,
    resolve_steps,
)
from ssbench.scenario.population import Population
from ssbench.scenario.store_kinds import find_store_kind
from ssbench.store.conformance_checks import CHECKS, StoreVerdict, find_needed_checks
from ssbench.store.contract import ReadSignatures, StoreAccess
from ssbench.store.http.bodies import MetadataShape, find_exceeded_limits, find_posting_settings, posted_shape
from ssbench.store.request_options import parse_addresses
from ssbench.store.stores import STORE, open_dialect

_log = logging.getLogger(__name__)

#: Each store takes objects of so many bytes in one piece, and is not asked.
_SURELY_TAKEN_BYTES = 5 * 2**20

#: What warnings say of verdicts.
_SAID = {StoreVerdict.REFUSED.value: "refuses", StoreVerdict.IGNORED.value: "accepts but ignores"}

#: Each message to a worker holds the signatures of all containers.
MAX_SIGNED_CONTAINERS = 1000

#: A run may take longer than it should; its signatures are of no use once it has ended.
_SIGNATURE_GRACE_SECONDS = 7 * 86400


def refuse_missing_features(
    scenario: Scenario, options: RunOptions, tokens: TokenSource, *, uploads_only: bool = False
) -> None:
    """Raise UsageError where the store says that it lacks what an operation of the scenario needs.

    So it is where the scenario has more metadata than the store takes. A store that does not say what it has
    is not refused. ``uploads_only``: no operations follow the initial uploads.
    """
    names: set[str] = set()
    if not uploads_only:
        names = {name for part in scenario.parts for name in part.operation_names}
        refuse_many_signatures(scenario)
    needed = {
        name: row.needs for row in scenario.operation_table.drawn if (name := row.name) in names and row.needs
    }
    for each in (each for part in scenario.parts for each in part.size_classes):
        if each.segment_size and each.segments == "static":
            needed[f"size class {each.name!r}"] = SLO.needs
    metadata = [*_metadata_shapes(scenario)]
    _refuse_foreign_operations(scenario, tokens, names)
    expiring = any(part.delete_after is not None for part in scenario.parts)
    large = [*_find_large_classes(scenario, options)]
    if not needed and not metadata and not expiring and not large:
        return
    timeouts = options.requests.timeouts
    # What one server has is the same for all accounts.
    for session in {urlsplit(each.storage_url).netloc: each for each in tokens.sessions}.values():
        found = STORE.capabilities(StoreAccess(session, timeouts))
        lacking = [f"{name} needs {feature}" for name, feature in needed.items() if found.lacks(feature)]
        if lacking:
            raise LackingStoreError(
                f"{session.storage_urls[0]}: the cluster lacks what operations of the scenario need:"
                f" {'; '.join(lacking)} (it has {', '.join(sorted(found.features))})"
            )
        if expiring and not found.expires:
            raise LackingStoreError(
                f"{session.storage_urls[0]}: delete_after: the store has no objects that expire"
            )
        limits = found.features.get("swift", {})
        most = limits.get("max_file_size")
        for each in large:
            if isinstance(most, int) and each.largest_piece > most:
                raise UsageError(
                    f"{session.storage_urls[0]}: size class {each.name!r}: up to {each.largest_piece:,} bytes"
                    f" in one piece, and the cluster takes at most {most:,} (max_file_size): segment_size"
                    " divides objects"
                )
        beyond = dict.fromkeys(
            each for shape, owner in metadata for each in find_exceeded_limits(limits, shape, owner)
        )
        if beyond:
            raise LackingStoreError(
                f"{session.storage_urls[0]}: the metadata of the scenario are more than the cluster takes:"
                f" {', '.join(beyond)}"
            )
        if not found.known and (needed or metadata):
            lacking = [*needed.values(), *["room for the metadata of the scenario"] * bool(metadata)]
            _log.info("The cluster does not say whether it has %s", ", ".join(lacking))


def _find_large_classes(scenario: Scenario, options: RunOptions) -> Iterator[SizeClass]:
    """Yield size classes that a store may refuse to take in one piece; none if nothing is uploaded."""
    if options.existing is None:
        for each in (each for part in scenario.parts for each in part.size_classes):
            if each.largest_piece > _SURELY_TAKEN_BYTES and (each.share or each.initial_files):
                yield each


def _refuse_foreign_operations(scenario: Scenario, tokens: TokenSource, names: Collection[str]) -> None:
    """Raise UsageError for operations of these names, and objects, that the API of a store does not have."""
    settings = {each.name: each for part in scenario.parts for each in part.operations}
    asked = [settings.get(name, OperationSettings(name)) for name in sorted(names)]
    asked += [step.settings for each in asked for step in resolve_steps(each.values.get("steps", ()), asked)]
    asked += [
        OperationSettings(
            "segment_size",
            values={"segment_size": each.segment_size, "segments": each.segments, "size_max": each.size_max},
        )
        for part in scenario.parts
        for each in part.size_classes
        if each.segment_size
    ]
    asked += [OperationSettings("policy")] * any(part.policy for part in scenario.parts)
    for session in tokens.sessions:
        if lacks := [why for each in asked for why in STORE.explain_lack(session, each)]:
            url, reasons = session.storage_url, "; ".join(dict.fromkeys(lacks))
            raise LackingStoreError(f"{url}: not possible over {find_store_kind(url).api}: {reasons}")


def refuse_other_host(options: RunOptions, tokens: TokenSource) -> None:
    """Raise UsageError where ``--resolve`` names a host that is in no storage URL."""
    if options.requests.resolve is None:
        return
    hosts = {urlsplit(url).hostname or "" for session in tokens.sessions for url in session.storage_urls}
    for host in parse_addresses(options.requests.resolve):
        if host not in hosts:
            raise UsageError(
                f"--resolve: no storage URL has the host {host} (but {', '.join(sorted(hosts))})"
            )


def leaves_old_parts(scenario: Scenario, options: RunOptions, tokens: TokenSource) -> bool:
    """Whether the store keeps the parts of objects that the scenario updates, as Swift's s3api does.

    Over the S3 API they cannot be found: neither can their container be listed, nor does an object say of
    which upload it is. Other stores delete them.
    """
    updates = any(
        each.segment_size and each.weights.get("update")
        for part in scenario.parts
        for each in part.size_classes
    )
    timeouts = options.requests.timeouts
    return updates and any(
        open_dialect(each.storage_url).uploads_parts
        and STORE.capabilities(StoreAccess(each, timeouts)).keeps_parts
        for each in tokens.sessions
    )


def find_useless_keys(scenario: Scenario, tokens: TokenSource) -> list[str]:
    """Return the keys with a meaning over a kind of store alone that no storage URL is of."""
    kinds = {find_store_kind(url).name for session in tokens.sessions for url in session.storage_urls}
    return [
        key.name
        for key in SCENARIO_KEYS
        if key.only_over not in {"", *kinds}
        and any(getattr(part, key.name) != key.default for part in scenario.parts)
    ]


def is_resumption_useless(scenario: Scenario, tokens: TokenSource) -> bool:
    """Return whether TLS sessions are to be resumed where there is no TLS."""
    asked = any(part.connections is not None and part.connections.tls_resume for part in scenario.parts)
    urls = (url for session in tokens.sessions for url in session.storage_urls)
    return asked and not any("https://" in url for url in urls)


def _metadata_shapes(scenario: Scenario) -> Iterator[tuple[MetadataShape, str]]:
    """Yield how much metadata objects get from a scenario, with what they say of whose they are."""
    for part in scenario.parts:
        written = (0, 0) if part.metadata is None else (part.metadata.number, part.metadata.size)
        own = find_posting_settings(part.operations)
        posts = {each.name for each in part.operation_table if each.posts} & part.operation_names
        for size_class in part.size_classes:
            owner = make_owner(part, size_class)
            if written[0]:
                yield written, owner
            if posts and (own.values or written[0]):
                yield posted_shape(own, written), owner


def refuse_many_signatures(scenario: Scenario) -> None:
    """Raise UsageError where a scenario needs signatures for too many containers, or of several accounts."""
    for part in scenario.parts:
        signed = _signed_operations(part)
        if signed and part.accounts > 1:
            raise UsageError(f"{signed[0].name}: not possible with several accounts: each would need a key")
        if signed and part.container_count > MAX_SIGNED_CONTAINERS:
            raise UsageError(
                f"{signed[0].name}: possible with {MAX_SIGNED_CONTAINERS:,} containers at most,"
                f" not with {part.container_count:,}"
            )


def _signed_operations(scenario: Scenario) -> list[OperationKind]:
    return [row for row in scenario.operation_table if row.signed and row.name in scenario.operation_names]


def sign_reads(
    parts: Sequence[GroupRun], options: RunOptions, tokens: TokenSource, stop: Callable[[], bool]
) -> ReadSignatures | None:
    """Give the workers of each part that needs them signatures for its containers.

    Returns what ends them; None where no part needs any. ``stop`` says whether to wait no longer until the
    cluster takes them. Raises UsageError and ClusterError. See :func:`refuse_many_signatures`.
    """
    needing = [part for part in parts if _signed_operations(part.scenario)]
    if not needing:
        return None
    session = needing[0].places[0].session(tokens.sessions)
    access = StoreAccess(session, options.requests.timeouts, tokens.renewing(0))
    features = STORE.capabilities(access).features.get(_signed_operations(needing[0].scenario)[0].needs, {})
    longest = max(part.scenario.run_seconds or 0.0 for part in needing)
    signed = STORE.sign(access, int(time.time() + longest) + _SIGNATURE_GRACE_SECONDS)
    try:
        for part in needing:
            part.workers.change(signed=signed.queries(part.places[0].containers, features, stop))
    except BaseException:
        signed.end()
        raise
    return signed


# -- First tries ----------------------------------------------------------------------------------


def try_features(parts: Sequence[GroupRun], tokens: TokenSource, loop: MasterLoop) -> int:
    """Try what the store might ignore of what the scenarios of the parts ask for, once each.

    Warns of what is not done, by name. Returns how many of these things are ignored. What is tried is in the
    first container of the part. Raises UsageError where nothing could be written.
    """
    known: set[tuple[str, int]] = set()
    ignored = 0
    for part in parts:
        url = part.places[0].session(tokens.sessions).storage_urls[0]
        kinds = {"", find_store_kind(url).name}
        checks = [each for each in find_needed_checks([part.scenario]) if each.only_over in kinds]
        numbers = [CHECKS.index(each) for each in checks]
        numbers = [number for number in numbers if (url, number) not in known]
        known.update((url, number) for number in numbers)
        if not numbers or loop.interrupted.is_set():
            continue
        with ProgressBar("First tries", len(numbers)) as bar:
            phase = FirstTries(numbers, bar, loop.interrupted.is_set)
            loop.run(phase, pace=part.load.closed, workers=part.workers)
        for number, (verdict, detail) in sorted(phase.findings.items()):
            if verdict == StoreVerdict.DONE.value:
                continue
            ignored += verdict == StoreVerdict.IGNORED.value
            check = CHECKS[number]
            why = f" ({detail})" if detail else ""
            if check.otherwise:
                mode = part.scenario.s3_payload
                raise UsageError(
                    f"s3_payload: {mode} is not possible at {url}, which {_SAID[verdict]} {check.what}{why}:"
                    f" use {check.otherwise}"
                )
            instead = f"; {check.instead}" if verdict == StoreVerdict.IGNORED.value and check.instead else ""
            loop.news.warn(f"{check.name}: the store {_SAID[verdict]} {check.what}{why}{instead}")
    return ignored


# -- Initial objects that are prepared for many runs -----------------------------------------------


#: How many of the prepared objects of a run are looked at before it, drawn at random.
CHECKED_OBJECTS = 1000

#: Rows of listings between two looks at whether the run was interrupted.
_ROWS_BETWEEN_LOOKS = 1000

_MISSING_SIZE = -1

#: A fill accepts so many other objects, or that share of its own: marks, and what killed runs left.
_FEW_OTHER_OBJECTS, _MAX_OTHERS_SHARE = 100, 0.1


class FoundObjects:
    """The sizes of the initial objects of a part that are in its containers, from their listings."""

    def __init__(self, part: GroupRun, *, trusted: bool = False) -> None:
        self._trusted = trusted
        self._state = part.state
        self._workload = part.workload
        self._template = part.scenario.object_names
        self._classes = {name: index for index, name in enumerate(part.names)}
        classes = part.scenario.size_classes
        self._classes_of = classes
        #: Those of one size whose segments are dynamic: listings say 0 of these.
        self._looked_for = {
            place
            for place, each in enumerate(classes)
            if each.segments == "dynamic" and each.size_min == each.size_max
        }
        self._sizes = [array("q", [_MISSING_SIZE]) * (each.initial_files + 1) for each in classes]
        self._places = [part.workload.initial_containers(index) for index in range(len(classes))]
        #: How many are there with another size than they should have; known when all tasks were made.
        self.replaced = 0
        #: How many names of listings were those of initial objects, and how many were others.
        self.noted = self.others = 0
        #: How many are there and are not looked at; known when all tasks were made.
        self.unseen = 0
        #: When the first task was asked for that uploads an object (``time.monotonic()``); None: none was.
        self.uploads_began: float | None = None

    def add(self, container: int, name: str, size: int) -> None:
        """Note an object, which may be any."""
        stem, number = match_object_name(self._template, name)
        index = self._classes.get(stem)
        if index is None or not 0 < number < len(self._sizes[index]):
            self.others += 1
        elif self._places[index][number - 1] == container:
            self._sizes[index][number] = size
            self.noted += 1
        else:  # of a run with other containers: it would stay beside the one in its place
            self.others += 1

    @property
    def _stride(self) -> int:
        """Of so many objects that are there one is looked at."""
        return max(1, self.noted // CHECKED_OBJECTS) if self._trusted else 1

    def guess_unseen(self) -> int:
        """Return how many will not be looked at, to one, if all have the size that they should have."""
        return self.noted - self.noted // self._stride

    def tasks(self) -> Iterator[Task]:
        """Yield what uploads the objects that are not there, and looks whose the others are.

        Of a part that is trusted it looks at some of these; they come at equal distances, so that none is
        waited for long.
        """
        stride = self._stride
        place = random.randrange(stride)
        for index, container, number, size in self._workload.initial_objects():
            found = self._sizes[index][number]
            self.replaced += found not in {_MISSING_SIZE, size}
            code = CREATE.code
            if found == size or (not found and index in self._looked_for):
                code = UPLOAD_IF_MISSING.code
            elif found != _MISSING_SIZE and self._classes_of[index].segment_size:
                code = UPDATE.code  # its segments go
            if code == UPLOAD_IF_MISSING.code:
                place += 1
                if place % stride:
                    self._state.add_initial(index, number, size)
                    self.unseen += 1
                    continue
            elif self.uploads_began is None:
                self.uploads_began = time.monotonic()
            yield code, index, container, number, size


def find_prepared_objects(
    part: GroupRun, tokens: TokenSource, options: RunOptions, loop: MasterLoop
) -> FoundObjects:
    """List the containers of a part, until the run is interrupted. Raises ClusterError."""
    found = FoundObjects(part, trusted=options.fill is not None)
    containers = part.places[0].containers
    with ProgressBar("Listing containers", part.scenario.container_numbers) as bar:
        for number in range(part.scenario.container_numbers):
            account, own = split_container_number(number, part.scenario.accounts)
            place = part.places[account]
            rows = STORE.objects(
                place.access(tokens, options.requests.timeouts), containers[own], expect=lambda _: None
            )
            for row, (name, size) in enumerate(rows):
                if not row % _ROWS_BETWEEN_LOOKS and loop.interrupted.is_set():
                    return found
                found.add(number, name, size)
            bar.advance()
    return found


def check_prepared_objects(parts: Sequence[GroupRun], loop: MasterLoop) -> int:
    """Let all initial objects be there; returns how many were looked at.

    Raises ClusterError where one of these is not as prepared, and what :meth:`MasterLoop.run` raises.
    """
    counts = [sum(each.initial_files for each in part.scenario.size_classes) for part in parts]
    total = sum(counts)
    chosen = sorted(random.sample(range(total), min(total, CHECKED_OBJECTS)))
    _log.info("Looking at %d of the %s prepared objects", len(chosen), f"{total:,}")
    looked = 0
    for part, begins, count in zip(parts, accumulate([0, *counts]), counts, strict=False):
        own = {place - begins for place in chosen if begins <= place < begins + count}
        tasks = []
        for place, each in enumerate(part.workload.initial_objects()):
            index, _, number, size = each
            part.state.add_initial(index, number, size)
            if place in own:
                tasks.append((CHECK.code, *each))
        with ProgressBar("Prepared objects", len(tasks)) as bar:
            phase = ObjectCheck(iter(tasks), bar, loop.interrupted.is_set)
            loop.run(phase, pace=part.load.closed, workers=part.workers)
        looked += len(tasks)
        if phase.failed and not loop.interrupted.is_set():
            raise ClusterError(
                f"--prepared: {phase.failed} of {len(tasks)} initial objects in a sample are not there as"
                f" prepared: {phase.failure_text()} (ssbench-master prepare uploads them)"
            )
    return looked


# -- Objects that exist already --------------------------------------------------------------------


#: A bar advances by so many objects at once.
_BAR_STEP = 10_000

#: Bytes of a line of a list: two slashes, and its end.
_LONGEST_LINE = MAX_CONTAINER_NAME_BYTES + MAX_OBJECT_NAME_BYTES + 4


def find_existing_objects(
    scenario: Scenario, options: RunOptions, wanted: ExistingIn, tokens: TokenSource
) -> ExistingObjects:
    """Return the objects for a scenario; raises UsageError or ClusterError where there are none."""
    found = ExistingObjects(scenario)
    if wanted.file is not None:
        if not found.only_class:
            raise UsageError(
                "--existing @FILE: expected a scenario with one size class, because a list of names tells no"
                " sizes by which objects could be sorted into several"
            )
        for container, name in _read_names(wanted.file):
            found.add(container, name, None)
    for container in dict.fromkeys(wanted.containers):
        _list_container(container, found, options, tokens)
    where = ", ".join([*map(repr, wanted.containers), *([str(wanted.file)] if wanted.file else [])])
    if not len(found):
        why = f" (all {found.skipped:,} have sizes outside its size classes)" if found.skipped else ""
        raise ClusterError(f"--existing: no object for the scenario in {where}{why}")
    if idle := found.idle_groups():
        raise ClusterError(
            f"--existing: no object for the group {' and '.join(idle)} in {where}: no size fits its size"
            " classes"
        )
    skipped = f"; {found.skipped:,} others skipped: their sizes do not fit" if found.skipped else ""
    _log.info(
        "Existing objects: %s in %s, only read%s", f"{len(found):,}", _format_containers(found), skipped
    )
    for name in found.empty_classes():
        _log.warning("No existing object is of size class %r: its operations are left out", name)
    return found


def _format_containers(found: ExistingObjects) -> str:
    count = len(found.containers)
    return "1 container" if count == 1 else f"{count:,} containers"


def _list_container(container: str, found: ExistingObjects, options: RunOptions, tokens: TokenSource) -> None:
    access = StoreAccess(tokens.sessions[0], options.requests.timeouts, tokens.renewing(0))
    with ProgressBar(f"Listing {container}", 0) as bar:
        new = 0
        for name, size in STORE.objects(access, container, expect=bar.expect):
            found.add(container, name, size)
            new += 1
            if new == _BAR_STEP:
                bar.advance(new)
                new = 0
        bar.advance(new)


def _read_names(path: Path) -> Iterator[tuple[str, str]]:
    """Yield container and object of each line of a file; raises UsageError."""
    empty = True
    try:
        for number, line in enumerate(read_lines(path, _LONGEST_LINE), 1):
            text = line.rstrip(b"\r\n")
            if not text:
                continue
            container, _, name = text.removeprefix(b"/").partition(b"/")
            if not may_be_container(container) or not 0 < len(name) <= MAX_OBJECT_NAME_BYTES:
                raise UsageError(
                    f"{path}:{number}: expected CONTAINER/OBJECT, of at most {MAX_CONTAINER_NAME_BYTES} and"
                    f" {MAX_OBJECT_NAME_BYTES} bytes, not {text[:80].decode('utf-8', 'replace')!r}"
                )
            empty = False
            yield container.decode(), name.decode()
    except UnicodeDecodeError:
        raise UsageError(f"{path}:{number}: expected UTF-8 text") from None
    except TooMuchError as error:
        raise UsageError(f"{path}: expected CONTAINER/OBJECT on each line: {error}") from None
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror}") from None
    if empty:
        raise UsageError(f"{path}: expected CONTAINER/OBJECT on each line, and there is none")


# -- Making containers and uploading initial objects -----------------------------------------------


#: With this containers keep the versions of their objects.
_VERSIONS_HEADER = {"X-Versions-Enabled": "true"}

#: What containers in accounts of one token need.
_ADMIN_ADVICE = (
    " (the one token for all accounts has to be a reseller admin's, and the cluster has to make accounts by"
    " itself, account_autocreate; else give a list of credentials, --credentials)"
)


class _InterruptedError(Exception):
    """Ends the making of containers."""


def make_run_containers(
    parts: Sequence[GroupRun], options: RunOptions, tokens: TokenSource, loop: MasterLoop, mark: str | None
) -> None:
    """Make the containers of a run, until it is interrupted; workers get a token that was renewed meanwhile.

    ``mark`` is what the requests carry in their transaction ids. Raises ClusterError.
    """
    try:
        alike: dict[ContainerSet, list[ContainerSet]] = {}
        for place in merge_container_sets(place for part in parts for place in part.places):
            alike.setdefault(replace(place, account=0), []).append(place)
        for places in alike.values():
            using = [part.scenario for part in parts if part.places[0] in places[0]]
            rows = (each.operation_table.named(name) for each in using for name in each.operation_names)
            own = dict(parts[0].scenario.container_put_headers)
            beside = [(versioned_container, own | _VERSIONS_HEADER)]
            beside *= any(row.beside for row in rows)
            if not open_dialect(places[0].session(tokens.sessions).storage_url).uploads_parts:
                beside += [(segments_container, own)] * any(scenario.has_segments for scenario in using)
            _make_container_sets(
                places, parts[0].scenario, options, tokens, loop, mark, kinds=[(str, own), *beside]
            )
    except _InterruptedError:
        return
    for part in parts:
        sessions = [place.session(tokens.sessions) for place in part.places]
        token, accounts = sessions[0].token, accounts_of_sessions(sessions)
        if (part.workers.parameters.token, part.workers.parameters.accounts) != (token, accounts):
            part.workers.change(token=token, accounts=accounts)


def _make_container_sets(
    places: Sequence[ContainerSet],
    scenario: Scenario,
    options: RunOptions,
    tokens: TokenSource,
    loop: MasterLoop,
    mark: str | None,
    *,
    kinds: Sequence[tuple[Callable[[str], str], Mapping[str, str]]],
) -> None:
    """Make the containers of places that differ in their accounts.

    ``kinds`` are what makes their names, and of those beside each, of the usual ones, with their headers.
    """
    place = places[0]
    over_apis = any(side.api for side in options.sides)  # then several places may be one account

    def check() -> None:
        if loop.interrupted.is_set():
            raise _InterruptedError

    _log.info(
        "Making sure that %s (%s*%s) exist%s%s, %d at once%s",
        format_plural(place.container_count, "container"),
        container_stem(place.container_base),
        f"{container_stem(place.container_base)[-1]}{place.policy}" if place.policy else "",
        "s" if place.container_count == 1 else "",
        "" if len(places) < 2 else " over each API" if over_apis else f" in each of {len(places)} accounts",
        scenario.container_concurrency,
        "" if place.storage_url is None else f", at {place.storage_url}",
    )
    with ProgressBar("Containers", len(places) * len(kinds) * place.container_count) as bar:
        for each, (name_of, headers) in product(places, kinds):
            try:
                STORE.prepare(
                    each.access(tokens, options.requests.timeouts, mark),
                    [*map(name_of, each.containers)],
                    each.policy,
                    scenario.container_concurrency,
                    bar.advance,
                    check=check,
                    headers=headers,
                )
            except ContainersError as error:
                raise ContainersError(f"{error}{_ADMIN_ADVICE if tokens.shared else ''}") from None


def upload_initial_objects(
    scenario: Scenario,
    options: RunOptions,
    workload: Workload,
    state: Population,
    loop: MasterLoop,
    *,
    pace: Pace | None = None,
    workers: GroupWorkers | None = None,
    found: FoundObjects | None = None,
) -> InitialUploads:
    """Upload the initial objects that are not there yet, until interrupted; return what came of it.

    ``pace`` and ``workers`` are as in :meth:`~ssbench.run.loop.MasterLoop.run`. ``found`` is what is there;
    without it each object is looked for. Warns of those that could not be uploaded. Raises ClusterError if
    not one could be, or where a fill finds many other objects in the containers, and what
    :meth:`~ssbench.run.loop.MasterLoop.run` raises.
    """
    total = sum(each.initial_files for each in scenario.size_classes)
    if found is not None and options.fill is not None:
        refuse_other_objects(found.others, total)
        if options.fill.rate is not None:
            pace = _make_fill_pace(options.fill.rate, scenario.user_count, loop.clock())
    _log.info("Uploading initial objects where they are not there yet (%d)", total)
    tasks = workload.initial_uploads() if found is None else found.tasks()
    count = total if found is None else total - found.guess_unseen()
    upload_bytes = forecast_scenario(scenario).upload_bytes * (count / total if total else 1.0)
    # A request counts as so many bytes in the guess at the time that is left.
    request = SECONDS_PER_REQUEST * BYTES_PER_SECOND / scenario.user_count
    with ProgressBar("Initial objects", count, TransferAmount(upload_bytes, request)) as bar:
        uploads = InitialUploads(tasks, state, bar, loop.interrupted.is_set)
        loop.run(uploads, pace=pace, workers=workers)
    if found is not None:
        uploads.reused += found.unseen
        if options.fill is not None and found.uploads_began is not None:
            uploads.seconds = time.monotonic() - found.uploads_began
        uploads.replaced += min(found.replaced, uploads.uploaded)
        uploads.uploaded -= min(found.replaced, uploads.uploaded)
    if not options.noop:
        others = uploads.owners.total()
        why = explain_replacement(uploads.replaced, others, verified=options.verify, exact=found is not None)
        _log.info(
            "Initial objects: %d uploaded, %d replaced%s, %d reused",
            uploads.uploaded,
            uploads.replaced,
            f" ({why})" if why else "",
            uploads.reused,
        )
        for name, count in uploads.owners.items():
            _log.info(
                "%s of the scenario %r had the names of this scenario's initial objects and were overwritten",
                format_plural(count, "object"),
                name,
            )
    if uploads.failed and not loop.interrupted.is_set():
        if not uploads.succeeded:
            raise ClusterError(
                f"not one of the {total} initial objects could be uploaded: {uploads.failure_text()}"
            )
        loop.news.warn(
            f"{uploads.failed} of {total} initial objects could not be uploaded: {uploads.failure_text()}"
        )
    return uploads


def refuse_other_objects(others: int, total: int) -> None:
    """Raise ClusterError where containers have clearly more objects than a fill is to make."""
    if others > max(_FEW_OTHER_OBJECTS, _MAX_OTHERS_SHARE * total):
        raise ClusterError(
            f"the containers have {others:,} other objects beside the {total:,} that are looked at: give"
            " others (--set container_base=NAME), or delete these (ssbench-master cleanup-containers)"
        )


def _make_fill_pace(rate: float, users: int, now: float) -> StagedPace:
    """Return a pace of so many uploads a second, with so many users at most."""
    plan = (Stage(math.inf, users=(users, users), rate=(rate, rate)),)
    return StagedPace(plan, Arrivals(plan, "even", 0), now)


# -- All of the setup ------------------------------------------------------------------------------


class StoreSetup:
    """What is in the cluster for a run.

    ``tokens`` is None in a no-op run, ``existing`` where it makes its objects itself. ``tag`` is what keeps
    their names apart from those of other runs. ``trouble``: not all initial objects are there.
    """

    def __init__(
        self,
        scenario: Scenario,
        options: RunOptions,
        tokens: TokenSource | None,
        parts: Sequence[GroupRun],
        loop: MasterLoop,
        run_id: int,
        mark: str | None,
        existing: ExistingObjects | None = None,
    ) -> None:
        self.tag = ""
        self.trouble = False
        #: Whether updates leave old parts that the run does not find.
        self.leaves_old_parts = False
        #: Whether there may be containers, or more, of this run.
        self.has_begun = False
        self._scenario = scenario
        self._options = options
        self._tokens = tokens
        self._parts = parts
        self._loop = loop
        self._run_id = run_id
        self._mark = mark
        self._existing = existing
        self._ownership: Ownership | None = None
        #: How many of the objects that were prepared for it were looked at.
        self._sampled = 0
        #: How many things that the scenario asks for the store ignores.
        self._ignored = 0
        #: Signatures that are good while the run is in progress.
        self._signed: ReadSignatures | None = None

    def _stop(self) -> bool:
        return self._loop.interrupted.is_set()

    def prepare(self, *, only: bool = False) -> None:
        """Make containers, find out about other runs, upload initial objects, until interrupted.

        ``only``: no benchmark follows, and what is there is found by listing containers. Raises
        WorkerError when all workers vanish, UsageError where the cluster lacks something, ClusterError when
        Swift takes no container or not one of the initial objects, or where they are not as prepared.
        """
        if self._tokens is not None:
            refuse_missing_features(self._scenario, self._options, self._tokens, uploads_only=only)
            refuse_other_host(self._options, self._tokens)
            self.leaves_old_parts = not only and leaves_old_parts(self._scenario, self._options, self._tokens)
            for key in find_useless_keys(self._scenario, self._tokens):
                api = find_store_kind(self._tokens.sessions[0].storage_url).api
                self._loop.news.warn(f"{key} has no effect: the storage URL is of {api}")
            if is_resumption_useless(self._scenario, self._tokens):
                self._loop.news.warn("tls_resume has no effect: the storage URL begins with http, not https")
        if self._existing is not None:
            for part in self._parts:
                self._existing.fill(part.state)
                part.workers.paths = self._existing.paths
            return
        if self._tokens is not None:
            self.has_begun = True
            make_run_containers(self._parts, self._options, self._tokens, self._loop, self._mark)
            if self._stop():
                return
            self._begin_ownership(self._tokens, apart=not (only or self._options.prepared))
            if self._stop():
                return
            if not only:
                self._ignored = try_features(self._parts, self._tokens, self._loop)
                self._signed = sign_reads(self._parts, self._options, self._tokens, self._stop)
        if self._options.prepared:
            self._sampled = check_prepared_objects(self._parts, self._loop)
        else:
            self._upload(only=only)
        failed = any(part.uploads.failed for part in self._parts if part.uploads is not None)
        self.trouble = failed and not self._stop()
        if not failed and self._ownership is not None:
            self._ownership.ready()

    def _upload(self, *, only: bool) -> None:
        for part in self._parts:
            found = self._find(part) if only and self._tokens is not None else None
            if self._stop():
                return
            part.uploads = upload_initial_objects(
                part.scenario,
                self._options,
                part.workload,
                part.state,
                self._loop,
                pace=part.load.closed,
                workers=part.workers,
                found=found,
            )

    def _find(self, part: GroupRun) -> FoundObjects | None:
        """Find out which initial objects of a part are there; None where the run is interrupted meanwhile."""
        if TYPE_CHECKING:
            assert self._tokens is not None
        return find_prepared_objects(part, self._tokens, self._options, self._loop)

    def _begin_ownership(self, tokens: TokenSource, *, apart: bool) -> None:
        """Find out whether the objects of other runs may have the names of this one's.

        Raises ClusterError where they would have to be ``apart`` and cannot be, because they were prepared.
        """
        self._ownership = Ownership(
            self._scenario,
            merge_container_sets(place for part in self._parts for place in part.places),
            self._options,
            tokens,
            self._loop,
            run_id=self._run_id,
            trans_id_extra=self._mark,
        )
        self.tag = self._ownership.begin()
        if self.tag and not apart:
            raise ClusterError(
                "another run is under way in the same containers and may write prepared objects: wait for"
                " its end"
            )
        for part in self._parts if self.tag else ():
            # No other run will find its initial objects.
            part.state.owns_initial = True
            part.workers.change(size_classes=[tagged_object_stem(each, self.tag) for each in part.names])

    def counts(self) -> dict[str, float]:
        """Return what the stat file keeps of how many objects were made or found; nothing of a no-op run."""
        found: Counter[str] = Counter()
        for part in self._parts if self._tokens is not None else ():
            found.update(part.uploads.counts() if part.uploads is not None else {})
        if self._existing is not None:
            found.update({"existing": len(self._existing), "existing_skipped": self._existing.skipped})
        if self._sampled:
            found["initial_sampled"] = self._sampled
        if self._ignored:
            found["features_ignored"] = self._ignored
        found.update(dict(self._options.filled))
        return dict(found)

    @property
    def containers(self) -> list[str]:
        """The names of the containers, where these cannot be derived."""
        return [] if self._existing is None else self._existing.containers

    def look_around(self) -> None:
        """Look for runs that began since; after the benchmark, before the report."""
        if self._ownership is not None:
            self._ownership.look()

    def leave(self, kept: int, *, at_once: bool) -> None:
        """Take marks and signatures away; the last thing to be called. See :meth:`Ownership.end`."""
        if self._signed is not None:
            self._signed.end()
        if self._ownership is not None:
            self._ownership.end(kept, at_once=at_once)
