"""Opening, names, filters, units, and errors that name the file."""

import json
import runpy
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from conftest import COMMAND, REPOSITORY, Query, Run

import sigmund
from sigmund.model import SENTENCES
from sigmund.trace import Condition


@pytest.fixture
def copy(path: Path, tmp_path: Path) -> Path:
    """A super-trace that a test may damage."""
    copied = Path(shutil.copytree(path, tmp_path / "copy.supertrace"))
    # Tests change files, which the command would notice by it.
    (copied / "checksums").unlink()
    return copied


def test_the_tables_and_types_that_the_package_knows_are_those_of_the_command(path: Path) -> None:
    write = runpy.run_path(str(REPOSITORY / "python/write_tables.py"))
    current = write["TABLES"].read_text("utf-8")
    assert write["tables"](str(COMMAND), str(path)) == current, "run: python/write_tables.py SIGMUND TRACE"


@pytest.mark.parametrize("table", list(SENTENCES))
def test_columns_have_the_units_and_sentences_of_the_command(
    table: str, trace: sigmund.SuperTrace, run: Run, path: Path
) -> None:
    expected = json.loads(run("sql", path, "--schema", table, "--format", "json"))
    described = trace.describe(table)
    assert list(zip(described["column"], described["unit"], strict=True)) == [
        (row["column"], row["unit"] or "") for row in expected
    ]
    for row, sentence in zip(expected, described["what"], strict=True):
        assert sentence == row["what"], row["column"]


def test_filters_select_rows_and_only_asked_columns_are_there(
    trace: sigmund.SuperTrace, query: Query
) -> None:
    filters = [("state", "==", "stalled"), ("dur_tick", ">", 1000), ("thread", "in", [1, 2, 3, 4])]
    rows = trace.table("thread_states", ["dur_ns", "thread"], filters)
    where = "state = 'stalled' AND dur_tick > 1000 AND thread IN (1, 2, 3, 4)"
    expected = query(f"SELECT dur_ns, thread FROM thread_states WHERE {where}")
    assert list(rows.columns) == ["dur_ns", "thread"]
    assert sorted(tuple(map(str, row)) for row in rows.itertuples(index=False)) == sorted(expected)
    words = trace.table("thread_states", ["state"], [("state", "in", ["new", "ready"])])
    assert set(words["state"]) == {"new", "ready"}


@pytest.mark.parametrize(
    ("table", "column", "condition", "where"),
    [
        ("thread_states", "lwp", ("dur_ns", ">", 2000), "dur_ns > 2000"),
        ("thread_states", "ts_ns", ("dur_ns", "!=", 0), "dur_ns <> 0"),
        ("events", "ts_ns", ("ts_ns", "<=", 1_000_000), "ts_ns <= 1000000"),
        ("syscalls", "dur_tick", ("on_cpu_ns", "<", 5000), "on_cpu_ns < 5000"),
        ("events", "ts_tick", ("ts_ns", "in", [0]), "ts_ns IN (0)"),
        ("interrupts", "parent_ns", ("parent_ns", ">", 0), "parent_ns > 0"),
    ],
)
def test_filters_may_be_in_nanoseconds(
    trace: sigmund.SuperTrace, query: Query, table: str, column: str, condition: Condition, where: str
) -> None:
    rows = trace.table(table, [column], [condition])
    expected = query(f"SELECT {column} FROM {table} WHERE {where}")
    assert list(rows.columns) == [column]
    # An empty line of CSV, which is NULL, has no cells.
    found = ["" if value is pd.NA else str(value) for value in rows[column]]
    assert sorted(found) == sorted("".join(row) for row in expected)


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        (("thread", "==", "1"), "thread == '1': expected a number, found '1'"),
        (("thread", "==", True), "thread == True: expected a number, found True"),
        (("thread", "==", 1.5), "thread == 1.5: expected a whole number, found 1.5"),
        (("thread", "in", [1, "2"]), r"thread in \[1, '2'\]: expected a number, found '2'"),
        (("thread", "in", 5), "thread in 5: expected a list of values, found 5"),
        (("thread", "in", [1, None]), r"thread in \[1, None\]: expected a value, found none"),
        (("state", "in", "new"), "state in 'new': expected a list of values, found 'new'"),
        (("state", "==", 5), "state == 5: expected a text, found 5"),
        (("dur_ns", ">", "1ms"), "dur_ns > '1ms': expected a number, found '1ms'"),
        (("blocked_on", "==", 2**64 - 1), r"expected a number from -2\^63 to .*; .* this one as -1$"),
        (("thread", ">", 2**70), r"thread > 1180591620717411303424: expected a number from -2\^63 to"),
        (("dur_ns", "<", np.uint64(2**63)), r"dur_ns < .*: expected a number from -2\^63 to"),
    ],
)
def test_a_wrong_condition_is_named_and_no_file(
    trace: sigmund.SuperTrace, condition: Condition, expected: str
) -> None:
    with pytest.raises(sigmund.SigmundError, match=expected) as caught:
        trace.table("thread_states", filters=[condition])
    assert "parquet" not in str(caught.value)


