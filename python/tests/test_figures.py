"""Figures are those of the command, to the tick."""

from pathlib import Path

import matplotlib
import pytest
from conftest import Query, Run, cells

import sigmund

matplotlib.use("Agg")


@pytest.mark.parametrize("by", ["thread", "name", "pattern", "lwp"])
@pytest.mark.parametrize("window", [(), ("100ms", "400ms")])
def test_states_sum_to_those_of_the_command(
    trace: sigmund.SuperTrace, path: Path, run: Run, by: str, window: tuple[str, str] | tuple[()]
) -> None:
    assert compared(trace, path, run, by, window) > 10


@pytest.mark.parametrize("by", ["thread", "name", "pattern", "lwp"])
@pytest.mark.parametrize("window", [(), ("20ns", "90ns")])
def test_without_user_threads_states_are_those_of_lwps(
    run: Run, tmp_path: Path, by: str, window: tuple[str, str] | tuple[()]
) -> None:
    # CPU 0  |=work/1=|=work/2=|idle|=work/1=|other
    switches = [(100, 70, "work/1", 0, 0), (130, 71, "work/2", 70, 0), (150, 0, "idle", 71, 1),
                (170, 70, "work/1", 0, 0), (200, 90, "other", 70, 1)]  # fmt: skip
    lines = ["# tick_hz=1000000000", "type\tdate_tick\tpid\tcpu\tthr\tcode\tname\tparams"]
    lines += [
        f"KERN\t{tick}\t{before}\t0\t?\t-\tsched_switch\tprev_state={state} next_pid={pid} next_comm={name}"
        for tick, pid, name, before, state in switches
    ]
    (tmp_path / "t.tsv").write_text("\n".join(lines) + "\n")
    run("merge", tmp_path / "t.tsv", "-o", tmp_path / "t.supertrace")
    trace = sigmund.open(tmp_path / "t.supertrace")
    assert not trace.has_threads
    assert compared(trace, tmp_path / "t.supertrace", run, by, window) >= 3
    assert sigmund.states(trace, by).columns[0] == ("lwp" if by == "thread" else by)
    lines = sigmund.gantt(trace).get_yticklabels()
    assert len(lines) == sigmund.states(trace)["lwp"].nunique() >= 2
    of_one = sigmund.states(trace, by, threads=70)
    assert set(of_one[of_one.columns[0]].astype(str)) == {
        {"name": "work/1", "pattern": "work/*"}.get(by, "70")
    }


def compared(
    trace: sigmund.SuperTrace, path: Path, run: Run, by: str, window: tuple[str, str] | tuple[()]
) -> int:
    """Compares the times of states with those of the command: how many there are."""
    start, end = window or (None, None)
    arguments = ["--from", start, "--to", end] if window else []
    head, *rows = cells(run("-f", path, "--states", "--by", by, "--format", "csv", *arguments))
    found = sigmund.states(trace, by, start=start, end=end)
    by = str(found.columns[0])
    on_cpu = "running" if by == "lwp" or not trace.has_threads else "active"
    expected: dict[tuple[str, str], int] = {}
    for row in rows:
        named = dict(zip(head, row, strict=True))
        state = on_cpu if named["state"] == "interrupted" else named["state"]
        group = named["name" if by == "pattern" else by]
        expected[group, state] = expected.get((group, state), 0) + int(named["total_tick"])
    totals = {
        (str(group), state): total
        for group, state, total in zip(found[by], found["state"], found["total_tick"], strict=True)
    }
    assert totals == {key: total for key, total in expected.items() if total > 0}
    return len(expected)


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
    for wrong in [101, -1, 100.1, float("nan")]:
        for of in [lengths, lengths[:0]]:
            with pytest.raises(sigmund.SigmundError, match="expected percentages from 0 to 100, found"):
                sigmund.percentiles(of, (50, wrong))
