//! Of which process an LWP is, as the kernel reports it; and an LWP that gets the number of its process by `exec`.
//!
//! When an LWP that is not the leader of its process calls `execve`, the kernel ends all others, waits until the leader
//! has left its CPU for the last time, and gives the leader's number to the caller (`de_thread`, fs/exec.c, v6.12). Only
//! when the new program is loaded does `sched_process_exec` report it, with the old number; events in between are
//! recorded under the new one already. So a leader that has ended and records an event on the CPU of an LWP of its own
//! process is that LWP: the number is given to no one else before the process has ended.

use std::collections::{BTreeMap, HashMap, HashSet};

use foldhash::fast::RandomState;
use sigmund_model::{Cpu, EndReason, Event, Lwp, LwpState, Pid, Ticks};

use super::{
    Machine,
    gaps::Gaps,
    lwp::{LwpEntry, Place},
};
use crate::{error::Error, tables::OptionalTable};

/// What the kernel reported about processes.
#[derive(Debug, Default)]
pub(super) struct Processes {
    /// Of LWPs that live, or are about to.
    of: HashMap<Lwp, Pid, RandomState>,
    /// Leaders that have ended, while others of their process may go on.
    ended_leaders: HashSet<Lwp, RandomState>,
    /// Which process created which.
    parents: HashMap<Pid, Parent, RandomState>,
    /// The processes that LWPs of no known process have created.
    unsettled: HashMap<Lwp, Vec<Pid>, RandomState>,
    /// All processes; those with the same number in time order.
    known: BTreeMap<Pid, Vec<Process>>,
}

/// The creator of a process.
#[derive(Clone, Copy, Debug)]
enum Parent {
    Process(Pid),
    /// An LWP whose own user events may tell its process. That a source has user events of this number does not: they may
    /// be of a later LWP that gets the number.
    Unsettled(Lwp),
    Unknown,
}

/// A row of `processes`.
#[derive(Debug)]
struct Process {
    first: Ticks,
    /// The end of the last of its LWPs; `None` if one of them has not ended.
    end: Option<Ticks>,
    name: Option<Box<str>>,
    parent: Option<Parent>,
    exit_code: Option<(i64, bool)>,
}

impl Processes {
    /// An LWP has ended, or the trace has. Its process: as the kernel reported it, or its own user events. `is_certain`: no
    /// other can have had its number unseen.
    pub(super) fn ended(&mut self, entry: &LwpEntry, is_certain: bool) -> Option<Pid> {
        let lwp = entry.lwp;
        let shown = entry.pid.filter(|_| entry.carries_threads);
        let pid = self.of.remove(&lwp).or(shown);
        self.settle_children(lwp, pid.filter(|_| is_certain));
        if pid == Some(Pid(lwp.0)) {
            self.ended_leaders.insert(lwp);
        }
        pid
    }

    /// An LWP has ended, or the trace has: its process, if known, is the parent of the processes that it created.
    fn settle_children(&mut self, lwp: Lwp, pid: Option<Pid>) {
        for child in self.unsettled.remove(&lwp).unwrap_or_default() {
            let rows = self.known.get_mut(&child).into_iter().flatten();
            let parents =
                rows.filter_map(|process| process.parent.as_mut()).chain(self.parents.get_mut(&child));
            for parent in parents.filter(|parent| matches!(parent, Parent::Unsettled(by) if *by == lwp)) {
                *parent = pid.map_or(Parent::Unknown, Parent::Process);
            }
        }
    }

    /// An LWP has ended at `end`, or not before the trace did.
    pub(super) fn lwp_of(&mut self, entry: &LwpEntry, end: Option<Ticks>, name: Option<&str>, gaps: &Gaps) {
        let Some(pid) = entry.pid else { return };
        let processes = self.known.entry(pid).or_default();
        let leads = pid.0 == entry.lwp.0;
        let is_new = match processes.last() {
            Some(last) => leads && entry.was_created && last.end.is_some_and(|end| end <= entry.first),
            None => true,
        };
        if is_new {
            let parent = self.parents.get(&pid).copied();
            processes.push(Process { first: entry.first, end, name: None, parent, exit_code: None });
        }
        let Some(process) = processes.last_mut() else { return };
        process.first = process.first.min(entry.first);
        // In a gap it may have got an LWP that is not known to be of it, and may go on.
        let end = end.filter(|_| !gaps.hid_lwps_since(process.first));
        process.end = process.end.zip(end).map(|(one, other)| one.max(other));
        if leads || process.name.is_none() {
            process.name = name.map(Box::from).or(process.name.take());
        }
        // What the process was given; else what the last of its LWPs was.
        let is_of_process = process.exit_code.is_some_and(|(_, of_process)| of_process);
        if !is_of_process && entry.exit_code.is_some() {
            process.exit_code = entry.exit_code;
        }
    }

    /// Writes the table.
    pub(super) fn write(&mut self, table: &mut OptionalTable) -> Result<(), Error> {
        for (pid, processes) in std::mem::take(&mut self.known) {
            for process in processes {
                let end = process.end;
                // It exits with the lowest byte of what it gave.
                let exit_code = process.exit_code.filter(|_| end.is_some()).map(|(code, _)| code & 0xff);
                table.row(|mut row| {
                    row.int(pid.0).maybe_text(process.name.as_deref());
                    let parent = match process.parent {
                        Some(Parent::Process(pid)) => Some(pid.0.into()),
                        Some(Parent::Unsettled(_) | Parent::Unknown) | None => None,
                    };
                    row.maybe_int(parent).count(process.first.0);
                    row.maybe_count(end.map(|end| end.0 - process.first.0)).maybe_int(exit_code);
                })?;
            }
        }
        Ok(())
    }

