//! What a query answers, as text.

use sigmund_sql::{ErrorKind, SuperTrace};

/// Its rows, the cells of each with a space between them.
pub(crate) async fn answer(trace: &SuperTrace, query: &str) -> Vec<String> {
    let text = trace.sql(query).await.unwrap().to_text().await.unwrap();
    let cells = |line: &str| line.trim_matches('|').split('|').map(str::trim).collect::<Vec<_>>().join(" ");
    text.lines().filter(|l| l.starts_with('|')).skip(1).map(cells).collect()
}

/// Its error, whether it cannot be planned or fails when it runs.
pub(crate) async fn error(trace: &SuperTrace, query: &str) -> String {
    let result = match trace.sql(query).await {
        Ok(result) => result.to_text().await,
        Err(error) => Err(error),
    };
    let error = result.expect_err("a wrong query is refused");
    assert_ne!(error.kind(), ErrorKind::Unreadable, "{error}");
    error.to_string()
}
