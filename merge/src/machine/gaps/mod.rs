//! The state that is still known when events are missing.
//!
//! A gap is in one stream: that of a CPU (kernel), or that of an LWP (user). It opens after the last event before it,
//! and closes with the first event after it that shows what is there. (A CPU may have several streams: an event of another
//! one that lies in the gap shows what is there at that instant, and no more.) What is certain follows from which events can
//! be in it:
//!
//! 1. The LWP on a CPU is not known while a gap of that CPU is open. That CPU's interrupts are not known until it runs an
//!    LWP again, where the source does not say them with every event.
//! 2. An LWP that is on no CPU may be put on a CPU with an open gap, and taken off again. So where it is, is not known: from
//!    the opening of the gap, or from when it leaves another CPU meanwhile, until an event shows it, or wakes it when no
//!    gap is open. (For this rule a gap is over at the first instant after it, even before an event shows what is there.)
//! 3. An LWP that is on another CPU is there until that CPU's own events take it off.
//! 4. The user thread on an LWP is not known while a gap of that LWP is open. Its exit closes it, unless the gap may be that of
//!    another LWP with the same number.
//! 5. A user thread that is mounted on no LWP may be mounted on an LWP of its process with an open gap, and go on
//!    anywhere. So its state is not known: from the opening of the gap, or from when it leaves another LWP meanwhile,
//!    until it is mounted, or made ready when no gap is open.
//!    One that blocks may have been made ready in a gap before, while it was still mounted: nor is its state known then.
//! 6. A user thread that is mounted on another LWP is there until that LWP's own events take it off. One whose end was
//!    seen has ended.
//! 7. An LWP may end, and its number be used again, while it is not known where it is. Whom it carried is still there only
//!    if it has more user events to come.
//!
//! 8. After the end of the last source that records the switches of a CPU there is a gap like any other, if other inputs go
//!    on: from that end to the begin of the next source that records the CPU. That one begins as the first did: it
//!    follows each CPU from its own first switch on ([`recording`](super::recording)).
//!
//! Nothing is put back: a later event does not change what was not known before it. A loss that names no stream, or
//! not when, changes nothing here; it is a row of `losses` all the same.
//!
//! Cost: each LWP and thread that a gap makes unknown has been made known by an event before; so all gaps together cost
//! as much as the events.

#[cfg(test)]
mod tests;

use std::{
    cmp::Reverse,
    collections::{BinaryHeap, HashMap},
};

use foldhash::fast::RandomState;
use sigmund_model::{Cpu, EndReason, Level, Loss, LossKind, Lwp, Pid, Thread, ThreadState, Ticks};

use super::{
    Machine,
    lwp::{Mounted, Place},
};
use crate::{
    error::Error,
    pairing::{KernelWaiter, Owner},
};

/// Gaps, and the LWPs and threads that the next one will touch.
#[derive(Debug, Default)]
pub(super) struct Gaps {
    /// Gaps that are known of before their time has come.
    to_come: BinaryHeap<Reverse<(Ticks, Stream, Ticks)>>,
    /// When the first of them opens: before the first event that is later.
    pub(super) next: Option<Ticks>,
    /// The first instant after all gaps of CPUs so far.
    cpus_until: Ticks,
    /// The last instant that is in a gap of a CPU, so far.
    last_hidden: Option<Ticks>,
    /// When the last gap of a CPU opened.
    pub(super) cpu_opened: Option<Ticks>,
    /// LWPs with an open gap: their process, and the first instant after it.
    lwps: HashMap<Lwp, (Option<Pid>, Ticks), RandomState>,
    /// How many of them each process has.
    processes: HashMap<Option<Pid>, usize, RandomState>,
    /// When the last of them closed, of each process.
    closed: HashMap<Option<Pid>, Ticks, RandomState>,
    /// LWPs that went off their CPU since the last gap, or have not been seen on one. Some are on one now, or have ended.
    off_cpu: Vec<Lwp>,
    /// Threads, by process, that are known and unmounted since the last gap. Some are mounted again, or have ended.
    unmounted: HashMap<Option<Pid>, Vec<Thread>, RandomState>,
    unmounted_len: usize,
}

