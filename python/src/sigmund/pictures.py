"""Pictures: a Gantt chart, the cumulative distribution of a latency, and a breakdown of states. matplotlib draws them."""

from typing import TYPE_CHECKING

import pandas as pd

from sigmund import latency, names
from sigmund.errors import SigmundError
from sigmund.states import intervals, states
from sigmund.trace import SuperTrace

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# The colours of `sigmund --gantt --svg`, but new is paler than ready; LWPs have those of the nearest state of user threads.
COLOURS = {
    "active": "#7fc97f",
    "running": "#7fc97f",
    "stalled": "#f4786e",
    "in-kernel": "#9ec9e8",
    "sleeping": "#cccccc",
    "disk-sleep": "#9ec9e8",
    "new": "#feebc8",
    "ready": "#fdd07a",
    "runnable": "#f4786e",
    "blocked": "#cccccc",
    "idle": "#e5e5e5",
    "stopped": "#c9a6d9",
    "off-cpu": "#e8d8c0",
    "mounted": "#d5ecd5",
    "unmounted": "#e8d8c0",
    "unknown": "#f5f5f5",
}

# Lines that fit a page; more are refused rather than drawn over each other.
MOST_LINES = 200


def gantt(
    trace: SuperTrace,
    threads: names.Asked | None = None,
    *,
    lwps: names.Asked | None = None,
    start: int | str | pd.Timedelta | None = None,
    end: int | str | pd.Timedelta | None = None,
    ax: "Axes | None" = None,
) -> "Axes":
    """A line for each user thread (or LWP): its states, from left to right, in ms since the first event.

    `threads` and `lwps` are numbers, names or patterns; without either, all threads that have a state in the window, or
    all such LWPs of a trace without user threads. `start` and `end` are ticks, or times after the first event ("1.5ms").
    Raises SigmundError for more than 200 lines.
    """
    if lwps is not None and threads is not None:
        raise SigmundError("expected threads or lwps, found both")
    of_lwps = lwps is not None or (threads is None and not trace.has_threads)
    rows = intervals(trace, lwps=of_lwps, asked=threads if lwps is None else lwps, start=start, end=end)
    owners = rows["owner"].drop_duplicates().tolist()
    if len(owners) > MOST_LINES:
        raise SigmundError(
            f"expected at most {MOST_LINES} lines, found {len(owners)}: choose threads, or less time"
        )
    lines = {owner: line for line, owner in enumerate(owners)}
    rows["line"] = rows["owner"].map(lines)
    first = trace.clock.first_tick or 0
    rows["ms"] = _ms(trace, rows["ts_tick"] - first)
    rows["length_ms"] = _ms(trace, rows["dur_tick"])
    ax = ax or _axes(max(2.0, 0.25 * len(owners) + 1))
    for state, of_state in rows.groupby("state", observed=True, sort=False):
        label = str(state)
        colour = COLOURS.get(label, COLOURS["unknown"])
        for line, bars in of_state.groupby("line"):
            places = list(zip(bars["ms"], bars["length_ms"], strict=True))
            ax.broken_barh(places, (float(str(line)) - 0.4, 0.8), facecolors=colour, label=label)
            # One entry of the legend for each state: a label that begins with _ has none.
            label = "_" + str(state)
    labels = trace.lwp_names if of_lwps else trace.thread_names
    ax.set_yticks(range(len(owners)), [names.label(owner, labels.get(owner)) for owner in owners])
    ax.invert_yaxis()
    from_tick, to_tick = trace.clock.window(start, end)
    begin, stop = _ms(trace, pd.Series([from_tick - first, to_tick - first], dtype="Int64"))
    ax.set_xlim(begin, stop)
    ax.set_xlabel("time since the first event (ms)")
    _legend(ax)
    return ax


def latency_cdf(trace: SuperTrace, which: str = "run_queue", *, ax: "Axes | None" = None) -> "Axes":
    """The part of all waits that are no longer than so many µs, a line for each kind; "run_queue" or "ready"."""
    waits = latency.latencies(trace, which)
    ax = ax or _axes(4)
    for kind, of_kind in waits.groupby("kind", sort=True):
        us = (_ms(trace, of_kind["latency_tick"]) * 1000).sort_values(ignore_index=True)
        parts = [(rank + 1) / len(us) for rank in range(len(us))]
        ax.step(us, parts, where="post", label=f"{kind} ({len(us)})")
    # Waits of length 0 are shown, too.
    ax.set_xscale("symlog", linthresh=0.01)
    ax.set_xlim(left=0)
    ax.set_ylim(0, 1)
    ax.set_xlabel(f"{which.replace('_', '-')} latency (µs)")
    ax.set_ylabel("part of all waits")
    _legend(ax)
    return ax


def states_chart(
    trace: SuperTrace,
    by: str = "name",
    *,
    threads: names.Asked | None = None,
    start: int | str | pd.Timedelta | None = None,
    end: int | str | pd.Timedelta | None = None,
    ax: "Axes | None" = None,
) -> "Axes":
    """A bar for each group of `states`, made of the percentages of its states."""
    figures = states(trace, by, threads=threads, start=start, end=end)
    # The group of "thread" is `lwp` in a trace without user threads.
    by = str(figures.columns[0])
    figures[by] = figures[by].astype("object").fillna("(no name)")
    table = figures.pivot_table(
        index=by, columns="state", values="percent", fill_value=0.0, observed=True, sort=False
    )
    if len(table) > MOST_LINES:
        raise SigmundError(
            f"expected at most {MOST_LINES} bars, found {len(table)}: choose threads, or another grouping"
        )
    ax = ax or _axes(max(2.0, 0.25 * len(table) + 1))
    left = pd.Series(0.0, index=table.index)
    for state in [state for state in COLOURS if state in table]:
        ax.barh(range(len(table)), table[state], left=left, color=COLOURS[state], label=state)
        left = left + table[state]
    ax.set_yticks(range(len(table)), [str(group) for group in table.index])
    ax.invert_yaxis()
    ax.set_xlim(0, 100)
    ax.set_xlabel("percent of its time")
    _legend(ax)
    return ax


def _ms(trace: SuperTrace, ticks: pd.Series) -> pd.Series:
    """Lengths in ms, for drawing only: not rounded to nanoseconds."""
    if trace.clock.tick_hz is None:
        raise SigmundError("the trace has no tick_hz: a picture needs a unit of time")
    return ticks.astype("float64") * 1e3 / trace.clock.tick_hz


def _axes(height: float) -> "Axes":
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise SigmundError("pictures need matplotlib: pip install 'sigmund[pictures]'") from error
    return plt.subplots(figsize=(9, height), layout="constrained")[1]


def _legend(ax: "Axes") -> None:
    if ax.get_legend_handles_labels()[0]:
        ax.legend(loc="center left", bbox_to_anchor=(1, 0.5), frameon=False)
