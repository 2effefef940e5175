//! Completes names, and decides whether a statement is complete.

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
use sigmund_measures::By;
use sigmund_model::tables::{ALL, ColumnType, EVENTS, LWPS, PROCESSES, SPANS, THREADS, Table};
use sigmund_sql::{Relation, RelationKind, SuperTrace};
use tokio::runtime::Handle;

use super::{
    commands::{self, COMMANDS},
    compared::{Compared, compared, is_of_name},
    statements,
};

/// SQL keywords that begin or join clauses.
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
    "CREATE VIEW",
    "CREATE OR REPLACE VIEW",
    "DROP VIEW",
];

/// The maximum number of proposed values of a column. If there are more names, their common beginning is proposed.
const MOST_VALUES: usize = 40;

/// Names are not looked up in a table with more rows than this, because the user would notice the delay after each key.
const MOST_NAMED: usize = 1 << 20;

/// Tables that have names, and the views with the same names.
const NAMED: [(&Table, &[&str]); 4] = [
    (&THREADS, &["threads", "thread"]),
    (&LWPS, &["lwps", "thread"]),
    (&PROCESSES, &["processes", "process"]),
    (&SPANS, &["spans", "slice", "slices", "thread_slice"]),
];

/// The maximum number of event views whose columns are proposed.
const MOST_EVENTS: usize = 1000;

/// The words that can be completed.
pub(super) struct Words {
    trace: Arc<SuperTrace>,
    /// Tables, views, columns, functions, super-traces and keywords; sorted.
    names: Vec<String>,
    /// Tables and views, sorted. In a session with several super-traces, also the names with a super-trace before the
    /// dot.
    relations: Vec<String>,
    /// What can follow FROM: tables, views, and table functions.
    tables: Vec<String>,
    /// The columns of each table and view, sorted.
    columns: BTreeMap<String, Vec<String>>,
    /// For each measure, the names of its arguments.
    arguments: BTreeMap<String, Vec<String>>,
    /// The values of a column of words. They are read when the column is first completed.
    values: RefCell<BTreeMap<(&'static str, String), Vec<String>>>,
}

impl Words {
    pub(super) async fn of(trace: &Arc<SuperTrace>) -> Words {
        let mut names: Vec<String> = KEYWORDS.iter().map(ToString::to_string).collect();
        let is_shown = |relation: &Relation| relation.kind != RelationKind::Stored;
        let own: Vec<Relation> = trace.relations().into_iter().filter(is_shown).collect();
        let mut columns_of = BTreeMap::new();
        let (events, tables): (Vec<_>, Vec<_>) = own.iter().partition(|r| r.kind == RelationKind::Event);
        for relation in tables.into_iter().chain(events.into_iter().take(MOST_EVENTS)) {
            // If a view cannot be planned, no columns of it are proposed.
            let columns = trace.columns(&relation.name).await;
            let columns = columns.iter().flat_map(|columns| columns.fields());
            let mut columns: Vec<String> = columns.map(|field| field.name().clone()).collect();
            columns.sort();
            names.extend(columns.iter().cloned());
            columns_of.insert(relation.name.clone(), columns);
        }
        let mut relations: Vec<String> = own.into_iter().map(|relation| relation.name).collect();
        names.extend(relations.iter().cloned());
        for schema in trace.schema_names() {
            let of = trace.attached().get(&schema).unwrap_or(trace);
            let tables = of.relations().into_iter().filter(is_shown);
            relations.extend(tables.map(|relation| format!("{schema}.{}", relation.name)));
            names.push(format!("{schema}."));
        }
        relations.sort();
        let state = trace.session().state();
        let functions = state.table_functions().keys().map(|name| format!("{name}("));
        let mut tables: Vec<String> = relations.iter().cloned().chain(functions).collect();
        tables.sort();
        let arguments = sigmund_query::measure_functions(trace).into_iter().map(|function| {
            let names = function.arguments.into_iter().map(|argument| format!("{} => ", argument.name));
            (function.name, names.collect())
        });
        let functions = [
            state.scalar_functions().keys().cloned().collect::<Vec<_>>(),
            state.aggregate_functions().keys().cloned().collect(),
            state.window_functions().keys().cloned().collect(),
            state.table_functions().keys().cloned().collect(),
        ];
        names.extend(functions.into_iter().flatten().map(|name| format!("{name}(")));
        names.sort();
        names.dedup();
        let (trace, arguments) = (Arc::clone(trace), arguments.collect());
        Words { trace, names, relations, tables, columns: columns_of, arguments, values: RefCell::default() }
    }

