"""The file `checksums` of a super-trace: which files the merge has written, and how long each is.

    sigmund checksums 1
    9ae0daaf 4711 5120 events/part-00000.parquet
    1c291ca3

A line has the checksum of a file's bytes from an offset to its end, that offset, the length of the file, and its name. The last
line is the checksum of all lines above it. Checksums are not computed here: the command does. A super-trace without this
file was put together from copied files, and is read without this check.
"""

import re
from pathlib import Path
from reprlib import repr as short

from sigmund.errors import UnreadableError

NAME = "checksums"
HEAD = "sigmund checksums 1"

# Bytes of it that are read: enough for a million files.
MOST = 100 << 20

CHECKSUM = re.compile("[0-9A-Fa-f]{1,8}")
LINE = re.compile(f"({CHECKSUM.pattern}) ([0-9]{{1,20}}) ([0-9]{{1,20}}) (.+)", re.DOTALL)

CHANGED = f"(a super-trace that was changed on purpose is read when its file `{NAME}` is removed)"


def lengths(super_trace: Path) -> dict[str, int]:
    """The length of each file that was written, by TABLE/NAME; empty if there is no such file.

    Raises UnreadableError if the file is not what the merge writes.
    """
    path = super_trace / NAME
    if not path.exists():
        return {}
    if not path.is_file():
        raise UnreadableError(f"{path}: expected a regular file")
    try:
        with path.open("rb") as file:
            text = file.read(MOST).decode("utf-8")
    except OSError as error:
        raise UnreadableError(f"{path}: expected checksums, found: {error.strerror}") from error
    except UnicodeDecodeError:
        raise _damaged(path, "checksums", "bytes that are no text") from None
    head, *lines = text.rstrip("\n").split("\n")
    if head != HEAD:
        raise _damaged(path, f"{HEAD!r} as its first line", short(head))
    if not lines or not CHECKSUM.fullmatch(lines[-1]):
        raise _damaged(path, "the checksum of the lines above as its last line", short((lines or [head])[-1]))
    found: dict[str, int] = {}
    for number, line in enumerate(lines[:-1], start=2):
        parts = LINE.fullmatch(line)
        if parts is None or int(parts[2]) > int(parts[3]):
            raise _damaged(path, f"a checksum, an offset, a length and a name in line {number}", short(line))
        found[parts[4]] = int(parts[3])
    return found


def check(super_trace: Path, table: str, written: dict[str, int]) -> None:
    """Checks that each file of a table that was written is there, and is as long as it was.

    Raises UnreadableError, since rows would be missing.
    """
    for name, length in written.items():
        if not name.startswith(f"{table}/"):
            continue
        path = super_trace / name
        try:
            found = path.stat().st_size
        except OSError:
            raise UnreadableError(f"{path}: expected this file, found none {CHANGED}") from None
        if found != length:
            raise UnreadableError(
                f"{path}: expected a whole Parquet file, found: {found} bytes instead of {length} {CHANGED}"
            )


def _damaged(path: Path, expected: str, found: str) -> UnreadableError:
    return UnreadableError(f"{path}: expected {expected}, found {found} {CHANGED}")
