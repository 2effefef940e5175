//! The table `events`: the CPU, LWP and user thread of every event.

use std::path::Path;

use super::{Oracle, merged_number};
use crate::{
    supertrace::Table,
    truth::{
        equal,
        recording::{
            kernel_file, user_file,
            world::{ThreadId, What},
        },
    },
};

impl Oracle<'_> {
    pub(super) fn check_events(&self, out: &Path) -> Result<(), String> {
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
            let is_known = self.recording.untraced.is_empty() && self.knows_place(event.lwp, event.tick);
            let may_be_null = self.recording.cpu_unseen.contains(place) && !is_known;
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
}

fn is_right(truth: Option<i64>, found: Option<i64>, may_be_null: bool) -> bool {
    found == truth || (may_be_null && found.is_none())
}
