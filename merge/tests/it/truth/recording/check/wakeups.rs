//! The table `wakeups`: each row is one of the history, and none is missing except at gaps.

use std::{collections::BTreeMap, path::Path};

use super::{Oracle, merged_number, rows::at};
use crate::{
    supertrace::Table,
    truth::recording::{
        Told,
        losses::Gap,
        world::{Event, LwpIs, ThreadId, ThreadIs, What},
    },
};

/// One wakeup of an LWP: the events of it that there are.
struct Wakeup<'h> {
    event: &'h Event,
    lwp: u32,
    /// The run queue that it was put in, and when; `None` if that is missing.
    queued: Option<(u32, u64)>,
}

#[derive(Debug)]
struct Row {
    /// context, waker_lwp, waker_thread, woken thread
    words: [String; 4],
    cpu: Option<i64>,
    target_cpu: Option<i64>,
    latency: Option<u64>,
}

/// An LWP by its number, or a user thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Woken {
    Lwp(u32),
    Thread(u64),
}

/// When, who, and by which LWP: no LWP does two things at once.
type Key = (u64, Woken, u32, i64);

fn read(out: &Path) -> Result<BTreeMap<Key, Row>, String> {
    let table = Table::read(out, "wakeups");
    let (ticks, lwps, threads) = (table.numbers("ts_tick"), table.numbers("lwp"), table.numbers("thread"));
    let (cpus, targets) = (table.numbers("cpu"), table.numbers("target_cpu"));
    let (latencies, wakers) = (table.numbers("latency_tick"), table.numbers("waker_lwp"));
    let waker_threads = table.numbers("waker_thread");
    let words = table.lines(&["level", "context"]);
    let mut rows = BTreeMap::new();
    let text = |number: Option<i64>| number.map_or("?".to_string(), |number| number.to_string());
    for row in 0..ticks.len() {
        let (level, context) = words[row].split_once(' ').unwrap_or_default();
        let woken = match (level, lwps[row], threads[row]) {
            ("KERN", Some(lwp), _) => Woken::Lwp(lwp as u32),
            ("USER", None, Some(thread)) => Woken::Thread(thread as u64),
            _ => return Err(format!("wakeups: neither an LWP nor a user thread is woken: row {row}")),
        };
        let carried = if let Woken::Lwp(_) = woken { text(threads[row]) } else { "?".into() };
        // A user event may not have seen its CPU.
        let place = if let Woken::Lwp(_) = woken { cpus[row].unwrap_or(-1) } else { 0 };
        let key = (ticks[row].unwrap_or(0) as u64, woken, wakers[row].unwrap_or(-1) as u32, place);
        let words = [context.to_string(), text(wakers[row]), text(waker_threads[row]), carried];
        let latency = latencies[row].map(|latency| latency as u64);
        let found = Row { words, cpu: cpus[row], target_cpu: targets[row], latency };
        if let Some(other) = rows.insert(key, found) {
            return Err(format!("wakeups: two rows at {key:?}: {other:?}"));
        }
    }
    Ok(rows)
}

