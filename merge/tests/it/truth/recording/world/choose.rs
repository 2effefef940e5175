//! Chooses the next event of a CPU.

use super::{Cpu, Lwp, LwpIs, Waits, What, World};
use crate::truth::recording::Sides;

/// The number of `futex` on x86-64.
pub(in crate::truth::recording) const FUTEX: i64 = 202;

impl World<'_> {
    pub(super) fn choose(&mut self, cpu: u32) -> What {
        let Cpu { lwp, interrupts, .. } = &self.cpus[cpu as usize];
        let (lwp, depth) = (*lwp, interrupts.len());
        let roll = self.chance.below(100);
        if depth > 0 {
            return match roll {
                0..=39 => What::IrqExit,
                40..=54 => self.irq(cpu),
                55..=69 => self.wakeup(cpu),
                _ => What::Quiet,
            };
        }
        if !self.lwps.contains_key(&lwp) {
            return match roll {
                0..=54 => self.switch(cpu),
                55..=69 => self.irq(cpu),
                70..=79 => self.wakeup(cpu),
                _ => What::Quiet,
            };
        }
        if let Some(what) = self.exec(cpu, lwp) {
            return what;
        }
        let me = &self.lwps[&lwp];
        let is_plain = me.kernel_process.is_some();
        let (carrier, attached, exiting, mounted) =
            (me.carrier, me.attached, me.exiting, me.thread.is_some());
        if self.size.threads > 1000 && carrier && attached && !exiting && !self.chance.one_in(8) {
            // A crowd wants to be born.
            return self.thread_new(lwp);
        }
        match roll {
            0..=13 => self.switch(cpu),
            14..=19 => self.irq(cpu),
            20..=25 => self.wakeup(cpu),
            26..=28 => self.fork(cpu),
            29 if !exiting && !self.executes(lwp) && (!attached || self.sides != Sides::User) => {
                self.exit(cpu)
            }
            30 => self.migrate(),
            31 => What::Quiet,
            32..=36 if self.sides != Sides::User => match self.lwps[&lwp].call {
                Some(_) if self.executes(lwp) => What::Quiet,
                Some(call) => What::SyscallExit(call.number),
                None => self.syscall(),
            },
            37..=46 if is_plain && !exiting => self.fork(cpu),
            _ if exiting || !carrier => self.switch(cpu),
            _ if !attached => What::Attach,
            37..=38 if !mounted => What::Detach,
            37..=62 => self.user_switch(lwp),
            63..=68 => self.thread_new(lwp),
            69..=74 => self.thread_ready(lwp),
            75..=83 if mounted => self.span(lwp),
            84..=95 if mounted => self.lock(lwp),
            _ => What::Message,
        }
    }

    /// Ends the innermost span of the thread mounted on an LWP, or begins another.
    fn span(&mut self, lwp: u32) -> What {
        let lwp = &self.lwps[&lwp];
        let spans = lwp.thread.and_then(|thread| self.processes[lwp.process].spans.get(&thread));
        match spans.and_then(|open| open.last()) {
            Some((code, _)) if self.chance.one_in(2) => What::SpanEnd(*code),
            _ => What::SpanBegin(1 + self.chance.below(3)),
        }
    }

    fn irq(&mut self, cpu: u32) -> What {
        match self.cpus[cpu as usize].interrupts.last() {
            Some(3) => What::Quiet,
            _ => What::IrqEntry,
        }
    }

    pub(super) fn take_runnable(&mut self) -> Option<u32> {
        let place = self.chance.below(self.runnable.len().max(1) as u64) as usize;
        (!self.runnable.is_empty()).then(|| self.runnable.swap_remove(place))
    }

    fn switch(&mut self, cpu: u32) -> What {
        let before = self.cpus[cpu as usize].lwp;
        let next = if self.chance.one_in(6) { None } else { self.take_runnable() };
        let exiting = self.lwps.get(&before).is_some_and(|lwp| lwp.exiting);
        let left = match self.chance.below(6) {
            _ if exiting => LwpIs::Dead,
            _ if before == 0 => LwpIs::Runnable,
            0..=2 => LwpIs::Runnable,
            3 | 4 => LwpIs::Sleeping,
            _ => LwpIs::DiskSleep,
        };
        match next {
            None if before == 0 => What::Quiet,
            next => What::Switch { left, next: next.unwrap_or(0) },
        }
    }

    /// Wakes one that sleeps, in two steps if wakings are traced; or one that has not stopped running.
    fn wakeup(&mut self, by: u32) -> What {
        if self.chance.one_in(6) {
            let cpu = self.chance.below(self.size.cpus.into()) as u32;
            let lwp = if self.chance.one_in(3) {
                let place = self.chance.below(self.runnable.len().max(1) as u64) as usize;
                self.runnable.get(place).copied().unwrap_or(0)
            } else {
                self.cpus[cpu as usize].lwp
            };
            let Some(entry) = self.lwps.get(&lwp) else { return What::Quiet };
            // It can neither leave nor come meanwhile: its run queue is locked.
            let wakeup = What::Wakeup { lwp, cpu: entry.last_cpu };
            return self.with_waking(by, lwp, wakeup);
        }
        let Some(lwp) = self.chance.pick(&self.asleep) else { return What::Quiet };
        let entry = &self.lwps[&lwp];
        let cpu = match self.chance.one_in(4) {
            true => self.chance.below(self.size.cpus.into()) as u32,
            false => entry.last_cpu,
        };
        self.wake(lwp, cpu)
    }

    /// The next event of waking an LWP that sleeps: the waking, where these are traced, or the wakeup.
    pub(super) fn wake(&self, lwp: u32, cpu: u32) -> What {
        let entry = &self.lwps[&lwp];
        match self.has_wakings && !entry.waking && entry.is != LwpIs::Fresh {
            true => What::Waking(lwp),
            false => What::Wakeup { lwp, cpu },
        }
    }

    fn with_waking(&mut self, by: u32, lwp: u32, wakeup: What) -> What {
        if !self.has_wakings {
            return wakeup;
        }
        self.queued.push_back((by, wakeup));
        What::Waking(lwp)
    }

    fn migrate(&mut self) -> What {
        let place = self.chance.below(self.runnable.len().max(1) as u64) as usize;
        let cpu = self.chance.below(self.size.cpus.into()) as u32;
        self.runnable.get(place).map_or(What::Quiet, |lwp| What::Migrate { lwp: *lwp, cpu })
    }

    /// A system call; one in three waits for a futex, or wakes its waiters.
    fn syscall(&mut self) -> What {
        let number = if self.chance.one_in(3) { FUTEX } else { self.chance.below(3) as i64 };
        // FUTEX_WAIT_PRIVATE, FUTEX_WAKE_PRIVATE.
        let args = if number == FUTEX { [4096, 128 + self.chance.below(2)] } else { [0, 0] };
        What::SyscallEnter { number, args }
    }

    fn fork(&mut self, cpu: u32) -> What {
        if self.lwps.len() >= self.size.lwps {
            return What::Quiet;
        }
        let maker = self.cpus[cpu as usize].lwp;
        match self.plain_birth(maker) {
            None => What::Fork(self.birth()),
            Some((lwp, in_own_process)) => {
                self.queued.push_back((cpu, What::Fork(lwp)));
                What::NewTask { lwp, in_own_process }
            }
        }
    }

    pub(super) fn birth(&mut self) -> u32 {
        let mut process = self.chance.below(self.size.processes as u64) as usize;
        let again = if self.chance.one_in(2) { self.free.pop() } else { None };
        let number = match again {
            Some(number) if self.losing => {
                let owners = &self.history.owners[&number];
                let other = (0..self.size.processes).find(|process| !owners.contains(process));
                other.map(|other| {
                    process = other;
                    number
                })
            }
            again => again,
        };
        let number = number.unwrap_or_else(|| {
            self.next_lwp += 1;
            self.next_lwp
        });
        let owners = self.history.owners.entry(number).or_default();
        owners.insert(process);
        let life = self.history.lives(number);
        let carrier = !self.chance.one_in(4);
        let lwp = Lwp {
            process,
            life,
            is: LwpIs::Fresh,
            last_cpu: self.chance.below(self.size.cpus.into()) as u32,
            waking: false,
            kernel_process: None,
            carrier,
            attached: false,
            exiting: false,
            thread: None,
            call: None,
        };
        self.lwps.insert(number, lwp);
        number
    }

    fn user_switch(&mut self, lwp: u32) -> What {
        let process = self.lwps[&lwp].process;
        let before = self.lwps[&lwp].thread;
        // Any will do. Of the kinds, 14 and 15 have no meaning yet.
        let any = Waits { on: self.chance.below(4), kind: self.chance.below(16) };
        let waits = before.and_then(|thread| self.lock_to_wait_for(process, thread)).unwrap_or(any);
        let ready = &mut self.processes[process].ready;
        let next = match self.chance.below(12) {
            0 | 1 => None,
            2 => {
                let reason = u64::from(before.is_some());
                return What::UserSwitch { next: before.unwrap_or(0), reason, waits };
            }
            _ if ready.is_empty() => None,
            _ => Some(ready.swap_remove(self.chance.below(ready.len() as u64) as usize)),
        };
        let reason = match self.chance.below(10) {
            _ if before.is_none() => 0,
            0..=3 => 1,
            4 => 2,
            5..=8 => 3,
            _ => 4,
        };
        What::UserSwitch { next: next.unwrap_or(0), reason, waits }
    }

    fn thread_new(&mut self, lwp: u32) -> What {
        let process = &mut self.processes[self.lwps[&lwp].process];
        if process.ready.len() + process.blocked.len() >= self.size.threads {
            return What::Message;
        }
        let again = if self.chance.one_in(2) { process.free.pop() } else { None };
        What::ThreadNew(again.unwrap_or_else(|| {
            process.next += 1;
            process.next - 1
        }))
    }

    fn thread_ready(&mut self, lwp: u32) -> What {
        let process = &mut self.processes[self.lwps[&lwp].process];
        if self.chance.one_in(4) {
            return self.chance.pick(&process.mounted).map_or(What::Message, What::ThreadReady);
        }
        let place = self.chance.below(process.blocked.len().max(1) as u64) as usize;
        match process.blocked.get(place) {
            None => What::Message,
            Some(_) => What::ThreadReady(process.blocked.swap_remove(place)),
        }
    }
}
