//! Whether the invariants of a super-trace hold, and which parts of it are in doubt.
//!
//! ```text
//! invariants.rs      invariants of states and times: a sentence and a query each
//! pairing.rs         the same for intervals that the merge paired from events
//! pass.rs            a cheaper pass that shows that some of them hold
//! begun.rs           such a pass over two tables
//! witnesses.rs       the CPU from the probe against the CPU from sched_switch, per LWP
//! disagreements/     each event for which the two differ, and why
//! neighbourhood.rs   what happened around one of them
//! losses.rs          what is missing, by source
//! gaps.rs            single gaps, and the LWPs, threads and CPUs in use across them
//! cpu_times.rs       the on-CPU time of LWPs against the kernel's accounting
//! clocks.rs          how well other clocks fit the main one
//! ```
//!
//! Everything is a query on the session. Only what the report lists is held in memory, never a whole table.

mod begun;
mod by_number;
mod clocks;
mod cpu_times;
mod disagreements;
mod gaps;
mod invariants;
mod losses;
mod neighbourhood;
mod pairing;
mod pass;
mod rows;
mod witnesses;

use std::fmt;

use datafusion::common::ScalarValue;
use futures::{StreamExt, TryStreamExt, future, future::BoxFuture, stream};
use sigmund_sql::SuperTrace;

pub use clocks::Clock;
pub use cpu_times::LwpTime;
pub use disagreements::{Cause, Disagreement};
pub use gaps::{Gap, Touched};
pub use losses::LossSource;
pub use neighbourhood::{Neighbour, Neighbourhood, Stay};
pub use witnesses::LwpWitnesses;

use crate::Error;
use invariants::{INVARIANTS, Invariant};
use pairing::PAIRING_INVARIANTS;

/// The result of checking one invariant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It holds.
    Ok,
    /// It holds outside of known gaps. In a gap, something is missing or uncertain.
    Gaps,
    /// It does not hold.
    Broken,
    /// The trace has no data to check it with.
    NotApplicable,
}

impl Verdict {
    /// The printed name.
    pub fn name(self) -> &'static str {
        match self {
            Verdict::Ok => "ok",
            Verdict::Gaps => "gaps",
            Verdict::Broken => "broken",
            Verdict::NotApplicable => "not applicable",
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// The verdict on the whole trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trust {
    /// Every invariant holds, and nothing is missing.
    Sound,
    /// Every invariant holds outside of known gaps.
    SoundWithGaps,
    /// An invariant is broken.
    Broken,
    /// There is no event, so nothing could be checked.
    Empty,
}

impl Trust {
    /// The printed name.
    pub fn name(self) -> &'static str {
        match self {
            Trust::Sound => "sound",
            Trust::SoundWithGaps => "sound with gaps",
            Trust::Broken => "broken",
            Trust::Empty => "empty",
        }
    }
}

/// A number that a verdict is based on.
#[derive(Clone, Debug, PartialEq)]
pub struct Figure {
    /// The name of the count.
    pub name: String,
    /// The value.
    pub value: f64,
}

impl Figure {
    pub(crate) fn new(name: impl Into<String>, value: f64) -> Figure {
        Figure { name: name.into(), value }
    }
}

/// One invariant, and the result of checking it.
#[derive(Clone, Debug, PartialEq)]
pub struct Item {
    /// A short name.
    pub name: &'static str,
    /// The statement of the invariant.
    pub invariant: &'static str,
    /// The result.
    pub verdict: Verdict,
    /// The numbers that the verdict is based on.
    pub figures: Vec<Figure>,
    /// Where it is broken first, or other details; may be empty.
    pub detail: String,
}

/// Limits of the lists in a report. Counts always cover everything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Listed {
    /// Events whose CPU differs between the probe and sched_switch; `None` for all. Each one costs several queries.
    pub disagreements: Option<usize>,
    /// Gaps, the most severe and longest first; `None` for all. Each is compared with every interval on its CPU or LWP.
    pub gaps: Option<usize>,
}

impl Listed {
    /// Limits both lists to this number.
    pub const fn first(n: usize) -> Listed {
        Listed { disagreements: Some(n), gaps: Some(n) }
    }

    /// No limits.
    pub const ALL: Listed = Listed { disagreements: None, gaps: None };
}

/// Every invariant of a super-trace, with its result and the evidence.
#[derive(Clone, Debug, PartialEq)]
pub struct Report {
    /// In the order in which they are best read.
    pub items: Vec<Item>,
    /// How often the CPU from the probe and from sched_switch agree, for each LWP that recorded user events. LWPs with
    /// the most disagreements come first.
    pub lwps: Vec<LwpWitnesses>,
    /// Events for which the two differ, sorted by time, as many as were asked for.
    pub disagreements: Vec<Disagreement>,
    /// What is missing, by kind and source.
    pub losses: Vec<LossSource>,
    /// Gaps one by one, as many as were asked for.
    pub gaps: Vec<Gap>,
    /// LWPs whose on-CPU time differs from the kernel's accounting, those that differ most first.
    pub cpu_times: Vec<LwpTime>,
    /// The clocks that were compared with the main one.
    pub clocks: Vec<Clock>,
    /// Whether there is any event.
    pub has_events: bool,
}

