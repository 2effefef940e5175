//! Every row of a super-trace against the history.
//!
//! *Settling* events of an LWP are those after which it is certain where it is; of a thread, those after which it is
//! certain what it does. Nothing may be unknown but between a gap and the next settling event.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
};

use sigmund_merge::Summary;

use super::{
    Told, kernel_file,
    losses::{Gap, Recording},
    user_file,
    world::{Event, History, LwpIs, ThreadId, ThreadIs, What},
};
use crate::{equal, supertrace::Table};

type Log<T> = Vec<(u64, T)>;

/// What can be known of a history by its recording.
struct Oracle<'h> {
    history: &'h History,
    recording: &'h Recording,
    /// Settling events of LWPs, and of threads.
    places: BTreeMap<u32, BTreeSet<u64>>,
    threads: BTreeMap<ThreadId, BTreeSet<u64>>,
    /// The last user event of each LWP that there is, readable or not.
    user_ends: BTreeMap<(usize, u32), u64>,
    end: u64,
}

/// Numbers of a second process lie this far behind those of the first.
fn merged_number((process, number): ThreadId) -> u64 {
    (process as u64) << 40 | number
}

fn own_number(merged: u64) -> ThreadId {
    ((merged >> 40) as usize, merged & ((1 << 40) - 1))
}

/// The states that a log is in between two ticks.
fn during<T: Copy>(log: &Log<T>, from: u64, to: u64) -> impl Iterator<Item = (u64, u64, Option<T>)> {
    let first = log.partition_point(|(tick, _)| *tick <= from);
    let before = (first > 0).then(|| log[first - 1].1);
    let head = std::iter::once((from, before));
    let inside = log[first..].iter().take_while(move |(tick, _)| *tick < to).map(|(t, is)| (*t, Some(*is)));
    let all: Vec<_> = head.chain(inside).collect();
    let ends: Vec<u64> = all[1..].iter().map(|(tick, _)| *tick).chain([to]).collect();
    all.into_iter().zip(ends).map(|((start, is), end)| (start, end, is)).filter(|(start, end, _)| start < end)
}

