//! User events whose CPU differs between the probe and sched_switch, and why.
//!
//! A probe reads the clock first and its CPU afterwards (`record_to` of `fut/src/probe/emit.rs`: `rdtsc`, then the
//! `xadd` that reserves, then the load of `cpu_id` from the LWP's rseq area). A switch between the two reads makes the
//! time stamp and the CPU number refer to different CPUs:
//!
//! ```text
//!            rdtsc          switch           switch         cpu_id
//! CPU 0  ======|==============|                                        the stamp says: here, on CPU 0
//! CPU 1                                        |===============|======   the CPU number says: CPU 1
//!              '------------- left after ------'
//! ```
//!
//! So the event was stamped on the CPU that sched_switch gives, but its record names the CPU of the LWP's next stay.
//! The LWP cannot have recorded anything else in between. That is [`Cause::Moved`]: sched_switch is right, and the rows
//! have its CPU. If the LWP slept by sched_switch, or waited for another CPU, the cause is [`Cause::OffCpu`]: a switch
//! or a wakeup is missing in the trace. For all others no explanation is known here.
//!
//! How often each was seen is in ARCHITECTURE.md, "The two witnesses".

mod nowhere;

use std::collections::{BTreeMap, BTreeSet};

use futures::StreamExt;
use sigmund_model::{Cpu, Lwp, Thread, Ticks};
use sigmund_sql::SuperTrace;

use super::{
    neighbourhood::{self, Neighbourhood},
    pass, rows,
};
use crate::Error;

/// The number of disagreements whose cause is examined: the first ones. A trace with more is either broken, or so long
/// that these are a good enough sample.
pub(super) const EXAMINED: usize = 10_000;

/// The longest time from a stamp to the switch that separates it from the probe's CPU, as a power of two of ticks: 1.6
/// ms of a TSC of 2.6 GHz, 4.2 ms of a clock in nanoseconds. That is ample for an interrupt and the LWP that it wakes.
const LONGEST_BITS: u32 = 22;
const LONGEST: i64 = 1 << LONGEST_BITS;

/// The cause of a disagreement between the two witnesses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// The LWP was moved to another CPU after the probe had read the clock and before it read the CPU.
    Moved,
    /// By sched_switch the LWP slept or waited for another CPU. The event that put it on the probe's CPU is not in the
    /// trace.
    OffCpu,
    /// By sched_switch the LWP was on another CPU, and nothing explains why.
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
    /// The CPU from sched_switch; `None` if the LWP was on no CPU by it.
    pub cpu: Option<Cpu>,
    /// The CPU from the probe.
    pub cpu_seen: Cpu,
    /// The time from the stamp until the LWP left the CPU that it was on.
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

/// The first disagreements, with their causes.
pub(super) struct Examined {
    found: Vec<Examination>,
    /// How many disagreements were requested.
    limit: usize,
}

/// One disagreement, without the events around it.
struct Examination {
    tick: i64,
    name: String,
    lwp: Lwp,
    thread: Option<Thread>,
    cpu: Option<Cpu>,
    cpu_seen: Cpu,
    /// Whether the LWP was on another CPU by sched_switch. If not, it was on no CPU by it.
    is_elsewhere: bool,
    after: After,
}

/// What an LWP did after an event.
#[derive(Clone, Copy, Default)]
struct After {
    /// Start of its next state, that is, when it left the CPU.
    left: Option<i64>,
    /// When it was on a CPU next, and on which.
    next: Option<(i64, i64)>,
    /// Whether it recorded another event before it left.
    has_recorded: bool,
}

