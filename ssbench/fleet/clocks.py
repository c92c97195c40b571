"""How the clocks of a worker go against those of the master (pure)."""

from __future__ import annotations

#: The slope of a clock is that between the smallest differences in the first and the last so many seconds, if
#: these are so far apart.
SLOPE_WINDOW = 5.0
SLOPE_SECONDS = 10.0


class Clocks:
    """How a worker's clocks go against the master's, from its heartbeats.

    The slope is that of the offset of the monotonic clocks, between the beginning and the end of the time
    seen: of the smallest difference in each :data:`SLOPE_WINDOW`, which has the shortest time on the way.
    """

    def __init__(self) -> None:
        #: Seconds to add to the worker's time of day to have the master's; None where it is not known.
        self.wall_offset: float | None = None
        self._first: tuple[float, float] | None = None
        self._last: tuple[float, float] | None = None
        self._window: list[tuple[float, float]] = []

    def observe(self, difference: float, received: float, wall_difference: float | None) -> None:
        """Take in a heartbeat: arrival less sending, by the monotonic clocks and by time of day."""
        if wall_difference is not None:
            # The smallest one has the shortest time on the way.
            known = self.wall_offset
            self.wall_offset = wall_difference if known is None else min(known, wall_difference)
        if self._window and received - self._window[0][0] >= SLOPE_WINDOW:
            self._close_window()
        self._window.append((received, difference))

    def _close_window(self) -> None:
        smallest = min(self._window, key=lambda each: each[1])
        self._first, self._last = self._first or smallest, smallest
        self._window.clear()

    @property
    def slope(self) -> float | None:
        """Seconds that the worker's clock loses in each of the master's; None where too little was seen."""
        if self._first is None or self._last is None or self._last[0] - self._first[0] < SLOPE_SECONDS:
            return None
        return (self._last[1] - self._first[1]) / (self._last[0] - self._first[0])
