//! The gaps, one by one: how long each is, and which LWPs, user threads and CPUs were in use during it.
//!
//! ```text
//! CPU 1   |==70==|  |=====70=====|   |==81==|
//! gap            '--------------------'          touches LWPs 70 and 81, and the user threads that were active on
//!                from                 to         CPU 1 meanwhile: what they did there may be wrong
//! ```

use sigmund_model::{Cpu, Lwp, Thread, Ticks};
use sigmund_sql::SuperTrace;

use super::rows;
use crate::Error;

/// The maximum number of LWPs, threads or CPUs that are named for a gap. The counts cover all.
const NAMED: usize = 8;

/// One gap.
#[derive(Clone, Debug, PartialEq)]
pub struct Gap {
    /// `gap` or `serious`.
    pub severity: String,
    /// `dropped`, `damaged`, …
    pub kind: String,
    /// `KERN` or `USER`.
    pub level: String,
    /// The kernel stream, if it is one.
    pub cpu: Option<Cpu>,
    /// The user stream, if it is one.
    pub lwp: Option<Lwp>,
    /// Last instant known to be before the gap.
    pub from: Option<Ticks>,
    /// First instant known to be after the gap.
    pub to: Option<Ticks>,
    /// Events lost, where they were counted.
    pub events: Option<u64>,
    /// Details, as text.
    pub detail: String,
    /// LWPs with an interval open across it, on its CPU.
    pub lwps: Touched<Lwp>,
    /// User threads likewise.
    pub threads: Touched<Thread>,
    /// CPUs likewise.
    pub cpus: Touched<Cpu>,
}

impl Gap {
    /// The length of the gap, if both ends are known.
    pub fn time(&self) -> Option<Ticks> {
        Some(Ticks(self.to?.0.saturating_sub(self.from?.0)))
    }
}

/// The LWPs, threads or CPUs in use across a gap: their count, and the numbers of some.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Touched<T> {
    /// The count.
    pub count: u64,
    /// The lowest numbers.
    pub named: Vec<T>,
}

impl<T> Default for Touched<T> {
    fn default() -> Touched<T> {
        Touched { count: 0, named: Vec::new() }
    }
}

/// Selects the gaps: the most severe first, and among those the longest. Rows of severity `note` are no gaps, and
/// contradictions are instants.
fn listed(limit: Option<usize>) -> String {
    let limit = limit.map_or(String::new(), |limit| format!("WHERE gap <= {limit}"));
    format!(
        "WITH ranked AS (
           SELECT CAST(row_number() OVER (
                    ORDER BY severity = 'serious' DESC, to_tick - from_tick DESC NULLS LAST, from_tick, cpu, lwp) AS BIGINT) AS gap,
                  CAST(severity AS VARCHAR) AS severity, CAST(kind AS VARCHAR) AS kind, CAST(level AS VARCHAR) AS level,
                  cpu, lwp, from_tick, to_tick, count, detail
           FROM raw_losses WHERE severity <> 'note' AND kind <> 'contradiction'),
         listed AS (SELECT * FROM ranked {limit})"
    )
}

/// Selects the actors that had an interval of `table` open during a gap of the same `stream`.
struct Touching {
    level: &'static str,
    stream: &'static str,
    table: &'static str,
    only: &'static str,
    who: &'static str,
}

const LWPS: Touching = Touching {
    level: "KERN",
    stream: "cpu",
    table: "raw_lwp_states",
    only: "state = 'running' AND other.lwp <> 0",
    who: "lwp",
};
const THREADS_ON_CPU: Touching =
    Touching { level: "KERN", stream: "cpu", table: "raw_active", only: "true", who: "thread" };
const THREADS_ON_LWP: Touching =
    Touching { level: "USER", stream: "lwp", table: "raw_thread_states", only: "true", who: "thread" };
const CPUS: Touching =
    Touching { level: "USER", stream: "lwp", table: "raw_lwp_states", only: "state = 'running'", who: "cpu" };

