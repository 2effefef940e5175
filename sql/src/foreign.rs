//! Translates Perfetto's SQL. Its tables, views and span joins become views of the session (`session_views.rs`). For
//! other statements, the error has what to write instead.

use crate::Error;

/// Translates a statement of Perfetto's SQL that defines a table or view to `CREATE VIEW`. `None` if nothing has to be
/// translated.
pub(crate) fn translated(query: &str) -> Option<String> {
    let query = without_comments(query);
    let mut rest = Rest(query);
    if !rest.skip("CREATE") {
        return None;
    }
    let create =
        if rest.skip("OR") && rest.skip("REPLACE") { "CREATE OR REPLACE VIEW" } else { "CREATE VIEW" };
    if rest.skip("PERFETTO") {
        let is_relation = rest.skip("TABLE") || rest.skip("VIEW");
        return is_relation.then(|| format!("{create} {}", without_types(rest.0)));
    }
    if (rest.skip("TEMP") || rest.skip("TEMPORARY")) && rest.skip("VIEW") {
        return Some(format!("{create} {}", rest.0));
    }
    if rest.skip("VIRTUAL") && rest.skip("TABLE") {
        let name = rest.word()?;
        return rest
            .skip("USING")
            .then(|| span_join(rest.0))
            .flatten()
            .map(|join| format!("{create} {name} AS {join}"));
    }
    None
}

/// The module in `INCLUDE PERFETTO MODULE name`. Such a module only defines tables and views.
pub(crate) fn included(query: &str) -> Option<&str> {
    let mut rest = Rest(query);
    let is_included = rest.skip("INCLUDE") && rest.skip("PERFETTO") && rest.skip("MODULE");
    is_included.then(|| rest.0.trim_end().trim_end_matches(';').trim_end()).filter(|name| !name.is_empty())
}

/// `SPAN_JOIN(a PARTITIONED key, b PARTITIONED key)` as a query. If only one table has a key, its rows of each key are
/// joined with all rows of the other: `overlap` without a key does that.
fn span_join(text: &str) -> Option<String> {
    let text = &uncommented(text);
    let (function, arguments) = text.trim().trim_end_matches(';').trim_end().split_once('(')?;
    let function = match function.trim().to_ascii_uppercase().as_str() {
        "SPAN_JOIN" => "overlap",
        "SPAN_LEFT_JOIN" => "overlap_left",
        _ => return None,
    };
    let (one, other) = arguments.strip_suffix(')')?.split_once(',')?;
    let part = |text| -> Option<(&str, Option<&str>)> {
        match Vec::from_iter(str::split_whitespace(text)).as_slice() {
            [table] => Some((table, None)),
            [table, word, key] if word.eq_ignore_ascii_case("PARTITIONED") => Some((table, Some(key))),
            _ => None,
        }
    };
    match (part(one)?, part(other)?) {
        ((one, _), (other, None)) => Some(format!("SELECT * FROM {function}({one}, {other})")),
        // A left join would have the rows of `one` once for each key of the other.
        ((one, None), (other, Some(_))) if function == "overlap" => {
            Some(format!("SELECT * FROM {function}({one}, {other})"))
        }
        ((one, Some(key)), (other, Some(same))) if key == same => {
            Some(format!("SELECT * FROM {function}({one}, {other}, {key})"))
        }
        _ => None,
    }
}

/// Removes the types of columns: `name(ts INT, id JOINID(slice.id)) AS SELECT …` keeps only the names, because a view
/// has the types of its query. The query is left unchanged. If a name is in quotes, everything is.
fn without_types(definition: &str) -> String {
    let kept = definition.to_string();
    let Some((name, rest)) = definition.split_once('(') else { return kept };
    if name.split_whitespace().count() != 1 || name.contains(['"', '`']) {
        return kept;
    }
    let Some((list, query)) = column_list(rest) else { return kept };
    let list = uncommented(list);
    if list.contains(['"', '`']) {
        return kept;
    }
    let (mut depth, mut names) = (0_usize, Vec::new());
    let columns = list.split(|character| {
        match character {
            '(' => depth += 1,
            ')' => depth -= 1,
            _ => {}
        }
        character == ',' && depth == 0
    });
    names.extend(columns.filter_map(|column| column.split_whitespace().next().map(str::to_string)));
    format!("{name}({}){query}", names.join(", "))
}

