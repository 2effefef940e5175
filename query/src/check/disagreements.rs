//! User events whose CPU differs between the probe and sched_switch, and why.
//!
//! A probe reads the clock first and its CPU afterwards (`record_to` of `fut/src/probe/emit.rs`: `rdtsc`, then the
//! `xadd` that reserves, then the load of `cpu_id` from the LWP's rseq area). What comes between the two separates the
//! stamp from the CPU:
//!
//! ```text
//!            rdtsc          switch           switch         cpu_id
//! CPU 0  ======|==============|                                        the stamp says: here, on CPU 0
//! CPU 1                                        |===============|======   the CPU number says: CPU 1
//!              '------------- left after ------'
//! ```
//!
//! So an event was stamped on the CPU that the switches say, and its record names the CPU of the LWP's next stay. In
//! between, the LWP can have recorded nothing else. That is [`Cause::Moved`], and the switches are right: rows have
//! their CPU. An event of an LWP that sleeps by the switches, or waits for another CPU, is [`Cause::OffCpu`]: a switch or
//! a wakeup is missing. What is neither has no explanation here.
//!
//! How often each was seen is in ARCHITECTURE.md, "The two witnesses".

use arrow::array::RecordBatch;
use sigmund_model::{Cpu, Lwp, Thread, Ticks};
use sigmund_sql::SuperTrace;

use super::{
    neighbourhood::{self, Neighbourhood},
    rows,
};
use crate::Error;

/// The number of disagreements whose cause is examined: the first ones. A trace with more is broken anyhow, or so long
/// that these are as good as any.
pub(super) const EXAMINED: usize = 10_000;

/// Longest way from a stamp to the switch that separates it from its CPU, as a power of two of ticks: 1.6 ms of a TSC of
/// 2.6 GHz, 4.2 ms of a clock in nanoseconds. An interrupt, and what it makes runnable, fit well into it.
const LONGEST_BITS: u32 = 22;
const LONGEST: i64 = 1 << LONGEST_BITS;

/// The cause of a disagreement between the two witnesses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// The LWP was moved to another CPU between the stamp and the look at the CPU.
    Moved,
    /// By the switches the LWP slept, or waited for another CPU: what put it there is not in the trace.
    OffCpu,
    /// By the switches the LWP was on another CPU, and they give no reason.
    OtherCpu,
}

impl Cause {
    /// The printed name.
    pub fn name(self) -> &'static str {
        match self {
            Cause::Moved => "moved",
            Cause::OffCpu => "off-cpu",
            Cause::OtherCpu => "other-cpu",
        }
    }

    /// A sentence for people.
    pub fn sentence(self) -> &'static str {
        match self {
            Cause::Moved => "migrated to the other CPU between reading the clock and reading the CPU",
            Cause::OffCpu => "off-CPU by sched_switch: a switch or a wakeup is not in the trace",
            Cause::OtherCpu => "on another CPU by sched_switch, for no known reason",
        }
    }
}

/// One user event whose CPU differs between the probe and sched_switch.
#[derive(Clone, Debug, PartialEq)]
pub struct Disagreement {
    /// The tick of the event.
    pub tick: Ticks,
    /// The name of the event.
    pub name: String,
    /// The LWP that recorded it.
    pub lwp: Lwp,
    /// The user thread that was mounted.
    pub thread: Option<Thread>,
    /// The CPU from sched_switch; `None` if the LWP was on none by it.
    pub cpu: Option<Cpu>,
    /// The CPU from the probe.
    pub cpu_seen: Cpu,
    /// The time from the stamp until the LWP left that CPU.
    pub left_after: Option<Ticks>,
    /// The cause.
    pub cause: Cause,
    /// The states and events around it.
    pub around: Neighbourhood,
}

/// Disagreements by their cause, as far as they were examined.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Causes {
    pub(super) moved: u64,
    pub(super) off_cpu: u64,
    pub(super) other_cpu: u64,
}

impl Causes {
    fn total(self) -> u64 {
        self.moved + self.off_cpu + self.other_cpu
    }
}