/// The stream of a gap.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Stream {
    Cpu(Cpu),
    Lwp(Lwp),
}

impl Stream {
    fn of(loss: &Loss) -> Option<Stream> {
        use LossKind::{Damaged, Dropped, NotRecorded, Overwritten, Truncated};
        let missing = [Dropped, Overwritten, Damaged, Truncated, NotRecorded];
        match loss.level {
            _ if !missing.contains(&loss.kind) => None,
            Level::Kern => loss.cpu.map(Stream::Cpu),
            Level::User => loss.lwp.map(Stream::Lwp),
        }
    }
}

impl Gaps {
    /// Whether an LWP that leaves its CPU at this tick may be put on another one unseen. After a gap none is, even if the
    /// LWP on that CPU is not known yet.
    pub(super) fn hide_lwps(&self, tick: Ticks) -> bool {
        tick < self.cpus_until
    }

    /// Whether events of a CPU were lost since this tick.
    pub(super) fn hid_lwps_since(&self, tick: Ticks) -> bool {
        self.last_hidden.is_some_and(|last| last > tick)
    }

    /// Whether a thread of this process that is mounted nowhere may be mounted all the same.
    pub(super) fn hide_threads(&self, pid: Option<Pid>) -> bool {
        !self.lwps.is_empty()
            && (pid.is_none() || self.processes.contains_key(&pid) || self.processes.contains_key(&None))
    }

    /// Whether a thread of this process may have been made ready unseen since this tick.
    pub(super) fn hid_threads_since(&self, pid: Option<Pid>, tick: Ticks) -> bool {
        let since = |pid: &Option<Pid>| self.closed.get(pid).is_some_and(|closed| *closed > tick);
        match pid {
            _ if self.closed.is_empty() => false,
            Some(_) => since(&pid) || since(&None),
            None => self.closed.values().any(|closed| *closed > tick),
        }
    }

    /// Whether user events were missing, or are.
    pub(super) fn have_hidden_threads(&self) -> bool {
        !self.lwps.is_empty() || !self.closed.is_empty()
    }

    fn open_lwp(&mut self, lwp: Lwp, pid: Option<Pid>, to: Ticks) {
        let processes = &mut self.processes;
        let (_, until) = self.lwps.entry(lwp).or_insert_with(|| {
            *processes.entry(pid).or_default() += 1;
            (pid, to)
        });
        *until = to.max(*until);
    }

    /// A user event shows the thread that the LWP carries.
    pub(super) fn close_lwp(&mut self, lwp: Lwp, tick: Ticks) {
        if !self.lwps.is_empty() && self.lwps.get(&lwp).is_some_and(|(_, to)| tick >= *to) {
            self.end_lwp(lwp, tick);
        }
    }

    /// The LWP has ended: no event of it is missing from here on.
    pub(super) fn end_lwp(&mut self, lwp: Lwp, tick: Ticks) {
        let Some((pid, _)) = self.lwps.remove(&lwp) else { return };
        self.closed.insert(pid, tick);
        if let Some(open) = self.processes.get_mut(&pid) {
            *open -= 1;
            if *open == 0 {
                self.processes.remove(&pid);
            }
        }
    }

    /// The threads that a gap of an LWP of this process touches, and some more.
    fn take_unmounted(&mut self, pid: Option<Pid>) -> Vec<Thread> {
        let taken: Vec<Thread> = match pid {
            Some(_) => [pid, None].iter().filter_map(|pid| self.unmounted.remove(pid)).flatten().collect(),
            None => self.unmounted.drain().flat_map(|(_, threads)| threads).collect(),
        };
        self.unmounted_len -= taken.len();
        taken
    }
}

