//! The process of each LWP, as the kernel reports it. Also handles an LWP that gets the number of its process by
//! `exec`.
//!
//! When an LWP that is not the leader of its process calls `execve`, the kernel ends all other LWPs, waits until the
//! leader has left its CPU for the last time, and gives the leader's number to the caller (`de_thread`, fs/exec.c,
//! v6.12). `sched_process_exec` reports this, with the old number, only when the new program has been loaded. Events in
//! between are already recorded under the new number. So if a leader has ended, but then records an event on the CPU of
//! an LWP of its own process, it is that LWP: the number is given to no other LWP before the process has ended.

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
    /// The processes of LWPs that live, or are about to.
    of: HashMap<Lwp, Pid, RandomState>,
    /// Leaders that have ended, while other LWPs of their process may continue.
    ended_leaders: HashSet<Lwp, RandomState>,
    /// The creator of each process.
    parents: HashMap<Pid, Parent, RandomState>,
    /// The processes that were created by LWPs whose process is unknown.
    unsettled: HashMap<Lwp, Vec<Pid>, RandomState>,
    /// All processes; those with the same number in time order.
    known: BTreeMap<Pid, Vec<Process>>,
}

/// The creator of a process.
#[derive(Clone, Copy, Debug)]
enum Parent {
    Process(Pid),
    /// An LWP whose own user events may reveal its process. It is not enough that a source has user events of this
    /// number: they may belong to a later LWP with the same number.
    Unsettled(Lwp),
    Unknown,
}

/// A row of `processes`.
#[derive(Debug)]
struct Process {
    first: Ticks,
    /// The end of the LWP of this process that ended last; `None` if one of them has not ended.
    end: Option<Ticks>,
    name: Option<Box<str>>,
    parent: Option<Parent>,
    exit_code: Option<(i64, bool)>,
}

impl Processes {
    /// An LWP has ended, or the trace has. Returns the process of the LWP, as reported by the kernel or by its own user
    /// events. `is_certain` means that no other LWP can have had its number unobserved.
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

    /// An LWP has ended, or the trace has. The process of the LWP, if it is known, is the parent of the processes that
    /// the LWP created.
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

    /// An LWP has ended at `end`, or has not ended (`None`).
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
        // In a gap the process may have got another LWP, which is not known to belong to it, and which may continue.
        let end = end.filter(|_| !gaps.hid_lwps_since(process.first));
        process.end = process.end.zip(end).map(|(one, other)| one.max(other));
        if leads || process.name.is_none() {
            process.name = name.map(Box::from).or(process.name.take());
        }
        // The argument of `exit_group`, or else the argument of `exit` of the last LWP.
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
                // The exit code is the lowest byte of that argument.
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

    /// A process was created by another process.
    pub(crate) fn has_parent(&mut self, pid: Pid, parent: Pid) {
        self.processes.parents.insert(pid, Parent::Process(parent));
    }

    /// The LWP that recorded the event, or else the LWP on its CPU, is about to create an LWP. The new LWP belongs to
    /// the same process, or is the leader of a new one.
    pub(crate) fn makes(&mut self, event: &Event, child: Lwp, in_own_process: bool) {
        let by = event.lwp.or_else(|| self.cpus.get(event.cpu?)?.current);
        let pid = match in_own_process {
            true => by.and_then(|lwp| self.process_by_kernel_or_user(lwp)),
            false => {
                // If events are missing, the creator may have ended unobserved, and another LWP may have its number.
                let certain = by.filter(|_| self.gaps.cpu_opened.is_none());
                let pid = Pid(child.0);
                // Not the process of an earlier LWP with this number.
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
        // If LWPs of several processes have had a number, one of them may have ended unobserved.
        let is_shared = self.carriers.get(&lwp).is_some_and(|carrier| carrier.pid.is_none());
        let is_certain = !is_shared || self.gaps.cpu_opened.is_none();
        let shown = || self.lwps.get(lwp).filter(|entry| entry.carries_threads && is_certain)?.pid;
        self.processes.of(lwp).or_else(shown)
    }

    /// An earlier LWP with this number has ended. The last report of the kernel is about the new one.
    pub(super) fn number_is_used_again(&mut self, lwp: Lwp, new: Option<Pid>) {
        match new {
            Some(pid) => self.is_of(lwp, pid),
            None => _ = self.processes.of.remove(&lwp),
        }
        self.processes.ended_leaders.remove(&lwp);
    }

    /// `sched_process_exec`: the LWP with the number `old` now has the number `new`.
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

    /// Handles an event of an LWP on a CPU, before anything is concluded from it.
    pub(super) fn may_have_executed(&mut self, lwp: Lwp, cpu: Cpu, tick: Ticks) -> Result<(), Error> {
        let current = self.cpus.get(cpu).and_then(|entry| entry.current);
        let Some(old) = current.filter(|old| *old != lwp && *old != Lwp::IDLE) else { return Ok(()) };
        let is_renumbered = self.processes.ended_leaders.contains(&lwp)
            && self.process_by_kernel_or_user(old) == Some(Pid(lwp.0));
        if is_renumbered { self.renumber(old, lwp, cpu, tick) } else { Ok(()) }
    }

    /// The LWP `old` is on its CPU, with the number `new` from now on.
    fn renumber(&mut self, old: Lwp, new: Lwp, cpu: Cpu, tick: Ticks) -> Result<(), Error> {
        let is_there = self.cpus.get(cpu).is_some_and(|entry| entry.current == Some(old));
        self.ends_as(old, new, tick)?;
        if is_there { self.arrive(new, cpu, tick) } else { Ok(()) }
    }

    fn ends_as(&mut self, old: Lwp, new: Lwp, tick: Ticks) -> Result<(), Error> {
        // The LWP is still in `execve`.
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