    pub(super) fn of(&self, lwp: Lwp) -> Option<Pid> {
        self.of.get(&lwp).copied()
    }
}

impl Machine {
    /// Sets the process of an LWP.
    pub(crate) fn is_of(&mut self, lwp: Lwp, pid: Pid) {
        self.processes.of.insert(lwp, pid);
    }

    /// A process was created by another.
    pub(crate) fn has_parent(&mut self, pid: Pid, parent: Pid) {
        self.processes.parents.insert(pid, Parent::Process(parent));
    }

    /// `by`, or whoever is on the CPU, is about to make an LWP: of its own process, or the leader of a new one.
    pub(crate) fn makes(&mut self, event: &Event, child: Lwp, in_own_process: bool) {
        let by = event.lwp.or_else(|| self.cpus.get(event.cpu?)?.current);
        let pid = match in_own_process {
            true => by.and_then(|lwp| self.process_by_kernel_or_user(lwp)),
            false => {
                // Where events are missing, the maker may have ended unseen, and another have its number.
                let certain = by.filter(|_| self.gaps.cpu_opened.is_none());
                let pid = Pid(child.0);
                // Not that of a process that had the number before.
                let parent = certain.map_or(Parent::Unknown, |by| match self.process_by_kernel_or_user(by) {
                    Some(parent) => Parent::Process(parent),
                    None => {
                        self.processes.unsettled.entry(by).or_default().push(pid);
                        Parent::Unsettled(by)
                    }
                });
                self.processes.parents.insert(pid, parent);
                Some(pid)
            }
        };
        match pid {
            Some(pid) => self.is_of(child, pid),
            None => _ = self.processes.of.remove(&child),
        }
    }

    fn process_by_kernel_or_user(&self, lwp: Lwp) -> Option<Pid> {
        // Of a number that LWPs of several processes have had, one may have ended unseen.
        let is_shared = self.carriers.get(&lwp).is_some_and(|carrier| carrier.pid.is_none());
        let is_certain = !is_shared || self.gaps.cpu_opened.is_none();
        let shown = || self.lwps.get(lwp).filter(|entry| entry.carries_threads && is_certain)?.pid;
        self.processes.of(lwp).or_else(shown)
    }

    /// An earlier LWP with this number has ended; the kernel's last report is about the new one.
    pub(super) fn number_is_used_again(&mut self, lwp: Lwp, new: Option<Pid>) {
        match new {
            Some(pid) => self.is_of(lwp, pid),
            None => _ = self.processes.of.remove(&lwp),
        }
        self.processes.ended_leaders.remove(&lwp);
    }

    /// `sched_process_exec`: the LWP that was `old` is `new`.
    pub(crate) fn executes(&mut self, event: &Event, new: Lwp, old: Lwp) -> Result<(), Error> {
        let is_other = self.process_by_kernel_or_user(old).is_some_and(|pid| pid != Pid(new.0));
        if new == old || is_other || [new, old].contains(&Lwp::IDLE) || self.lwps.get(old).is_none() {
            return Ok(());
        }
        self.go_to(event.tick)?;
        match event.cpu.or_else(|| self.cpu_of(old)) {
            Some(cpu) => self.renumber(old, new, cpu, event.tick),
            None => self.ends_as(old, new, event.tick),
        }
    }

    /// An event of an LWP on a CPU, before anything is concluded from it.
    pub(super) fn may_have_executed(&mut self, lwp: Lwp, cpu: Cpu, tick: Ticks) -> Result<(), Error> {
        let current = self.cpus.get(cpu).and_then(|entry| entry.current);
        let Some(old) = current.filter(|old| *old != lwp && *old != Lwp::IDLE) else { return Ok(()) };
        let is_renumbered = self.processes.ended_leaders.contains(&lwp)
            && self.process_by_kernel_or_user(old) == Some(Pid(lwp.0));
        if is_renumbered { self.renumber(old, lwp, cpu, tick) } else { Ok(()) }
    }

    /// What was `old` is on its CPU as `new`.
    fn renumber(&mut self, old: Lwp, new: Lwp, cpu: Cpu, tick: Ticks) -> Result<(), Error> {
        let is_there = self.cpus.get(cpu).is_some_and(|entry| entry.current == Some(old));
        self.ends_as(old, new, tick)?;
        if is_there { self.arrive(new, cpu, tick) } else { Ok(()) }
    }

    fn ends_as(&mut self, old: Lwp, new: Lwp, tick: Ticks) -> Result<(), Error> {
        // It is still in `execve`.
        let mut call =
            self.lwps.get_mut(old).map(|entry| std::mem::take(&mut entry.call)).unwrap_or_default();
        call.lose_cpu();
        self.place(old, Place::Off(LwpState::Exited), tick, EndReason::Exit)?;
        self.lwp_gone(old, tick)?;
        self.lwp(new, tick).call = call;
        self.processes.ended_leaders.remove(&new);
        self.is_of(new, Pid(new.0));
        Ok(())
    }
}
