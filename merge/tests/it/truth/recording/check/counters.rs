//! The table `counters`: at every tick, what is certain to be in a queue is counted, and nothing that is not there.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
};

use super::{Oracle, rows::at};
use crate::{
    supertrace::Table,
    truth::recording::{
        Told,
        world::{LwpIs, ThreadIs, pid},
    },
};

/// The run queue of a CPU, or the ready queue of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Queue {
    Run(i64),
    Ready(i64),
}

/// A change of what is certain and of what is true, at a tick.
type Changes = BTreeMap<u64, (i64, i64)>;

impl Oracle<'_> {
    pub(super) fn check_counters(&self, out: &Path, told: &mut Told) -> Result<(), String> {
        let table = Table::read(out, "counters");
        let [ticks, cpus, pids, values] = ["ts_tick", "cpu", "pid", "value"].map(|name| table.numbers(name));
        let kinds = table.lines(&["kind"]);
        let mut found: BTreeMap<Queue, Vec<(u64, i64)>> = BTreeMap::new();
        for row in 0..kinds.len() {
            let queue = match (kinds[row].as_str(), cpus[row], pids[row]) {
                ("run-queue", Some(cpu), None) => Queue::Run(cpu),
                ("ready-queue", None, Some(pid)) => Queue::Ready(pid),
                other => return Err(format!("counters: no queue: {other:?}")),
            };
            let value = values[row].unwrap_or(-1);
            let rows = found.entry(queue).or_default();
            if rows.last().map_or(0, |(_, value)| *value) == value {
                return Err(format!("counters: {queue:?}: nothing changes at {:?}", ticks[row]));
            }
            rows.push((ticks[row].unwrap_or(0) as u64, value));
        }
        told.counters += kinds.len();
        let mut truth: BTreeMap<Queue, Changes> = BTreeMap::new();
        if self.recording.has_kernel {
            self.count_run_queues(&mut truth);
        }
        if !self.recording.packets.is_empty() {
            self.count_ready_queues(&mut truth);
        }
        let queues: BTreeSet<Queue> = found.keys().chain(truth.keys()).copied().collect();
        for queue in queues {
            let none = Vec::new();
            let rows = found.get(&queue).unwrap_or(&none);
            let changes = truth.remove(&queue).unwrap_or_default();
            let mut at_ticks: BTreeSet<u64> = changes.keys().copied().collect();
            at_ticks.extend(rows.iter().map(|(tick, _)| *tick));
            let (mut certain, mut all, mut row) = (0, 0, 0);
            for tick in at_ticks.into_iter().filter(|tick| *tick <= self.end) {
                let (by_certain, by_all) = changes.get(&tick).copied().unwrap_or_default();
                (certain, all) = (certain + by_certain, all + by_all);
                row += rows[row..].iter().take_while(|(at, _)| *at <= tick).count();
                let value = row.checked_sub(1).map_or(0, |row| rows[row].1);
                told.exact_counts += usize::from(certain == all);
                if !(certain..=all).contains(&value) {
                    let around = self.neighbourhood(tick);
                    return Err(format!(
                        "counters: {queue:?} at {tick}: {value}, not {certain} to {all}\n{around}"
                    ));
                }
            }
        }
        Ok(())
    }

    /// Adds one that is in a queue from a tick to another; it is known from `known` on, if at all.
    fn add(truth: &mut BTreeMap<Queue, Changes>, queue: Queue, from: u64, to: u64, known: Option<u64>) {
        let changes = truth.entry(queue).or_default();
        changes.entry(from).or_default().1 += 1;
        changes.entry(to).or_default().1 -= 1;
        if let Some(known) = known.map(|known| known.max(from)).filter(|known| *known < to) {
            changes.entry(known).or_default().0 += 1;
            changes.entry(to).or_default().0 -= 1;
        }
    }

    fn count_run_queues(&self, truth: &mut BTreeMap<Queue, Changes>) {
        for (lwp, log) in &self.history.lwps {
            let queues = self.history.queues.get(lwp).map_or(&[][..], Vec::as_slice);
            for (place, (since, is)) in log.iter().enumerate() {
                if *is != LwpIs::Runnable {
                    continue;
                }
                let until = log.get(place + 1).map_or(u64::MAX, |(tick, _)| *tick);
                // Those that were runnable before the first event are not in the log's order of ticks.
                let moves = queues.iter().filter(|(tick, _)| (*since..until).contains(tick));
                let first = queues.iter().rev().find(|(tick, _)| *tick <= *since);
                let mut stays: Vec<(u64, u32)> = first.map(|(_, cpu)| (*since, *cpu)).into_iter().collect();
                stays.extend(moves.filter(|(tick, _)| tick > since));
                for (at, (from, cpu)) in stays.iter().enumerate() {
                    let to = stays.get(at + 1).map_or(until, |(tick, _)| *tick);
                    let known = self.knows_runnable(*lwp, *since, *from, to);
                    Self::add(truth, Queue::Run((*cpu).into()), *from, to, known);
                }
            }
        }
    }

    /// From when on it must be known that an LWP waits in a run queue, in which it is from a tick to another.
    fn knows_runnable(&self, lwp: u32, since: u64, from: u64, to: u64) -> Option<u64> {
        let touched =
            |gap: &crate::truth::recording::losses::Gap| gap.from < to && gap.to.is_none_or(|to| to >= since);
        if self.recording.cpu_gaps.iter().any(touched) {
            return None;
        }
        self.knows_place(lwp, from).then_some(from)
    }

    fn count_ready_queues(&self, truth: &mut BTreeMap<Queue, Changes>) {
        for (thread, log) in &self.history.threads {
            for (place, (since, is)) in log.iter().enumerate() {
                if !matches!(is, ThreadIs::New | ThreadIs::Ready) {
                    continue;
                }
                let until = log.get(place + 1).map_or(u64::MAX, |(tick, _)| *tick);
                let from = self.last_mounted(log, *since);
                let is_known = !self.is_touched(thread.0, from, until) && at(log, *since) == Some(*is);
                let queue = Queue::Ready(pid(thread.0).into());
                Self::add(truth, queue, *since, until, is_known.then_some(*since));
            }
        }
    }
}
