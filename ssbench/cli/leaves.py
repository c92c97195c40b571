"""The packages that only some runs need: their options and what these ask for, found by name.

Nothing else imports them, so that one can be understood, tested or left out without the others.
"""

from __future__ import annotations

import argparse
import importlib
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import TYPE_CHECKING, Protocol, cast

if TYPE_CHECKING:
    from ssbench.run.companions import Companion, Companions

#: A module of options in a package of this kind, in the order of the help.
CLUSTER_OPTIONS = "ssbench.cluster.run_options"
METRICS_OPTIONS = "ssbench.monitoring.metrics_options"
WEB_OPTIONS = "ssbench.monitoring.web_options"


class _LeafOptions(Protocol):
    """What such a module has."""

    @staticmethod
    def add_arguments(parser: argparse.ArgumentParser | argparse._ArgumentGroup) -> None:
        """Add the options."""

    @staticmethod
    def companion(arguments: argparse.Namespace) -> AbstractContextManager[Companion | None]:
        """Return a context for all runs; None where the options ask for nothing. It raises UsageError."""


def add_leaf_arguments(name: str, parser: argparse.ArgumentParser | argparse._ArgumentGroup) -> None:
    """Add the options of one of the modules that are named above."""
    _import_options(name).add_arguments(parser)


@contextmanager
def open_companions(arguments: argparse.Namespace) -> Iterator[Companions]:
    """Yield what all of the options ask for; raises UsageError where that is not possible."""
    from ssbench.run.companions import Companions

    with ExitStack() as stack:
        found = [
            stack.enter_context(_import_options(name).companion(arguments))
            for name in (CLUSTER_OPTIONS, METRICS_OPTIONS, WEB_OPTIONS)
        ]
        yield Companions([each for each in found if each is not None])


def _import_options(name: str) -> _LeafOptions:
    return cast(_LeafOptions, importlib.import_module(name))
