//! The syntax of a query, without a super-trace: tables, columns and functions are not looked up.

use datafusion::{
    execution::SessionStateBuilder,
    sql::{parser::Statement, sqlparser::ast},
};

use crate::{Error, sqlite_words};

/// Checks that a text is one statement that only reads.
///
/// # Errors
/// [`Query`](crate::ErrorKind::Query) when it cannot be parsed, [`Refused`](crate::ErrorKind::Refused) when it would change
/// anything.
pub fn check_syntax(query: &str) -> Result<(), Error> {
    let state = SessionStateBuilder::new().build();
    let statement = sqlite_words::parsed(&state, query);
    let statement = statement.map_err(|error| Error::from_datafusion("query", error))?;
    if reads(&statement) {
        return Ok(());
    }
    let text = statement.to_string();
    Err(Error::refused(text.split_whitespace().next().unwrap_or("a statement")))
}

fn reads(statement: &Statement) -> bool {
    match statement {
        Statement::Explain(explain) => reads(&explain.statement),
        Statement::Statement(statement) => matches!(
            statement.as_ref(),
            ast::Statement::Query(_)
                | ast::Statement::Explain { .. }
                | ast::Statement::ExplainTable { .. }
                | ast::Statement::ShowColumns { .. }
                | ast::Statement::ShowFunctions { .. }
                | ast::Statement::ShowTables { .. }
                | ast::Statement::ShowVariable { .. }
        ),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ErrorKind;

    #[test]
    fn syntax_is_checked_and_names_are_not() {
        for query in [
            "SELECT nothing FROM nowhere",
            "WITH a AS (SELECT 1) SELECT * FROM a;",
            "SELECT sum(total_ns) FROM states(\"by\" => 'name', thread => 15)",
            "EXPLAIN SELECT 1",
            "DESCRIBE events",
            "VALUES (1)",
        ] {
            assert!(check_syntax(query).is_ok(), "{query}");
        }
        let kind = |query| check_syntax(query).unwrap_err().kind();
        for query in ["SELEC 1", "SELECT (1", "", "SELECT 1; SELECT 2"] {
            assert_eq!(kind(query), ErrorKind::Query, "{query}");
        }
        for query in
            ["DROP TABLE events", "CREATE TABLE a AS SELECT 1", "COPY events TO 'a.csv'", "SET a = 1"]
        {
            assert_eq!(kind(query), ErrorKind::Refused, "{query}");
        }
        assert!(check_syntax("DROP TABLE events").unwrap_err().to_string().ends_with("found DROP"));
    }
}
