"""An open super-trace: its tables as data frames. It is never written to.

A data frame has the columns that `sigmund sql` has: those of the Parquet files, and for each `X_tick` the column `X_ns`. NULL is
NA: integers are pandas' Int64 and Int32, which keep all 64 bits beside it. Words are categories; lists stay lists of Arrow.
"""

from collections.abc import Iterable, Sequence
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa

from sigmund import checksums, files, model, names
from sigmund.clock import BEGINS, INSTANTS, Clock
from sigmund.conditions import OPERATORS, Condition, checked, expression
from sigmund.errors import MissingTableError, SchemaError, unknown
from sigmund.info import Info
from sigmund.model import SENTENCES

# The column on_cpu_tick of syscalls, which is computed.
ON_CPU = "The part of its length in which the LWP was on a CPU; NULL if that is not known."


def open(path: str | PathLike[str]) -> "SuperTrace":
    """Opens the folder NAME.supertrace: reads the footers of all files, the table `info`, and the file `checksums`, if
    there is one: which files there have to be, and how long they are.

    Raises NotASuperTraceError, SchemaVersionError, MissingTableError, UnreadableError or SchemaError; each names the
    file.
    """
    return SuperTrace(Path(path))


class SuperTrace:
    """An open super-trace."""

    def __init__(self, path: Path) -> None:
        """Opens it; see `open`."""
        files.check_folder(path)
        self.path = path
        self.info = Info(path)
        left_out = self.info.left_out_tables()
        # Another version may write them differently: it has been checked.
        written = checksums.lengths(path)
        self._schemata: dict[str, pa.Schema] = {}
        for table in SENTENCES:
            if table not in left_out:
                checksums.check(path, table, written)
                self._schemata[table] = files.schema(path, table)

    def __repr__(self) -> str:
        """The path, and how many tables there are."""
        return f"<super-trace {self.path}: {len(self.tables)} tables>"

    @property
    def tables(self) -> list[str]:
        """The names of its tables, without those that the merge left out."""
        return list(self._schemata)

    @cached_property
    def clock(self) -> Clock:
        """How ticks become nanoseconds and times of day."""
        info = self.info
        return Clock(
            info.tick_hz(), info.number("first_tick", int), info.number("last_tick", int), self._realtime()
        )

    def __getitem__(self, table: str) -> pd.DataFrame:
        """All rows and columns of a table."""
        return self.table(table)

    def columns(self, table: str) -> list[str]:
        """The names of the columns of a table, in the order of `sigmund sql`."""
        return [*self._schema(table).names, *files.computed_columns(self._schema(table).names)]

    def table(
        self, table: str, columns: Sequence[str] | None = None, filters: Iterable[Condition] = ()
    ) -> pd.DataFrame:
        """A table as a data frame.

        `columns` are all if it is None. `filters` are conditions that all have to hold; row groups that cannot have such
        rows are not read. That is decided by conditions on stored columns; those on computed columns, as nanoseconds, then
        select among the rows that were read:

            trace.table("thread_states", ["thread", "dur_ns"], [("state", "==", "stalled"), ("dur_ns", ">", 1000)])

        Raises UnknownNameError for a table, column or operator that does not exist, MissingTableError for a table that the
        merge left out, UnreadableError for a damaged file, and SigmundError for a condition without a value, or with one that
        its column cannot have. `in` without values selects nothing.
        """
        schema = self._schema(table)
        computed = files.computed_columns(schema.names)
        wanted = self.columns(table) if columns is None else list(columns)
        for column in wanted:
            if column not in schema.names and column not in computed:
                raise unknown(f"column in the table {table}", column, self.columns(table))
        conditions = self._known(table, filters)
        late = [condition for condition in conditions if condition[0] in computed]
        needed = dict.fromkeys([*wanted, *(column for column, _, _ in late)])
        stored = [source for column in needed for source in computed.get(column, (column,))]
        early = [condition for condition in conditions if condition[0] not in computed]
        where = expression(early, schema)
        rows = files.read(self.path, table, list(dict.fromkeys(stored)), where).unify_dictionaries()
        frame: pd.DataFrame = rows.to_pandas(types_mapper=_pandas_type)
        for column in needed:
            if column in computed:
                frame[column] = self._compute(frame, computed[column], column)
        for column, operator, value in late:
            # What is NA fulfils no condition.
            frame = frame[OPERATORS[operator](frame[column], value).fillna(False) & frame[column].notna()]
        return frame[wanted].reset_index(drop=True) if late else frame[wanted]

    def describe(self, table: str) -> pd.DataFrame:
        """The columns of a table: name, unit (tick or ns, or empty) and what each holds."""
        fields = self._schema(table)
        sentences = {field.name: (field.metadata or {}).get(b"doc", b"").decode("utf-8") for field in fields}
        for column in files.computed_columns(fields.names):
            tick = column.removesuffix("_ns") + "_tick"
            since = ", since the first event" if tick in INSTANTS else ""
            in_nanos = f"`{tick}` in nanoseconds{since}; NULL if the rate of the clock is not known."
            sentences[column] = in_nanos if column.endswith("_ns") else ON_CPU
        rows = [(column, _unit(column), sentence) for column, sentence in sentences.items()]
        return pd.DataFrame(rows, columns=["column", "unit", "what"])

    def sentence(self, table: str) -> str:
        """What a row of a table is."""
        self._schema(table)
        return SENTENCES[table]

    @cached_property
    def has_threads(self) -> bool:
        """Whether it has any user thread; else its figures are of LWPs."""
        return "threads" in self._schemata and len(self.table("threads", ["thread"])) > 0

    @cached_property
    def thread_names(self) -> "pd.Series[str]":
        """The name of each user thread (NA if it has none), by its number. The last row of a number counts."""
        return _by_number(self.table("threads", ["thread", "name"]), "thread")

    @cached_property
    def lwp_names(self) -> "pd.Series[str]":
        """The last known command name of each LWP (NA if it has none), by its tid."""
        return _by_number(self.table("lwps", ["lwp", "name"]), "lwp")

    def threads(self, asked: names.Asked) -> list[int]:
        """The numbers of user threads, by number, name or pattern: `5`, `"main"`, `"work/*"`, or a list of these."""
        return names.find(self.thread_names, asked)

    def lwps(self, asked: names.Asked) -> list[int]:
        """The tids of LWPs, likewise."""
        return names.find(self.lwp_names, asked)

    def _schema(self, table: str) -> pa.Schema:
        if table in self._schemata:
            return self._schemata[table]
        if table in SENTENCES:
            raise MissingTableError(f"{self.path / table}: the merge left out the table `{table}`")
        raise unknown("table", table, self.tables)

    def _known(self, table: str, filters: Iterable[Condition]) -> list[Condition]:
        types = dict.fromkeys(self.columns(table), "BIGINT")
        types.update({field.name: model.sql_type(field.type) for field in self._schema(table)})
        conditions = []
        for condition in filters:
            if condition[0] not in types:
                raise unknown(f"column in the table {table}", condition[0], types)
            conditions.append(checked(condition, types[condition[0]]))
        return conditions

    def _compute(self, frame: pd.DataFrame, sources: tuple[str, ...], column: str) -> pd.Series:
        ticks = frame[sources[0]]
        if sources[1:] and sources[1:] == BEGINS.get(sources[0]) and column.endswith("_ns"):
            return self.clock.length_from_ns(sum(frame[part].fillna(0) for part in sources[1:]), ticks)
        for taken in sources[1:]:
            ticks = ticks - frame[taken]
        if column.endswith("_tick"):
            return ticks
        return self.clock.since_start_ns(ticks) if sources[0] in INSTANTS else self.clock.length_ns(ticks)

    def _realtime(self) -> tuple[tuple[int, int], ...]:
        columns = ["ns", "before_tick", "after_tick"]
        filters = [
            ("domain", "==", "realtime"),
            ("against", "==", self.info.get("main_clock", "tsc")),
            ("used", "==", True),
        ]
        snapshots = self.table("clocks", columns, filters).dropna()
        middles = (
            snapshots["before_tick"] + (snapshots["after_tick"] - snapshots["before_tick"]) // 2
        ).tolist()
        by_tick = dict(sorted(zip(middles, snapshots["ns"].tolist(), strict=True)))
        return tuple(by_tick.items())


def _unit(column: str) -> str:
    return next((unit for unit in ("tick", "ns") if f"_{column}".endswith(f"_{unit}")), "")


def _pandas_type(arrow: pa.DataType) -> Any:
    """The pandas type that holds each value and NULL; None where the usual one does."""
    if pa.types.is_int64(arrow):
        return pd.Int64Dtype()
    if pa.types.is_int32(arrow):
        return pd.Int32Dtype()
    if pa.types.is_boolean(arrow):
        return pd.BooleanDtype()
    if pa.types.is_list(arrow) or pa.types.is_large_list(arrow):
        return pd.ArrowDtype(arrow)
    if pa.types.is_string(arrow) or pa.types.is_large_string(arrow):
        return pd.StringDtype("pyarrow")
    return None


def _by_number(frame: pd.DataFrame, number: str) -> "pd.Series[str]":
    if frame[number].isna().any():
        raise SchemaError(f"column `{number}`: expected a number in each row, found NULL")
    last = frame.drop_duplicates(number, keep="last").sort_values(number)
    return last.set_index(last[number].astype("int64"))["name"]
