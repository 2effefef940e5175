//! Statements of Perfetto's SQL that would make tables: a super-trace is only read, and each has another way here.

use crate::Error;

/// The error for a statement of Perfetto's SQL that is not read here, with what to write.
pub(crate) fn refused(query: &str) -> Option<Error> {
    let words: Vec<String> =
        without_comments(query).split_whitespace().take(6).map(str::to_ascii_uppercase).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let (found, instead) = match words.as_slice() {
        ["INCLUDE", "PERFETTO", "MODULE", ..] => {
            ("INCLUDE PERFETTO MODULE", "leave it out: `--schema` lists the tables that are there")
        }
        ["CREATE", rest @ ..] if rest.contains(&"PERFETTO") => {
            let is_function = rest.iter().any(|word| matches!(*word, "FUNCTION" | "MACRO"));
            match is_function {
                true => ("CREATE PERFETTO FUNCTION", "write its expression where it is called"),
                false => ("CREATE PERFETTO TABLE", "write WITH name AS (SELECT …) SELECT …"),
            }
        }
        ["CREATE", "VIRTUAL", "TABLE", ..] => {
            let text = query.to_ascii_uppercase();
            match text.contains("SPAN_LEFT_JOIN") {
                true => (
                    "SPAN_LEFT_JOIN",
                    "write SELECT … FROM overlap_left(a, b, key), where key is PARTITIONED's column",
                ),
                false => (
                    "CREATE VIRTUAL TABLE",
                    "write SELECT … FROM overlap(a, b, key) for SPAN_JOIN, where key is PARTITIONED's column",
                ),
            }
        }
        ["CREATE", "VIEW", ..]
        | ["CREATE", "OR", "REPLACE", "VIEW", ..]
        | ["CREATE", "TEMP" | "TEMPORARY", "VIEW", ..] => {
            ("CREATE VIEW", "write WITH name AS (SELECT …) SELECT …")
        }
        _ => return None,
    };
    Some(Error::refused(&format!("{found}; {instead}")))
}

/// What comes after comments at the beginning.
fn without_comments(query: &str) -> &str {
    let query = query.trim_start();
    let rest = match (query.strip_prefix("--"), query.strip_prefix("/*")) {
        (Some(comment), _) => comment.split_once('\n'),
        (_, Some(comment)) => comment.split_once("*/"),
        (None, None) => return query,
    };
    rest.map_or("", |(_, rest)| without_comments(rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_statement_of_perfetto_is_refused_with_what_to_write() {
        for (query, expected) in [
            ("INCLUDE PERFETTO MODULE slices.with_context;", "leave it out: `--schema` lists"),
            ("-- of the docs\ncreate view v as select 1", "write WITH name AS"),
            ("/* a */ CREATE OR REPLACE PERFETTO TABLE t AS SELECT 1", "write WITH name AS"),
            ("CREATE PERFETTO FUNCTION f(x INT) RETURNS INT AS SELECT 1", "its expression"),
            (
                "CREATE VIRTUAL TABLE x USING SPAN_JOIN(a PARTITIONED utid, b PARTITIONED utid)",
                "overlap(a, b, key)",
            ),
            ("CREATE VIRTUAL TABLE x USING SPAN_LEFT_JOIN(a, b)", "overlap_left(a, b, key)"),
        ] {
            let error = refused(query).map(|error| error.to_string()).unwrap_or_default();
            assert!(error.contains(expected) && error.contains("only read"), "{query}: {error}");
        }
        for query in ["SELECT 1", "CREATE TABLE t AS SELECT 1", "-- a comment", "/* one that does not end"] {
            assert!(refused(query).is_none(), "{query}");
        }
    }
}
