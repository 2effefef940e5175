//! Processes that the kernel reports: their LWPs carry no user threads.

use super::{Lwp, LwpIs, ProcessLife, What, World, pid};

/// The number of `exit_group` on x86-64.
pub(in crate::truth::recording) const EXIT_GROUP: i64 = 231;

impl World<'_> {
    /// Of every second LWP that is created the kernel reports the process: its number, and whether it is its maker's.
    pub(super) fn plain_birth(&mut self, maker: u32) -> Option<(u32, bool)> {
        // A crowd needs LWPs that carry it.
        if self.size.threads > 1000 || !self.chance.one_in(2) {
            return None;
        }
        let of_maker = self.lwps.get(&maker).and_then(|maker| maker.kernel_process);
        let executes = of_maker.is_some_and(|process| self.history.processes[process].executed_by.is_some());
        let in_own_process = of_maker.is_some() && !executes && self.chance.one_in(2);
        let again = if self.losing || self.chance.one_in(2) { None } else { self.free_plain.pop() };
        let number = again.unwrap_or_else(|| {
            self.next_plain += 1;
            self.next_plain
        });
        Some((number, in_own_process))
    }

    /// `task_newtask`: the LWP does not exist yet.
    pub(super) fn make_plain(&mut self, maker: u32, number: u32, in_own_process: bool) {
        let maker = self.lwps.get(&maker);
        let process = match maker.and_then(|maker| maker.kernel_process).filter(|_| in_own_process) {
            Some(process) => process,
            None => {
                let parent = maker.map(|maker| match maker.kernel_process {
                    Some(process) => self.history.processes[process].pid,
                    None => pid(maker.process),
                });
                self.history.processes.push(ProcessLife {
                    pid: number,
                    parent,
                    created: 0,
                    ended: None,
                    exit_code: None,
                    lwps: 0,
                    executed_by: None,
                });
                self.history.processes.len() - 1
            }
        };
        self.history.processes[process].lwps += 1;
        let owners = self.history.owners.entry(number).or_default();
        owners.insert(self.size.processes + process);
        let life = self.history.lives(number);
        let last_cpu = self.chance.below(self.size.cpus.into()) as u32;
        let lwp = Lwp {
            process: 0,
            life,
            is: LwpIs::Fresh,
            last_cpu,
            waking: false,
            kernel_process: Some(process),
            carrier: false,
            attached: false,
            exiting: false,
            thread: None,
            call: None,
        };
        self.lwps.insert(number, lwp);
    }

    /// `sched_process_fork`
    pub(super) fn plain_is_born(&mut self, number: u32) {
        let Some(process) = self.lwps.get(&number).and_then(|lwp| lwp.kernel_process) else { return };
        let process = &mut self.history.processes[process];
        if process.pid == number {
            process.created = self.tick;
        }
    }

    /// The LWP ends: killed, or by `exit_group`, if no LWP of its process has called that before.
    pub(super) fn exit(&mut self, cpu: u32) -> What {
        let me = &self.lwps[&self.cpus[cpu as usize].lwp];
        let calls =
            me.kernel_process.is_some_and(|process| self.history.processes[process].exit_code.is_none());
        if !calls || me.call.is_some() || self.chance.one_in(3) {
            return What::Exit;
        }
        self.queued.push_back((cpu, What::Exit));
        What::SyscallEnter { number: EXIT_GROUP, args: [self.chance.below(256), 0] }
    }

    pub(super) fn may_give_exit_code(&mut self, lwp: u32, call: i64, code: u64) {
        let process = self.lwps.get(&lwp).and_then(|lwp| lwp.kernel_process).filter(|_| call == EXIT_GROUP);
        if let Some(process) = process {
            self.history.processes[process].exit_code = Some(code);
        }
    }

    pub(super) fn plain_ends(&mut self, process: usize) {
        let process = &mut self.history.processes[process];
        process.lwps -= 1;
        if process.lwps == 0 {
            process.ended = Some(self.tick);
            // Its number may be that of another process from now on.
            self.free_plain.push(process.pid);
        }
    }
}
