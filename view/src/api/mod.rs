//! The questions of the page, and their answers. `view/README.md` describes each.
//!
//! Ticks are offsets from the trace's first tick, represented as numbers of JavaScript: 2^53 ticks are 40 days. Windows
//! are half-open.

mod at;
mod braids;
mod cells;
mod compare;
mod creators;
mod events;
mod intervals;
mod life;
mod measure;
mod overview;
mod query;
mod related;
mod rows;
mod search;
mod selection;
mod sql;
mod tiles;
mod trace;
mod witnesses;

use std::sync::Arc;

use serde_json::{Value, json};

pub(crate) use self::{
    compare::compare,
    query::Query,
    rows::Orders,
    trace::{clock_bound, losses, trace},
};
use crate::View;

/// An answer.
pub(crate) enum Answer {
    Json(Value),
    Binary(Vec<u8>),
}

/// The reason why there is no answer.
#[derive(Debug)]
pub(crate) struct Refusal {
    pub(crate) kind: RefusalKind,
    pub(crate) message: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RefusalKind {
    /// The question is invalid.
    Wrong,
    /// It would change something.
    Forbidden,
    /// The named object does not exist.
    Missing,
    /// It needs more memory than it may use.
    TooLarge,
    /// The trace cannot be read.
    Failed,
}

impl Refusal {
    pub(crate) fn wrong(message: impl Into<String>) -> Refusal {
        Refusal { kind: RefusalKind::Wrong, message: message.into() }
    }

    pub(crate) fn failed(message: impl Into<String>) -> Refusal {
        Refusal { kind: RefusalKind::Failed, message: message.into() }
    }

    pub(crate) fn missing(message: impl Into<String>) -> Refusal {
        Refusal { kind: RefusalKind::Missing, message: message.into() }
    }
}

impl From<sigmund_sql::ErrorKind> for RefusalKind {
    fn from(kind: sigmund_sql::ErrorKind) -> RefusalKind {
        match kind {
            sigmund_sql::ErrorKind::Query => RefusalKind::Wrong,
            sigmund_sql::ErrorKind::Refused => RefusalKind::Forbidden,
            sigmund_sql::ErrorKind::BeyondMemory => RefusalKind::TooLarge,
            _ => RefusalKind::Failed,
        }
    }
}

impl From<sigmund_sql::Error> for Refusal {
    fn from(error: sigmund_sql::Error) -> Refusal {
        Refusal { kind: error.kind().into(), message: error.to_string() }
    }
}

impl From<sigmund_query::Error> for Refusal {
    fn from(error: sigmund_query::Error) -> Refusal {
        let kind = match error.kind() {
            sigmund_query::ErrorKind::Trace(kind) => kind.into(),
            sigmund_query::ErrorKind::Output(_) => RefusalKind::Failed,
            _ => RefusalKind::Wrong,
        };
        Refusal { kind, message: error.to_string() }
    }
}

/// Answers `/api/NAME`. Dropping the future ends the work.
pub(crate) async fn answer(view: &Arc<View>, name: &str, query: &Query) -> Result<Answer, Refusal> {
    let answer = find(view, name, query).await;
    view.index.answered();
    answer
}

async fn find(view: &Arc<View>, name: &str, query: &Query) -> Result<Answer, Refusal> {
    Ok(Answer::Json(match name {
        "trace" => trace(view, false),
        "rows" => rows::rows(view, query).await?,
        "tree" => creators::tree(view, query)?,
        "living" => creators::living(view, query)?,
        "tiles" => return tiles::tiles(view, query).await.map(Answer::Binary),
        "population" => return overview::population(view, query).map(Answer::Binary),
        "density" => return overview::density(view, query).map(Answer::Binary),
        "at" => at::at(view, query).await?,
        "life" => life::life(view, query).await?,
        "selection" => selection::selection(view, query).await?,
        "measure" => measure::measure(view, query).await?,
        "braids" => braids::braids(view, query).await?,
        "events" => events::events(view, query).await?,
        "spans" => intervals::spans(view, query).await?,
        "interrupts" => intervals::interrupts(view, query).await?,
        "locks" => intervals::locks(view, query).await?,
        "counters" => intervals::counters(view, query).await?,
        "disagreements" => witnesses::disagreements(view, query).await?,
        "search" => search::search(view, query).await?,
        "sql" => sql::sql(view, query).await?,
        "sql/names" => sql::names(view).await?,
        _ => return Err(Refusal::missing(format!("/api/{name}: there is no such question"))),
    }))
}

/// The rows of a truncated list: `{"more": …, NAME: […]}`.
fn listed(name: &str, mut rows: Vec<Value>, limit: usize) -> Value {
    let more = rows.len() > limit;
    rows.truncate(limit);
    json!({ "more": more, name: rows })
}

impl View {
    /// A tick of the trace, as an offset.
    fn offset(&self, tick: i64) -> i64 {
        tick.saturating_sub(self.extent.0)
    }

    /// An offset, as a tick of the trace.
    fn tick(&self, offset: f64) -> i64 {
        self.extent.0.saturating_add(offset as i64)
    }
}
