//! Compares every row of a super-trace with the history.
//!
//! *Settling* events of an LWP are those after which it is certain where it is; of a thread, those after which it is
//! certain what it does. Nothing may be unknown but between a gap and the next settling event.

mod counters;
mod events;
mod intervals;
mod known;
mod locks;
mod lwps;
mod processes;
mod rows;
mod spans;
mod threads;
mod wakeups;

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
};

use sigmund_merge::Summary;

use super::{
    Claimed, Told,
    losses::{Gap, Recording},
    world::{History, ThreadId, What},
};
use crate::{
    supertrace::Table,
    truth::{check_recorded, equal},
};

type Log<T> = Vec<(u64, T)>;

/// What can be known of a history from its recording.
struct Oracle<'h> {
    history: &'h History,
    recording: &'h Recording,
    /// Settling events of LWPs, and of threads.
    places: BTreeMap<u32, BTreeSet<u64>>,
    threads: BTreeMap<ThreadId, BTreeSet<u64>>,
    /// The last user event of each LWP that there is, readable or not.
    user_ends: BTreeMap<(usize, u32), u64>,
    /// The first switch of each CPU that there is: before it, only its events tell who is on it.
    first_switches: BTreeMap<u32, u64>,
    /// Wakings of LWPs that there are, and when one was first followed by its wakeup: up to then a waking may be taken to be
    /// the wakeup.
    wakings: BTreeMap<u32, BTreeSet<u64>>,
    first_followed: u64,
    end: u64,
}

/// Difference between the numbers of a second process and those of the first.
fn merged_number((process, number): ThreadId) -> u64 {
    (process as u64) << 40 | number
}

fn own_number(merged: u64) -> ThreadId {
    ((merged >> 40) as usize, merged & ((1 << 40) - 1))
}

pub(super) fn check(
    out: &Path,
    summary: &Summary,
    history: &History,
    recording: &Recording,
) -> Result<Told, String> {
    let oracle = Oracle::new(history, recording);
    let mut told = Told {
        events: history.events.len(),
        threads: history.threads.len(),
        lost_events: recording.is_there.iter().filter(|there| !**there).count(),
        kernel_gaps: recording.cpu_gaps.len(),
        user_gaps: recording.lwp_gaps.len(),
        execs: oracle.there().filter(|event| matches!(event.what, What::Exec { .. })).count(),
        ..Told::default()
    };
    oracle.check_losses(out)?;
    oracle.check_events(out)?;
    oracle.check_lwp_states(out, &mut told)?;
    check_recorded(out)?;
    oracle.check_thread_states(out, &mut told)?;
    oracle.check_active(out)?;
    oracle.check_intervals(out, &mut told)?;
    oracle.check_spans(out, &mut told)?;
    oracle.check_wakeups(out, &mut told)?;
    oracle.check_locks(out, &mut told)?;
    oracle.check_counters(out, &mut told)?;
    oracle.check_processes(out, &mut told)?;
    equal("witnesses that disagree", &0, &summary.witness_disagree)?;
    Ok(told)
}

/// Of a recording from which nothing but switches is missing, and nothing says so: who was on what at every event, and
/// that nobody is said to run or to execute who did not. Each of these switches must have been noticed, and no witness
/// be taken for a liar.
pub(super) fn check_untraced(
    out: &Path,
    summary: &Summary,
    history: &History,
    recording: &Recording,
) -> Result<(), String> {
    let oracle = Oracle::new(history, recording);
    oracle.check_events(out)?;
    oracle.check_lwp_claims(out, &mut Claimed::default())?;
    oracle.check_thread_claims(out, &mut Claimed::default())?;
    oracle.check_active(out)?;
    equal("witnesses that disagree", &0, &summary.witness_disagree)?;
    let table = Table::read(out, "losses");
    let said = "the kernel did not trace a switch from one LWP to another";
    let rows: Vec<String> = table.lines(&["kind", "detail"]);
    let is_counted: Vec<bool> = rows.iter().map(|row| row.starts_with("contradiction")).collect();
    let other = rows
        .iter()
        .filter(|row| !row.starts_with(BEFORE_FIRST_SWITCH) && !is_empty_side(out, row))
        .find(|row| !row.starts_with(&format!("contradiction {said}")));
    equal("losses of other kinds", &None, &other)?;
    let counts = table.numbers("count").into_iter().zip(is_counted);
    let noticed: i64 = counts.filter(|(_, is_counted)| *is_counted).filter_map(|(count, _)| count).sum();
    equal("switches that were not traced", &(recording.untraced.len() as i64), &noticed)
}

