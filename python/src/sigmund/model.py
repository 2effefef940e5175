"""The tables that a super-trace of this schema version has: what a row of each is, and the types of its columns."""

import json
from importlib import resources

import pyarrow as pa

_TABLES = json.loads((resources.files("sigmund") / "tables.json").read_text("utf-8"))

# Each table, with the sentence that says what a row is.
SENTENCES: dict[str, str] = {table: described["what"] for table, described in _TABLES.items()}

# The SQL types of the columns of each table, computed ones included.
TYPES: dict[str, dict[str, str]] = {table: described["columns"] for table, described in _TABLES.items()}


def sql_type(arrow: pa.DataType) -> str:
    """The SQL type of a column; Arrow's name if SQL has none. A dictionary of texts is a text."""
    if pa.types.is_dictionary(arrow):
        return sql_type(arrow.value_type)
    if pa.types.is_list(arrow) or pa.types.is_large_list(arrow):
        return f"{sql_type(arrow.value_type)}[]"
    if pa.types.is_string(arrow) or pa.types.is_large_string(arrow) or pa.types.is_string_view(arrow):
        return "VARCHAR"
    names = {pa.int64(): "BIGINT", pa.int32(): "INT", pa.float64(): "DOUBLE", pa.bool_(): "BOOLEAN"}
    return names.get(arrow, str(arrow))