def test_conditions_on_truth_values_and_lists_have_their_own_errors(trace: sigmund.SuperTrace) -> None:
    assert len(trace.table("clocks", filters=[("used", "in", [True, False])])) == len(trace["clocks"])
    with pytest.raises(sigmund.SigmundError, match="used == 1: expected True or False, found 1"):
        trace.table("clocks", filters=[("used", "==", 1)])
    with pytest.raises(sigmund.SigmundError, match=r"args == 1: expected a column of .* one of BIGINT\[\]"):
        trace.table("events", filters=[("args", "==", 1)])


def test_a_number_beyond_doubles_and_an_operator_that_is_no_text_are_errors(
    trace: sigmund.SuperTrace,
) -> None:
    with pytest.raises(
        sigmund.SigmundError, match="residual_ns == .*: expected a number that a DOUBLE can have"
    ):
        trace.table("clocks", filters=[("residual_ns", "==", 10**400)])
    with pytest.raises(sigmund.SigmundError, match="no operator `7`"):
        trace.table("events", filters=[("lwp", 7, 1)])  # type: ignore[list-item]


def test_no_values_select_nothing_and_numbers_may_be_of_any_kind(trace: sigmund.SuperTrace) -> None:
    def count(*filters: Condition) -> int:
        return len(trace.table("thread_states", ["thread"], filters))

    assert count(("state", "in", [])) == count(("thread", "in", ()), ("state", "==", "new")) == 0
    assert count(("dur_ns", "in", [])) == 0
    one = count(("thread", "==", 1))
    assert one > 0
    kinds: list[object] = [1.0, np.int64(1), np.float64(1), pa.scalar(1)]
    assert [count(("thread", "==", kind)) for kind in kinds] == [one] * len(kinds)
    assert count(("thread", "in", iter([1, 1]))) == one
    assert (
        count(("dur_tick", ">", 1000.5)) == count(("dur_tick", ">=", 1001)) == count(("dur_tick", ">", 1000))
    )
    assert count(("dur_ns", "<", 1000.5)) == count(("dur_ns", "<=", 1000.5)) == count(("dur_ns", "<=", 1000))
    assert count(("thread", ">=", -(2**63))) == count(("thread", "<=", 2**63 - 1)) > 0


def test_instants_have_64_bits(trace: sigmund.SuperTrace) -> None:
    assert sigmund.states(trace, end=2**63 - 1).equals(sigmund.states(trace, end=trace.clock.last_tick))
    for end in (2**70, f"{10**12}s"):
        with pytest.raises(sigmund.SigmundError, match="expected an instant within 64 bits, found the tick"):
            sigmund.states(trace, end=end)


def test_words_are_categories_and_integers_keep_their_bits(trace: sigmund.SuperTrace) -> None:
    states = trace["thread_states"]
    assert isinstance(states["state"].dtype, pd.CategoricalDtype)
    assert (states["ts_tick"].dtype, states["cpu"].dtype) == (pd.Int64Dtype(), pd.Int32Dtype())
    assert states.loc[states["state"] == "exited", "dur_tick"].isna().all()


def test_threads_are_found_by_number_name_and_pattern(trace: sigmund.SuperTrace, query: Query) -> None:
    assert trace.threads("main") == [
        int(row[0]) for row in query("SELECT thread FROM threads WHERE name = 'main'")
    ]
    left = query("SELECT thread FROM threads WHERE name LIKE 'left/%' ORDER BY thread")
    assert trace.threads("left/*") == [int(row[0]) for row in left]
    assert trace.threads([2, "main", 2]) == sorted({2, *trace.threads("main")})
    # A number from a data frame is one of numpy's.
    assert trace.threads(trace["threads"]["thread"].to_numpy()[0]) == [trace["threads"]["thread"][0]]
    with pytest.raises(sigmund.UnknownNameError, match="no thread `lefd/1`; nearest: .*left/1"):
        trace.threads("lefd/1")
    with pytest.raises(sigmund.UnknownNameError, match="no thread `999999`"):
        trace.threads(999999)


def test_names_become_patterns() -> None:
    assert [sigmund.pattern(name) for name in ["request", "worker/12", "a1b22c", "7", ""]] == [
        "request", "worker/*", "a*b*c", "*", "",
    ]  # fmt: skip


