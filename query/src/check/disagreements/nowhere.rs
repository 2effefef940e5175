//! User events of LWPs that the switches have on no CPU.
//!
//! For such an event the merge uses the CPU from the probe, so the row of the event shows no difference. The sign is
//! that a stay on a CPU begins exactly at this event, and not at a switch. One case is not a disagreement: if the LWP
//! waited in the run queue of that CPU, then a switch that the kernel did not trace put it on the CPU.

use std::collections::{BTreeMap, HashSet};

use foldhash::fast::RandomState;
use futures::StreamExt;
use sigmund_sql::SuperTrace;

use super::{numbers, pass, rows};
use crate::Error;

/// Pairs of an LWP and a tick.
pub(super) type Places = HashSet<(i64, i64), RandomState>;

/// A state of an LWP.
#[derive(Clone, Copy)]
struct State {
    from: i64,
    /// `i64::MAX` if it is not known.
    to: i64,
    kind: Kind,
    /// -1 if it is not known.
    cpu: i64,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Running,
    Runnable,
    Other,
}

impl State {
    /// Whether this stay on a CPU begins where the other state ends, without anything that put the LWP on that CPU.
    fn begins_unseen_after(self, before: State) -> bool {
        let is_told = match before.kind {
            Kind::Running => true,
            // If one of the two CPUs is unknown, nothing contradicts.
            Kind::Runnable => before.cpu == self.cpu || before.cpu < 0 || self.cpu < 0,
            Kind::Other => false,
        };
        self.kind == Kind::Running && self.from == before.to && !is_told
    }
}

/// The number of disagreements that the merge has counted for each LWP that has some.
pub(super) async fn counted(trace: &SuperTrace) -> Result<BTreeMap<i64, i64>, Error> {
    let query = "SELECT CAST(lwp AS BIGINT), CAST(sum(witness_disagree) AS BIGINT) FROM raw_lwps
        WHERE witness_disagree > 0 GROUP BY lwp";
    let batches = trace.sql(query).await?.collect().await?;
    Ok(rows::of(&batches).filter_map(|row| row.number(0).zip(row.number(1))).collect())
}

/// Finds such events of these LWPs, at most `limit`. An LWP may have more of them than the merge has counted: where it was in an
/// unknown state before, the two witnesses need not have disagreed.
pub(super) async fn events(trace: &SuperTrace, lwps: &[i64], limit: usize) -> Result<Places, Error> {
    let mut found = Places::default();
    if lwps.is_empty() {
        return Ok(found);
    }
    let begun = begun_unseen(trace, lwps).await?;
    if begun.is_empty() {
        return Ok(found);
    }
    let query = format!(
        "SELECT CAST(lwp AS BIGINT), ts_tick FROM raw_events
         WHERE level = 'USER' AND cpu = cpu_seen AND lwp IN ({})",
        numbers(lwps)
    );
    let mut events = pass::rows(trace, &query, 0).await?;
    while let Some(batch) = events.next().await.transpose().map_err(Error::on(trace, "check"))? {
        let columns = [0, 1].map(|place| pass::column(&batch, place));
        for row in 0..batch.num_rows() {
            let Some([lwp, tick]) = pass::cells(&columns, row) else { continue };
            if found.len() < limit && begun.contains(&(lwp, tick)) {
                found.insert((lwp, tick));
            }
        }
    }
    Ok(found)
}

/// Finds where a stay of one of these LWPs on a CPU begins although nothing has put it there.
async fn begun_unseen(trace: &SuperTrace, lwps: &[i64]) -> Result<Places, Error> {
    let query = format!(
        "SELECT CAST(lwp AS BIGINT), ts_tick, coalesce(ts_tick + dur_tick, 9223372036854775807),
                CAST(CASE state WHEN 'running' THEN 0 WHEN 'runnable' THEN 1 ELSE 2 END AS BIGINT),
                CAST(coalesce(cpu, -1) AS BIGINT)
         FROM raw_lwp_states WHERE lwp IN ({})",
        numbers(lwps)
    );
    let mut begun = Places::default();
    // For each LWP, its states with the latest end so far. Rows are sorted by their ends.
    let mut ended: BTreeMap<i64, Vec<State>> = BTreeMap::new();
    let mut states = pass::rows(trace, &query, 0).await?;
    while let Some(batch) = states.next().await.transpose().map_err(Error::on(trace, "check"))? {
        let columns = [0, 1, 2, 3, 4].map(|place| pass::column(&batch, place));
        for row in 0..batch.num_rows() {
            let Some([lwp, from, to, kind, cpu]) = pass::cells(&columns, row) else { continue };
            let kind = [Kind::Running, Kind::Runnable, Kind::Other][kind.clamp(0, 2) as usize];
            let state = State { from, to, kind, cpu };
            let last = ended.entry(lwp).or_default();
            for other in last.iter() {
                // If one of the two states has no length, either of them may come first.
                if state.begins_unseen_after(*other) {
                    begun.insert((lwp, state.from));
                }
                if other.begins_unseen_after(state) {
                    begun.insert((lwp, other.from));
                }
            }
            last.retain(|other| other.to >= to);
            last.push(state);
        }
    }
    Ok(begun)
}
