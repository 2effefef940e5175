//! Completion of names, and whether a statement is complete.

use std::{
    cell::RefCell,
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use arrow::array::AsArray;
use rustyline::{
    Context, Helper, Result,
    completion::Completer,
    highlight::Highlighter,
    hint::Hinter,
    validate::{ValidationContext, ValidationResult, Validator},
};
use sigmund_model::tables::{ALL, ColumnType, Table};
use sigmund_sql::{RelationKind, SuperTrace};
use tokio::runtime::Handle;

use super::{commands::COMMANDS, statements};

/// Words of SQL that begin or join clauses.
const KEYWORDS: &[&str] = &[
    "SELECT",
    "FROM",
    "WHERE",
    "GROUP BY",
    "ORDER BY",
    "LIMIT",
    "HAVING",
    "JOIN",
    "LEFT JOIN",
    "ON",
    "AS",
    "AND",
    "OR",
    "NOT",
    "NULL",
    "IS",
    "IN",
    "BETWEEN",
    "LIKE",
    "DISTINCT",
    "UNION ALL",
    "WITH",
    "CASE",
    "WHEN",
    "THEN",
    "ELSE",
    "END",
    "CAST",
    "DESC",
    "ASC",
    "OVER",
    "PARTITION BY",
    "EXPLAIN",
    "EXPLAIN ANALYZE",
    "DESCRIBE",
    "SHOW TABLES",
];
/// The values of a column with more distinct values than this are not proposed.
const MOST_VALUES: usize = 40;

/// The words that can be completed.
pub(super) struct Words {
    trace: Arc<SuperTrace>,
    /// Tables, views, columns, functions and keywords; sorted.
    names: Vec<String>,
    /// The values of a column of words, read when one is first completed.
    values: RefCell<BTreeMap<(&'static str, String), Vec<String>>>,
}

impl Words {
    pub(super) fn of(trace: &Arc<SuperTrace>) -> Words {
        let mut names: Vec<String> = KEYWORDS.iter().map(ToString::to_string).collect();
        let relations = trace.relations();
        names.extend(relations.into_iter().filter(|r| r.kind != RelationKind::Stored).map(|r| r.name));
        for column in ALL.iter().flat_map(|table| table.columns) {
            names.push(column.name.to_string());
            names.extend(column.name.strip_suffix("_tick").map(|stem| format!("{stem}_ns")));
        }
        let state = trace.session().state();
        let functions = [
            state.scalar_functions().keys().cloned().collect::<Vec<_>>(),
            state.aggregate_functions().keys().cloned().collect(),
            state.window_functions().keys().cloned().collect(),
            state.table_functions().keys().cloned().collect(),
        ];
        names.extend(functions.into_iter().flatten().map(|name| format!("{name}(")));
        names.sort();
        names.dedup();
        Words { trace: Arc::clone(trace), names, values: RefCell::default() }
    }

    /// Names that start with `word`, ignoring case.
    fn names(&self, word: &str) -> Vec<String> {
        let begins =
            |name: &&String| name.get(..word.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(word));
        self.names.iter().filter(begins).cloned().collect()
    }

    /// Values of a column of words that start with `begin`, in the tables that the statement names.
    fn values(&self, statement: &str, column: &str, begin: &str) -> Vec<String> {
        let words: Vec<&str> = statement.split(|c: char| !is_of_name(c)).collect();
        let is_word =
            |table: &Table| table.columns.iter().any(|c| c.name == column && c.ty == ColumnType::Word);
        let mut found = BTreeSet::new();
        for table in ALL.iter().filter(|table| words.contains(&table.name) && is_word(table)) {
            let mut values = self.values.borrow_mut();
            let values = values.entry((table.name, column.to_string()));
            let values = values.or_insert_with(|| self.read_values(table, column));
            found.extend(values.iter().filter(|value| value.starts_with(begin)).cloned());
        }
        found.into_iter().map(|value| format!("{value}'")).collect()
    }

    fn read_values(&self, table: &Table, column: &str) -> Vec<String> {
        let query = format!(
            "SELECT DISTINCT CAST({column} AS VARCHAR) AS v FROM {} ORDER BY v LIMIT {MOST_VALUES}",
            table.name
        );
        let rows = async { self.trace.sql(&query).await.ok()?.collect().await.ok() };
        let rows = Handle::current().block_on(rows).unwrap_or_default();
        let texts = rows.iter().flat_map(|batch| {
            let texts = batch.column(0).as_string::<i32>();
            texts.iter().flatten().map(String::from).collect::<Vec<_>>()
        });
        texts.collect()
    }
}

impl Completer for Words {
    type Candidate = String;

    fn complete(&self, line: &str, position: usize, _: &Context<'_>) -> Result<(usize, Vec<String>)> {
        let typed = &line[..position];
        if typed.starts_with('\\') && !typed.contains(' ') {
            let commands = COMMANDS.iter().filter(|command| command.starts_with(typed));
            return Ok((0, commands.map(ToString::to_string).collect()));
        }
        if let Some((column, begin)) = compared(typed) {
            return Ok((position - begin.len(), self.values(line, column, begin)));
        }
        let begin = typed
            .rfind(|c: char| !is_of_name(c))
            .map_or(0, |at| at + typed[at..].chars().next().map_or(1, char::len_utf8));
        let word = &typed[begin..];
        Ok((begin, if word.is_empty() { Vec::new() } else { self.names(word) }))
    }
}

fn is_of_name(character: char) -> bool {
    character.is_alphanumeric() || character == '_'
}

/// The column, and the prefix of the text that it is compared with: `… state = 'bl`.
fn compared(typed: &str) -> Option<(&str, &str)> {
    if typed.matches('\'').count().is_multiple_of(2) {
        return None;
    }
    let (before, begin) = typed.rsplit_once('\'')?;
    let before = before.trim_end().trim_end_matches(['=', '!', '<', '>']).trim_end();
    let column = before.rsplit(|c: char| !is_of_name(c)).next()?;
    (!column.is_empty()).then_some((column, begin))
}

impl Validator for Words {
    fn validate(&self, context: &mut ValidationContext<'_>) -> Result<ValidationResult> {
        let line = context.input();
        let is_complete =
            line.trim().is_empty() || line.trim_start().starts_with('\\') || statements::is_complete(line);
        Ok(if is_complete { ValidationResult::Valid(None) } else { ValidationResult::Incomplete })
    }
}

impl Hinter for Words {
    type Hint = String;
}

impl Highlighter for Words {}
impl Helper for Words {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_that_is_compared_with_a_column_is_completed_by_its_values() {
        assert_eq!(compared("SELECT * FROM thread_states WHERE state = 'bl"), Some(("state", "bl")));
        assert_eq!(compared("WHERE a = 'x' AND end_reason<>'"), Some(("end_reason", "")));
        assert_eq!(compared("WHERE a = 'x' AND st"), None);
        assert_eq!(compared("SELECT '"), Some(("SELECT", "")));
    }
}