/// Examines the first disagreements, in time order.
pub(super) async fn examine(trace: &SuperTrace, limit: usize) -> Result<Examined, Error> {
    let mut counted = nowhere::counted(trace).await?;
    let lwps: Vec<i64> = counted.keys().copied().collect();
    let nowhere = nowhere::events(trace, &lwps, limit).await?;
    let ticks: BTreeSet<i64> = nowhere.iter().map(|(_, tick)| *tick).collect();
    let or_nowhere =
        if ticks.is_empty() { String::new() } else { format!(" OR ts_tick IN ({})", numbers(&ticks)) };
    // Other LWPs may have recorded an event at such a tick, too.
    let query = format!(
        "SELECT ts_tick, CAST(name AS VARCHAR), lwp, thread, cpu, cpu_seen FROM raw_events
         WHERE level = 'USER' AND cpu_seen IS NOT NULL AND (cpu <> cpu_seen{or_nowhere})
         ORDER BY ts_tick, lwp LIMIT {}",
        limit.saturating_add(2 * ticks.len()).min(i64::MAX as usize)
    );
    let batches = trace.sql(&query).await?.collect().await?;
    let seen = rows::of(&batches).filter_map(|row| Examination::of(row, &nowhere));
    let mut found: Vec<Examination> = seen.take(limit).collect();
    for one in found.iter().filter(|one| one.is_elsewhere) {
        counted.entry(one.lwp.0.into()).and_modify(|left| *left -= 1);
    }
    // Of the others, as many as the merge has counted.
    found.retain(|one| {
        let left = counted.entry(one.lwp.0.into()).or_default();
        *left -= i64::from(!one.is_elsewhere);
        one.is_elsewhere || *left >= 0
    });
    let mut of_lwps: BTreeMap<i64, Vec<usize>> = BTreeMap::new();
    for (place, one) in found.iter().enumerate() {
        of_lwps.entry(one.lwp.0.into()).or_default().push(place);
    }
    if !found.is_empty() {
        what_came_next(trace, &mut found, &of_lwps).await?;
        what_was_recorded(trace, &mut found, &of_lwps).await?;
    }
    Ok(Examined { found, limit })
}

/// Finds what state followed each event. `of_lwps` has the indices of the events of each LWP.
async fn what_came_next(
    trace: &SuperTrace,
    found: &mut [Examination],
    of_lwps: &BTreeMap<i64, Vec<usize>>,
) -> Result<(), Error> {
    let query = format!(
        "SELECT CAST(lwp AS BIGINT), ts_tick, CAST(CASE WHEN state = 'running' THEN coalesce(cpu, -1) ELSE -2 END AS BIGINT)
         FROM raw_lwp_states WHERE lwp IN ({})",
        numbers(of_lwps.keys())
    );
    let mut states = pass::rows(trace, &query, 0).await?;
    while let Some(batch) = states.next().await.transpose().map_err(Error::on(trace, "check"))? {
        let columns = [0, 1, 2].map(|place| pass::column(&batch, place));
        for row in 0..batch.num_rows() {
            let Some([lwp, tick, cpu]) = pass::cells(&columns, row) else { continue };
            let Some(places) = of_lwps.get(&lwp) else { continue };
            // The last event before the state. The loop below handles the events before that one.
            let before = places.partition_point(|place| found[*place].tick < tick);
            let Some(place) = before.checked_sub(1) else { continue };
            let stay = (cpu > -2).then_some((tick, cpu));
            found[places[place]].after.follow(After { left: Some(tick), next: stay, has_recorded: false });
        }
    }
    for places in of_lwps.values() {
        let mut after = After::default();
        for place in places.iter().rev() {
            found[*place].after.follow(after);
            after = found[*place].after;
        }
    }
    Ok(())
}

/// Finds whether LWPs recorded other events between the stamp and the switch. Looks only at events that would otherwise
/// count as moved.
async fn what_was_recorded(
    trace: &SuperTrace,
    found: &mut [Examination],
    of_lwps: &BTreeMap<i64, Vec<usize>>,
) -> Result<(), Error> {
    let moved = || found.iter().filter(|one| one.cause() == Cause::Moved);
    let slices: BTreeSet<i64> =
        moved().flat_map(|one| [0, 1].map(|next| (one.tick >> LONGEST_BITS) + next)).collect();
    if slices.is_empty() {
        return Ok(());
    }
    let lwps: BTreeSet<i64> = moved().map(|one| one.lwp.0.into()).collect();
    let query = format!(
        "SELECT CAST(lwp AS BIGINT), ts_tick FROM raw_events
         WHERE level = 'USER' AND lwp IN ({}) AND ts_tick >> {LONGEST_BITS} IN ({})",
        numbers(&lwps),
        numbers(&slices)
    );
    let mut events = pass::rows(trace, &query, 0).await?;
    while let Some(batch) = events.next().await.transpose().map_err(Error::on(trace, "check"))? {
        let columns = [0, 1].map(|place| pass::column(&batch, place));
        for row in 0..batch.num_rows() {
            let Some([lwp, tick]) = pass::cells(&columns, row) else { continue };
            let Some(places) = of_lwps.get(&lwp) else { continue };
            let before = places.partition_point(|place| found[*place].tick < tick);
            for place in places[..before].iter().rev() {
                let after = &mut found[*place].after;
                // For the events before this one, the LWP left its CPU no later.
                if after.left.is_none_or(|left| left <= tick) {
                    break;
                }
                after.has_recorded = true;
            }
        }
    }
    Ok(())
}

