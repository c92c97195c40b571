"""What a run finds or makes in the cluster before its benchmark: containers, objects, marks of other runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ssbench.base.errors import ClusterError
from ssbench.run import prepared
from ssbench.run.loop import MasterLoop
from ssbench.run.options import RunOptions
from ssbench.run.ownership import Ownership
from ssbench.run.part import GroupRun
from ssbench.run.places import merge_container_sets as places_apart
from ssbench.run.preparation import make_run_containers, upload_initial_objects
from ssbench.run.requirements import (
    is_resumption_useless,
    refuse_missing_features,
    refuse_other_host,
    sign_reads,
)
from ssbench.run.tokens import TokenSource
from ssbench.scenario.existing_objects import ExistingObjects
from ssbench.scenario.model import Scenario
from ssbench.scenario.names import tagged_object_stem
from ssbench.store.contract import ReadSignatures


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
            if is_resumption_useless(self._scenario, self._tokens):
                self._loop.news.warn("tls_resume has no effect: the storage URL begins with http, not https")
        if self._existing is not None:
            for part in self._parts:
                self._existing.fill(part.state)
                part.crew.paths = self._existing.paths
            return
        if self._tokens is not None:
            make_run_containers(self._parts, self._options, self._tokens, self._loop, self._mark)
            if self._stop():
                return
            self._begin_ownership(self._tokens, apart=not (only or self._options.prepared))
            if self._stop():
                return
            if not only:
                self._signed = sign_reads(self._parts, self._options, self._tokens, self._stop)
        if self._options.prepared:
            self._sampled = prepared.check_prepared_objects(self._parts, self._loop)
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
                crew=part.crew,
                found=found,
            )

    def _find(self, part: GroupRun) -> prepared.FoundObjects | None:
        """Find out which initial objects of a part are there; None where the run is interrupted meanwhile."""
        if TYPE_CHECKING:
            assert self._tokens is not None
        return prepared.find_prepared_objects(part, self._tokens, self._options, self._loop)

    def _begin_ownership(self, tokens: TokenSource, *, apart: bool) -> None:
        """Find out whether the objects of other runs may have the names of this one's.

        Raises ClusterError where they would have to be ``apart`` and cannot be, because they were prepared.
        """
        self._ownership = Ownership(
            self._scenario,
            places_apart(place for part in self._parts for place in part.places),
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
            part.crew.change(size_classes=[tagged_object_stem(each, self.tag) for each in part.names])

    def counts(self) -> dict[str, float]:
        """Return what the stat file keeps of how many objects were made or found; nothing of a no-op run."""
        found: Counter[str] = Counter()
        for part in self._parts if self._tokens is not None else ():
            found.update(part.uploads.counts() if part.uploads is not None else {})
        if self._existing is not None:
            found.update({"existing": len(self._existing), "existing_skipped": self._existing.skipped})
        if self._sampled:
            found["initial_sampled"] = self._sampled
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