    /// The names that can be at the end of `typed`, and where the name begins. `line` is the whole statement.
    fn names(&self, line: &str, typed: &str) -> (usize, Vec<String>) {
        let begin = begin_of_name(typed);
        let word = &typed[begin..];
        if let Some(name) = typed.strip_prefix("\\d ") {
            let begin = typed.len() - name.trim_start().len();
            return (begin, self.or_defined(&self.relations, &typed[begin..]));
        }
        // In `b.sp`, the name is a table of the super-trace b, if there is one; otherwise a column.
        if let Some(before) = typed[..begin].strip_suffix('.') {
            let begin_of_schema = begin_of_name(before);
            let with_schema = &typed[begin_of_schema..];
            let tables: Vec<String> = beginning(&self.relations, with_schema).collect();
            if !tables.is_empty() {
                return (begin_of_schema, tables);
            }
            return (begin, self.columns_of(line, &before[begin_of_schema..], word));
        } else if let Some(arguments) = called(typed).and_then(|function| self.arguments.get(function)) {
            // A quoted name is completed as if the first quote were not typed.
            let bare =
                |name: &String| name.trim_start_matches('"').to_lowercase().starts_with(&word.to_lowercase());
            let arguments: Vec<String> = arguments.iter().filter(|name| bare(name)).cloned().collect();
            if !arguments.is_empty() {
                return (begin, arguments);
            }
        }
        let names = if is_after_from(&typed[..begin]) { &self.tables } else { &self.names };
        (begin, if word.is_empty() { Vec::new() } else { self.or_defined(names, word) })
    }

    /// The columns of a table, view or alias that begin with `word`; of all tables and views if it is none of these.
    fn columns_of(&self, line: &str, qualifier: &str, word: &str) -> Vec<String> {
        match self.columns.get(qualifier).or_else(|| self.columns.get(relation_of(line, qualifier)?)) {
            Some(columns) => beginning(columns, word).collect(),
            None => {
                let all = self.columns.values().flat_map(|columns| beginning(columns, word));
                all.collect::<BTreeSet<_>>().into_iter().collect()
            }
        }
    }

    /// The `names` that begin with `word`, and such views of the session.
    fn or_defined(&self, names: &[String], word: &str) -> Vec<String> {
        let defined = self.trace.defined_views();
        beginning(names, word).chain(beginning(&defined, word)).collect()
    }

    /// The values of a column of words or of names that begin with `begin`, in the tables that the statement names.
    fn values(&self, statement: &str, Compared { name: column, begin, .. }: Compared<'_>) -> Vec<String> {
        let words: Vec<&str> = statement.split(|c: char| !is_of_name(c)).collect();
        let texts = self.words(&words, column, begin).into_iter().map(|text| format!("{}'", quoted(&text)));
        let mut found: Vec<String> = texts.collect();
        let words: BTreeSet<&str> = words.into_iter().collect();
        found.extend(words.into_iter().flat_map(|view| self.texts_of_view(view, column, begin)));
        if column == "name" {
            let words: Vec<&str> = statement.split(|c: char| !is_of_name(c)).collect();
            let is_read = |names: &[&str]| names.iter().any(|name| words.contains(name));
            for (table, _) in NAMED.iter().filter(|(_, names)| is_read(names)) {
                found.extend(self.names_in(table, begin));
            }
        }
        found
    }

