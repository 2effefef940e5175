"""Pictures show the figures: bars where states are, lines that end at the longest wait."""

from pathlib import Path

import matplotlib
import pytest

import sigmund

matplotlib.use("Agg")


def test_a_gantt_chart_has_a_bar_for_each_state(trace: sigmund.SuperTrace, tmp_path: Path) -> None:
    import matplotlib.pyplot as plt

    ax = sigmund.gantt(trace, ["main", 2, 3])
    threads = trace.threads(["main", 2, 3])
    assert [text.get_text() for text in ax.get_yticklabels()] == [
        f"{thread}({trace.thread_names[thread]})" for thread in threads
    ]
    rows = trace.table("thread_states", ["thread", "dur_tick", "state"], [("thread", "in", threads)])
    # No bar for exited, which has no length, nor for a state of length 0.
    expected = int((rows["dur_tick"].fillna(0) > 0).sum())
    bars = [path.get_extents() for collection in ax.collections for path in collection.get_paths()]
    assert len(bars) == expected > 10
    lifetime_ms = rows["dur_tick"].sum() * 1e3 / trace.clock.tick_hz
    assert sum(bar.width for bar in bars) == pytest.approx(lifetime_ms)
    ax.figure.savefig(tmp_path / "gantt.svg")
    plt.close("all")


def test_a_gantt_chart_is_cut_to_its_window_and_has_at_most_200_lines(trace: sigmund.SuperTrace) -> None:
    ax = sigmund.gantt(trace, "main", start="10ms", end="20ms")
    bars = [path.get_extents() for collection in ax.collections for path in collection.get_paths()]
    assert ax.get_xlim() == pytest.approx((10, 20), abs=1e-5)
    assert all(bar.x0 > 9.999 and bar.x1 < 20.001 for bar in bars)
    with pytest.raises(sigmund.SigmundError, match="expected at most 200 lines, found [0-9]{4}"):
        sigmund.gantt(trace)


def test_lwps_have_a_gantt_chart_too(trace: sigmund.SuperTrace) -> None:
    ax = sigmund.gantt(trace, lwps="lwp/*")
    assert len(ax.get_yticklabels()) == len(trace.lwps("lwp/*")) > 0
    with pytest.raises(sigmund.SigmundError, match="found both"):
        sigmund.gantt(trace, "main", lwps="lwp/*")


@pytest.mark.parametrize("which", ["run_queue", "ready"])
def test_a_distribution_ends_at_the_longest_wait_and_at_all_of_them(
    trace: sigmund.SuperTrace, which: str
) -> None:
    waits = sigmund.latencies(trace, which)
    ax = sigmund.latency_cdf(trace, which)
    lines = {str(line.get_label()).split(" ")[0]: line for line in ax.lines}
    assert set(lines) == set(waits["kind"])
    for kind, of_kind in waits.groupby("kind"):
        x, y = lines[kind].get_data()
        assert (len(x), y[-1]) == (len(of_kind), 1.0)
        assert x[-1] == pytest.approx(of_kind["latency_tick"].max() * 1e6 / trace.clock.tick_hz)


def test_a_breakdown_has_a_bar_of_100_percent_for_each_group(trace: sigmund.SuperTrace) -> None:
    ax = sigmund.states_chart(trace, by="name")
    figures = sigmund.states(trace, by="name")
    assert len(ax.get_yticklabels()) == figures["name"].nunique(dropna=False)
    assert sum(bar.get_width() for bar in ax.patches) == pytest.approx(
        100 * figures["name"].nunique(dropna=False)
    )
    with pytest.raises(sigmund.SigmundError, match="expected at most 200 bars"):
        sigmund.states_chart(trace, by="thread")
