"""Asks a peer one question: `peers.py (duckdb|polars) QUERY` prints the rows; the files are named in the query."""

import sys


def duckdb(query: str) -> list[tuple]:
    import duckdb

    return duckdb.sql(query).fetchall()


def polars(query: str) -> list[tuple]:
    import re

    import polars

    context = polars.SQLContext()
    for number, files in enumerate(dict.fromkeys(re.findall("'([^']*/\\*\\.parquet)'", query))):
        context.register(f"t{number}", polars.scan_parquet(files))
        query = query.replace(f"'{files}'", f"t{number}")
    query = re.sub(r"\blen\(", "array_length(", query)
    return context.execute(query, eager=True).rows()


peer, query = sys.argv[1:]
for row in {"duckdb": duckdb, "polars": polars}[peer](query):
    print(*row, sep="\t")
