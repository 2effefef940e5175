//! The state that is still known when events are missing.
//!
//! A gap is in one stream: that of a CPU (kernel), or that of an LWP (user). It opens after the last event before it,
//! and closes with the first event after it that shows the current state. (A CPU may have several streams. If an event
//! of another stream of the CPU is within the gap, it shows the state at that instant, and no more.) What is certain
//! follows from the events that can be in the gap:
//!
//! 1. The LWP on a CPU is unknown while a gap of that CPU is open. The interrupts of that CPU are unknown until it runs
//!    an LWP again, unless the source states them with every event.
//! 2. An LWP that is on no CPU may be put on a CPU with an open gap, and taken off again. So its place is unknown from
//!    the opening of the gap on, or from when it leaves another CPU during the gap. Its place is known again when an
//!    event shows it, or when it is woken while no gap is open. (For this rule a gap is over at the first instant after
//!    it, even before an event shows the state.)
//! 3. An LWP that is on another CPU stays there until an event of that CPU takes it off.
//! 4. The user thread on an LWP is unknown while a gap of that LWP is open. The exit of the LWP closes the gap, unless
//!    the gap may be that of another LWP with the same number.
//! 5. A user thread that is mounted on no LWP may be mounted on an LWP of its process with an open gap, and continue
//!    anywhere. So its state is unknown from the opening of the gap on, or from when it leaves another LWP during the
//!    gap. Its state is known again when it is mounted, or when it is made ready while no gap is open. A thread that
//!    blocks after a gap may have been made ready in the gap, while it was still mounted: then its state is unknown,
//!    too.
//! 6. A user thread that is mounted on another LWP stays there until an event of that LWP takes it off. A thread whose
//!    end was seen has ended.
//! 7. While the place of an LWP is unknown, it may end, and its number may be used again. The thread that it carried is
//!    still there only if the LWP has more user events later.
//! 8. If other inputs continue after the end of the last source that records the switches of a CPU, there is a gap like
//!    any other. It lasts from that end to the beginning of the next source that records the CPU. The next source
//!    begins like the first one: it follows each CPU from its own first switch on ([`recording`](super::recording)).
//!
//! Nothing is corrected later: an event does not change what was unknown before it. A loss that names no stream, or no
//! time, has no effect here, but it is a row of `losses` like any other.
//!
//! Cost: an LWP or thread that a gap makes unknown must have been made known by an event before. So all gaps together
//! cost no more than the events.

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

/// Gaps, and the LWPs and threads that the next gap will affect.
#[derive(Debug, Default)]
pub(super) struct Gaps {
    /// Gaps that were reported before their time.
    to_come: BinaryHeap<Reverse<(Ticks, Stream, Ticks)>>,
    /// When the first of these opens. It opens before the first event that is later.
    pub(super) next: Option<Ticks>,
    /// The first instant after all gaps of CPUs so far.
    cpus_until: Ticks,
    /// The last instant so far that is in a gap of a CPU.
    last_hidden: Option<Ticks>,
    /// When the last gap of a CPU opened.
    pub(super) cpu_opened: Option<Ticks>,
    /// LWPs with an open gap: their process, and the first instant after the gap.
    lwps: HashMap<Lwp, (Option<Pid>, Ticks), RandomState>,
    /// Number of these LWPs in each process.
    processes: HashMap<Option<Pid>, usize, RandomState>,
    /// When the last of these gaps closed, for each process.
    closed: HashMap<Option<Pid>, Ticks, RandomState>,
    /// LWPs that left their CPU since the last gap, or have not been seen on one. Some are on a CPU by now, or have
    /// ended.
    off_cpu: Vec<Lwp>,
    /// Threads, by process, that are known and have been unmounted since the last gap. Some are mounted by now, or have
    /// ended.
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
    /// Whether an LWP that leaves its CPU at this tick may be put on another one unobserved. After all gaps it cannot
    /// be, even if the LWP on a CPU that had a gap is not known yet.
    pub(super) fn hide_lwps(&self, tick: Ticks) -> bool {
        tick < self.cpus_until
    }

