//! The tables `thread_states` and `active`.

use std::{collections::BTreeMap, path::Path};

use super::{
    Log, Oracle, merged_number, own_number,
    rows::{Row, Rows, Waiting, at, during, inside},
};
use crate::{
    supertrace::Table,
    truth::{
        equal,
        recording::{
            Claimed, Told,
            losses::Gap,
            world::{LwpIs, ThreadId, ThreadIs, Waits},
        },
    },
};

/// By their numbers.
const KINDS: [&str; 17] = [
    "mutex",
    "rwlock-read",
    "rwlock-write",
    "condvar",
    "semaphore",
    "barrier",
    "channel",
    "channel-space",
    "once-cell",
    "join",
    "sleep",
    "io",
    "scope",
    "park",
    "future",
    "notify",
    "select",
];

/// As a row says it: the object and its kind. A thread that is waited for is named as everywhere.
fn found(thread: ThreadId, waits: Waits) -> Waiting {
    let kind = waits.kind.checked_sub(1).and_then(|place| KINDS.get(place as usize).copied());
    let on = if kind == Some("join") { merged_number((thread.0, waits.on)) } else { waits.on };
    ((waits.on != 0).then_some(on as i64), kind.map(String::from))
}

impl Oracle<'_> {
    pub(super) fn check_thread_states(&self, out: &Path, told: &mut Told) -> Result<(), String> {
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
        if row.state != "blocked" && row.waits != (None, None) {
            return Err("it waits for something and is not blocked".into());
        }
        for (start, end, is) in during(log, row.start, end) {
            let fits = match is {
                Some(ThreadIs::New) => row.state == "new",
                Some(ThreadIs::Ready) => row.state == "ready",
                Some(ThreadIs::Blocked(waits)) => row.state == "blocked" && row.waits == found(thread, waits),
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

    /// Checks that no row is false where switches are missing without a report of loss.
    pub(super) fn check_thread_claims(&self, out: &Path, claimed: &mut Claimed) -> Result<(), String> {
        let rows = Rows::read(out, "thread_states", "thread");
        for (number, rows) in &rows.by_number {
            let thread = own_number(*number);
            let log = &self.history.threads[&thread];
            for row in rows {
                let length = row.end.unwrap_or(row.start) - row.start;
                match row.state.as_str() {
                    "mounted" => claimed.unknown += length,
                    _ => claimed.known += length,
                }
                self.check_thread_row(thread, log, row).map_err(|why| {
                    let around = self.neighbourhood(row.start);
                    format!("thread {thread:?}: {row:?}: {why}\n{rows:?}\n{log:?}\n{around}")
                })?;
            }
        }
        Ok(())
    }

    /// Whether a mounted thread's state is that of its LWP.
    fn fits_carrier(&self, lwp: u32, row: &Row, start: u64, end: u64) -> bool {
        let is_untraced = !self.recording.untraced.is_empty();
        if row.state == "mounted" && is_untraced {
            return true;
        }
        if row.state == "mounted" {
            // Where the LWP is must not be known, then.
            let settled = self.places.get(&lwp).and_then(|ticks| ticks.range(start + 1..end).next());
            return settled.is_none() && (!self.recording.has_kernel || !self.knows_place(lwp, start));
        }
        during(&self.history.lwps[&lwp], start, end).all(|(_, _, is)| match is {
            Some(LwpIs::On(cpu)) => row.state == "active" && row.cpu == Some(cpu.into()),
            Some(_) if is_untraced && row.state == "off-cpu" => true,
            Some(LwpIs::Runnable) => row.state == "stalled",
            Some(LwpIs::Sleeping | LwpIs::DiskSleep) if row.state == "stalled" => {
                self.may_be_woken(lwp, start, end)
            }
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
            [(left, ThreadIs::Blocked(_) | ThreadIs::Ready), (mounted, ThreadIs::On(_))] if *left == tick => {
                let hides = |gap: &Gap| gap.to.is_none_or(|to| to > *mounted) && gap.from <= *left;
                self.gaps_of(thread.0).any(hides)
            }
            [(_, ThreadIs::On(lwp)), ..] => self.may_have_ended(*lwp, tick),
            [(_, ThreadIs::Gone), (_, ThreadIs::On(lwp))] => self.may_have_ended(*lwp, tick),
            _ => false,
        }
    }

    /// Stretches of execution: true, and as long as the active states.
    pub(super) fn check_active(&self, out: &Path) -> Result<(), String> {
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
}
