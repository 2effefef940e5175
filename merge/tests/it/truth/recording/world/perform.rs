//! Applies an event to the state of a world.

use super::{Call, Interval, Lwp, LwpIs, ThreadId, ThreadIs, Waits, What, World};

impl World<'_> {
    pub(super) fn perform(&mut self, number: u32, what: What) {
        let me = self.cpus[number as usize].lwp;
        match what {
            What::Switch { left, next } => {
                if me != 0 {
                    self.queue_on(me, number);
                    self.set(me, left);
                }
                self.cpus[number as usize].lwp = next;
                if next != 0 {
                    self.set(next, LwpIs::On(number));
                }
            }
            What::Waking(lwp) => {
                let is_asleep = matches!(self.lwps[&lwp].is, LwpIs::Sleeping | LwpIs::DiskSleep);
                self.with(lwp, |lwp| lwp.waking = is_asleep);
            }
            What::Wakeup { lwp, cpu } => {
                self.queue_on(lwp, cpu);
                self.with(lwp, |lwp| lwp.waking = false);
                if !matches!(self.lwps[&lwp].is, LwpIs::On(_) | LwpIs::Runnable) {
                    self.set(lwp, LwpIs::Runnable);
                }
            }
            What::Migrate { lwp, cpu } => self.queue_on(lwp, cpu),
            What::NewTask { lwp, in_own_process } => self.make_plain(me, lwp, in_own_process),
            What::Fork(lwp) => {
                self.plain_is_born(lwp);
                self.set(lwp, LwpIs::Fresh);
            }
            What::IrqEntry => {
                let depth = self.cpus[number as usize].interrupts.len();
                let interrupt = self.interval(number, me, depth, 24);
                let cpu = &mut self.cpus[number as usize];
                cpu.interrupts.push(cpu.interrupts.last().copied().unwrap_or(0) + 1);
                cpu.places.push(self.history.interrupts.len());
                self.history.interrupts.push(interrupt);
            }
            What::IrqExit => {
                let cpu = &mut self.cpus[number as usize];
                cpu.interrupts.pop();
                if let Some(place) = cpu.places.pop() {
                    self.history.interrupts[place].end = Some(self.tick);
                }
            }
            What::SyscallEnter { number: call, args } => {
                let entered = Interval { args, ..self.interval(number, me, 0, call) };
                self.may_give_exit_code(me, call, args[0]);
                let place = Some(self.history.syscalls.len());
                self.history.syscalls.push(entered);
                self.with(me, |lwp| lwp.call = Some(Call { number: call, place }));
            }
            What::SyscallExit(_) => {
                let call = self.lwps.get_mut(&me).and_then(|lwp| lwp.call.take());
                if let Some(place) = call.and_then(|call| call.place) {
                    self.history.syscalls[place].end = Some(self.tick);
                }
            }
            What::Exit => self.with(me, |lwp| lwp.exiting = true),
            What::Attach => self.with(me, |lwp| lwp.attached = true),
            What::Detach => self.with(me, |lwp| (lwp.attached, lwp.carrier) = (false, false)),
            What::UserSwitch { next, reason, waits } => {
                self.switch_threads(me, (next != 0).then_some(next), reason, waits);
            }
            What::ThreadNew(thread) => {
                let process = self.lwps[&me].process;
                self.processes[process].ready.push(thread);
                self.log_thread((process, thread), ThreadIs::New);
            }
            What::ThreadReady(thread) => self.make_ready(me, thread),
            What::LockAcquire(lock) => self.acquire(me, lock),
            What::LockRelease(lock) => self.release(me, lock),
            What::SpanBegin(code) => {
                let thread = self.lwps.get(&me).and_then(|lwp| Some((lwp.process, lwp.thread?)));
                let Some((process, thread)) = thread else { return };
                let depth = self.processes[process].spans.get(&thread).map_or(0, Vec::len);
                let span = self.interval(number, me, depth, code as i64);
                self.processes[process]
                    .spans
                    .entry(thread)
                    .or_default()
                    .push((code, self.history.spans.len()));
                self.history.spans.push(span);
            }
            What::SpanEnd(_) => {
                let thread = self.lwps.get(&me).and_then(|lwp| Some((lwp.process, lwp.thread?)));
                let Some((process, thread)) = thread else { return };
                let open = self.processes[process].spans.get_mut(&thread).and_then(Vec::pop);
                if let Some((_, place)) = open {
                    self.history.spans[place].end = Some(self.tick);
                }
            }
            What::Exec { .. } | What::Quiet | What::Message => {}
        }
    }

    /// What begins now.
    fn interval(&self, cpu: u32, lwp: u32, depth: usize, number: i64) -> Interval {
        let thread = self.lwps.get(&lwp).and_then(|lwp| Some((lwp.process, lwp.thread?)));
        Interval {
            cpu,
            lwp,
            entered_as: None,
            thread,
            start: self.tick,
            end: None,
            died: None,
            number,
            args: [0, 0],
            depth,
        }
    }

    fn with(&mut self, lwp: u32, change: impl FnOnce(&mut Lwp)) {
        if let Some(lwp) = self.lwps.get_mut(&lwp) {
            change(lwp);
        }
    }

    /// Puts an LWP into a state, and into the list of the LWPs in that state.
    pub(super) fn set(&mut self, number: u32, is: LwpIs) {
        self.history.lwps.entry(number).or_default().push((self.tick, is));
        self.runnable.retain(|lwp| *lwp != number);
        self.asleep.retain(|lwp| *lwp != number);
        match is {
            LwpIs::Runnable => self.runnable.push(number),
            LwpIs::Sleeping | LwpIs::DiskSleep | LwpIs::Fresh => self.asleep.push(number),
            LwpIs::On(cpu) => self.queue_on(number, cpu),
            LwpIs::Dead => {
                let lwp = self.lwps.remove(&number);
                let kernel_process = lwp.as_ref().and_then(|lwp| lwp.kernel_process);
                if let Some(place) = lwp.as_ref().and_then(|lwp| lwp.call?.place) {
                    self.history.syscalls[place].died = Some(self.tick);
                }
                if let Some(lwp) = lwp
                    && let Some(thread) = lwp.thread
                {
                    self.processes[lwp.process].mounted.retain(|other| *other != thread);
                    self.log_thread((lwp.process, thread), ThreadIs::Gone);
                }
                match kernel_process {
                    Some(process) => self.plain_ends(process),
                    None => self.free.push(number),
                }
            }
        }
        self.with(number, |lwp| lwp.is = is);
    }

    /// Puts an LWP into the run queue of a CPU, where it waits if it is runnable.
    pub(super) fn queue_on(&mut self, number: u32, cpu: u32) {
        self.with(number, |lwp| lwp.last_cpu = cpu);
        self.history.queues.entry(number).or_default().push((self.tick, cpu));
    }

    fn switch_threads(&mut self, number: u32, next: Option<u64>, reason: u64, waits: Waits) {
        let lwp = self.lwps.get_mut(&number).expect("it runs");
        let process = lwp.process;
        let before = std::mem::replace(&mut lwp.thread, next);
        if before == next {
            return;
        }
        if let Some(before) = before {
            self.leave_by_lock((process, before), number, reason, waits);
        }
        let of = &mut self.processes[process];
        if let Some(before) = before {
            of.mounted.retain(|thread| *thread != before);
            let unparked = of.unparked.remove(&before);
            let is = match reason {
                3 if !unparked => ThreadIs::Blocked(waits),
                4 => ThreadIs::Exited,
                _ => ThreadIs::Ready,
            };
            match is {
                ThreadIs::Blocked(_) => of.blocked.push(before),
                ThreadIs::Exited => {
                    if !of.locks.values().any(|lock| lock.is_held_by(before)) {
                        of.free.push(before);
                    }
                    for (_, place) in of.spans.remove(&before).into_iter().flatten() {
                        self.history.spans[place].died = Some(self.tick);
                    }
                }
                _ => of.ready.push(before),
            }
            self.log_thread((process, before), is);
        }
        if let Some(next) = next {
            self.processes[process].mounted.push(next);
            self.log_thread((process, next), ThreadIs::On(number));
        }
    }

    fn make_ready(&mut self, me: u32, thread: u64) {
        let process = self.lwps[&me].process;
        let of = &mut self.processes[process];
        if of.mounted.contains(&thread) {
            of.unparked.insert(thread);
            return;
        }
        of.ready.push(thread);
        self.log_thread((process, thread), ThreadIs::Ready);
        self.wakes_request((process, thread));
    }

    fn log_thread(&mut self, thread: ThreadId, is: ThreadIs) {
        self.history.threads.entry(thread).or_default().push((self.tick, is));
    }
}