impl Machine {
    /// Events are missing. To be told when a stream tells of it: behind its last event before, as early as one likes.
    pub(crate) fn missing(&mut self, loss: &Loss) -> Result<(), Error> {
        let Some(stream) = Stream::of(loss) else { return Ok(()) };
        let to = loss.to.unwrap_or(Ticks(u64::MAX));
        match loss.from {
            Some(from) if from > self.now => {
                self.gaps.to_come.push(Reverse((from, stream, to)));
                self.gaps.next = self.gaps.to_come.peek().map(|Reverse((from, ..))| *from);
                Ok(())
            }
            _ => self.open_gap(stream, to),
        }
    }

    /// Opens the gaps that lie before an event of this tick.
    #[cold]
    pub(super) fn open_gaps_before(&mut self, tick: Ticks) -> Result<(), Error> {
        while let Some(Reverse((from, stream, to))) = self.gaps.to_come.peek().copied()
            && from < tick
        {
            self.gaps.to_come.pop();
            self.now = self.now.max(from);
            self.open_gap(stream, to)?;
        }
        self.gaps.next = self.gaps.to_come.peek().map(|Reverse((from, ..))| *from);
        Ok(())
    }

    fn open_gap(&mut self, stream: Stream, to: Ticks) -> Result<(), Error> {
        match stream {
            Stream::Cpu(cpu) => self.open_cpu_gap(cpu, to),
            Stream::Lwp(lwp) => self.open_lwp_gap(lwp, to),
        }
    }

    /// Rules 1 and 2.
    pub(super) fn open_cpu_gap(&mut self, cpu: Cpu, to: Ticks) -> Result<(), Error> {
        let now = self.now;
        let entry = self.cpus.entry(cpu, now);
        let current = entry.current;
        entry.set_current(None, now);
        entry.interrupts.clear();
        entry.interrupts_unknown = true;
        entry.gap = entry.gap.max(Some(to));
        self.intervals.pairing.interrupts.lose(cpu, now)?;
        self.intervals.pairing.locks.kernel_waits_end(KernelWaiter::Cpu(cpu), now, EndReason::Lost)?;
        self.gaps.cpus_until = self.gaps.cpus_until.max(to);
        self.gaps.cpu_opened = Some(now);
        self.gaps.last_hidden = self.gaps.last_hidden.max(Some(to));
        let off_cpu = std::mem::take(&mut self.gaps.off_cpu);
        for lwp in current.into_iter().chain(off_cpu) {
            let Some(entry) = self.lwps.get_mut(lwp) else { continue };
            entry.is_listed = false;
            match entry.place {
                Place::Off(_) => self.place(lwp, Place::Lost, now, EndReason::Lost)?,
                Place::On(..) if current == Some(lwp) => {
                    self.place(lwp, Place::Lost, now, EndReason::Lost)?
                }
                Place::Unknown => {
                    self.lose_in_kernel(lwp, now)?;
                    self.lose_mounted_of_ended(lwp)?;
                }
                Place::On(..) | Place::Lost => {}
            }
        }
        Ok(())
    }

    /// Gaps that had no end may have one now: LWPs are hidden up to the last of them.
    pub(super) fn hide_lwps_in_open_gaps(&mut self) {
        let open = self.cpus.iter_mut().filter_map(|(_, entry)| entry.gap).max();
        self.gaps.cpus_until = open.unwrap_or_default();
        self.gaps.last_hidden = self.gaps.last_hidden.map(|last| last.min(open.unwrap_or(self.now)));
    }

    /// A kernel event shows the LWP on the CPU. Returns whether that holds for longer than the instant.
    pub(super) fn close_cpu_gap(&mut self, cpu: Cpu, tick: Ticks) -> bool {
        let entry = self.cpus.entry(cpu, tick);
        match entry.gap {
            None => true,
            Some(to) if tick < to => false,
            Some(_) => {
                entry.gap = None;
                true
            }
        }
    }