/// One row for each of the first disagreements: tick, name, LWP, thread, CPU, CPU seen, left after, cause.
///
/// * `elsewhere`: the switches have the LWP on another CPU than the probe saw.
/// * `off_cpu`: the switches have it nowhere. The merge then takes the probe's word, so the row itself shows no
///   difference: but a stay on a CPU begins with this very event, and not with a switch. An LWP that waited in the run
///   queue of that very CPU was put on it by a switch that the kernel did not trace, which is no disagreement.
/// * `gone`: when the LWP left the CPU after the event, and when it was on one again. In descending order the minimum of
///   what came before is the next.
/// * `later`: events of the LWP between the two. Those are found by slices of time, so that no event is compared with
///   all others of its LWP.
fn query(limit: usize) -> String {
    format!(
        "WITH doubtful AS (SELECT DISTINCT lwp FROM raw_lwps WHERE witness_disagree > 0),
         states AS (
           SELECT lwp, ts_tick, ts_tick + dur_tick AS end_tick, state, cpu FROM raw_lwp_states
           WHERE lwp IN (SELECT lwp FROM doubtful)),
         begun AS (
           SELECT DISTINCT after.lwp, after.ts_tick
           FROM states AS after JOIN states AS before
             ON before.lwp = after.lwp AND before.end_tick = after.ts_tick
           WHERE after.state = 'running' AND before.state <> 'running'
             AND NOT (before.state = 'runnable' AND before.cpu = after.cpu)),
         seen AS (
           SELECT ts_tick, CAST(name AS VARCHAR) AS name, lwp, thread, cpu, cpu_seen, true AS elsewhere
           FROM raw_events WHERE level = 'USER' AND cpu <> cpu_seen
           UNION ALL
           SELECT raw_events.ts_tick, CAST(name AS VARCHAR), raw_events.lwp, thread, CAST(NULL AS INT), cpu_seen, false
           FROM raw_events JOIN begun ON begun.lwp = raw_events.lwp AND begun.ts_tick = raw_events.ts_tick
           WHERE level = 'USER' AND cpu = cpu_seen),
         examined AS (SELECT * FROM seen ORDER BY ts_tick, lwp LIMIT {limit}),
         line AS (
           SELECT lwp, ts_tick, ts_tick AS state_tick, CASE WHEN state = 'running' THEN ts_tick END AS stay_tick
           FROM states
           UNION ALL
           SELECT lwp, ts_tick, CAST(NULL AS BIGINT), CAST(NULL AS BIGINT) FROM examined),
         gone AS (
           SELECT lwp, ts_tick, state_tick,
                  min(state_tick) OVER behind AS left_tick, min(stay_tick) OVER behind AS next_tick
           FROM line
           WINDOW behind AS (PARTITION BY lwp ORDER BY ts_tick DESC, state_tick NULLS FIRST
                            ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)),
         placed AS (
           SELECT examined.*, left_tick, next_tick
           FROM examined LEFT JOIN gone
             ON gone.lwp = examined.lwp AND gone.ts_tick = examined.ts_tick AND state_tick IS NULL),
         stays AS (
           SELECT lwp, ts_tick, max(cpu) AS cpu FROM states WHERE state = 'running' GROUP BY lwp, ts_tick),
         slices AS (
           SELECT lwp, ts_tick, left_tick, ts_tick >> {LONGEST_BITS} AS slice FROM placed
           UNION ALL
           SELECT lwp, ts_tick, left_tick, (ts_tick >> {LONGEST_BITS}) + 1 FROM placed),
         later AS (
           SELECT DISTINCT slices.lwp, slices.ts_tick
           FROM slices JOIN raw_events AS other
             ON other.lwp = slices.lwp AND other.ts_tick >> {LONGEST_BITS} = slices.slice
             AND other.ts_tick > slices.ts_tick AND other.ts_tick < slices.left_tick
           WHERE other.level = 'USER'),
         judged AS (
           SELECT placed.*, left_tick - placed.ts_tick AS left_after,
                  CASE WHEN NOT elsewhere THEN 'off-cpu'
                       WHEN stays.cpu = cpu_seen AND later.lwp IS NULL
                         AND left_tick - placed.ts_tick < {LONGEST} THEN 'moved'
                       ELSE 'other-cpu' END AS cause
           FROM placed
             LEFT JOIN stays ON stays.lwp = placed.lwp AND stays.ts_tick = next_tick
             LEFT JOIN later ON later.lwp = placed.lwp AND later.ts_tick = placed.ts_tick)"
    )
}

/// The first disagreements, with their causes.
pub(super) struct Examined {
    batches: Vec<RecordBatch>,
    /// How many were asked for.
    limit: usize,
}

/// Examines the first disagreements, in time order.
pub(super) async fn examine(trace: &SuperTrace, limit: usize) -> Result<Examined, Error> {
    let query = format!(
        "{} SELECT ts_tick, name, lwp, thread, cpu, cpu_seen, left_after, cause FROM judged ORDER BY ts_tick, lwp",
        query(limit)
    );
    let batches = trace.sql(&query).await?.collect().await?;
    Ok(Examined { batches, limit })
}

impl Examined {
    /// Counts them by cause.
    pub(super) fn causes(&self) -> Causes {
        let mut causes = Causes::default();
        for row in rows::of(&self.batches) {
            match cause(row) {
                Cause::Moved => causes.moved += 1,
                Cause::OffCpu => causes.off_cpu += 1,
                Cause::OtherCpu => causes.other_cpu += 1,
            }
        }
        causes
    }

    /// The first of them, each with what happened around it.
    pub(super) async fn list(
        self,
        trace: &SuperTrace,
        limit: Option<usize>,
    ) -> Result<Vec<Disagreement>, Error> {
        let limit = limit.unwrap_or(i64::MAX as usize);
        let are_all = self.causes().total() < self.limit as u64;
        let of = if limit <= self.limit || are_all { self } else { examine(trace, limit).await? };
        let mut found = Vec::new();
        for row in rows::of(&of.batches).take(limit) {
            let (Some(tick), Some(lwp), Some(cpu_seen)) = (row.tick(0), row.lwp(2), row.cpu(5)) else {
                continue;
            };
            let cpu = row.cpu(4);
            let cpus = [cpu, Some(cpu_seen)].into_iter().flatten().collect();
            found.push(Disagreement {
                tick,
                name: row.text(1).to_string(),
                lwp,
                thread: row.thread(3),
                cpu,
                cpu_seen,
                left_after: row.tick(6),
                cause: cause(row),
                around: neighbourhood::around(trace, tick, lwp, cpus).await?,
            });
        }
        Ok(found)
    }
}

fn cause(row: rows::Row<'_>) -> Cause {
    match row.text(7) {
        "moved" => Cause::Moved,
        "off-cpu" => Cause::OffCpu,
        _ => Cause::OtherCpu,
    }
}
