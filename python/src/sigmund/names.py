"""Names of user threads: by number, by name, and by pattern."""

import re
from collections.abc import Iterable
from fnmatch import translate
from numbers import Integral

import pandas as pd

from sigmund.errors import unknown

# What a person asks about: a number, a name or a pattern with `*`, or several of these.
Asked = int | str | Iterable[int | str]


def pattern(name: str) -> str:
    """A name with each number in it as `*`: work/1 and work/2 are both work/*, as with `--by pattern`."""
    return re.sub("[0-9]+", "*", name)


def find(names: "pd.Series[str]", asked: Asked) -> list[int]:
    """The numbers of the threads that are asked for, in the order of their numbers.

    `names` are the names by number. A text is a name, or a pattern in which `*` stands for anything. Names need not be
    unique.

    Raises UnknownNameError for a number, name or pattern that no thread has.
    """
    found: set[int] = set()
    for one in [asked] if isinstance(asked, (str, int, Integral)) else asked:
        if isinstance(one, str):
            known = names.dropna()
            matches = re.compile(translate(re.sub(r"([\[?])", r"[\1]", one))).match
            numbers = {int(number) for number, name in known.items() if matches(name)}  # type: ignore[call-overload]
        else:
            known = names
            numbers = {int(one)} if one in names.index else set()
        if not numbers:
            by = known if isinstance(one, str) else names.index
            raise unknown("thread", str(one), map(str, by))
        found |= numbers
    return sorted(found)


def label(number: int, name: object) -> str:
    """A thread for people: 5(work/1), or 5 if it has no name."""
    return f"{number}({name})" if isinstance(name, str) else str(number)
