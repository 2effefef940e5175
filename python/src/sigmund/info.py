"""The table `info`: facts about the recording, by key."""

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from sigmund import files
from sigmund.errors import SchemaError, SchemaVersionError

# The version of the layout that this package reads.
SCHEMA_VERSION = 4

Number = TypeVar("Number", int, float)


class Info(dict[str, str]):
    """All facts, as text. Of a key that occurs more than once, the last one counts."""

    def __init__(self, super_trace: Path) -> None:
        """Reads the table, and checks the schema version first: another version may not have all tables."""
        self.table = super_trace / "info"
        files.schema(super_trace, "info")
        rows = files.read(super_trace, "info", ["key", "value"])
        super().__init__(zip(rows["key"].to_pylist(), rows["value"].to_pylist(), strict=True))
        version = self.get("schema_version")
        if version != str(SCHEMA_VERSION):
            found = "no schema version" if version is None else f"schema version {version}"
            raise SchemaVersionError(
                f"{self.table}: {found}, but this program reads {SCHEMA_VERSION}: "
                "merge the recording again (sigmund merge)"
            )

    def number(self, key: str, read: Callable[[str], Number]) -> Number | None:
        """A number under this key; None if there is no such key."""
        text = self.get(key)
        if text is None:
            return None
        try:
            return read(text)
        except ValueError:
            raise SchemaError(f"{self.table}: {key}: expected a number, found `{text}`") from None

    def tick_hz(self) -> float | None:
        """Ticks per second of the main clock."""
        rate = self.number("tick_hz", float)
        if rate is not None and not 0 < rate < float("inf"):
            raise SchemaError(f"{self.table}: tick_hz: expected a positive rate, found {rate}")
        return rate

    def left_out_tables(self) -> list[str]:
        """The tables that the merge left out."""
        names = self.get("left_out_tables", "").split(",")
        return [name.strip() for name in names if name.strip()]
