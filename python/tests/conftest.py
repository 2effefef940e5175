"""The super-trace that the tests read: `sigmund demo`, recorded once, or SUPERTRACE if that is set.

SIGMUND is the command; without it, target/debug/sigmund is used.
"""

import csv
import io
import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

import sigmund

REPOSITORY = Path(__file__).parents[2]
COMMAND = Path(os.environ.get("SIGMUND", REPOSITORY / "target/debug/sigmund")).absolute()

# Runs the command with these arguments: what it printed.
Run = Callable[..., str]
# Runs a query: the rows, each cell a text, empty for NULL.
Query = Callable[[str], list[tuple[str, ...]]]


@pytest.fixture(scope="session")
def run() -> Run:
    def run(*arguments: object) -> str:
        done = subprocess.run([COMMAND, *map(str, arguments)], capture_output=True, text=True, check=False)
        # 1: it found nothing.
        assert done.returncode in (0, 1), f"{done.args}: {done.stdout}{done.stderr}"
        return done.stdout

    return run


@pytest.fixture(scope="session")
def path(run: Run, tmp_path_factory: pytest.TempPathFactory) -> Path:
    if given := os.environ.get("SUPERTRACE"):
        return Path(given)
    folder = tmp_path_factory.mktemp("demo") / "demo"
    run("demo", "-o", folder)
    return folder / "sumtime.supertrace"


@pytest.fixture(scope="session")
def trace(path: Path) -> sigmund.SuperTrace:
    return sigmund.open(path)


@pytest.fixture(scope="session")
def query(run: Run, path: Path) -> Query:
    def query(sql: str) -> list[tuple[str, ...]]:
        return cells(run("sql", path, sql, "--format", "csv"))[1:]

    return query


def cells(text: str) -> list[tuple[str, ...]]:
    return [tuple(row) for row in csv.reader(io.StringIO(text))]