    /// Whether events of a CPU after this tick were lost.
    pub(super) fn hid_lwps_since(&self, tick: Ticks) -> bool {
        self.last_hidden.is_some_and(|last| last > tick)
    }

    /// Whether a thread of this process that is not mounted as far as known may still be mounted.
    pub(super) fn hide_threads(&self, pid: Option<Pid>) -> bool {
        !self.lwps.is_empty()
            && (pid.is_none() || self.processes.contains_key(&pid) || self.processes.contains_key(&None))
    }

    /// Whether a thread of this process may have been made ready unobserved since this tick.
    pub(super) fn hid_threads_since(&self, pid: Option<Pid>, tick: Ticks) -> bool {
        let since = |pid: &Option<Pid>| self.closed.get(pid).is_some_and(|closed| *closed > tick);
        match pid {
            _ if self.closed.is_empty() => false,
            Some(_) => since(&pid) || since(&None),
            None => self.closed.values().any(|closed| *closed > tick),
        }
    }

    /// Whether user events are missing, now or earlier.
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

    /// Takes the threads that a gap of an LWP of this process affects, and some more.
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
    /// Events are missing. This may be called at any time after the last event before them in their stream has been
    /// taken.
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

    /// Opens the gaps that begin before an event of this tick.
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

    /// Gaps that had no end may have one now. LWPs may be unobserved only up to the last of these ends.
    pub(super) fn hide_lwps_in_open_gaps(&mut self) {
        let open = self.cpus.iter_mut().filter_map(|(_, entry)| entry.gap).max();
        self.gaps.cpus_until = open.unwrap_or_default();
        self.gaps.last_hidden = self.gaps.last_hidden.map(|last| last.min(open.unwrap_or(self.now)));
    }

    /// A kernel event shows the LWP on the CPU. Returns whether that is valid for longer than this instant.
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

    /// An LWP has recorded a user event. If that was its last one and the place of the LWP is unknown, it may have
    /// ended since.
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
            // LWPs of several processes had this number, and it is unknown which of them this is.
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

    /// The thread on an LWP becomes unknown, and so does the state of the thread that it carried.
    pub(super) fn lose_mounted(&mut self, lwp: Lwp) -> Result<(), Error> {
        let Some(entry) = self.lwps.get(lwp) else { return Ok(()) };
        let thread = entry.mounted.thread();
        self.change_mounted(lwp, Mounted::Unknown, self.now, EndReason::Lost)?;
        match thread.and_then(|thread| self.threads.get_mut(thread)) {
            Some(entry) => self.intervals.lose_thread(entry, self.now),
            None => Ok(()),
        }
    }

    /// Notes that the next gap of a CPU affects this LWP.
    pub(super) fn list_off_cpu(&mut self, lwp: Lwp) {
        let Some(entry) = self.lwps.get_mut(lwp) else { return };
        if std::mem::replace(&mut entry.is_listed, true) {
            return;
        }
        self.gaps.off_cpu.push(lwp);
        if self.gaps.off_cpu.len() > 2 * self.lwps.len() + 64 {
            // Most LWPs in the list have ended.
            self.gaps.off_cpu.clear();
            for entry in self.lwps.iter_mut() {
                entry.is_listed = matches!(entry.place, Place::Off(_) | Place::Unknown);
                self.gaps.off_cpu.extend(entry.is_listed.then_some(entry.lwp));
            }
        }
    }

    /// Notes that the next gap of an LWP of its process affects this thread.
    pub(super) fn list_unmounted(&mut self, thread: Thread) {
        let Some(entry) = self.threads.get_mut(thread) else { return };
        if std::mem::replace(&mut entry.is_listed, true) {
            return;
        }
        self.gaps.unmounted.entry(entry.pid).or_default().push(thread);
        self.gaps.unmounted_len += 1;
        if self.gaps.unmounted_len > 2 * self.threads.len() + 64 {
            // Most threads in the list have ended.
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