impl Oracle<'_> {
    pub(super) fn check_wakeups(&self, out: &Path, told: &mut Told) -> Result<(), String> {
        let mut rows = read(out)?;
        let total = rows.len();
        for wakeup in self.wakeups_of_lwps() {
            let Event { tick, lwp, cpu, .. } = *wakeup.event;
            let row = rows.remove(&(tick, Woken::Lwp(wakeup.lwp), lwp, cpu.into()));
            let wrong = |why: &str| {
                let wakeup = (wakeup.event, wakeup.queued);
                Err(format!("wakeups: {wakeup:?}: {row:?}: {why}\n{}", self.neighbourhood(tick)))
            };
            match &row {
                // One that seems to be the second half of another.
                None if !self.is_whole() && matches!(wakeup.event.what, What::Wakeup { .. }) => {}
                None => return wrong("no row"),
                Some(row) => {
                    if let Err(why) = self.check_wakeup(row, &wakeup, told) {
                        return wrong(&why);
                    }
                }
            }
        }
        for event in self.there().filter(|event| matches!(event.what, What::ThreadReady(_))) {
            let What::ThreadReady(thread) = event.what else { continue };
            let thread = (event.process.unwrap_or(0), thread);
            let row = rows.remove(&(event.tick, Woken::Thread(merged_number(thread)), event.lwp, 0));
            let checked = match &row {
                None => Err("no row".to_string()),
                Some(row) => self.check_unpark(row, event, thread, told),
            };
            checked.map_err(|why| {
                format!("wakeups: {event:?}: {row:?}: {why}\n{}", self.neighbourhood(event.tick))
            })?;
        }
        // A wakeup whose waking was forgotten at a gap is one of its own.
        rows.retain(|(tick, woken, lwp, cpu), row| {
            let second = self.between(*tick, *tick + 1).find(|event| {
                (event.tick, event.lwp, i64::from(event.cpu)) == (*tick, *lwp, *cpu)
                    && matches!(event.what, What::Wakeup { lwp, .. } if Woken::Lwp(lwp) == *woken)
            });
            second.is_none()
                || self.is_whole()
                || row.latency.is_some_and(|l| Some(l) != self.latency(woken, *tick))
        });
        told.wakeups += total;
        match rows.into_iter().next() {
            None => Ok(()),
            Some(row) => Err(format!("wakeups: never was: {row:?}\n{}", self.neighbourhood(row.0.0))),
        }
    }

    pub(super) fn there(&self) -> impl Iterator<Item = &Event> {
        self.history.events.iter().zip(&self.recording.is_there).filter(|(_, there)| **there).map(|(e, _)| e)
    }

    /// The events between two ticks that there are.
    fn between(&self, from: u64, to: u64) -> impl Iterator<Item = &Event> {
        let place = |tick: u64| self.history.events.partition_point(|event| event.tick < tick);
        let range = place(from)..place(to.max(from));
        let there = self.recording.is_there[range.clone()].iter();
        self.history.events[range].iter().zip(there).filter(|(_, there)| **there).map(|(event, _)| event)
    }

    /// Each waking that there is, with its wakeup; and each wakeup without one.
    fn wakeups_of_lwps(&self) -> Vec<Wakeup<'_>> {
        let mut wakeups: Vec<Wakeup<'_>> = Vec::new();
        let mut open: BTreeMap<u32, Option<usize>> = BTreeMap::new();
        for (event, there) in self.history.events.iter().zip(&self.recording.is_there) {
            match event.what {
                What::Waking(lwp) => {
                    open.insert(lwp, there.then_some(wakeups.len()));
                    wakeups.extend(there.then_some(Wakeup { event, lwp, queued: None }));
                }
                What::Wakeup { lwp, cpu } if *there => match open.remove(&lwp) {
                    Some(Some(place)) => wakeups[place].queued = Some((cpu, event.tick)),
                    _ => wakeups.push(Wakeup { event, lwp, queued: Some((cpu, event.tick)) }),
                },
                What::Wakeup { lwp, .. } => drop(open.remove(&lwp)),
                _ => {}
            }
        }
        wakeups
    }

    /// From a tick to the next dispatch, if there is one that the trace reaches.
    fn latency(&self, woken: &Woken, tick: u64) -> Option<u64> {
        let next = match woken {
            Woken::Lwp(lwp) => {
                let after = self.history.lwps[lwp].iter().filter(|(t, _)| *t > tick);
                let mut life = after.take_while(|(_, is)| *is != LwpIs::Dead);
                life.find(|(_, is)| matches!(is, LwpIs::On(_)))?.0
            }
            Woken::Thread(thread) => {
                let mut after =
                    self.history.threads[&super::own_number(*thread)].iter().filter(|(t, _)| *t > tick);
                after.find(|(_, is)| matches!(is, ThreadIs::On(_)))?.0
            }
        };
        (next <= self.end).then_some(next - tick)
    }

    fn check_wakeup(&self, row: &Row, wakeup: &Wakeup<'_>, told: &mut Told) -> Result<(), String> {
        let Event { tick, cpu, .. } = *wakeup.event;
        // A wakeup changes it at this tick.
        let is = at(&self.history.lwps[&wakeup.lwp], tick - 1);
        self.check_waker(row, wakeup.event)?;
        let carried = wakeup.event.target.and_then(|(_, thread)| thread);
        self.fits_thread("woken thread", &row.words[3], carried, self.knows_mounted(wakeup.lwp, tick))?;
        if row.cpu != Some(cpu.into()) {
            return Err(format!("on CPU {cpu}"));
        }
        let is_awake = matches!(is, Some(LwpIs::On(_) | LwpIs::Runnable));
        let is_known = self.knows_place(wakeup.lwp, tick - 1)
            || (self.is_whole() && self.recording.untraced.is_empty() && is == Some(LwpIs::Fresh));
        let until = wakeup.queued.map_or(self.end, |(_, tick)| tick);
        let touches = |gap: &Gap, until: u64| gap.from <= until && gap.to.is_none_or(|to| to >= tick);
        let crosses = |until: u64| self.recording.cpu_gaps.iter().any(|gap| touches(gap, until));
        let target = wakeup.queued.map(|(cpu, _)| cpu.into()).filter(|_| !(is_awake && is_known));
        let may_be_null = is_awake || !is_known || crosses(until);
        if row.target_cpu != target && !(may_be_null && row.target_cpu.is_none()) {
            return Err(format!("put into the run queue of {target:?}"));
        }
        let latency = self.latency(&Woken::Lwp(wakeup.lwp), tick);
        match (row.latency, latency) {
            (Some(_), _) if matches!(is, Some(LwpIs::On(_))) => Err("it was on a CPU".into()),
            (Some(_), _) if is_awake && is_known => Err("it had not stopped running".into()),
            (Some(found), latency) if Some(found) != latency => Err(format!("latency {latency:?}")),
            (None, Some(latency)) if !is_awake && is_known && !crosses(tick + latency) => {
                Err(format!("latency {latency}"))
            }
            (found, _) => {
                told.latencies += usize::from(found.is_some());
                Ok(())
            }
        }
    }

    fn check_waker(&self, row: &Row, event: &Event) -> Result<(), String> {
        if row.words[0] != event.context || row.words[1] != event.lwp.to_string() {
            return Err("another context or waker".into());
        }
        let is_known = event.is_user() || event.lwp == 0 || self.knows_mounted(event.lwp, event.tick);
        self.fits_thread("waker_thread", &row.words[2], event.thread, is_known)
    }

    fn fits_thread(
        &self,
        what: &str,
        found: &str,
        truth: Option<ThreadId>,
        is_known: bool,
    ) -> Result<(), String> {
        let truth = truth.map_or("?".into(), |thread| merged_number(thread).to_string());
        if found == truth || (found == "?" && !is_known) { Ok(()) } else { Err(format!("{what} {truth}")) }
    }

    fn check_unpark(
        &self,
        row: &Row,
        event: &Event,
        thread: ThreadId,
        told: &mut Told,
    ) -> Result<(), String> {
        self.check_waker(row, event)?;
        if row.cpu != Some(event.cpu.into()) && row.cpu.is_some() {
            return Err(format!("on CPU {}", event.cpu));
        }
        let latency = self.unpark_latency(event, thread);
        let found = row.latency;
        if row.target_cpu.is_some() || (found.is_some() && found != latency) {
            return Err(format!("latency {latency:?}"));
        }
        told.latencies += usize::from(found.is_some());
        let may_be_lost = latency.is_some_and(|latency| {
            let log = &self.history.threads[&thread];
            let from = self.last_mounted(log, event.tick);
            self.is_touched(thread.0, from, event.tick + latency)
        });
        if found.is_none() && latency.is_some() && !may_be_lost {
            return Err(format!("latency {latency:?}"));
        }
        Ok(())
    }

    /// The tick of the last dispatch of a thread before a tick.
    pub(super) fn last_mounted(&self, log: &super::Log<ThreadIs>, tick: u64) -> u64 {
        let on = |(_, is): &&(u64, ThreadIs)| matches!(is, ThreadIs::On(_));
        log.iter().take_while(|(t, _)| *t <= tick).filter(on).last().map_or(0, |(tick, _)| *tick)
    }

    /// Whether a gap that may concern threads of a process lies between two ticks, or one of the kernel in which their
    /// LWPs may have ended.
    pub(super) fn is_touched(&self, process: usize, from: u64, to: u64) -> bool {
        let touches = |gap: &Gap| gap.from <= to && gap.to.is_none_or(|end| end >= from);
        self.gaps_of(process).chain(&self.recording.cpu_gaps).any(touches)
    }

    /// How long an unparked thread waited for an LWP; `None` if it was awake, or has not been dispatched.
    fn unpark_latency(&self, event: &Event, thread: ThreadId) -> Option<u64> {
        let log = &self.history.threads[&thread];
        let latency = self.latency(&Woken::Thread(merged_number(thread)), event.tick)?;
        if !matches!(at(log, event.tick), Some(ThreadIs::On(_))) {
            return Some(latency);
        }
        // It was mounted: only if it blocks then, and was not unparked before.
        let left = log.iter().find(|(tick, _)| *tick > event.tick)?.0;
        let mounted = self.last_mounted(log, event.tick);
        let of_stay = |other: &&Event| {
            other.process == event.process
                && (mounted..left).contains(&other.tick)
                && Some(other.what) == Some(event.what)
        };
        let first = self.between(mounted, left).filter(of_stay).map(|event| event.tick).next();
        let blocks = |other: &Event| {
            other.tick == left
                && other.thread == Some(thread)
                && matches!(other.what, What::UserSwitch { reason: 3, .. })
        };
        (first == Some(event.tick) && self.between(left, left + 1).any(blocks)).then_some(latency)
    }
}
