//! The table `lwp_states`.

use std::path::Path;

use super::{
    Oracle,
    rows::{Rows, at, during, inside},
};
use crate::truth::{
    equal,
    recording::{
        Claimed, Told,
        losses::Gap,
        world::{Event, LwpIs, What},
    },
};

impl Oracle<'_> {
    pub(super) fn check_lwp_states(&self, out: &Path, told: &mut Told) -> Result<(), String> {
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
                    let is_first_heard = self.is_woken_unseen(*lwp as u32, row.start);
                    told.unknown_rows += usize::from(!is_first_heard);
                    if !is_first_heard && !self.recording.cpu_gaps.iter().any(|gap| gap.is_open(row.start)) {
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
                if row.state == "runnable" && !self.is_queued_on(*lwp as u32, row.cpu, (row.start, end)) {
                    return wrong("it was in the run queue of another CPU".into());
                }
                let woken = self.may_be_woken(*lwp as u32, row.start, end);
                let fits = |is: Option<LwpIs>| match is {
                    Some(LwpIs::On(cpu)) => row.state == "running" && row.cpu == Some(cpu.into()),
                    Some(LwpIs::Runnable) => row.state == "runnable",
                    Some(LwpIs::Sleeping | LwpIs::DiskSleep) if woken && row.state == "runnable" => true,
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

    /// Whether an LWP was in the run queue of a CPU at any time of an interval.
    fn is_queued_on(&self, lwp: u32, cpu: Option<i64>, (from, to): (u64, u64)) -> bool {
        let queues = &self.history.queues[&lwp];
        let first = queues.partition_point(|(tick, _)| *tick <= from).saturating_sub(1);
        let mut during = queues[first..].iter().take_while(|(tick, _)| *tick <= to);
        cpu.is_none_or(|cpu| during.any(|(_, queue)| i64::from(*queue) == cpu))
    }

    /// Whether an LWP is woken at a tick, and nothing has shown before where it is.
    fn is_woken_unseen(&self, lwp: u32, tick: u64) -> bool {
        let settled = self.places.get(&lwp).and_then(|ticks| ticks.range(..tick).next_back());
        // In a gap since it may have been put on any CPU.
        let gap_since = |settled: u64| {
            let touches = |gap: &Gap| gap.from <= tick && gap.to.is_none_or(|to| to >= settled);
            self.recording.cpu_gaps.iter().any(touches)
        };
        let is_settled = settled.is_some_and(|settled| !gap_since(*settled));
        let at = self.history.events.partition_point(|event| event.tick < tick);
        let mut then = self.history.events[at..].iter().take_while(|event| event.tick == tick);
        let wakes = |event: &Event| match event.what {
            What::Wakeup { lwp: woken, .. } | What::Waking(woken) => woken == lwp,
            _ => false,
        };
        !is_settled && then.any(wakes)
    }

    /// Checks that no row is false where switches are missing without a report of loss.
    pub(super) fn check_lwp_claims(&self, out: &Path, claimed: &mut Claimed) -> Result<(), String> {
        for (lwp, rows) in &Rows::read(out, "lwp_states", "lwp").by_number {
            let log = &self.history.lwps[&(*lwp as u32)];
            for row in rows {
                let end = row.end.unwrap_or(row.start);
                if row.state == "unknown" {
                    claimed.unknown += end - row.start;
                    continue;
                }
                claimed.known += end - row.start;
                let woken = self.may_be_woken(*lwp as u32, row.start, end);
                let fits = |is: Option<LwpIs>| match (is, row.state.as_str()) {
                    (Some(LwpIs::Sleeping | LwpIs::DiskSleep), "runnable") => woken,
                    (Some(LwpIs::On(cpu)), state) => state == "running" && row.cpu == Some(cpu.into()),
                    (Some(LwpIs::Runnable), "runnable" | "off-cpu") => true,
                    (Some(LwpIs::Sleeping), "sleeping" | "off-cpu") => true,
                    (Some(LwpIs::DiskSleep), "disk-sleep" | "off-cpu") => true,
                    _ => false,
                };
                if let Some(other) = during(log, row.start, end).find(|(_, _, is)| !fits(*is)) {
                    let around = self.neighbourhood(row.start);
                    return Err(format!("LWP {lwp}: {row:?}: {other:?}\n{rows:?}\n{log:?}\n{around}"));
                }
            }
        }
        Ok(())
    }
}
