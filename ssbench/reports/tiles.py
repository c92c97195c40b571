"""The figures of a run that are read at a glance, with how each went over time. Pages have them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from ssbench.document import Tile, Tiles, Tone
from ssbench.figures import FIGURES
from ssbench.figures.limits import BUSY_CPU
from ssbench.figures.units import number, percent, seconds
from ssbench.statistics import RunStatistics
from ssbench.verdict.asked import asked_of, delivered_of


def tiles(statistics: RunStatistics) -> Tiles:
    """Return them; none of a run without results."""
    return Tiles([] if statistics.start is None else [*_tiles(statistics)])


def _tiles(statistics: RunStatistics) -> Iterator[Tile]:
    total, over_time = statistics.total, statistics.over_time
    asked, delivered = asked_of(statistics), delivered_of(statistics)
    everything = over_time.operations[None] if over_time else None
    lasted = np.maximum(over_time.seconds, 1e-9) if over_time else np.empty(0)
    courses: dict[str, Sequence[float]] = {}
    if everything is not None and over_time is not None:
        courses = {
            "rate": (everything.count / lasted).tolist(),
            "mb_per_s": (everything.moved / lasted).tolist(),
            "p50": everything.p50.tolist(),
            "p99": everything.p99.tolist(),
            "errors": everything.failed.tolist() if total.failed else [],
            "users": over_time.under_way.tolist(),
        }
    notes = {
        "rate": f"of {number(asked.rate)} asked for" if asked.rate else "",
        "errors": f"{percent(FIGURES['errors'].share(total, statistics))} % of all" if total.failed else "",
    }
    for key in ("rate", "mb_per_s", "p50", "p99", "errors"):
        figure = FIGURES[key]
        yield Tile(
            figure.title,
            figure.text(total, statistics),
            "ms" if figure.unit.shown == "ms" else "",
            notes.get(key, ""),
            Tone.BAD if key == "errors" and total.failed else None,
            courses.get(key, ()),
        )
    if delivered.users is not None:
        yield Tile(
            "users busy",
            number(delivered.users),
            f"of {asked.users:g}" if asked.users else "",
            values=courses.get("users", ()),
        )
    yield from _generator(statistics)


def _generator(statistics: RunStatistics) -> Iterator[Tile]:
    """Yield how busy the load generator itself was: its busiest process."""
    own = statistics.generator
    shares = [("a worker", each.cpu_share) for each in own.workers]
    shares += [("the master", own.master.cpu_share)] if own.master else []
    known = [(share, who) for who, share in shares if share is not None]
    if not known:
        return
    share, who = max(known)
    stalled = sum(gap.seconds for gap in own.gaps)
    note = f"stalled for {seconds(stalled)} s" if stalled else f"of a core: {who}"
    yield Tile(
        "generator CPU",
        percent(share),
        "%",
        note,
        _tone(share, limited=bool(own.limits or stalled)),
    )


def _tone(share: float, *, limited: bool) -> Tone | None:
    return Tone.DOUBTFUL if limited or share > BUSY_CPU else None
