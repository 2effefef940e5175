"""How long each user thread, or LWP, was in each state: the figures of `sigmund -f T --states`, without the culprits.

Interrupts are part of the state that they interrupt, as in the tables; `--states` counts them apart.
"""

import pandas as pd

from sigmund import names
from sigmund.errors import unknown
from sigmund.trace import SuperTrace

# What a row is of.
BY = ("thread", "lwp", "name", "pattern")


def intervals(
    trace: SuperTrace,
    *,
    lwps: bool = False,
    asked: names.Asked | None = None,
    start: int | str | pd.Timedelta | None = None,
    end: int | str | pd.Timedelta | None = None,
) -> pd.DataFrame:
    """The states of user threads (or LWPs), cut to a window of time: owner, state, ts_tick, dur_tick.

    States of no length in the window, and `exited`, which never ends, are left out; so is LWP 0, the idle task.
    """
    table, owner = ("lwp_states", "lwp") if lwps else ("thread_states", "thread")
    from_tick, to_tick = trace.clock.window(start, end)
    filters: list[tuple[str, str, object]] = [("ts_tick", "<", to_tick)]
    if asked is not None:
        filters.append((owner, "in", trace.lwps(asked) if lwps else trace.threads(asked)))
    elif lwps:
        filters.append((owner, "!=", 0))
    rows = trace.table(table, [owner, "state", "ts_tick", "dur_tick"], filters)
    rows = rows[rows["dur_tick"].notna()]
    ends = (rows["ts_tick"] + rows["dur_tick"]).clip(upper=to_tick)
    begins = rows["ts_tick"].clip(lower=from_tick)
    cut = rows.assign(owner=rows[owner], ts_tick=begins, dur_tick=ends - begins)
    cut = cut.loc[cut["dur_tick"] > 0, ["owner", "state", "ts_tick", "dur_tick"]]
    return cut.sort_values(["owner", "ts_tick"], kind="stable", ignore_index=True)


def states(
    trace: SuperTrace,
    by: str = "thread",
    *,
    threads: names.Asked | None = None,
    start: int | str | pd.Timedelta | None = None,
    end: int | str | pd.Timedelta | None = None,
) -> pd.DataFrame:
    """The time in each state, the longest first within each group.

    `by` is "thread", "name" or "pattern" (user threads), or "lwp" (LWPs: running, runnable, ...; `threads` are then LWPs).
    In a trace without user threads all are of LWPs, as with the command, and the group of "thread" is the column `lwp`.
    `start` and `end` are ticks, or times after the first event ("1.5ms").

    Columns: the group (`by`); `state`; `count`, intervals of it in the window; `total_tick`, `total_ns`; `percent` of the
    group's time in the window.
    """
    if by not in BY:
        raise unknown("grouping", by, BY)
    of_lwps = by == "lwp" or not trace.has_threads
    if of_lwps and by == "thread":
        by = "lwp"
    rows = intervals(trace, lwps=of_lwps, asked=threads, start=start, end=end)
    rows[by] = _groups(trace.lwp_names if of_lwps else trace.thread_names, rows["owner"], by)
    sums = rows.groupby([by, "state"], observed=True, dropna=False, sort=True)["dur_tick"].agg(
        ["count", "sum"]
    )
    sums = sums.rename(columns={"sum": "total_tick"}).reset_index()
    sums["state"] = sums["state"].astype("str")
    sums["total_ns"] = trace.clock.length_ns(sums["total_tick"])
    whole = sums.groupby(by, dropna=False)["total_tick"].transform("sum")
    sums["percent"] = 100.0 * sums["total_tick"].astype("float64") / whole.astype("float64")
    return sums.sort_values([by, "total_tick"], ascending=[True, False], kind="stable", ignore_index=True)


def _groups(named: "pd.Series[str]", owners: pd.Series, by: str) -> pd.Series:
    if by in ("thread", "lwp"):
        return owners
    of = named.map(names.pattern, na_action="ignore") if by == "pattern" else named
    return owners.astype("int64").map(of)
