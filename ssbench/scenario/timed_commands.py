"""Commands that are run at moments of a benchmark, as a scenario and the command line have them.

They are apart from other values, because ``--help`` needs them, and nothing else of a scenario.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ssbench.base import text_values
from ssbench.scenario.value_rules import Rule, is_number, shorten_value

#: A run with more of them is a mistake.
_MAX_EVENTS = 100
_MAX_COMMAND_CHARACTERS = 10_000
_MAX_EVENT_SECONDS = 1e9

_EXPECTED_EVENTS = (
    "a list of mappings with at, seconds from the beginning of the run on, and command, a text for a shell"
)


@dataclass(frozen=True, slots=True)
class TimedCommand:
    """A command that is run at a moment of the benchmark."""

    at: float  # seconds after its beginning
    command: str  # what a shell gets

    def __str__(self) -> str:
        return f"{self.at:g} s: {self.command}"


def make_timed_command(at: Any, command: object) -> TimedCommand:
    """Return a command at a time, which may have a unit; raises ValueError."""
    seconds = text_values.parse_seconds(at) if isinstance(at, str) else at
    if not is_number(seconds) or not 0 <= seconds <= _MAX_EVENT_SECONDS:
        raise ValueError(f"at: expected a time of 0 or more, {text_values.TIME_EXAMPLES}, not {at!r}")
    if not isinstance(command, str) or not command.strip() or "\0" in command:
        raise ValueError("expected a command that is not empty")
    if len(command) > _MAX_COMMAND_CHARACTERS:
        raise ValueError(f"expected a command of at most {_MAX_COMMAND_CHARACTERS:,} characters")
    return TimedCommand(float(seconds), command)


def _parse_events(value: object) -> object:
    if not isinstance(value, list) or not all(
        isinstance(each, dict) and each.keys() == {"at", "command"} for each in value
    ):
        raise ValueError(f"expected {_EXPECTED_EVENTS}, not {shorten_value(value)}")
    return tuple(make_timed_command(each["at"], each["command"]) for each in value)


EVENTS_RULE = Rule(
    lambda value: isinstance(value, tuple) and len(value) <= _MAX_EVENTS,
    f"at most {_MAX_EVENTS} commands",
    convert=_parse_events,
)
