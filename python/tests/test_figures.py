"""Figures are those of the command, to the tick."""

from pathlib import Path

import pytest
from conftest import Query, Run, cells

import sigmund

# States that `--states` divides further: interrupts are part of the state that they interrupt.
ON_CPU = {"thread": "active", "name": "active", "pattern": "active", "lwp": "running"}


@pytest.mark.parametrize("by", ["thread", "name", "pattern", "lwp"])
@pytest.mark.parametrize("window", [(), ("100ms", "400ms")])
def test_states_sum_to_those_of_the_command(
    trace: sigmund.SuperTrace, path: Path, run: Run, by: str, window: tuple[str, str] | tuple[()]
) -> None:
    start, end = window or (None, None)
    arguments = ["--from", start, "--to", end] if window else []
    head, *rows = cells(run("-f", path, "--states", "--by", by, "--format", "csv", *arguments))
    expected: dict[tuple[str, str], int] = {}
    for row in rows:
        named = dict(zip(head, row, strict=True))
        state = ON_CPU[by] if named["state"] == "interrupted" else named["state"]
        group = named["name" if by == "pattern" else by]
        expected[group, state] = expected.get((group, state), 0) + int(named["total_tick"])
    found = sigmund.states(trace, by, start=start, end=end)
    totals = {
        (str(group), state): total
        for group, state, total in zip(found[by], found["state"], found["total_tick"], strict=True)
    }
    assert totals == {key: total for key, total in expected.items() if total > 0}
    assert len(expected) > 10


def test_active_time_is_that_of_the_command(trace: sigmund.SuperTrace, path: Path, run: Run) -> None:
    rows = cells(run("-f", path, "--active-time", "--format", "csv"))[1:]
    sums = trace["active"].groupby("thread")["dur_tick"].sum()
    assert {str(thread): str(ticks) for thread, ticks in sums.items()} == {row[0]: row[2] for row in rows}
    assert len(rows) > 1000


@pytest.mark.parametrize("which", ["run_queue", "ready"])
def test_latencies_are_the_rows_of_the_view(trace: sigmund.SuperTrace, query: Query, which: str) -> None:
    owner = "lwp" if which == "run_queue" else "thread"
    columns = ["ts_tick", "kind", "latency_tick", "latency_ns", owner]
    rows = query(f"SELECT {', '.join(columns)} FROM {which}_latency")
    found = sigmund.latencies(trace, which)[columns].astype("object")
    assert sorted(tuple(map(str, row)) for row in found.itertuples(index=False)) == sorted(rows)
    assert len(rows) > 1000


def test_percentiles_are_those_of_the_command(trace: sigmund.SuperTrace, path: Path, run: Run) -> None:
    head, *rows = cells(run("-f", path, "--latency", "--by", "name", "--format", "csv"))
    waits = sigmund.latencies(trace, "ready")
    waits["name"] = waits["thread"].astype("int64").map(trace.thread_names)
    compared = 0
    for row in rows:
        named = dict(zip(head, row, strict=True))
        if named["kind"] == "wakeup-to-user":
            continue
        is_asked = (waits["name"] == named["name"]) & (waits["kind"] == named["kind"])
        lengths = waits.loc[is_asked, "latency_tick"]
        figures = sigmund.percentiles(lengths)
        expected = [int(named[f"{what}_tick"]) for what in ("total", "min", "p50", "p90", "p99", "max")]
        found = [lengths.sum(), lengths.min(), *figures.values(), lengths.max()]
        assert (len(lengths), found) == (int(named["count"]), expected), row
        compared += 1
    assert compared > 20


def test_a_percentile_is_the_nearest_rank() -> None:
    import pandas as pd

    lengths = pd.Series([30, 10, None, 20, 40], dtype="Int64")
    assert sigmund.percentiles(lengths, (0, 25, 50, 51, 100)) == {0: 10, 25: 10, 50: 20, 51: 30, 100: 40}
    assert sigmund.percentiles(lengths[:0]) == {}
