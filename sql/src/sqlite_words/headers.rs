//! Columns without a name keep the text of the query as their name, where other words replace it.

use datafusion::sql::sqlparser::ast::{Ident, Select, SelectItem};

use super::glob::GLOB;

/// The texts of unnamed columns, of each SELECT that is being visited.
#[derive(Debug, Default)]
pub(super) struct Headers(Vec<Vec<String>>);

impl Headers {
    /// Before a SELECT is changed.
    pub(super) fn begin(&mut self, select: &Select) {
        self.0.push(select.projection.iter().map(ToString::to_string).collect());
    }

    /// After it was changed.
    pub(super) fn end(&mut self, select: &mut Select) {
        let before = self.0.pop().unwrap_or_default();
        for (item, before) in select.projection.iter_mut().zip(before) {
            if let SelectItem::UnnamedExpr(expr) = item
                && expr.to_string() != before
            {
                let alias = Ident::with_quote('"', as_written(&before));
                *item = SelectItem::ExprWithAlias { expr: expr.clone(), alias };
            }
        }
    }
}

/// The text with GLOB, for which the parser was given another operator.
fn as_written(text: &str) -> String {
    match text.contains(GLOB) {
        true => text.replace(&format!(" ESCAPE '{GLOB}'"), "").replace("SIMILAR TO", "GLOB"),
        false => text.to_string(),
    }
}