impl Touching {
    /// Gives one row per gap: its number, how many actors it touches, and the first of them. A gap with only one known
    /// end is taken to begin or end with the trace.
    fn query(&self, trace: &SuperTrace, limit: Option<usize>) -> String {
        let first = trace.first_tick().map_or(0, |t| t.0 as i64);
        let last = trace.last_tick().map_or(0, |t| t.0 as i64);
        let Touching { level, stream, table, only, who } = self;
        format!(
            "{}, touching AS (
               SELECT DISTINCT gap, other.{who} AS who
               FROM listed JOIN {table} AS other ON other.{stream} = listed.{stream}
                 AND other.ts_tick <= coalesce(listed.to_tick, {last})
                 AND coalesce(other.ts_tick + other.dur_tick, {last}) >= coalesce(listed.from_tick, {first})
               WHERE listed.level = '{level}' AND (from_tick IS NOT NULL OR to_tick IS NOT NULL)
                 AND other.{who} IS NOT NULL AND {only})
             SELECT gap, count(*) AS touched, array_slice(array_sort(array_agg(who)), 1, {NAMED}) AS named
             FROM touching GROUP BY gap ORDER BY gap",
            listed(limit)
        )
    }

    async fn add<T>(
        &self,
        trace: &SuperTrace,
        limit: Option<usize>,
        gaps: &mut [Gap],
        touched: fn(&mut Gap) -> &mut Touched<T>,
        id: fn(i64) -> T,
    ) -> Result<(), Error> {
        let batches = trace.sql(&self.query(trace, limit)).await?.collect().await?;
        for row in rows::of(&batches) {
            if let Some(gap) = gaps.get_mut((row.count(0) as usize).wrapping_sub(1)) {
                let named = row.numbers(2).into_iter().map(id).collect();
                *touched(gap) = Touched { count: row.count(1), named };
            }
        }
        Ok(())
    }
}

/// The first gaps, each with the LWPs, threads and CPUs in use during it.
pub(super) async fn list(trace: &SuperTrace, limit: Option<usize>) -> Result<Vec<Gap>, Error> {
    if limit == Some(0) {
        return Ok(Vec::new());
    }
    let query = format!(
        "{} SELECT severity, kind, level, cpu, lwp, from_tick, to_tick, count, detail FROM listed ORDER BY gap",
        listed(limit)
    );
    let batches = trace.sql(&query).await?.collect().await?;
    let mut gaps: Vec<Gap> = rows::of(&batches).map(gap).collect();
    if gaps.is_empty() {
        return Ok(gaps);
    }
    let thread = |n: i64| Thread(n as u64);
    LWPS.add(trace, limit, &mut gaps, |gap| &mut gap.lwps, |n| Lwp(n as u32)).await?;
    THREADS_ON_CPU.add(trace, limit, &mut gaps, |gap| &mut gap.threads, thread).await?;
    THREADS_ON_LWP.add(trace, limit, &mut gaps, |gap| &mut gap.threads, thread).await?;
    CPUS.add(trace, limit, &mut gaps, |gap| &mut gap.cpus, |n| Cpu(n as u32)).await?;
    Ok(gaps)
}

/// The gap's own CPU or LWP is always included.
fn gap(row: rows::Row<'_>) -> Gap {
    let (cpu, lwp) = (row.cpu(3), row.lwp(4));
    Gap {
        severity: row.text(0).to_string(),
        kind: row.text(1).to_string(),
        level: row.text(2).to_string(),
        cpu,
        lwp,
        from: row.tick(5),
        to: row.tick(6),
        events: row.number(7).map(|n| n.max(0) as u64),
        detail: row.text(8).to_string(),
        lwps: only(lwp),
        threads: Touched::default(),
        cpus: only(cpu),
    }
}

fn only<T>(one: Option<T>) -> Touched<T> {
    Touched { count: u64::from(one.is_some()), named: one.into_iter().collect() }
}
