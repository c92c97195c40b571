"""Known names that a user may have meant by an unknown one."""

from __future__ import annotations

from collections.abc import Iterable

#: Maximum number of names to offer; the least likeness, and how much less than the best one a name may have.
_MAX_SUGGESTIONS = 3
_MIN_LIKENESS = 0.6
_MAX_LIKENESS_GAP = 0.12


def find_similar(wrong: str, known: Iterable[str]) -> list[str]:
    """Return the known names most like a wrong one, the likeliest first; none where none is like it."""
    import difflib  # noqa: PLC0415 - few calls need it

    names = {name.lower(): name for name in known}
    wanted = wrong.lower()
    likeness = {name: difflib.SequenceMatcher(None, name, wanted).ratio() for name in names}
    least = max(_MIN_LIKENESS, max(likeness.values(), default=0.0) - _MAX_LIKENESS_GAP)
    found = sorted((name for name in names if likeness[name] >= least), key=lambda name: -likeness[name])
    if len(wanted) > 1:  # "run" is less like "run-scenario" than "kill-workers" is like "kill"
        found += [name for name in names if name.startswith(wanted) and name not in found]
    return [names[name] for name in found[:_MAX_SUGGESTIONS]]


def did_you_mean(wrong: str, known: Iterable[str]) -> str:
    """Return ``; did you mean A or B?`` to append to a message, nothing where no name is like it."""
    names = find_similar(wrong, known)
    return f"; did you mean {' or '.join(names)}?" if names else ""
