//! `execve` by an LWP that is not the leader of its process: the others end, and it gets the leader's number.

use super::{LwpIs, What, World};

/// The number of `execve` on x86-64.
const EXECVE: i64 = 59;

impl World<'_> {
    /// The next step of an `execve`: the LWP of a CPU calls it, ends because another LWP of its process has called it, or
    /// returns from it under the leader's number. `None` if it does something else.
    pub(super) fn exec(&mut self, cpu: u32, lwp: u32) -> Option<What> {
        let me = &self.lwps[&lwp];
        let place = me.kernel_process?;
        let (leader, caller) = (self.history.processes[place].pid, self.history.processes[place].executed_by);
        match caller {
            None => {
                let may_call = lwp != leader && !me.exiting && me.call.is_none();
                let ends = self.history.processes[place].exit_code.is_some();
                (may_call && !ends && self.chance.one_in(4)).then(|| {
                    self.history.processes[place].executed_by = Some(lwp);
                    What::SyscallEnter { number: EXECVE, args: [0, 0] }
                })
            }
            Some(caller) if caller != lwp => (!me.exiting).then_some(What::Exit),
            Some(_) if self.history.processes[place].lwps > 1 => self.kill(cpu, place),
            Some(_) => {
                self.renumber(cpu, lwp, leader);
                self.history.processes[place].executed_by = None;
                let exec = What::Exec { old: lwp };
                // The kernel has gone on under the new number before it reports the new program. If the end of the leader
                // may be lost, that event alone would not show what has happened.
                if self.losing || self.chance.one_in(2) {
                    return Some(exec);
                }
                self.queued.push_back((cpu, exec));
                Some(What::Quiet)
            }
        }
    }

    /// Whether an LWP is in an `execve` for which others have to end.
    pub(super) fn executes(&self, lwp: u32) -> bool {
        let process = self.lwps.get(&lwp).and_then(|lwp| lwp.kernel_process);
        process.is_some_and(|process| self.history.processes[process].executed_by == Some(lwp))
    }

    /// Wakes an LWP of a process, which then ends; `None` if none sleeps, or sometimes.
    fn kill(&mut self, cpu: u32, process: usize) -> Option<What> {
        let of_process = |lwp: &&u32| self.lwps[*lwp].kernel_process == Some(process);
        let lwp = *self.asleep.iter().find(of_process)?;
        self.chance.one_in(2).then(|| self.wake(lwp, cpu))
    }

    /// The LWP on a CPU gets the number of the leader of its process, which has ended.
    fn renumber(&mut self, cpu: u32, old: u32, new: u32) {
        let Some(mut lwp) = self.lwps.remove(&old) else { return };
        lwp.life = self.history.lives(new);
        if let Some(place) = lwp.call.and_then(|call| call.place) {
            let call = &mut self.history.syscalls[place];
            (call.lwp, call.entered_as) = (new, Some(old));
        }
        self.lwps.insert(new, lwp);
        self.cpus[cpu as usize].lwp = new;
        self.history.lwps.entry(old).or_default().push((self.tick, LwpIs::Dead));
        self.set(new, LwpIs::On(cpu));
    }
}