    /// The values of a measure's argument that begin with `begin`.
    fn values_of_argument(&self, Compared { name, begin, .. }: Compared<'_>) -> Vec<String> {
        let words: Vec<&str> = match name {
            "thread" => return self.names_in(&THREADS, begin),
            "lwp" => return self.names_in(&LWPS, begin),
            "process" => return self.names_in(&PROCESSES, begin),
            "of" => return self.names_in(&SPANS, begin),
            "by" => By::ALL.iter().map(|by| by.name()).collect(),
            "level" => vec!["kern", "user"],
            _ => Vec::new(),
        };
        words.iter().filter(|word| word.starts_with(begin)).map(|word| format!("{word}'")).collect()
    }

    /// The names that begin with `begin`. If there are many, their common beginning.
    fn names_in(&self, table: &Table, begin: &str) -> Vec<String> {
        if self.trace.row_count(table) > MOST_NAMED as u64 {
            return Vec::new();
        }
        let begins = format!("starts_with(name, '{}')", quoted(begin));
        let names = self.distinct(table.name, "name", &begins, MOST_NAMED);
        match (names.first(), names.last()) {
            (Some(first), Some(last)) if names.len() > MOST_VALUES => vec![quoted(common(first, last))],
            _ => names.iter().map(|name| format!("{}'", quoted(name))).collect(),
        }
    }

    /// The texts of a column of a view that begin with `begin`, if the view is not of too many rows.
    fn texts_of_view(&self, view: &str, column: &str, begin: &str) -> Vec<String> {
        let is_view = Table::named(view).is_none()
            && self.columns.get(view).is_some_and(|of| of.iter().any(|name| name == column));
        let has_names =
            column == "name" && NAMED.iter().any(|(_, views)| views.contains(&view) && view != "slice");
        if !is_view || has_names || self.trace.row_count(&EVENTS) > MOST_NAMED as u64 {
            return Vec::new();
        }
        let begins = format!("starts_with(CAST({column} AS VARCHAR), '{}')", quoted(begin));
        let texts = self.distinct(view, column, &begins, MOST_VALUES);
        texts.iter().map(|text| format!("{}'", quoted(text))).collect()
    }

    fn words(&self, words: &[&str], column: &str, begin: &str) -> BTreeSet<String> {
        let is_word =
            |table: &Table| table.columns.iter().any(|c| c.name == column && c.ty == ColumnType::Word);
        let mut found = BTreeSet::new();
        for table in ALL.iter().filter(|table| words.contains(&table.name) && is_word(table)) {
            let mut values = self.values.borrow_mut();
            let values = values.entry((table.name, column.to_string()));
            let values = values.or_insert_with(|| self.distinct(table.name, column, "true", MOST_VALUES));
            found.extend(values.iter().filter(|value| value.starts_with(begin)).cloned());
        }
        found
    }

    /// The first different values of a column, in rows for which the condition holds.
    fn distinct(&self, table: &str, column: &str, condition: &str, most: usize) -> Vec<String> {
        let query = format!(
            "SELECT DISTINCT CAST({column} AS VARCHAR) AS v FROM {table} WHERE {condition} ORDER BY v LIMIT {most}"
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
        if let Some(compared) = compared(typed) {
            let values = match compared.is_argument {
                true => self.values_of_argument(compared),
                false => self.values(line, compared),
            };
            return Ok((position - compared.begin.len(), values));
        }
        Ok(self.names(line, typed))
    }
}

/// Escapes a text for use inside of quotes.
fn quoted(text: &str) -> String {
    text.replace('\'', "''")
}

/// The common beginning of two texts.
fn common<'t>(a: &'t str, b: &str) -> &'t str {
    let same = a.chars().zip(b.chars()).take_while(|(a, b)| a == b).map(|(a, _)| a.len_utf8()).sum();
    &a[..same]
}

