"""The option that lets a run make the requests of a log."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from ssbench.cli.asked import Asked
from ssbench.cli.options import Argument, OptionParser, ValueKind, add_options, make_argument_type

if TYPE_CHECKING:
    from ssbench.scenario.replay_source import Replay
    from ssbench.traffic.replayed_log import ReplayOrder


def _parse_order(text: str) -> ReplayOrder:
    from ssbench.traffic.replayed_log import parse_replay_order

    return parse_replay_order(text)


def add_replay_arguments(parser: OptionParser) -> None:
    """Add the option."""
    add_options(
        parser,
        Argument(
            "--replay",
            ValueKind("LOG", make_argument_type(_parse_order)),
            "instead of a scenario: make the requests of a log (or stat file) at its moments, on objects of"
            " our own: 'proxy.log from 10:00 to 11:00 speed 2 copies 2 format swift'; --rate and --find"
            " change the speed; see doc/own-traffic.rst",
        ),
    )


@dataclass(frozen=True, kw_only=True)
class ReplayAsked(Asked):
    """What was asked of a replay."""

    replay: ReplayOrder | None

    def read(self) -> tuple[str, Replay] | None:
        """Return a scenario that says what the log is of, and the log; None where none is to be replayed.

        Raises UsageError, and StatFileError for a file that cannot be read.
        """
        return None if self.replay is None else _read_once(self.replay)


@lru_cache(maxsize=1)  # each way to run has the same
def _read_once(order: ReplayOrder) -> tuple[str, Replay]:
    from ssbench.traffic.replayed_log import read_replay, write_replay_text

    replay = read_replay(order)
    return write_replay_text(replay, order.speed), replay