    /// An LWP has recorded a user event. If that was its last and its place is not known, it may have ended since.
    pub(super) fn watch_end(&mut self, lwp: Lwp) -> Result<(), Error> {
        match self.lwps.get(lwp).map(|entry| entry.place) {
            Some(Place::Lost | Place::Unknown) if self.gaps.hide_lwps(self.now) => {
                self.lose_mounted_of_ended(lwp)
            }
            Some(Place::Unknown) => {
                self.list_off_cpu(lwp);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Rule 7.
    pub(super) fn lose_mounted_of_ended(&mut self, lwp: Lwp) -> Result<(), Error> {
        let Some(entry) = self.lwps.get(lwp) else { return Ok(()) };
        let end = match entry.pid {
            Some(pid) => self.ends.get(&(lwp, pid)).copied(),
            // Its number is that of LWPs of several processes, and which of them it is, is missing.
            None => self.carriers.get(&lwp).map(|carrier| carrier.first_end),
        };
        let has_ended = end.is_some_and(|end| end <= self.now);
        let Some(thread) = entry.mounted.thread().filter(|_| has_ended) else { return Ok(()) };
        self.lose_mounted(lwp)?;
        if let Some(entry) = self.threads.get_mut(thread) {
            entry.may_be_mounted = true;
        }
        Ok(())
    }

    /// Rules 4 and 5.
    fn open_lwp_gap(&mut self, lwp: Lwp, to: Ticks) -> Result<(), Error> {
        let pid = self.process_of(lwp);
        self.lose_mounted(lwp)?;
        self.intervals.pairing.lose_thread(Owner::Lwp(lwp), None, self.now)?;
        self.gaps.open_lwp(lwp, pid, to);
        self.intervals.pairing.locks.gap_opens(pid, self.now);
        for thread in self.gaps.take_unmounted(pid) {
            let Some(entry) = self.threads.get_mut(thread) else { continue };
            entry.is_listed = false;
            if entry.lwp.is_some() || entry.state == ThreadState::Unknown {
                continue;
            }
            if pid.is_none() || entry.pid.is_none() || entry.pid == pid {
                self.intervals.lose_thread(entry, self.now)?;
            } else {
                self.list_unmounted(thread);
            }
        }
        Ok(())
    }

    /// The thread on an LWP is no longer known, nor is the place of the thread that it carried.
    pub(super) fn lose_mounted(&mut self, lwp: Lwp) -> Result<(), Error> {
        let Some(entry) = self.lwps.get(lwp) else { return Ok(()) };
        let thread = entry.mounted.thread();
        self.change_mounted(lwp, Mounted::Unknown, self.now, EndReason::Lost)?;
        match thread.and_then(|thread| self.threads.get_mut(thread)) {
            Some(entry) => self.intervals.lose_thread(entry, self.now),
            None => Ok(()),
        }
    }

    /// The next gap of a CPU concerns this LWP.
    pub(super) fn list_off_cpu(&mut self, lwp: Lwp) {
        let Some(entry) = self.lwps.get_mut(lwp) else { return };
        if std::mem::replace(&mut entry.is_listed, true) {
            return;
        }
        self.gaps.off_cpu.push(lwp);
        if self.gaps.off_cpu.len() > 2 * self.lwps.len() + 64 {
            // Most of them have ended.
            self.gaps.off_cpu.clear();
            for entry in self.lwps.iter_mut() {
                entry.is_listed = matches!(entry.place, Place::Off(_) | Place::Unknown);
                self.gaps.off_cpu.extend(entry.is_listed.then_some(entry.lwp));
            }
        }
    }

    /// The next gap of an LWP of its process concerns this thread.
    pub(super) fn list_unmounted(&mut self, thread: Thread) {
        let Some(entry) = self.threads.get_mut(thread) else { return };
        if std::mem::replace(&mut entry.is_listed, true) {
            return;
        }
        self.gaps.unmounted.entry(entry.pid).or_default().push(thread);
        self.gaps.unmounted_len += 1;
        if self.gaps.unmounted_len > 2 * self.threads.len() + 64 {
            // Most of them have ended.
            self.gaps.unmounted.clear();
            self.gaps.unmounted_len = 0;
            for entry in self.threads.iter_mut() {
                entry.is_listed = entry.lwp.is_none() && entry.state != ThreadState::Unknown;
                if entry.is_listed {
                    self.gaps.unmounted.entry(entry.pid).or_default().push(entry.thread);
                    self.gaps.unmounted_len += 1;
                }
            }
        }
    }
}
