//! The evidence in a trace: which events were recorded, how they were recorded, and what is missing. It explains empty
//! answers.

use std::collections::BTreeMap;

use anyhow::Result;
use arrow::{array::AsArray, datatypes::Int64Type};
use sigmund_model::tables::info_keys::MISSING_TRACEPOINTS;
use sigmund_query::{Filter, count_gaps};
use sigmund_sql::SuperTrace;

/// Sums the lost events. The counts in rows of other kinds are of lines, of processes, or of instants at which two
/// sources differ.
const LOST: &str = "
    SELECT CAST(coalesce(sum(count), 0) AS BIGINT) FROM losses
    WHERE kind = 'dropped' OR (kind = 'overwritten' AND severity <> 'note')";

/// The reasons why answers may be incomplete.
pub(super) struct Evidence {
    /// The number of occurrences of each declared event.
    events: BTreeMap<String, u64>,
    /// Tracepoints of the schemata of the recording that the kernel did not have.
    pub(super) missing: Vec<String>,
    /// If the kernel side was not recorded by tracepoints: how it was recorded, and why.
    pub(super) kernel_side: Option<String>,
    /// Gaps in events that analyses depend on.
    pub(super) gaps: usize,
    /// The number of events that no buffer had room for, where they were counted.
    pub(super) lost: u64,
}

impl Evidence {
    pub(super) async fn of(trace: &SuperTrace) -> Result<Evidence> {
        let mut events: BTreeMap<String, u64> = BTreeMap::new();
        for event in trace.event_types() {
            *events.entry(event.ty.name.clone()).or_default() += event.events;
        }
        let lost = trace.sql(LOST).await?.collect().await?;
        let lost = lost.iter().filter(|batch| batch.num_rows() > 0);
        let lost =
            lost.map(|batch| batch.column(0).as_primitive::<Int64Type>().value(0).unsigned_abs()).sum();
        let gaps = count_gaps(trace, &Filter::default()).await?;
        let missing = trace.info().get(MISSING_TRACEPOINTS).unwrap_or_default();
        let missing = missing.split(',').filter(|name| !name.is_empty()).map(String::from).collect();
        Ok(Evidence { events, missing, kernel_side: kernel_side(trace), gaps, lost })
    }

    /// Those of these events that were not recorded at all.
    pub(super) fn not_recorded<'n>(&self, needs: &'n [String]) -> Vec<&'n str> {
        let is_unknown = |need: &&str| !self.events.contains_key(bare(need));
        needs.iter().map(String::as_str).filter(is_unknown).collect()
    }

    /// The reason why an answer that depends on these events has no rows.
    pub(super) fn why_nothing(&self, needs: &[String]) -> String {
        if let Some(why) = self.describe_unrecorded(needs) {
            return why;
        }
        let never = |need: &&String| self.events.get(bare(need)) == Some(&0);
        let never: Vec<&str> = needs.iter().filter(never).map(String::as_str).collect();
        match never.is_empty() {
            true => "nothing of the kind happened while it was recorded".into(),
            false => format!("recorded, and never happened: {}", never.join(", ")),
        }
    }

    /// Which of the events were not recorded, and why; `None` if all were.
    pub(super) fn describe_unrecorded(&self, needs: &[String]) -> Option<String> {
        let unrecorded = self.not_recorded(needs);
        if unrecorded.is_empty() {
            return None;
        }
        let describe = |need: &&str| match self.missing.iter().any(|missing| missing == need) {
            true => format!("{need} (this kernel does not have it)"),
            false => (*need).to_string(),
        };
        let names: Vec<String> = unrecorded.iter().map(describe).collect();
        let why = self.kernel_side.as_ref().filter(|_| unrecorded.iter().any(|need| need.contains(':')));
        let why = why.map_or(String::new(), |why| format!("; {why}"));
        Some(format!("not recorded: {}{why}", names.join(", ")))
    }
}

/// The name of an event in a trace: tracepoints have no system prefix there.
fn bare(event: &str) -> &str {
    event.split_once(':').map_or(event, |(_, name)| name)
}

fn kernel_side(trace: &SuperTrace) -> Option<String> {
    let side = match trace.info().get("kernel_side")? {
        "tracefs" => return None,
        "none" => "the kernel was not recorded".to_string(),
        means => format!("the kernel was recorded by {means} only"),
    };
    Some(match trace.info().get("kernel_side_why") {
        Some(why) => format!("{side}: {why}"),
        None => side,
    })
}