def test_the_time_of_day_goes_through_the_snapshots() -> None:
    clock = sigmund.Clock(2e9, 100, 9000, ((1000, 5_000_000_000), (3000, 5_000_003_000)))
    ticks = pd.Series([1000, 2000, 3000, 3002, 998, None], dtype="Int64")
    wall = clock.wall_time(ticks)
    # On the line between the snapshots 1.5 ns a tick, outside of them 0.5.
    expected = [5_000_000_000, 5_000_001_500, 5_000_003_000, 5_000_003_001, 4_999_999_999]
    assert [time.value for time in wall[:5]] == expected
    assert str(wall.dt.tz) == "UTC" and wall.isna().tolist() == [False] * 5 + [True]
    with pytest.raises(sigmund.SigmundError, match="no snapshot of CLOCK_REALTIME"):
        sigmund.Clock(2e9, 100, 9000).wall_time(ticks)


def test_the_time_of_day_of_the_demo_is_when_it_was_recorded(trace: sigmund.SuperTrace, path: Path) -> None:
    wall = trace.clock.wall_time([trace.clock.first_tick, trace.clock.last_tick])
    written = (path / "info" / "part-00000.parquet").stat().st_mtime_ns
    assert wall[0] < wall[1]
    assert 0 < written - wall[1].value < 600e9
    spread = wall[1].value - wall[0].value
    rate_ns = trace.clock.since_start_ns([trace.clock.last_tick])[0]
    # CLOCK_REALTIME is disciplined by at most 500 ppm.
    assert abs(spread - rate_ns) < 0.0006 * rate_ns


def test_times_after_the_first_event_are_rounded_as_the_command_does() -> None:
    clock = sigmund.Clock(3e9, 1000, 9_000_000)
    times = [
        clock.tick("1us"),
        clock.tick("+0.5us"),
        clock.tick(np.int64(7)),
        clock.tick(pd.Timedelta("1us")),
    ]
    assert times == [4000, 2500, 7, 4000]
    with pytest.raises(sigmund.SigmundError, match="expected a time like"):
        clock.tick("soon")
    assert clock.window(5, 5) == (5, 6)
    with pytest.raises(sigmund.SigmundError, match="expected a start before the end, found 5 and 4"):
        clock.window(5, 4)


def test_a_trace_without_a_rate_has_no_nanoseconds() -> None:
    assert sigmund.Clock(None, 0, 5).length_ns([1, 2]).isna().all()


def test_another_folder_is_no_super_trace(tmp_path: Path) -> None:
    with pytest.raises(sigmund.NotASuperTraceError, match="not a super-trace: .*no such file"):
        sigmund.open(tmp_path / "none")
    (tmp_path / "file").write_text("")
    with pytest.raises(sigmund.NotASuperTraceError, match="found a file"):
        sigmund.open(tmp_path / "file")
    with pytest.raises(sigmund.MissingTableError, match="info: the table `info` is missing"):
        sigmund.open(tmp_path)


def test_another_schema_version_is_refused_with_the_words_of_the_command(copy: Path) -> None:
    part = copy / "info/part-00000.parquet"
    rows = pq.read_table(part)
    values = ["999" if key == "schema_version" else value for key, value in
              zip(rows["key"].to_pylist(), rows["value"].to_pylist(), strict=True)]  # fmt: skip
    pq.write_table(rows.set_column(1, rows.schema.field("value"), pa.array(values)), part)
    with pytest.raises(sigmund.SchemaVersionError) as caught:
        sigmund.open(copy)
    refused = subprocess.run([COMMAND, "info", copy], capture_output=True, text=True, check=False)
    assert refused.returncode != 0
    assert str(caught.value) in refused.stderr


def refused_by_both(run: Path) -> str:
    with pytest.raises(sigmund.SchemaError) as caught:
        sigmund.open(run)
    refused = subprocess.run([COMMAND, "info", run], capture_output=True, text=True, check=False)
    assert refused.returncode != 0
    message = str(caught.value)
    assert message.split(": expected")[0] in refused.stderr
    return message