impl Report {
    /// Whether any invariant is broken.
    pub fn is_broken(&self) -> bool {
        self.trust() == Trust::Broken
    }

    /// The verdict on the whole trace.
    pub fn trust(&self) -> Trust {
        let any = |verdict| self.items.iter().any(|item| item.verdict == verdict);
        if any(Verdict::Broken) {
            Trust::Broken
        } else if !self.has_events {
            Trust::Empty
        } else if any(Verdict::Gaps) {
            Trust::SoundWithGaps
        } else {
            Trust::Sound
        }
    }

    /// The item of this name.
    pub fn item(&self, name: &str) -> Option<&Item> {
        self.items.iter().find(|item| item.name == name)
    }
}

/// The number of invariants that are checked concurrently: one is computed while the rows for another are read.
const AT_ONCE: usize = 2;

/// Checks all invariants.
///
/// # Errors
/// When the trace cannot be read. A broken invariant is no error: it is in the report.
pub fn check(trace: &SuperTrace, listed: Listed) -> BoxFuture<'_, Result<Report, Error>> {
    Box::pin(async move {
        // The invariants do not read every column, so a damaged page could go unnoticed without this.
        trace.verify().await?;
        let invariants = INVARIANTS.iter().chain(PAIRING_INVARIANTS);
        let invariants: Vec<_> = invariants.map(|invariant| verify(trace, invariant)).collect();
        let invariants = stream::iter(invariants).buffered(AT_ONCE);
        let examined = disagreements::examine(trace, disagreements::EXAMINED);
        let (examined, invariants): (_, Vec<Item>) =
            future::try_join(examined, invariants.try_collect()).await?;
        let mut items = vec![witnesses::check(trace, examined.causes())?];
        items.extend(invariants);
        let cpu_times = cpu_times::of(trace).await?;
        items.extend(cpu_times::check(&cpu_times));
        let clocks = clocks::of(trace).await?;
        items.push(clocks::check(&clocks));
        let losses = losses::by_source(trace).await?;
        let in_order = items.iter().find(|item: &&Item| item.name == "events-in-order");
        let has_events = in_order.is_some_and(|item| item.verdict != Verdict::NotApplicable);
        items.push(losses::check(&losses));
        Ok(Report {
            items,
            lwps: witnesses::of_lwps(trace).await?,
            disagreements: examined.list(trace, listed.disagreements).await?,
            losses,
            gaps: gaps::list(trace, listed.gaps).await?,
            cpu_times: cpu_times.differ,
            clocks,
            has_events,
        })
    })
}

/// Runs the query of an invariant. It gives one row: how many were checked, how many are broken, the first of them.
async fn verify(trace: &SuperTrace, invariant: &Invariant) -> Result<Item, Error> {
    let (name, sentence) = (invariant.name, invariant.sentence);
    if let Some(table) =
        trace.info().left_out_tables().find(|table| invariant.optional_tables.contains(table))
    {
        let (verdict, detail) = (Verdict::NotApplicable, format!("the table {table} was left out"));
        return Ok(Item { name, invariant: sentence, verdict, figures: Vec::new(), detail });
    }
    let on_query = Error::on(trace, name);
    let last = trace.last_tick().map_or(0, |t| t.0 as i64);
    if let Some(pass) = invariant.pass
        && let Some(checked) = pass.shows(trace, last).await?
    {
        let verdict = if checked == 0 { Verdict::NotApplicable } else { Verdict::Ok };
        let figures = vec![Figure::new("checked", checked as f64), Figure::new("broken", 0.0)];
        return Ok(Item { name, invariant: sentence, verdict, figures, detail: String::new() });
    }
    let plan = trace.sql(invariant.query).await?.into_frame();
    let plan = plan.with_param_values(vec![("last_tick", ScalarValue::from(last))]).map_err(&on_query)?;
    let plan = if invariant.in_file_order { trace.in_file_order(plan) } else { plan };
    let batches = plan.collect().await.map_err(&on_query)?;
    let (mut checked, mut broken, mut detail) = (0, 0, String::new());
    for row in rows::of(&batches) {
        (checked, broken) = (row.count(0), row.count(1));
        if let Some(first) = row.number(2) {
            detail = format!("first: {} {first}", invariant.first_is);
        }
    }
    let verdict = match (checked, broken) {
        (0, _) => Verdict::NotApplicable,
        (_, 0) => Verdict::Ok,
        _ => Verdict::Broken,
    };
    let figures = vec![Figure::new("checked", checked as f64), Figure::new("broken", broken as f64)];
    Ok(Item { name, invariant: sentence, verdict, figures, detail })
}
