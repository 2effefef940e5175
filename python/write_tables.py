"""Writes src/sigmund/tables.json, by what the command says of a super-trace: `write_tables.py SIGMUND TRACE`.

For each table: what a row is, and the SQL types of its columns, computed ones included.
"""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

TABLES = Path(__file__).parent / "src/sigmund/tables.json"


def tables(command: str, trace: str) -> str:
    """The text of tables.json."""

    def schema(*table: str) -> Any:
        arguments = [
            command,
            "sql",
            trace,
            f"--schema={table[0]}" if table else "--schema",
            "--format",
            "json",
        ]
        return json.loads(subprocess.run(arguments, capture_output=True, check=True).stdout)

    described = {
        relation["name"]: {
            "what": relation["what"],
            "columns": {column["column"]: column["type"] for column in schema(relation["name"])},
        }
        for relation in schema()
        if relation["kind"] == "table"
    }
    return json.dumps(described, indent=2, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    TABLES.write_text(tables(sys.argv[1], sys.argv[2]), "utf-8")
