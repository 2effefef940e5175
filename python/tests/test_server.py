"""`sigmund serve`, as ADBC's driver of Flight SQL sees it: the answers of `sigmund sql`, and nothing without the token."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import adbc_driver_flightsql.dbapi as flight_sql
import pytest
from adbc_driver_flightsql import DatabaseOptions
from adbc_driver_manager import DatabaseError, OperationalError, ProgrammingError
from conftest import COMMAND, Query

TOKEN = "a-token-for-the-tests"


@contextmanager
def served(
    *arguments: object, token: str = TOKEN, folder: Path
) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """A running server: its address, and its process."""
    secret = folder / "token"
    secret.write_text(token + "\n")
    command = [str(COMMAND), "serve", *map(str, arguments), "--token-file", str(secret)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as server:
        assert server.stdout
        line = server.stdout.readline()
        assert line.startswith("listening on grpc://127.0.0.1:"), line
        try:
            yield line.removeprefix("listening on ").strip(), server
        finally:
            server.send_signal(signal.SIGINT)
            assert server.wait(60) == 0, server.stderr and server.stderr.read()


def connected(address: str, token: str = TOKEN) -> flight_sql.Connection:
    header = {DatabaseOptions.AUTHORIZATION_HEADER.value: f"Bearer {token}"}
    return flight_sql.connect(address, db_kwargs=header, autocommit=True)


@pytest.fixture(scope="module")
def address(path: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with served(path, folder=tmp_path_factory.mktemp("served")) as (address, _):
        yield address


@pytest.fixture(scope="module")
def connection(address: str) -> Iterator[flight_sql.Connection]:
    with connected(address) as connection:
        yield connection


def text(value: object) -> str:
    return "" if value is None else str(value)


QUERIES = [
    "SELECT level, name, count(*) AS n FROM events GROUP BY level, name ORDER BY n DESC, level, name",
    "SELECT thread, name, created_by FROM threads ORDER BY thread",
    "SELECT state, count(*) AS n, sum(dur_tick) AS total FROM thread_states GROUP BY state ORDER BY state",
    "SELECT thread, state, total_tick FROM states(thread => 15) ORDER BY state, total_tick",
    "SELECT duration(max(dur_ns)) AS longest, percentile(dur_ns, 99) AS p99 FROM active",
    "SELECT * FROM threads WHERE thread = -1",
]


@pytest.mark.parametrize("sql", QUERIES)
def test_rows_are_those_of_the_command(connection: flight_sql.Connection, query: Query, sql: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(sql)
        rows = [tuple(text(value) for value in row) for row in cursor.fetchall()]
    assert rows == query(sql)
    assert rows or "-1" in sql


def test_all_events_come_with_their_columns(connection: flight_sql.Connection, query: Query) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT * FROM events")
        table = cursor.fetch_arrow_table()
    assert [(str(table.num_rows),)] == query("SELECT count(*) FROM events")
    assert {"ts_tick", "ts_ns", "level", "name", "cpu", "lwp", "thread", "args"} <= set(table.column_names)
    ticks = [tick % 1000 for tick in table["ts_tick"].to_pylist()]
    assert [(str(sum(ticks)),)] == query("SELECT sum(ts_tick % 1000) FROM events")


def test_parameters_have_a_place_or_a_name(connection: flight_sql.Connection, query: Query) -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FROM events WHERE thread = $1 AND name <> $2", parameters=(15, "no such")
        )
        counted = cursor.fetchall()
    assert [(str(counted[0][0]),)] == query("SELECT count(*) FROM events WHERE thread = 15")
    assert counted[0][0] > 0
    with connection.cursor() as cursor:
        cursor.execute("SELECT ? IS NULL, coalesce(?, 'none'), NOT ?", parameters=(None, None, True))
        assert cursor.fetchall() == [(True, "none", False)]


def test_the_catalog_has_every_table_with_its_columns(
    connection: flight_sql.Connection, query: Query
) -> None:
    objects = connection.adbc_get_objects(depth="all").read_all().to_pylist()
    [schema] = [s for o in objects for s in o["catalog_db_schemas"] if s["db_schema_name"] == "public"]
    tables = {t["table_name"]: t for t in schema["db_schema_tables"]}
    assert {name for (name,) in query("SELECT table_name FROM information_schema.tables")} >= set(tables)
    assert tables["events"]["table_type"] == "TABLE" and tables["lock_wait"]["table_type"] == "VIEW"
    columns = {column["column_name"] for column in tables["events"]["table_columns"]}
    assert {"ts_tick", "ts_ns", "name"} <= columns
    assert connection.adbc_get_table_types() == ["TABLE", "VIEW"]
    assert connection.adbc_get_info()["vendor_name"] == "Sigmund"


def test_without_the_token_there_is_nothing(address: str) -> None:
    for token in ["another-token-for-the-tests", ""]:
        with (
            pytest.raises(DatabaseError, match="expected the token"),
            connected(address, token) as connection,
        ):
            connection.cursor().execute("SELECT 1")
    with pytest.raises(DatabaseError, match="expected the token"), flight_sql.connect(address) as connection:
        connection.cursor().execute("SELECT 1")


def test_the_token_is_a_password_too(address: str) -> None:
    with flight_sql.connect(
        address, db_kwargs={"username": "any", "password": TOKEN}, autocommit=True
    ) as connection:
        cursor = connection.cursor()
        cursor.execute("SELECT 1")
        assert cursor.fetchall() == [(1,)]


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        ("SELECT * FROM evnts", "nearest: events"),
        ("SELEC 1", "Expected"),
        ("DROP TABLE events", "only read"),
        ("CREATE TABLE t AS SELECT 1", "only read"),
        ("COPY events TO '/tmp/no-such-file.csv'", "only read"),
        ("SET datafusion.execution.batch_size = 1", "only read"),
        ("SELECT * FROM states(thread => 123456789)", "expected a user thread"),
    ],
)
def test_what_is_wrong_is_said(connection: flight_sql.Connection, sql: str, message: str) -> None:
    with connection.cursor() as cursor, pytest.raises(DatabaseError, match=message):
        cursor.execute(sql)
        cursor.fetchall()
    # It goes on.
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM events")
        assert cursor.fetchall()[0][0] > 0


# As long as anyone has patience; the second is busy with its first batch for long.
ENDLESS = "SELECT sum((a.ts_tick - b.ts_tick + c.ts_tick - d.ts_tick) % 7) FROM events a, events b, events c, events d"
BUSY = "SELECT count(*) FROM events a, events b, events c, events d, events e WHERE a.ts_tick + e.ts_tick = b.ts_tick"


@pytest.mark.parametrize("sql", [ENDLESS, BUSY])
def test_a_query_has_its_time_and_no_more(path: Path, tmp_path: Path, sql: str) -> None:
    with served(path, "--time", "2s", folder=tmp_path) as (address, _), connected(address) as connection:
        began = time.monotonic()
        with connection.cursor() as cursor, pytest.raises(OperationalError, match="limit of this server"):
            cursor.execute(sql)
            cursor.fetchall()
        assert time.monotonic() - began < 30
        if sql is BUSY:
            return
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
            assert cursor.fetchall() == [(1,)]


def test_a_client_that_reads_slowly_keeps_no_place(path: Path, tmp_path: Path) -> None:
    with (
        served(path, "--time", "2s", "--queries", "1", folder=tmp_path) as (address, _),
        connected(address) as slow,
        connected(address) as other,
        slow.cursor() as cursor,
    ):
        # Far more rows than client and server hold between them.
        cursor.execute("SELECT repeat('x', 1000) AS text FROM range(0, 20000000)")
        batches = cursor.fetch_record_batch()
        batches.read_next_batch()
        time.sleep(3)
        # It would wait for the only place, and not longer than for its own time.
        with other.cursor() as second:
            second.execute("SELECT 1")
            assert second.fetchall() == [(1,)]
        with pytest.raises(OSError, match="expected a query of at most 2s"):
            for _ in batches:
                pass


def test_a_query_has_its_memory_and_no_more(path: Path, tmp_path: Path) -> None:
    with served(path, "--memory", "1MiB", folder=tmp_path) as (address, _), connected(address) as connection:
        # One value of 100 MB cannot be parted.
        whole = "SELECT length(string_agg(repeat(name, 1000), '')) AS n FROM events"
        with (
            connection.cursor() as cursor,
            pytest.raises((DatabaseError, ProgrammingError), match="memory limit"),
        ):
            cursor.execute(whole)
            cursor.fetchall()


def cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def test_a_query_ends_when_its_client_goes(path: Path, tmp_path: Path) -> None:
    with served(path, "--queries", "1", folder=tmp_path) as (address, server):
        script = (
            "import sys, adbc_driver_flightsql.dbapi as f\n"
            "c = f.connect(sys.argv[1], db_kwargs={'adbc.flight.sql.authorization_header': 'Bearer ' + sys.argv[2]})\n"
            "cursor = c.cursor()\n"
            "cursor.execute(sys.argv[3])\n"
            "cursor.fetchall()\n"
        )
        with subprocess.Popen(
            [sys.executable, "-c", script, address, TOKEN, ENDLESS], stderr=subprocess.DEVNULL
        ) as client:
            # Its query runs.
            deadline = time.monotonic() + 60
            while cpu_seconds(server.pid) < 1 and time.monotonic() < deadline:
                time.sleep(0.05)
            assert cpu_seconds(server.pid) >= 1
            client.kill()
        # Its place is free.
        with connected(address) as connection, connection.cursor() as cursor:
            cursor.execute("SELECT 1")
            assert cursor.fetchall() == [(1,)]
        # It is at rest, soon.
        for _ in range(20):
            used = cpu_seconds(server.pid)
            time.sleep(1)
            if (rest := cpu_seconds(server.pid) - used) < 0.3:
                break
        assert rest < 0.3


def test_several_super_traces_have_names(path: Path, tmp_path: Path, query: Query) -> None:
    with served(f"a={path}", f"b={path}", folder=tmp_path) as (address, _), connected(address) as connection:
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT (SELECT count(*) FROM a.events) AS a, (SELECT count(*) FROM b.events) AS b"
            )
            [(a, b)] = cursor.fetchall()
        assert [(str(a),)] == query("SELECT count(*) FROM events") and a == b
        objects = connection.adbc_get_objects(depth="db_schemas").read_all().to_pylist()
        assert {s["db_schema_name"] for o in objects for s in o["catalog_db_schemas"]} >= {"public", "b"}


def test_wrong_arguments_are_told_apart(path: Path, tmp_path: Path) -> None:
    def refused(*arguments: object) -> str:
        done = subprocess.run(
            [COMMAND, "serve", *map(str, arguments)], capture_output=True, text=True, check=False
        )
        assert done.returncode == 2
        return done.stderr

    secret = tmp_path / "short"
    secret.write_text("short")
    assert "at least 16 visible ASCII characters" in refused(path, "--token-file", secret)
    assert "several as NAME=T" in refused(path, path)
    assert "not a super-trace" in refused(tmp_path / "none")
    assert "--time" in refused(path, "--time", "soon")


def test_a_new_token_is_printed(path: Path) -> None:
    with subprocess.Popen([COMMAND, "serve", path], stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout
        address = server.stdout.readline().removeprefix("listening on ").strip()
        token = server.stdout.readline().removeprefix("token ").strip()
        assert len(token) >= 16
        with connected(address, token) as connection, connection.cursor() as cursor:
            cursor.execute("SELECT 1")
        server.terminate()
        assert server.wait(60) == 0
