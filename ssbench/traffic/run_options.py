"""The option that lets a run make the requests of a log."""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from ssbench.base.errors import UsageError
from ssbench.cli.asked import Asked
from ssbench.cli.options import Argument, OptionParser, ValueKind, add_options, make_argument_type
from ssbench.cli.parser import Origin

if TYPE_CHECKING:
    from collections.abc import Callable

    from ssbench.scenario.replay_source import Replay
    from ssbench.traffic.replayed_log import ReplayOrder

_log = logging.getLogger(__name__)


def _parse_order(text: str) -> ReplayOrder:
    from ssbench.traffic.replayed_log import parse_replay_order

    return parse_replay_order(text)


def _read_word(word: str) -> Callable[[str], Any]:
    """Return what reads the value of one of the words that may follow the logs."""

    def read(text: str) -> Any:
        from ssbench.traffic.replayed_log import read_order_value

        return read_order_value(word, text)

    return make_argument_type(read)


def add_replay_arguments(parser: OptionParser) -> None:
    """Add the options."""
    add_options(
        parser,
        Argument(
            "--replay",
            ValueKind("LOG", make_argument_type(_parse_order)),
            "instead of a scenario: make the requests of a log (or stat file) at its moments, on objects of"
            " our own: 'proxy.log from 10:00 to 11:00 speed 2 copies 2 format swift'; --rate and --find"
            " change the speed; see doc/own-traffic.rst",
        ),
        *(
            Argument(f"--{word}", ValueKind(metavar, _read_word(word)), help_, settings={"dest": name})
            for name, (word, metavar, help_) in _ORDER_OPTIONS.items()
        ),
    )


#: The words of ``--replay`` that are options too, by their fields of a :class:`ReplayOrder`.
_ORDER_OPTIONS = {
    "begin": (
        "from",
        "MOMENT",
        "begin a --replay there: a time of the day (UTC), a date, or 90s after the first",
    ),
    "end": ("to", "MOMENT", "end a --replay there"),
    "speed": ("speed", "N", "make a --replay so many times as fast as its log"),
    "copies": ("copies", "N", "make each request of a --replay so many times, on other objects"),
}


@dataclass(frozen=True, kw_only=True)
class ReplayAsked(Asked):
    """What was asked of a replay."""

    replay: ReplayOrder | None
    #: Fields of the same; None: as that says.
    begin: str | None = None
    end: str | None = None
    speed: float | None = None
    copies: int | None = None

    def read(self) -> tuple[str, Replay] | None:
        """Return a scenario that says what the log is of, and the log; None where none is to be replayed.

        Raises UsageError, and StatFileError for a file that cannot be read.
        """
        if self.replay is None:
            for name, (word, *_) in _ORDER_OPTIONS.items():
                source = self.find_source(name)
                if source.origin is Origin.LINE:
                    raise UsageError(f"--{word} says how a log is replayed: expected --replay LOG too")
                if source.where:
                    _log.info("%s: --%s is ignored: it is for --replay", source.where, word)
            return None
        values = {name: value for name in _ORDER_OPTIONS if (value := getattr(self, name)) is not None}
        of_replay = self.find_source("replay")
        for name in [each for each in values if each in self.replay.said]:
            word, source = _ORDER_OPTIONS[name][0], self.find_source(name)
            if source.origin is of_replay.origin:
                raise UsageError(f"--{word}: --replay says {word} too: leave out one of them")
            # As elsewhere a variable wins over files, and the command line over both.
            if source.origin is Origin.FILE or of_replay.origin is Origin.LINE:
                _log.info("%s: --%s is ignored: --replay says %s", source.where, word, word)
                del values[name]
        return _read_once(replace(self.replay, **values))


@lru_cache(maxsize=1)  # each way to run has the same
def _read_once(order: ReplayOrder) -> tuple[str, Replay]:
    from ssbench.traffic.replayed_log import read_replay, write_replay_text

    replay = read_replay(order)
    return write_replay_text(replay, order.speed), replay
