"""The clock of a recording: ticks to nanoseconds and to the time of day.

Nanoseconds are those of `sigmund sql`, to the last one: computed in 64-bit floating point from the exact difference of ticks,
and rounded towards zero.
"""

import re
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from sigmund.errors import SigmundError, UnknownNameError

# Columns that hold instants, which count from the first event; all other ticks are lengths.
INSTANTS = frozenset({"ts_tick", "from_tick", "to_tick", "before_tick", "after_tick", "parent_tick"})

# The columns whose sum is the instant at which a length of a table begins.
BEGINS = {
    "dur_tick": ("ts_tick",),
    "latency_tick": ("ts_tick",),
    "wait_tick": ("ts_tick",),
    "hold_tick": ("ts_tick", "wait_tick"),
}

UNITS_NS = {"ns": 1, "us": 1_000, "ms": 1_000_000, "s": 1_000_000_000}

# Ticks have 64 bits.
LAST_TICK = 2**63 - 1

Ticks = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Clock:
    """How the main clock of a recording counts."""

    # Ticks per second; None if it is not known: then there are no nanoseconds.
    tick_hz: float | None
    # The instants of the first and of the last event; None if there is no event.
    first_tick: int | None
    last_tick: int | None
    # Snapshots of CLOCK_REALTIME, in the order of ticks: the tick, and ns since 1970.
    realtime: tuple[tuple[int, int], ...] = ()

    def length_ns(self, ticks: Any) -> pd.Series:
        """Lengths in ticks, as nanoseconds (Int64); NA stays NA, and all is NA if the rate is not known."""
        ticks = pd.Series(ticks, dtype="Int64")
        if self.tick_hz is None:
            return pd.Series(pd.NA, index=ticks.index, dtype="Int64", name=ticks.name)
        missing = ticks.isna().to_numpy()
        nanos = ticks.fillna(0).to_numpy(dtype=np.int64).astype(np.float64) * 1e9 / self.tick_hz
        return pd.Series(
            pd.arrays.IntegerArray(nanos.astype(np.int64), missing), index=ticks.index, name=ticks.name
        )

    def since_start_ns(self, ticks: Any) -> pd.Series:
        """Instants in ticks, as nanoseconds since the first event (Int64)."""
        return self.length_ns(pd.Series(ticks, dtype="Int64") - (self.first_tick or 0))

    def length_from_ns(self, begins: Any, ticks: Any) -> pd.Series:
        """Lengths of what begins at these instants, in nanoseconds (Int64): the end converted, less the begin converted.

        So intervals that meet in ticks meet in nanoseconds, too.
        """
        begins = pd.Series(begins, dtype="Int64")
        return self.since_start_ns(begins + pd.Series(ticks, dtype="Int64")) - self.since_start_ns(begins)

    def wall_time(self, ticks: Any) -> pd.Series:
        """Instants in ticks, as times of day in UTC, to the nanosecond.

        Between two snapshots of CLOCK_REALTIME that the merge used, it is on the line through them; before the first and
        after the last, the main clock's rate continues. A step of CLOCK_REALTIME between two snapshots is spread over the
        time between them.

        Raises SigmundError if the trace has no snapshot of CLOCK_REALTIME, or no rate.
        """
        if not self.realtime or self.tick_hz is None:
            what = "tick_hz" if self.tick_hz is None else "snapshot of CLOCK_REALTIME in the table clocks"
            raise SigmundError(f"the time of day is not known: the trace has no {what}")
        instants = pd.Series(ticks, dtype="Int64")
        missing = instants.isna().to_numpy()
        values: Ticks = instants.fillna(0).to_numpy(dtype=np.int64)
        at = np.array([tick for tick, _ in self.realtime], dtype=np.int64)
        ns = np.array([ns for _, ns in self.realtime], dtype=np.int64)
        # The slope after each snapshot, in ns per tick; `before` is the snapshot that an instant is counted from.
        slope = np.append(np.diff(ns) / np.diff(at), 1e9 / self.tick_hz)
        before = np.searchsorted(at, values, side="right") - 1
        slope_there = np.where(before < 0, 1e9 / self.tick_hz, slope[before])
        before = np.maximum(before, 0)
        wall = ns[before] + np.floor((values - at[before]) * slope_there).astype(np.int64)
        times = pd.Series(pd.to_datetime(wall, unit="ns", utc=True), index=instants.index, name=instants.name)
        return times.mask(missing)

    def tick(self, when: int | str | pd.Timedelta) -> int:
        """An instant: a tick, or how long after the first event ("1.5ms", "+3s", or a Timedelta).

        Rounded to the nearest tick, as `--from` and `--to` are.
        """
        if isinstance(when, (int, np.integer)):
            tick = int(when)
        elif self.tick_hz is None or self.first_tick is None:
            raise SigmundError(f"{when}: the trace has no tick_hz or no event: expected a tick")
        else:
            tick = self.first_tick + round(_nanos(when) * self.tick_hz / 1e9)
        if not -LAST_TICK <= tick <= LAST_TICK:
            raise SigmundError(f"{when}: expected an instant within 64 bits, found the tick {tick}")
        return tick

    def window(
        self, start: int | str | pd.Timedelta | None, end: int | str | pd.Timedelta | None
    ) -> tuple[int, int]:
        """The ticks from `start` up to `end`, which belongs to it, as with `--from` and `--to`: the tick after it is given.

        From the first event and up to the last one if these are None.
        """
        from_tick = self.tick(start) if start is not None else self.first_tick or 0
        to_tick = self.tick(end) if end is not None else self.last_tick or 0
        if from_tick > to_tick:
            covered = f"the trace covers ticks {self.first_tick} to {self.last_tick}"
            raise SigmundError(f"expected a start before the end, found {from_tick} and {to_tick}; {covered}")
        return from_tick, to_tick if end is None else min(to_tick + 1, LAST_TICK)


def _nanos(when: str | pd.Timedelta) -> float:
    if isinstance(when, pd.Timedelta):
        return float(when.value)
    parsed = re.fullmatch(r"\+?([0-9]+(?:\.[0-9]*)?)(ns|us|ms|s)", when)
    if parsed is None:
        raise UnknownNameError(f"expected a time like 1.5ms, 20us or +3s, found `{when}`")
    return float(parsed[1]) * UNITS_NS[parsed[2]]
