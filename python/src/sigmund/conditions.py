"""Conditions on columns: checked before anything is read, so that an error is about the condition and not about a file."""

import math
from collections.abc import Callable, Iterable
from reprlib import repr as short
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from sigmund.errors import SigmundError, unknown

# A condition on a column: its name, one of OPERATORS, and a value.
Condition = tuple[str, str, Any]

OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "==": lambda column, value: column == value,
    "!=": lambda column, value: column != value,
    "<": lambda column, value: column < value,
    "<=": lambda column, value: column <= value,
    ">": lambda column, value: column > value,
    ">=": lambda column, value: column >= value,
    "in": lambda column, value: column.isin(value),
}

# Integers of tables have 64 bits. Of addresses and numbers that exceed them, the tables have these bits.
LEAST, BEYOND = -(2**63), 2**63

INTEGERS = ("BIGINT", "INT")

# Between two integers, these operators select as they do with one of both.
ROUNDED: dict[str, Callable[[float], int]] = {
    "<": math.ceil,
    "<=": math.floor,
    ">": math.floor,
    ">=": math.ceil,
}


def checked(condition: Condition, sql_type: str) -> Condition:
    """The condition on a column of this SQL type, with a value that can be compared with it; of `in`, a list of these.

    Raises UnknownNameError for an operator that does not exist, and SigmundError for another value.
    """
    column, operator, value = condition
    if not isinstance(operator, str) or operator not in OPERATORS:
        raise unknown("operator", str(operator), OPERATORS)
    if operator != "in":
        return column, operator, _value(condition, _plain(value), sql_type)
    if isinstance(value, (str, bytes)) or not isinstance(value, Iterable):
        raise _wrong(condition, "a list of values", value)
    values = [_plain(one) for one in value]
    return column, operator, [_value((column, operator, values), one, sql_type) for one in values]


def expression(conditions: Iterable[Condition], schema: pa.Schema) -> Any:
    """All of these conditions, which are checked, as an expression of pyarrow; None if there are none."""
    where = None
    for condition in conditions:
        column, operator, value = condition
        # Of no values, pyarrow does not know the type.
        is_none = operator == "in" and not value
        one = pc.scalar(False) if is_none else OPERATORS[operator](pc.field(column), value)
        try:
            schema.empty_table().filter(one)
        except (pa.ArrowException, TypeError) as error:
            raise SigmundError(
                f"{_text(condition)}: expected a condition on {column}, found: {error}"
            ) from error
        where = one if where is None else where & one
    return where


def _value(condition: Condition, value: Any, sql_type: str) -> Any:
    column = condition[0]
    if value is None or value is pd.NA or value is pd.NaT or (isinstance(value, float) and math.isnan(value)):
        raise SigmundError(
            f"{_text(condition)}: expected a value, found none: nothing equals NULL or differs from it; "
            f"`frame[frame.{column}.notna()]` selects among the rows that were read"
        )
    if sql_type in INTEGERS:
        return _integer(condition, _number(condition, value))
    if sql_type == "DOUBLE":
        try:
            return float(_number(condition, value))
        except OverflowError as error:
            raise _wrong(condition, "a number that a DOUBLE can have", value) from error
    if sql_type == "VARCHAR":
        if not isinstance(value, str):
            raise _wrong(condition, "a text", value)
    elif sql_type == "BOOLEAN":
        if not isinstance(value, bool):
            raise _wrong(condition, "True or False", value)
    elif sql_type.endswith("[]"):
        raise SigmundError(
            f"{_text(condition)}: expected a column of numbers, texts or truth values, found one of {sql_type}; "
            "select among the rows that were read"
        )
    return value


def _number(condition: Condition, value: Any) -> int | float:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise _wrong(condition, "a number", value)
    return value


def _integer(condition: Condition, value: int | float) -> int:
    operator = condition[1]
    whole = value
    if isinstance(whole, float) and math.isfinite(whole):
        whole = int(whole) if whole.is_integer() else ROUNDED.get(operator, float)(whole)
    if isinstance(whole, float):
        raise _wrong(condition, "a whole number", value)
    if not LEAST <= whole < BEYOND:
        raise _wrong(condition, "a number from -2^63 to 2^63 - 1", value, _wrapped(whole))
    return whole


def _plain(value: Any) -> Any:
    """A value of numpy or pyarrow as one of Python."""
    if isinstance(value, pa.Scalar):
        return value.as_py()
    return value.item() if isinstance(value, np.generic) else value


def _wrapped(value: int) -> str:
    if not BEYOND <= value < 2**64:
        return ""
    return f"; addresses and numbers from 2^63 on are stored less 2^64, this one as {value - 2**64}"


def _wrong(condition: Condition, expected: str, found: Any, more: str = "") -> SigmundError:
    return SigmundError(f"{_text(condition)}: expected {expected}, found {short(found)}{more}")


def _text(condition: Condition) -> str:
    column, operator, value = condition
    return f"{column} {operator} {short(value)}"