def test_a_column_that_is_missing_or_of_another_type_is_named_with_its_file(copy: Path) -> None:
    part = copy / "active/part-00000.parquet"
    rows = pq.read_table(part)
    pq.write_table(rows.drop_columns(["lwp"]), part)
    assert refused_by_both(copy) == f"{part}: column `lwp`: expected INT, found no such column"
    ticks = pa.array([str(tick) for tick in rows["dur_tick"].to_pylist()])
    pq.write_table(rows.set_column(1, "dur_tick", ticks), part)
    assert refused_by_both(copy) == f"{part}: column `dur_tick`: expected BIGINT, found VARCHAR"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (b"", "expected 'sigmund checksums 1' as its first line, found ''"),
        (b"garbage\n", "expected 'sigmund checksums 1' as its first line, found 'garbage'"),
        (b"\xff\xfe", "expected checksums, found bytes that are no text"),
        (b"sigmund checksums 2\n00000000\n", "expected 'sigmund checksums 1' as its first line"),
        (b"sigmund checksums 1\n", "expected the checksum of the lines above as its last line"),
        (b"sigmund checksums 1\n00 4 8 a/b\n", "expected the checksum of the lines above as its last line"),
        (b"sigmund checksums 1\n00 9 8 a/b\n00000000\n", "a length and a name in line 2, found '00 9 8 a/b'"),
        (b"sigmund checksums 1\n00 8\n00000000\n", "a length and a name in line 2, found '00 8'"),
    ],
)
def test_checksums_that_the_merge_did_not_write_are_refused_by_both(
    path: Path, tmp_path: Path, text: bytes, expected: str
) -> None:
    copied = Path(shutil.copytree(path, tmp_path / "copy.supertrace"))
    sigmund.open(copied)
    (copied / "checksums").write_bytes(text)
    with pytest.raises(sigmund.UnreadableError) as caught:
        sigmund.open(copied)
    assert str(caught.value).startswith(f"{copied / 'checksums'}: ") and expected in str(caught.value)
    refused = subprocess.run([COMMAND, "info", copied], capture_output=True, text=True, check=False)
    assert refused.returncode != 0 and f"{copied / 'checksums'}: expected" in refused.stderr


def test_a_file_that_was_written_and_is_gone_or_shorter_is_named(path: Path, tmp_path: Path) -> None:
    copied = Path(shutil.copytree(path, tmp_path / "copy.supertrace"))
    part = copied / "active/part-00000.parquet"
    pq.write_table(pq.read_table(part).slice(1), part)
    with pytest.raises(sigmund.UnreadableError, match=f"{part}: .*found: .* bytes instead of "):
        sigmund.open(copied)
    (copied / "active/part-00000.parquet").rename(copied / "active/part-00001.parquet")
    with pytest.raises(sigmund.UnreadableError, match=f"{part}: expected this file, found none"):
        sigmund.open(copied)
    (copied / "checksums").unlink()
    assert len(sigmund.open(copied)["active"]) > 0


def test_a_missing_table_is_named(copy: Path) -> None:
    shutil.rmtree(copy / "threads")
    with pytest.raises(
        sigmund.MissingTableError, match="threads: the table `threads` is missing: expected part-"
    ):
        sigmund.open(copy)


def test_a_table_that_the_merge_left_out_says_so(run: Run, path: Path, tmp_path: Path) -> None:
    out = tmp_path / "few.supertrace"
    run("merge", path.parent / "sumtime.run", "-o", out, "--tables", "none")
    trace = sigmund.open(out)
    assert "wakeups" not in trace.tables
    with pytest.raises(sigmund.MissingTableError, match="the merge left out the table `wakeups`"):
        trace["wakeups"]


def test_an_unknown_table_column_operator_or_figure_is_an_error_with_the_nearest(
    trace: sigmund.SuperTrace,
) -> None:
    unknown = sigmund.UnknownNameError
    with pytest.raises(unknown, match="no table `thread_state`; nearest: .*thread_states"):
        trace["thread_state"]
    with pytest.raises(unknown, match="no column in the table active `dur_tik`; nearest: .*dur_tick"):
        trace.table("active", ["dur_tik"])
    with pytest.raises(unknown, match="no column in the table active `dur_nss`; nearest: .*dur_ns"):
        trace.table("active", filters=[("dur_nss", ">", 3)])
    with pytest.raises(unknown, match="no operator `=`"):
        trace.table("active", filters=[("dur_tick", "=", 3)])
    with pytest.raises(sigmund.SigmundError, match="dur_tick == None: expected a value, found none"):
        trace.table("active", filters=[("dur_tick", "==", None)])
    with pytest.raises(unknown, match="no latency `redy`; nearest: ready"):
        sigmund.latencies(trace, "redy")
    with pytest.raises(unknown, match="no grouping `nam`; nearest: name"):
        sigmund.states(trace, "nam")


@pytest.mark.parametrize("table", ["events", "info"])
@pytest.mark.parametrize("kept", [0, 3, 0.5, 0.99])
def test_a_broken_file_is_named(copy: Path, table: str, kept: float) -> None:
    part = copy / table / "part-00000.parquet"
    content = part.read_bytes()
    part.write_bytes(content[: int(kept * len(content)) if kept < 1 else int(kept)])
    with pytest.raises(sigmund.UnreadableError, match=f"{part}: expected a whole Parquet file"):
        sigmund.open(copy)


@pytest.mark.parametrize("changed", [range(4, 4000), range(200, 201)])
def test_damaged_pages_are_found_when_they_are_read(copy: Path, changed: range) -> None:
    part = copy / "events/part-00000.parquet"
    content = bytearray(part.read_bytes())
    for at in changed:
        content[at] ^= 0x40
    part.write_bytes(content)
    trace = sigmund.open(copy)
    with pytest.raises(sigmund.UnreadableError, match=str(part)):
        trace["events"]