/// Names that start with `word`, ignoring case.
fn beginning<'a>(names: &'a [String], word: &'a str) -> impl Iterator<Item = String> + 'a {
    let begins =
        |name: &&String| name.get(..word.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(word));
    names.iter().filter(begins).cloned()
}

/// Where the name at the end of the text begins.
fn begin_of_name(typed: &str) -> usize {
    let before = typed.char_indices().rfind(|(_, character)| !is_of_name(*character));
    before.map_or(0, |(at, character)| at + character.len_utf8())
}

/// The function whose arguments are being typed, if the name of an argument can be next: `states(thread => 15, `.
fn called(typed: &str) -> Option<&str> {
    let typed = &typed[..begin_of_name(typed)];
    if !typed.trim_end().ends_with(['(', ',']) {
        return None;
    }
    let mut closed = 0;
    let open = typed.char_indices().rev().find(|(_, character)| {
        match character {
            ')' => closed += 1,
            '(' if closed > 0 => closed -= 1,
            '(' => return true,
            _ => {}
        }
        false
    });
    let before = &typed[..open?.0];
    Some(&before[begin_of_name(before)..]).filter(|function| !function.is_empty())
}

/// The table of an alias: `sched` of `s` in `FROM sched AS s`.
fn relation_of<'t>(line: &'t str, alias: &str) -> Option<&'t str> {
    let words: Vec<&str> = line.split(|c: char| !is_of_name(c)).filter(|word| !word.is_empty()).collect();
    let after = |word: &str| ["from", "join"].iter().any(|before| word.eq_ignore_ascii_case(before));
    words.windows(3).find_map(|three| match three {
        [before, table, named] if after(before) && *named == alias => Some(*table),
        [table, to, named] if to.eq_ignore_ascii_case("as") && *named == alias => Some(*table),
        _ => None,
    })
}

/// Whether a table is next, that is, after FROM or JOIN.
fn is_after_from(typed: &str) -> bool {
    let last = typed.trim_end().rsplit(|c: char| !is_of_name(c)).next().unwrap_or_default();
    typed.ends_with(char::is_whitespace)
        && ["from", "join"].iter().any(|word| last.eq_ignore_ascii_case(word))
}

impl Validator for Words {
    fn validate(&self, context: &mut ValidationContext<'_>) -> Result<ValidationResult> {
        let line = context.input();
        let is_complete = line.trim().is_empty()
            || line.trim_start().starts_with('\\')
            || commands::is_end(line)
            || statements::is_complete(line);
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
    fn arguments_are_proposed_where_the_name_of_one_can_come() {
        assert_eq!(called("SELECT * FROM states("), Some("states"));
        assert_eq!(called("FROM states(thread => (1 + 2), \"by\" => 'name', wo"), Some("states"));
        assert_eq!(called("FROM states(thread => 1"), None);
        assert_eq!(called("SELECT a, "), None);
        assert_eq!(called("FROM states(thread => 15), "), None);
    }

    #[test]
    fn an_alias_stands_for_its_table() {
        let line = "SELECT s. FROM sched AS s JOIN thread t USING (utid), raw_events e";
        assert_eq!([relation_of(line, "s"), relation_of(line, "t")], [Some("sched"), Some("thread")]);
        assert_eq!(relation_of(line, "u"), None);
    }

    #[test]
    fn tables_are_proposed_where_a_table_comes() {
        for typed in ["SELECT a FROM ", "select a\nfrom  ", "FROM a JOIN "] {
            assert!(is_after_from(typed), "{typed}");
        }
        for typed in ["SELECT ", "SELECT a FROM", "SELECT a FROM t ", "SELECT join_a ", ""] {
            assert!(!is_after_from(typed), "{typed}");
        }
    }

    #[test]
    fn names_begin_alike_up_to_where_they_differ() {
        assert_eq!((common("worker/10", "worker/9"), common("ü", "ö")), ("worker/", ""));
    }
}