/// Of a recording from which any switches are missing, and nothing says so: no event, and no state at any instant, is
/// said to be what it was not.
pub(super) fn check_claims(out: &Path, history: &History, recording: &Recording) -> Result<Claimed, String> {
    let oracle = Oracle::new(history, recording);
    let mut claimed = Claimed { untraced: recording.untraced.len(), ..Claimed::default() };
    oracle.check_events(out)?;
    oracle.check_lwp_claims(out, &mut claimed)?;
    oracle.check_thread_claims(out, &mut claimed)?;
    oracle.check_active(out)?;
    let losses = Table::read(out, "losses");
    claimed.said_unknown = losses.numbers("unknown_tick").into_iter().flatten().sum::<i64>() as u64;
    Ok(claimed)
}

/// How a row of `losses` begins that says of a CPU when its first switch is.
const BEFORE_FIRST_SWITCH: &str = "before-first-switch";

impl<'h> Oracle<'h> {
    fn new(history: &'h History, recording: &'h Recording) -> Oracle<'h> {
        let there =
            || history.events.iter().zip(&recording.is_there).filter(|(_, there)| **there).map(|(e, _)| e);
        let mut oracle = Oracle {
            history,
            recording,
            places: BTreeMap::new(),
            threads: BTreeMap::new(),
            user_ends: BTreeMap::new(),
            first_switches: BTreeMap::new(),
            wakings: BTreeMap::new(),
            first_followed: u64::MAX,
            end: there().next_back().map_or(0, |event| event.tick),
        };
        for event in there().filter(|event| matches!(event.what, What::Switch { .. })) {
            oracle.first_switches.entry(event.cpu).or_insert(event.tick);
        }
        there().for_each(|event| oracle.settle(event));
        oracle.find_wakings();
        for packet in &recording.packets {
            let end = oracle.user_ends.entry((packet.process, packet.lwp)).or_default();
            *end = packet.last.max(*end);
        }
        oracle
    }

    fn check_losses(&self, out: &Path) -> Result<(), String> {
        let table = Table::read(out, "losses");
        let mut rows = table.lines(&["kind", "level", "detail"]);
        rows.retain(|row| !row.starts_with(BEFORE_FIRST_SWITCH) && !is_empty_side(out, row));
        let contradiction = rows.iter().find(|row| row.starts_with("contradiction"));
        equal("contradictions", &None, &contradiction)?;
        let named = |column: &str, gaps: &[Gap], what: &str| {
            let named: BTreeSet<Option<i64>> = table.numbers(column).into_iter().collect();
            let missing = gaps.iter().find(|gap| !named.contains(&Some(gap.of.into())));
            equal(what, &None, &missing.map(|gap| gap.of))
        };
        named("cpu", &self.recording.cpu_gaps, "a gap of a CPU that is in no row")?;
        named("lwp", &self.recording.lwp_gaps, "a gap of an LWP that is in no row")?;
        equal("losses of a whole recording", &self.is_whole(), &rows.is_empty())
    }

    fn is_whole(&self) -> bool {
        self.recording.cpu_gaps.is_empty() && self.recording.lwp_gaps.is_empty()
    }

    fn neighbourhood(&self, tick: u64) -> String {
        let events = &self.history.events;
        let place = events.partition_point(|event| event.tick < tick);
        let around = place.saturating_sub(12)..(place + 8).min(events.len());
        let line = |place: usize| {
            let lost = if self.recording.is_there[place] { " " } else { "x" };
            format!("{lost} {:?}\n", events[place])
        };
        let gaps = format!("cpus {:?}\nlwps {:?}", self.recording.cpu_gaps, self.recording.lwp_gaps);
        around.map(line).collect::<String>() + &gaps
    }
}

/// Whether a row says that a side has no event, and it has none: the smallest worlds have such sides.
fn is_empty_side(out: &Path, row: &str) -> bool {
    let has = |level: &str| Table::read(out, "events").lines(&["level"]).iter().any(|found| found == level);
    row.ends_with("the user side has no event") && !has("USER")
        || row.ends_with("the kernel side has no event") && !has("KERN")
}