fn numbers<'n>(numbers: impl IntoIterator<Item = &'n i64>) -> String {
    numbers.into_iter().map(i64::to_string).collect::<Vec<_>>().join(", ")
}

impl After {
    /// Merges what happened later. Of each, the earlier one counts.
    fn follow(&mut self, later: After) {
        self.left = self.left.into_iter().chain(later.left).min();
        self.next = match (self.next, later.next) {
            (Some((tick, cpu)), Some((other, on))) if tick == other => Some((tick, cpu.max(on))),
            (one, other) => one.into_iter().chain(other).min(),
        };
    }
}

impl Examination {
    /// `None` if the witnesses agree.
    fn of(row: rows::Row<'_>, nowhere: &nowhere::Places) -> Option<Examination> {
        let (tick, lwp) = (row.number(0)?, row.lwp(2)?);
        let (cpu, cpu_seen) = (row.cpu(4), row.cpu(5)?);
        let is_elsewhere = cpu.is_some_and(|cpu| cpu != cpu_seen);
        let is_nowhere = cpu == Some(cpu_seen) && nowhere.contains(&(lwp.0.into(), tick));
        (is_elsewhere || is_nowhere).then(|| Examination {
            tick,
            name: row.text(1).to_string(),
            lwp,
            thread: row.thread(3),
            cpu: cpu.filter(|_| is_elsewhere),
            cpu_seen,
            is_elsewhere,
            after: After::default(),
        })
    }

    fn left_after(&self) -> Option<i64> {
        self.after.left.map(|left| left.saturating_sub(self.tick))
    }

    fn cause(&self) -> Cause {
        let has_come_to = self.after.next.is_some_and(|(_, cpu)| cpu == i64::from(self.cpu_seen.0));
        let has_left_soon = self.left_after().is_some_and(|length| length < LONGEST);
        match self.is_elsewhere {
            false => Cause::OffCpu,
            true if has_come_to && has_left_soon && !self.after.has_recorded => Cause::Moved,
            true => Cause::OtherCpu,
        }
    }
}

impl Examined {
    /// Counts them by cause.
    pub(super) fn causes(&self) -> Causes {
        let mut causes = Causes::default();
        for one in &self.found {
            match one.cause() {
                Cause::Moved => causes.moved += 1,
                Cause::OffCpu => causes.off_cpu += 1,
                Cause::OtherCpu => causes.other_cpu += 1,
            }
        }
        causes
    }

    /// The first disagreements, each with the states and events around it.
    pub(super) async fn list(
        self,
        trace: &SuperTrace,
        limit: Option<usize>,
    ) -> Result<Vec<Disagreement>, Error> {
        let limit = limit.unwrap_or(i64::MAX as usize);
        let are_all = self.causes().total() < self.limit as u64;
        let of = if limit <= self.limit || are_all { self } else { examine(trace, limit).await? };
        let mut found = Vec::new();
        for one in of.found.into_iter().take(limit) {
            let (tick, cause, left_after) = (Ticks(one.tick as u64), one.cause(), one.left_after());
            let Examination { name, lwp, thread, cpu, cpu_seen, .. } = one;
            let cpus = [cpu, Some(cpu_seen)].into_iter().flatten().collect();
            found.push(Disagreement {
                tick,
                name,
                lwp,
                thread,
                cpu,
                cpu_seen,
                left_after: left_after.map(|length| Ticks(length as u64)),
                cause,
                around: neighbourhood::around(trace, tick, lwp, cpus).await?,
            });
        }
        Ok(found)
    }
}