/// Splits a text at the parenthesis that closes a list: the parts before and after it.
fn column_list(text: &str) -> Option<(&str, &str)> {
    let (mut depth, mut place) = (0_usize, 0);
    while let Some(next) = text[place..].find(['(', ')', '-', '/']) {
        place += next;
        let rest = &text[place..];
        let comment = match &rest[..1] {
            "-" if rest.starts_with("--") => Some("\n"),
            "/" if rest.starts_with("/*") => Some("*/"),
            "(" => {
                depth += 1;
                None
            }
            ")" if depth == 0 => return Some((&text[..place], &text[place + 1..])),
            ")" => {
                depth -= 1;
                None
            }
            _ => None,
        };
        place += match comment {
            Some(end) => rest[2..].find(end).map(|place| 2 + place + end.len())?,
            None => 1,
        };
    }
    None
}

/// Replaces each comment that is not in quotes by a space.
fn uncommented(text: &str) -> String {
    let (mut kept, mut rest) = (String::with_capacity(text.len()), text);
    while let Some(place) = rest.find(['\'', '"', '-', '/']) {
        kept.push_str(&rest[..place]);
        let found = &rest[place..];
        let end =
            |of: &str, from: usize| found[from..].find(of).map_or(found.len(), |end| from + end + of.len());
        let (is_comment, end) = match &found[..1] {
            _ if found.starts_with("--") => (true, end("\n", 2)),
            _ if found.starts_with("/*") => (true, end("*/", 2)),
            quote @ ("'" | "\"") => (false, end(quote, 1)),
            _ => (false, 1),
        };
        kept.push_str(if is_comment { " " } else { &found[..end] });
        rest = &found[end..];
    }
    kept + rest
}

