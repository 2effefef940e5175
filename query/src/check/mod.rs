//! Whether a super-trace holds what it promises. Each promise is a sentence and a query, in `promises`.

mod losses;
mod promises;
mod witnesses;

use std::fmt;

use arrow::{
    array::{Array, AsArray},
    datatypes::Int64Type,
};
use datafusion::common::ScalarValue;
use sigmund_sql::SuperTrace;

use crate::Error;
use promises::{PROMISES, Promise};

/// What became of one promise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It holds.
    Ok,
    /// It does not.
    Broken,
    /// The trace has nothing to check it on.
    NotApplicable,
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Verdict::Ok => "ok",
            Verdict::Broken => "broken",
            Verdict::NotApplicable => "not applicable",
        })
    }
}

/// A number that a verdict stands on.
#[derive(Clone, Debug, PartialEq)]
pub struct Figure {
    /// What it counts.
    pub name: String,
    /// How much.
    pub value: f64,
}

impl Figure {
    pub(crate) fn new(name: impl Into<String>, value: f64) -> Figure {
        Figure { name: name.into(), value }
    }
}

/// One promise, and what became of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Item {
    /// A short name.
    pub name: &'static str,
    /// What is promised.
    pub promise: &'static str,
    /// What became of it.
    pub verdict: Verdict,
    /// The numbers it stands on.
    pub figures: Vec<Figure>,
    /// Where it is broken first, or what else there is to say; may be empty.
    pub detail: String,
}

/// Every promise of a super-trace, and what became of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Report {
    /// In the order in which they are best read.
    pub items: Vec<Item>,
}

impl Report {
    /// Whether any promise is broken.
    pub fn is_broken(&self) -> bool {
        self.items.iter().any(|item| item.verdict == Verdict::Broken)
    }

    /// The item of this name.
    pub fn item(&self, name: &str) -> Option<&Item> {
        self.items.iter().find(|item| item.name == name)
    }
}

/// Checks everything.
///
/// # Errors
/// When the trace cannot be read. A broken promise is no error: it is in the report.
pub async fn check(trace: &SuperTrace) -> Result<Report, Error> {
    let mut items = vec![witnesses::check(trace)?];
    for promise in PROMISES {
        items.push(verify(trace, promise).await?);
    }
    items.push(losses::check(trace).await?);
    Ok(Report { items })
}

/// Runs the query of a promise. It gives one row: how many were checked, how many are broken, the first of them.
async fn verify(trace: &SuperTrace, promise: &Promise) -> Result<Item, Error> {
    let on_query = Error::on(trace, promise.name);
    let last = trace.last_tick().map_or(0, |t| t.0 as i64);
    let plan = trace.sql(promise.query).await?.into_frame();
    let plan = plan.with_param_values(vec![("last_tick", ScalarValue::from(last))]).map_err(&on_query)?;
    let plan = if promise.in_file_order { trace.in_file_order(plan) } else { plan };
    let batches = plan.collect().await.map_err(&on_query)?;
    let (mut checked, mut broken, mut detail) = (0, 0, String::new());
    for batch in batches.iter().filter(|b| b.num_rows() > 0) {
        checked = batch.column(0).as_primitive::<Int64Type>().value(0);
        broken = batch.column(1).as_primitive::<Int64Type>().value(0);
        let first = batch.column(2).as_primitive::<Int64Type>();
        if first.is_valid(0) {
            detail = format!("first: {} {}", promise.first_is, first.value(0));
        }
    }
    let verdict = match (checked, broken) {
        (0, _) => Verdict::NotApplicable,
        (_, 0) => Verdict::Ok,
        _ => Verdict::Broken,
    };
    let figures = vec![Figure::new("checked", checked as f64), Figure::new("broken", broken as f64)];
    Ok(Item { name: promise.name, promise: promise.sentence, verdict, figures, detail })
}
