"""The Parquet files of a super-trace: finding, checking and reading them. Every error names the file.

A super-trace is a folder with a folder for each table:

    NAME.supertrace/TABLE/part-00000.parquet, part-00001.parquet, ... in the order of time
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa
import pyarrow.parquet as pq

from sigmund import model
from sigmund.clock import BEGINS
from sigmund.errors import MissingTableError, NotASuperTraceError, SchemaError, UnreadableError

Result = TypeVar("Result")


def check_folder(path: Path) -> None:
    """Checks that the path is a folder."""
    if not path.is_dir():
        found = "a file" if path.exists() else "no such file or directory"
        raise NotASuperTraceError(
            f"{path}: not a super-trace: expected a directory NAME.supertrace, found {found}"
        )


def parts(super_trace: Path, table: str) -> list[Path]:
    """The files of a table, in the order of time."""
    folder = super_trace / table
    try:
        found = sorted(path for path in folder.iterdir() if path.suffix == ".parquet")
    except OSError as error:
        raise missing(folder, str(error.strerror)) from error
    if not found:
        raise missing(folder, "no Parquet file")
    return found


def missing(folder: Path, found: str) -> MissingTableError:
    """The error for a table whose folder has no files."""
    return MissingTableError(
        f"{folder}: the table `{folder.name}` is missing: expected part-00000.parquet, ..., found {found}"
    )


def schema(super_trace: Path, table: str) -> pa.Schema:
    """The columns of a table, by the footers of its files: each is checked to have the columns of the model."""
    schemata = [(path, _read(path, pq.read_schema)) for path in parts(super_trace, table)]
    for path, found in schemata:
        _check_columns(path, table, found)
    return schemata[0][1]


def _check_columns(path: Path, table: str, found: pa.Schema) -> None:
    computed = computed_columns(found.names)
    for column, expected in model.TYPES[table].items():
        if column in computed:
            continue
        there = [model.sql_type(field.type) for field in found if field.name == column]
        if there != [expected]:
            shown = ", ".join(there) or "no such column"
            raise SchemaError(f"{path}: column `{column}`: expected {expected}, found {shown}")


def computed_columns(stored: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """The columns that are computed, and the stored ones that each is computed from.

    Of nanoseconds these are the ticks, and of a length the columns whose sum is its begin; of the others the first, less
    the others.
    """
    computed: dict[str, tuple[str, ...]] = {}
    for column in stored:
        nanos = column.removesuffix("_tick") + "_ns"
        if column.endswith("_tick") and nanos not in stored:
            begin = BEGINS.get(column, ())
            computed[nanos] = (column, *begin) if all(part in stored for part in begin) else (column,)
    if "off_cpu_tick" in stored:
        computed["on_cpu_ns"] = computed["on_cpu_tick"] = ("dur_tick", "off_cpu_tick")
    return computed


def read(super_trace: Path, table: str, columns: Sequence[str], where: Any = None) -> pa.Table:
    """These columns of the rows that `where` (an expression of pyarrow) selects, in the order of the files."""

    def rows(file: pa.NativeFile) -> pa.Table:
        return pq.read_table(
            file, columns=list(columns), filters=where, partitioning=None, page_checksum_verification=True
        )

    return pa.concat_tables([_read(path, rows) for path in parts(super_trace, table)])


def _read(path: Path, read: Callable[[pa.NativeFile], Result]) -> Result:
    if not path.is_file():
        raise UnreadableError(f"{path}: expected a regular file")
    try:
        with pa.OSFile(str(path)) as file:
            return read(file)
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise UnreadableError(f"{path}: expected a whole Parquet file, found: {error}") from error