/// The error for a statement of Perfetto's SQL that is not supported, with what to write instead. View definitions get
/// here only where a session cannot define views: in a server, on the page, in schemata.
pub(crate) fn refused(query: &str) -> Option<Error> {
    let words: Vec<String> =
        without_comments(query).split_whitespace().take(6).map(str::to_ascii_uppercase).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let (found, instead) = match words.as_slice() {
        ["INCLUDE", "PERFETTO", "MODULE", ..] => {
            ("INCLUDE PERFETTO MODULE", "leave it out: `--schema` lists the tables that are there")
        }
        ["CREATE", "PERFETTO", "INDEX", ..] => {
            ("CREATE PERFETTO INDEX", "leave it out: nothing is slower without it")
        }
        ["CREATE", rest @ ..] if rest.contains(&"PERFETTO") => {
            let is_function = rest.iter().any(|word| matches!(*word, "FUNCTION" | "MACRO"));
            match is_function {
                true => ("a function or macro of Perfetto's SQL", "write its expression where it is called"),
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

/// The rest of a statement.
pub(crate) struct Rest<'q>(pub(crate) &'q str);

impl<'q> Rest<'q> {
    /// Skips this word, if it is the next.
    pub(crate) fn skip(&mut self, word: &str) -> bool {
        let before = self.0;
        let is_next = self.word().is_some_and(|next| next.eq_ignore_ascii_case(word));
        if !is_next {
            self.0 = before;
        }
        is_next
    }

    fn word(&mut self) -> Option<&'q str> {
        let text = without_comments(self.0);
        let end = text.find(char::is_whitespace)?;
        let (word, rest) = text.split_at(end);
        self.0 = without_comments(rest);
        Some(word)
    }
}

/// Removes comments at the beginning.
pub(crate) fn without_comments(query: &str) -> &str {
    let mut query = query.trim_start();
    loop {
        let rest = match (query.strip_prefix("--"), query.strip_prefix("/*")) {
            (Some(comment), _) => comment.split_once('\n'),
            (_, Some(comment)) => comment.split_once("*/"),
            (None, None) => return query,
        };
        query = rest.map_or("", |(_, rest)| rest.trim_start());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_perfetto_calls_a_table_is_a_view() {
        for (query, expected) in [
            ("create perfetto table t as select 1", "CREATE VIEW t as select 1"),
            (
                "-- of the docs\nCREATE OR REPLACE PERFETTO VIEW t AS SELECT 1",
                "CREATE OR REPLACE VIEW t AS SELECT 1",
            ),
            ("CREATE TEMP VIEW t AS SELECT 1", "CREATE VIEW t AS SELECT 1"),
            (
                "CREATE PERFETTO TABLE t(\n-- When, and (what).\nts INT, id JOINID(slice.id), /* b */ n STRING) AS\nSELECT 1, 2, '--('",
                "CREATE VIEW t(ts, id, n) AS\nSELECT 1, 2, '--('",
            ),
            ("CREATE PERFETTO VIEW t AS SELECT f(1, 2)", "CREATE VIEW t AS SELECT f(1, 2)"),
            ("CREATE PERFETTO TABLE t(a INT", "CREATE VIEW t(a INT"),
            (r#"CREATE PERFETTO TABLE t("a b", c) AS SELECT 1"#, r#"CREATE VIEW t("a b", c) AS SELECT 1"#),
            (r#"CREATE PERFETTO VIEW "t(" AS SELECT 1"#, r#"CREATE VIEW "t(" AS SELECT 1"#),
            (
                "CREATE PERFETTO TABLE t(a INT) AS\n/* a /* b */ c */ SELECT `--é`",
                "CREATE VIEW t(a) AS\n/* a /* b */ c */ SELECT `--é`",
            ),
            (
                "CREATE VIRTUAL TABLE j USING SPAN_JOIN(a /* the first, */ PARTITIONED utid,\n  -- the second\n  b PARTITIONED utid)",
                "CREATE VIEW j AS SELECT * FROM overlap(a, b, utid)",
            ),
            (
                "CREATE VIRTUAL TABLE j\nUSING SPAN_JOIN(a PARTITIONED utid, b PARTITIONED utid);",
                "CREATE VIEW j AS SELECT * FROM overlap(a, b, utid)",
            ),
            (
                "CREATE VIRTUAL TABLE j USING span_left_join (a, b)",
                "CREATE VIEW j AS SELECT * FROM overlap_left(a, b)",
            ),
            // Each key of the one with all rows of the other.
            (
                "CREATE VIRTUAL TABLE j USING SPAN_JOIN(a PARTITIONED utid, b)",
                "CREATE VIEW j AS SELECT * FROM overlap(a, b)",
            ),
            (
                "CREATE VIRTUAL TABLE j USING SPAN_JOIN(a, b PARTITIONED utid)",
                "CREATE VIEW j AS SELECT * FROM overlap(a, b)",
            ),
            (
                "CREATE VIRTUAL TABLE j USING SPAN_LEFT_JOIN(a PARTITIONED utid, b)",
                "CREATE VIEW j AS SELECT * FROM overlap_left(a, b)",
            ),
        ] {
            assert_eq!(translated(query).as_deref(), Some(expected), "{query}");
        }
        for query in [
            "",
            "CREATE",
            "SELECT 1",
            "CREATE VIEW t AS SELECT 1",
            "CREATE PERFETTO FUNCTION f(x INT) RETURNS INT AS SELECT 1",
            "CREATE VIRTUAL TABLE j USING SPAN_LEFT_JOIN(a, b PARTITIONED utid)",
            "CREATE VIRTUAL TABLE j USING SPAN_JOIN(a PARTITIONED utid, b PARTITIONED cpu)",
            "CREATE VIRTUAL TABLE j USING window",
        ] {
            assert_eq!(translated(query), None, "{query}");
        }
    }

    #[test]
    fn a_module_is_included_by_its_name() {
        for query in ["INCLUDE PERFETTO MODULE a.b;", "-- c\ninclude perfetto module a.b"] {
            assert_eq!(included(query), Some("a.b"), "{query}");
        }
        for query in ["INCLUDE PERFETTO MODULE ;", "INCLUDE PERFETTO", "SELECT 1", ""] {
            assert_eq!(included(query), None, "{query}");
        }
    }

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
        let many = "--\n".repeat(1_000_000);
        assert!(refused(&format!("{many}SELECT 1")).is_none(), "comments do not need stack");
        for query in ["SELECT 1", "CREATE TABLE t AS SELECT 1", "-- a comment", "/* one that does not end"] {
            assert!(refused(query).is_none(), "{query}");
        }
    }
}
