"""DuckDB, Polars and pandas read every table, and give the answers of `sigmund sql`."""

from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import polars as pl
import pytest
from conftest import Query

import sigmund
from sigmund.model import SENTENCES

TABLES = list(SENTENCES)

# Queries that DuckDB, Polars and the command understand alike, on stored columns.
QUERIES = [
    "SELECT name, count(*) AS n FROM events GROUP BY name ORDER BY n DESC, name",
    "SELECT state, count(*) AS n, sum(dur_tick) AS total FROM thread_states GROUP BY state ORDER BY state",
    "SELECT state, end_reason, min(dur_tick) AS least, max(dur_tick) AS most FROM lwp_states"
    " GROUP BY state, end_reason ORDER BY state, end_reason NULLS LAST",
    "SELECT t.name, count(*) AS n, sum(a.dur_tick) AS total FROM active a JOIN threads t ON a.thread = t.thread"
    " GROUP BY t.name ORDER BY t.name",
    "SELECT min(ts_tick) AS least, max(ts_tick) AS most, count(*) AS n FROM events",
    "SELECT count(cpu) AS cpus, count(thread) AS threads, count(target_lwp) AS targets FROM events",
    "SELECT count(*) AS n FROM thread_states WHERE dur_tick IS NULL",
    "SELECT blocked_for, count(*) AS n FROM thread_states GROUP BY blocked_for ORDER BY blocked_for NULLS LAST",
    "SELECT level, context, count(*) AS n FROM wakeups GROUP BY level, context ORDER BY level, context NULLS LAST",
    "SELECT created_by, count(*) AS n FROM threads WHERE created_by < 20 GROUP BY created_by ORDER BY created_by",
    "SELECT l.name, sum(s.dur_tick) AS total FROM lwp_states s JOIN lwps l ON s.lwp = l.lwp"
    " WHERE s.state = 'runnable' GROUP BY l.name ORDER BY l.name NULLS LAST",
    "SELECT kind, name, count(*) AS n, max(dur_tick) AS most FROM interrupts GROUP BY kind, name"
    " ORDER BY kind, name NULLS LAST",
    "SELECT key, count(*) AS n FROM info GROUP BY key ORDER BY key",
]


def parquet(path: Path, table: str) -> str:
    return str(path / table / "*.parquet")


def text(value: Any) -> str:
    """A cell as the command prints it."""
    if value is None or value is pd.NA or (isinstance(value, float) and value != value):
        return ""
    return str(int(value)) if isinstance(value, Decimal) else str(value)


@pytest.fixture(scope="module")
def duck(path: Path) -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect()
    for table in TABLES:
        connection.sql(f"CREATE VIEW {table} AS SELECT * FROM read_parquet('{parquet(path, table)}')")
    return connection


@pytest.fixture(scope="module")
def polars(path: Path) -> pl.SQLContext[pl.DataFrame]:
    # Words as texts: polars neither compares categories by their letters nor joins them with texts.
    frames = {table: pl.scan_parquet(parquet(path, table)) for table in TABLES}
    words = {
        table: [name for name, of in frame.collect_schema().items() if of in (pl.Categorical, pl.Enum)]
        for table, frame in frames.items()
    }
    texts = {
        table: frame.with_columns(pl.col(words[table]).cast(pl.String)) for table, frame in frames.items()
    }
    return pl.SQLContext(texts, eager=True)


@pytest.mark.parametrize("sql", QUERIES)
def test_duckdb_and_polars_answer_as_the_command_does(
    sql: str, query: Query, duck: duckdb.DuckDBPyConnection, polars: pl.SQLContext[pl.DataFrame]
) -> None:
    expected = query(sql)
    assert expected
    assert [tuple(map(text, row)) for row in duck.sql(sql).fetchall()] == expected
    assert [tuple(map(text, row)) for row in polars.execute(sql).rows()] == expected


@pytest.mark.parametrize("table", TABLES)
def test_pandas_duckdb_and_polars_read_the_same_values(
    table: str, path: Path, trace: sigmund.SuperTrace, duck: duckdb.DuckDBPyConnection
) -> None:
    """Every stored cell, lists and NULLs included."""
    stored = pl.read_parquet(parquet(path, table)).columns
    in_polars = pl.read_parquet(parquet(path, table)).rows()
    in_duckdb = duck.sql(f"SELECT * FROM {table}").fetchall()
    frame = trace.table(table, stored)
    in_pandas = list(zip(*([plain(cell) for cell in frame[column]] for column in stored), strict=True))
    assert len(in_polars) == len(in_pandas)
    assert [tuple(map(plain, row)) for row in in_polars] == in_pandas
    assert [tuple(map(plain, row)) for row in in_duckdb] == in_pandas


def plain(value: Any) -> Any:
    """NULL of any reader as None, a list of any reader as a list."""
    if isinstance(value, str) or value is None:
        return value
    if isinstance(value, list):
        return [plain(item) for item in value]
    return None if value is pd.NA or value != value else value


@pytest.mark.parametrize("table", TABLES)
def test_pandas_has_the_columns_and_rows_of_the_command(
    table: str, trace: sigmund.SuperTrace, query: Query
) -> None:
    frame = trace[table]
    # Of these another test knows that they are the command's.
    assert list(frame.columns) == list(trace.describe(table)["column"])
    expected, found = ["count(*)"], [len(frame)]
    for column in frame.columns:
        if column.endswith(("_tick", "_ns")) and frame[column].dtype == "Int64":
            ticks = frame[column]
            # Ticks since a machine's boot, added up, leave 64 bits on one that has run for weeks.
            first = 0 if ticks.count() == 0 else ticks.min()
            expected += [f"{function}({column})" for function in ("count", "min", "max")]
            expected.append(f"sum({column} - {first})")
            found += [ticks.count(), ticks.min(), ticks.max(), (ticks - first).sum(min_count=1)]
    assert query(f"SELECT {', '.join(expected)} FROM {table}") == [tuple(map(text, found))]


def test_lengths_of_lists_are_those_of_the_command(
    trace: sigmund.SuperTrace, query: Query, duck: duckdb.DuckDBPyConnection, path: Path
) -> None:
    expected = [
        (int(length), int(n))
        for length, n in query(
            "SELECT array_length(args) AS length, count(*) AS n FROM events WHERE array_length(args) > 0"
            " GROUP BY length ORDER BY length"
        )
    ]
    assert len(expected) > 2
    lengths = trace.table("events", ["args"])["args"].list.len()
    assert [(n, count) for n, count in lengths.value_counts().sort_index().items() if n > 0] == expected
    of_duckdb = "SELECT len(args) AS n, count(*) FROM events WHERE n > 0 GROUP BY n ORDER BY n"
    assert duck.sql(of_duckdb).fetchall() == expected
    counted = pl.scan_parquet(parquet(path, "events")).select(pl.col("args").list.len().alias("n")).collect()
    assert [row for row in counted.group_by("n").len().sort("n").rows() if row[0] > 0] == expected