fn at<T: Copy>(log: &Log<T>, tick: u64) -> Option<T> {
    let place = log.partition_point(|(t, _)| *t <= tick);
    (place > 0).then(|| log[place - 1].1)
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
        ..Told::default()
    };
    oracle.check_losses(out)?;
    oracle.check_events(out)?;
    oracle.check_lwp_states(out, &mut told)?;
    oracle.check_thread_states(out, &mut told)?;
    oracle.check_active(out)?;
    equal("witnesses that disagree", &0, &summary.witness_disagree)?;
    Ok(told)
}

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
            end: there().next_back().map_or(0, |event| event.tick),
        };
        there().for_each(|event| oracle.settle(event));
        for packet in &recording.packets {
            let end = oracle.user_ends.entry((packet.process, packet.lwp)).or_default();
            *end = packet.last.max(*end);
        }
        oracle
    }

    fn settle(&mut self, event: &Event) {
        let tick = event.tick;
        let Some(process) = event.process else { return self.settle_place(event) };
        let mut settles: Vec<u64> = event.thread.map(|(_, thread)| thread).into_iter().collect();
        let is_open = self.gaps_of(process).any(|gap| gap.is_open(tick));
        match event.what {
            What::UserSwitch { next, .. } if next != 0 => settles.push(next),
            What::ThreadNew(thread) if !is_open => settles.push(thread),
            What::ThreadReady(thread) if !is_open && self.threads.contains_key(&(process, thread)) => {
                // One that is mounted stays where it is.
                let is = at(&self.history.threads[&(process, thread)], tick);
                settles.extend(Some(thread).filter(|_| is == Some(ThreadIs::Ready)));
            }
            _ => {}
        }
        for thread in settles {
            self.threads.entry((process, thread)).or_default().insert(tick);
        }
    }

    fn settle_place(&mut self, event: &Event) {
        let mut settles = vec![event.lwp];
        match event.what {
            What::Switch { next, .. } => settles.push(next),
            What::Wakeup { lwp, .. } => {
                let is_open = self.recording.cpu_gaps.iter().any(|gap| gap.is_open(event.tick));
                settles.extend(Some(lwp).filter(|lwp| !is_open && self.places.contains_key(lwp)));
            }
            _ => {}
        }
        for lwp in settles.into_iter().filter(|lwp| *lwp != 0) {
            self.places.entry(lwp).or_default().insert(event.tick);
        }
    }

    /// Gaps that may hide what a process's threads do. Whose LWP it is, is not known of a number that several had.
    fn gaps_of(&self, process: usize) -> impl Iterator<Item = &Gap> {
        let gaps = &self.recording.lwp_gaps;
        let shared = |lwp: u32| self.history.owners.get(&lwp).is_some_and(|owners| owners.len() > 1);
        // If such an LWP's attach is missing, it is not known either whose the threads are that it tells of.
        let vague = gaps.iter().any(|gap| gap.process == Some(process) && shared(gap.of));
        gaps.iter().filter(move |gap| vague || gap.process == Some(process) || shared(gap.of))
    }

    fn check_losses(&self, out: &Path) -> Result<(), String> {
        let table = Table::read(out, "losses");
        let rows = table.lines(&["kind", "level", "detail"]);
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

    /// Whether it must be known where an LWP is at a tick.
    fn knows_place(&self, lwp: u32, tick: u64) -> bool {
        let settled = self.places.get(&lwp).and_then(|ticks| ticks.range(..=tick).next_back());
        let Some(settled) = settled else { return false };
        let log = &self.history.lwps[&lwp];
        let stays_on = match at(log, *settled) {
            Some(LwpIs::On(cpu)) if during(log, *settled, tick).count() <= 1 => Some(cpu),
            _ => None,
        };
        let hides = |gap: &Gap| gap.from <= tick && gap.to.is_none_or(|to| to > *settled);
        let concerns = |gap: &Gap| stays_on.is_none_or(|cpu| cpu == gap.of);
        !self.recording.cpu_gaps.iter().any(|gap| hides(gap) && concerns(gap))
    }

    /// Whether it must be known whom an LWP carries at a tick.
    fn knows_mounted(&self, lwp: u32, tick: u64) -> bool {
        if self.recording.packets.is_empty()
            || self.recording.lwp_gaps.iter().any(|g| g.of == lwp && g.is_open(tick))
        {
            return false;
        }
        !self.may_have_ended(lwp, tick)
    }

    /// Whether an LWP has no more user events at a tick, and may have been killed unseen.
    fn may_have_ended(&self, lwp: u32, tick: u64) -> bool {
        let owners = &self.history.owners[&lwp];
        let ended = |process: &usize| self.user_ends.get(&(*process, lwp)).filter(|end| **end <= tick);
        let hides = |end: &u64| {
            self.recording.cpu_gaps.iter().any(|gap| gap.from <= tick && gap.to.is_none_or(|to| to >= *end))
        };
        owners.iter().filter_map(ended).any(hides)
    }

    fn check_events(&self, out: &Path) -> Result<(), String> {
        let table = Table::read(out, "events");
        let (ticks, cpus, lwps) = (table.numbers("ts_tick"), table.numbers("cpu"), table.numbers("lwp"));
        let (threads, targets) = (table.numbers("thread"), table.numbers("target_lwp"));
        let target_threads = table.numbers("target_thread");
        let words = table.lines(&["name", "context"]);
        let mut found: Vec<usize> = (0..ticks.len()).collect();
        found.sort_by_key(|row| (ticks[*row], lwps[*row], cpus[*row]));
        let mut expected: Vec<usize> =
            (0..self.history.events.len()).filter(|place| self.recording.is_there[*place]).collect();
        let of = |place: &usize| &self.history.events[*place];
        expected.sort_by_key(|place| (of(place).tick, of(place).lwp, of(place).cpu));
        equal("number of events", &expected.len(), &found.len())?;
        for (place, row) in expected.iter().zip(found) {
            let event = of(place);
            let wrong = |column: &str, found: Option<i64>| {
                Err(format!("{column}: found {found:?} at {event:?}\n{}", self.neighbourhood(event.tick)))
            };
            if ticks[row] != Some(event.tick as i64) {
                return wrong("ts_tick", ticks[row]);
            }
            let name =
                if event.is_user() { user_file::name(event.what) } else { kernel_file::name(event.what) };
            if words[row] != format!("{name} {}", event.context) {
                return Err(format!("{} at {event:?}", words[row]));
            }
            if lwps[row] != Some(event.lwp.into()) {
                return wrong("lwp", lwps[row]);
            }
            let may_be_null =
                self.recording.cpu_unseen.contains(place) && !self.knows_place(event.lwp, event.tick);
            if !is_right(Some(event.cpu.into()), cpus[row], may_be_null) {
                return wrong("cpu", cpus[row]);
            }
            let number = |thread: Option<ThreadId>| thread.map(|thread| merged_number(thread) as i64);
            let may_be_null =
                !event.is_user() && event.lwp != 0 && !self.knows_mounted(event.lwp, event.tick);
            if !is_right(number(event.thread), threads[row], may_be_null) {
                return wrong("thread", threads[row]);
            }
            if targets[row] != event.target.map(|(lwp, _)| lwp.into()) {
                return wrong("target_lwp", targets[row]);
            }
            let (target, may_be_null) = match (event.what, event.target) {
                (_, Some((lwp, thread))) => (thread, !self.knows_mounted(lwp, event.tick)),
                (
                    What::UserSwitch { next: thread, .. }
                    | What::ThreadNew(thread)
                    | What::ThreadReady(thread),
                    _,
                ) => {
                    let process = event.process.expect("a user event");
                    (Some((process, thread)).filter(|_| thread != 0), false)
                }
                _ => (None, false),
            };
            if !is_right(number(target), target_threads[row], may_be_null) {
                return wrong("target_thread", target_threads[row]);
            }
        }
        Ok(())
    }

    fn check_lwp_states(&self, out: &Path, told: &mut Told) -> Result<(), String> {
        let rows = Rows::read(out, "lwp_states", "lwp");
        if !self.recording.has_kernel {
            return equal("states of LWPs without a kernel trace", &0, &rows.len());
        }
        for (lwp, rows) in &rows.by_number {
            let (log, settles) = (&self.history.lwps[&(*lwp as u32)], self.places.get(&(*lwp as u32)));
            for row in rows {
                let wrong = |why: String| {
                    Err(format!("LWP {lwp}: {row:?}: {why}\n{log:?}\n{}", self.neighbourhood(row.start)))
                };
                if row.state == "unknown" {
                    told.unknown_rows += 1;
                    if !self.recording.cpu_gaps.iter().any(|gap| gap.is_open(row.start)) {
                        return wrong("no gap is open".into());
                    }
                    if let Some(tick) = settles.and_then(|ticks| inside(ticks, row)) {
                        return wrong(format!("settled at {tick}"));
                    }
                    continue;
                }
                told.known_rows += 1;
                let Some(end) = row.end else {
                    let is = at(log, row.start);
                    if !matches!(is, Some(LwpIs::Dead | LwpIs::Fresh)) {
                        return wrong(format!("{is:?}"));
                    }
                    continue;
                };
                let fits = |is: Option<LwpIs>| match is {
                    Some(LwpIs::On(cpu)) => row.state == "running" && row.cpu == Some(cpu.into()),
                    Some(LwpIs::Runnable) => row.state == "runnable",
                    Some(LwpIs::Sleeping) => row.state == "sleeping",
                    Some(LwpIs::DiskSleep) => row.state == "disk-sleep",
                    Some(LwpIs::Fresh | LwpIs::Dead) | None => false,
                };
                if let Some(other) = during(log, row.start, end).find(|(_, _, is)| !fits(*is)) {
                    return wrong(format!("{other:?}"));
                }
            }
        }
        rows.check_no_holes(self.end, self.places.iter().map(|(lwp, ticks)| (u64::from(*lwp), ticks)))
    }

    fn check_thread_states(&self, out: &Path, told: &mut Told) -> Result<(), String> {
        let rows = Rows::read(out, "thread_states", "thread");
        for (number, rows) in &rows.by_number {
            let thread = own_number(*number);
            let Some(log) = self.history.threads.get(&thread) else {
                return Err(format!("thread {thread:?} never was"));
            };
            for row in rows {
                if row.state == "unknown" {
                    told.unknown_rows += 1
                } else {
                    told.known_rows += 1
                }
                self.check_thread_row(thread, log, row).map_err(|why| {
                    format!("thread {thread:?}: {row:?}: {why}\n{log:?}\n{}", self.neighbourhood(row.start))
                })?;
            }
        }
        let settles = self.threads.iter().map(|(thread, ticks)| (merged_number(*thread), ticks));
        rows.check_no_holes(self.end, settles)
    }

    fn check_thread_row(&self, thread: ThreadId, log: &Log<ThreadIs>, row: &Row) -> Result<(), String> {
        if row.state == "unknown" {
            let settles = self.threads.get(&thread);
            if let Some(tick) = settles.and_then(|ticks| inside(ticks, row)) {
                return Err(format!("settled at {tick}"));
            }
            return if self.may_lose_thread(thread, log, row.start) {
                Ok(())
            } else {
                Err("no gap is open".into())
            };
        }
        let Some(end) = row.end else {
            let is = at(log, row.start);
            return if is == Some(ThreadIs::Exited) { Ok(()) } else { Err(format!("{is:?}")) };
        };
        for (start, end, is) in during(log, row.start, end) {
            let fits = match is {
                Some(ThreadIs::New) => row.state == "new",
                Some(ThreadIs::Ready) => row.state == "ready",
                Some(ThreadIs::Blocked) => row.state == "blocked",
                Some(ThreadIs::Gone) => row.state == "unmounted",
                Some(ThreadIs::On(lwp)) => {
                    row.lwp == Some(lwp.into()) && self.fits_carrier(lwp, row, start, end)
                }
                Some(ThreadIs::Exited) | None => false,
            };
            if !fits {
                return Err(format!("between {start} and {end} it was {is:?}"));
            }
        }
        Ok(())
    }

    /// Whether a mounted thread's state is that of its LWP.
    fn fits_carrier(&self, lwp: u32, row: &Row, start: u64, end: u64) -> bool {
        if row.state == "mounted" {
            // Where the LWP is must not be known, then.
            let settled = self.places.get(&lwp).and_then(|ticks| ticks.range(start + 1..end).next());
            return settled.is_none() && (!self.recording.has_kernel || !self.knows_place(lwp, start));
        }
        during(&self.history.lwps[&lwp], start, end).all(|(_, _, is)| match is {
            Some(LwpIs::On(cpu)) => row.state == "active" && row.cpu == Some(cpu.into()),
            Some(LwpIs::Runnable) => row.state == "stalled",
            Some(LwpIs::Sleeping | LwpIs::DiskSleep) => row.state == "in-kernel",
            _ => false,
        })
    }

    /// Whether it may become unknown at a tick what a thread does.
    fn may_lose_thread(&self, thread: ThreadId, log: &Log<ThreadIs>, tick: u64) -> bool {
        if self.gaps_of(thread.0).any(|gap| gap.is_open(tick)) {
            return true;
        }
        let before = log.iter().rev().filter(|(t, _)| *t <= tick).take(2).collect::<Vec<_>>();
        match before.as_slice() {
            // It may have been made ready unseen before it blocked.
            [(left, ThreadIs::Blocked | ThreadIs::Ready), (mounted, ThreadIs::On(_))] if *left == tick => {
                let hides = |gap: &Gap| gap.to.is_none_or(|to| to > *mounted) && gap.from <= *left;
                self.gaps_of(thread.0).any(hides)
            }
            [(_, ThreadIs::On(lwp)), ..] => self.may_have_ended(*lwp, tick),
            [(_, ThreadIs::Gone), (_, ThreadIs::On(lwp))] => self.may_have_ended(*lwp, tick),
            _ => false,
        }
    }

    /// Stretches of execution: true, and as long as the active states.
    fn check_active(&self, out: &Path) -> Result<(), String> {
        let table = Table::read(out, "active");
        let columns = ["thread", "lwp", "cpu", "ts_tick", "dur_tick"].map(|name| table.numbers(name));
        let mut sums: BTreeMap<i64, i64> = BTreeMap::new();
        for row in 0..columns[0].len() {
            let cells = columns.each_ref().map(|column| column[row].unwrap_or(-1));
            let [thread, lwp, cpu, start, length] = cells;
            let (from, to) = (start as u64, (start + length) as u64);
            *sums.entry(thread).or_default() += length;
            let mounted = during(&self.history.threads[&own_number(thread as u64)], from, to);
            let on_cpu = during(&self.history.lwps[&(lwp as u32)], from, to);
            let is_true = mounted.into_iter().all(|(_, _, is)| is == Some(ThreadIs::On(lwp as u32)))
                && on_cpu.into_iter().all(|(_, _, is)| is == Some(LwpIs::On(cpu as u32)));
            if !is_true {
                return Err(format!("active thread, lwp, cpu, start, length: {cells:?}"));
            }
        }
        let states = Rows::read(out, "thread_states", "thread");
        for (thread, rows) in &states.by_number {
            let active = rows.iter().filter(|row| row.state == "active");
            let active: u64 = active.map(|row| row.end.unwrap_or(row.start) - row.start).sum();
            let sum = sums.get(&(*thread as i64)).copied().unwrap_or(0);
            equal(&format!("thread {thread}: active time"), &(active as i64), &sum)?;
        }
        Ok(())
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

fn is_right(truth: Option<i64>, found: Option<i64>, may_be_null: bool) -> bool {
    found == truth || (may_be_null && found.is_none())
}

/// A tick strictly inside of a row.
fn inside(ticks: &BTreeSet<u64>, row: &Row) -> Option<u64> {
    ticks.range(row.start + 1..row.end.unwrap_or(u64::MAX).max(row.start + 1)).next().copied()
}

/// A row of `lwp_states` or `thread_states`.
#[derive(Clone, Debug)]
struct Row {
    start: u64,
    end: Option<u64>,
    state: String,
    lwp: Option<i64>,
    cpu: Option<i64>,
}

struct Rows {
    by_number: BTreeMap<u64, Vec<Row>>,
}

impl Rows {
    fn read(out: &Path, table: &str, number: &str) -> Rows {
        let table = Table::read(out, table);
        let (starts, lengths, states) =
            (table.numbers("ts_tick"), table.numbers("dur_tick"), table.lines(&["state"]));
        let (numbers, lwps, cpus) = (table.numbers(number), table.numbers("lwp"), table.numbers("cpu"));
        let mut by_number: BTreeMap<u64, Vec<Row>> = BTreeMap::new();
        for row in 0..starts.len() {
            let start = starts[row].expect("a start") as u64;
            by_number.entry(numbers[row].expect("a number") as u64).or_default().push(Row {
                start,
                end: lengths[row].map(|length| start + length as u64),
                state: states[row].clone(),
                lwp: lwps[row],
                cpu: cpus[row],
            });
        }
        for rows in by_number.values_mut() {
            // Of two with one start, the one with no length comes first; the end of a life comes last of all.
            rows.sort_by_key(|row| (row.start, row.end.is_none(), row.end));
        }
        Rows { by_number }
    }

    fn len(&self) -> usize {
        self.by_number.values().map(Vec::len).sum()
    }

    /// Each begins where the one before ended, from the first settling event to the end of the trace or of the life.
    fn check_no_holes<'t>(
        &self,
        trace_end: u64,
        settles: impl Iterator<Item = (u64, &'t BTreeSet<u64>)>,
    ) -> Result<(), String> {
        for (number, ticks) in settles {
            let rows = self.by_number.get(&number).map_or(&[][..], Vec::as_slice);
            let mut covered = None;
            for row in rows {
                let hole = match covered {
                    Some((end, false)) if end != row.start => Some(end),
                    Some((end, true)) => ticks.range(end + 1..row.start.max(end + 1)).next().copied(),
                    None => ticks.range(..row.start).next().copied(),
                    _ => None,
                };
                if let Some(tick) = hole {
                    return Err(format!("{number}: nothing between {tick} and {row:?}\n{rows:?}"));
                }
                covered = Some((row.end.unwrap_or(row.start), row.end.is_none()));
            }
            let rest = match covered {
                Some((end, false)) if end != trace_end => Some(end),
                Some((end, true)) => ticks.range(end + 1..).next().copied(),
                None => ticks.first().copied(),
                _ => None,
            };
            if let Some(tick) = rest {
                return Err(format!("{number}: nothing from {tick} on\n{rows:?}"));
            }
        }
        Ok(())
    }
}
