"""Finding the objects of a run that reads what exists already: by listing containers, or from a file."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path

from ssbench.base.errors import ClusterError, UsageError
from ssbench.base.untrusted import TooMuchError, read_lines
from ssbench.run.bars import ProgressBar
from ssbench.run.options import ExistingIn, RunOptions
from ssbench.run.tokens import TokenSource
from ssbench.scenario.existing_objects import ExistingObjects
from ssbench.scenario.model import Scenario
from ssbench.scenario.names import MAX_CONTAINER_NAME_BYTES, MAX_OBJECT_NAME_BYTES, may_be_container
from ssbench.store.stores import STORE

_log = logging.getLogger(__name__)

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
                "--existing-list: expected a scenario with one size class, because a list of names tells no"
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
            f"--existing: no object for the group {' and '.join(idle)} in {where}: none has a size of its"
            " size classes"
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
    requests = options.requests
    with ProgressBar(f"Listing {container}", 0) as bar:
        new = 0
        for name, size in STORE.objects(
            tokens.sessions[0],
            container,
            timeouts=(requests.connect_timeout, requests.network_timeout),
            renew=tokens.renewing(0),
            expect=bar.expect,
        ):
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
