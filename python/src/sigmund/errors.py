"""Errors: the file or folder, what was expected and what was found. The kinds are those of `sigmund sql`."""

from collections.abc import Iterable
from difflib import get_close_matches

# So many names are listed where none is near.
MOST_LISTED = 20


class SigmundError(Exception):
    """Any error of this package."""


class NotASuperTraceError(SigmundError):
    """The path is not a super-trace: not there, or not a folder."""


class MissingTableError(SigmundError):
    """A table of the super-trace is not there."""


class UnreadableError(SigmundError):
    """A file is there and cannot be read as Parquet."""


class SchemaVersionError(SigmundError):
    """The super-trace has another schema version than this package reads."""


class SchemaError(SigmundError):
    """A table does not have the columns or values of its schema version."""


class UnknownNameError(SigmundError, LookupError):
    """There is no table, column, thread or LWP of this name or number."""


def unknown(what: str, found: str, known: Iterable[str]) -> UnknownNameError:
    """The error for a name that does not exist, with the nearest names that do."""
    names = list(dict.fromkeys(known))
    if nearest := get_close_matches(found, names, n=3):
        return UnknownNameError(f"no {what} `{found}`; nearest: {', '.join(nearest)}")
    more = ", ..." if len(names) > MOST_LISTED else ""
    return UnknownNameError(f"no {what} `{found}`; there are: {', '.join(names[:MOST_LISTED])}{more}")
