"""How long LWPs waited for a CPU, and user threads for an LWP: the views run_queue_latency and ready_latency of `sigmund sql`."""

import math

import pandas as pd

from sigmund.errors import SigmundError, unknown
from sigmund.trace import SuperTrace

LATENCIES = ("run_queue", "ready")

# How an LWP left its CPU, and the kind of the wait that follows.
KINDS = {"sched-yield": "voluntary", "preempted": "involuntary"}


def latencies(trace: SuperTrace, which: str) -> pd.DataFrame:
    """One row is a wait. Columns: ts_tick, its start; kind; latency_tick; latency_ns; and lwp or thread, who waited.

    "run_queue": an LWP waited for a CPU. Kinds: wakeup (from sched_waking, or sched_wakeup where only that is traced);
    voluntary, involuntary or unknown (from the switch that left it runnable).
    "ready": a user thread waited for an LWP. Kinds: unpark, yield, quantum and creation.
    Waits of unknown length are left out.
    """
    if which not in LATENCIES:
        raise unknown("latency", which, LATENCIES)
    owner = "lwp" if which == "run_queue" else "thread"
    waits = pd.concat([_wakeups(trace, owner), _switches(trace, owner)], ignore_index=True)
    waits["latency_ns"] = trace.clock.length_from_ns(waits["ts_tick"], waits["latency_tick"])
    return waits[["ts_tick", "kind", "latency_tick", "latency_ns", owner]]


def _wakeups(trace: SuperTrace, owner: str) -> pd.DataFrame:
    level, kind = ("KERN", "wakeup") if owner == "lwp" else ("USER", "unpark")
    waits = trace.table("wakeups", ["ts_tick", "latency_tick", owner], [("level", "==", level)])
    return waits[waits["latency_tick"].notna()].assign(kind=kind)


def _switches(trace: SuperTrace, owner: str) -> pd.DataFrame:
    """Waits after a switch out, or after creation: states that end by a dispatch."""
    table = "lwp_states" if owner == "lwp" else "thread_states"
    rows = trace.table(table, [owner, "ts_tick", "dur_tick", "state", "end_reason"])
    # A state that never ended comes last.
    rows = rows.sort_values([owner, "ts_tick", "dur_tick"], kind="stable", na_position="last")
    rows = rows.astype({"state": "object", "end_reason": "object"})
    before = rows.groupby(owner)[["state", "end_reason"]].shift()
    dispatched = rows["end_reason"] == "dispatched"
    if owner == "lwp":
        is_wait = dispatched & (rows["state"] == "runnable") & (before["state"] == "running")
        kind = before["end_reason"].map(KINDS).fillna("unknown")
    else:
        is_new = rows["state"] == "new"
        is_ready = (rows["state"] == "ready") & before["end_reason"].isin(["yield", "quantum"])
        is_wait = dispatched & (is_new | is_ready)
        kind = before["end_reason"].mask(is_new, "creation")
    waits = rows.assign(kind=kind, latency_tick=rows["dur_tick"])[is_wait]
    return waits[["ts_tick", "kind", "latency_tick", owner]]


def percentiles(lengths: pd.Series, percents: tuple[float, ...] = (50, 90, 99)) -> dict[float, int]:
    """Percentiles by nearest rank: the smallest length such that at least so many percent of all are no longer.

    Empty if there are no lengths. Exact; the command's are, too, of up to 10^7 lengths. Raises SigmundError for a percentage
    that is not from 0 to 100.
    """
    for percent in percents:
        if not 0 <= percent <= 100:
            raise SigmundError(f"percentiles: expected percentages from 0 to 100, found {percent}")
    ordered = lengths.dropna().sort_values(ignore_index=True)
    if ordered.empty:
        return {}
    ranks = {percent: math.ceil(percent / 100 * len(ordered)) for percent in percents}
    return {percent: int(ordered[min(max(rank, 1), len(ordered)) - 1]) for percent, rank in ranks.items()}
