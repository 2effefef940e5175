//! What the machine reports to the [pairings](crate::pairing): which LWP is in which system call, what it was woken by, which
//! user thread blocks on which lock, and which of that is lost.

use sigmund_model::{
    Context, Cpu, Effect, EndReason, Event, Level, Lwp, LwpState, Thread, ThreadState, Ticks, Wait, WaitKind,
    vocabulary::{FunctionKey, InterruptKind, Meaning, Role},
};

use super::{
    Machine, Placed,
    lwp::{LwpEntry, Mounted, Place, Stretch},
};
use crate::{
    error::Error,
    input_event_types::InputEventType,
    pairing::{
        Activity, AtEntry, CallEnd, CallEvent, InterruptEvent, LockRequest, OpenCall, Owner, Pairing, Queue,
        SpanEvent, SpanKind, Wakeup, awaited, is_lock,
    },
};

impl Machine {
    /// What an event begins or ends. It was taken before.
    #[inline]
    pub(crate) fn pair(
        &mut self,
        kind: &InputEventType,
        number: usize,
        event: &Event,
        placed: &Placed,
    ) -> Result<(), Error> {
        let meaning = kind.meaning;
        if kind.level == Level::Kern
            && let (Some(cpu), Some(context)) = (placed.cpu, placed.context)
            && !matches!(meaning, Some(Meaning::InterruptExit(_)))
        {
            let in_task = matches!(context, Context::Task | Context::Idle);
            self.intervals.pairing.interrupts.event(cpu, in_task, event.tick)?;
        }
        match meaning {
            Some(Meaning::SyscallEnter) => self.pair_syscall_enter(kind, number, event, placed),
            Some(Meaning::SyscallExit) => self.pair_syscall_exit(kind, number, event, placed),
            Some(Meaning::InterruptEnter(_) | Meaning::InterruptExit(_) | Meaning::NmiHandled) => {
                self.pair_interrupt(kind, event, placed)
            }
            Some(
                Meaning::SpanBegin | Meaning::SpanEnd | Meaning::FunctionEnter(_) | Meaning::FunctionExit(_),
            ) => self.pair_span(kind, event, placed),
            Some(Meaning::LockAcquire | Meaning::LockRelease) => self.pair_lock(kind, event, placed),
            // Sources whose interrupts have no event of a known name.
            _ if matches!(event.effect, Effect::InterruptEnter(_) | Effect::InterruptExit(_)) => {
                self.pair_interrupt(kind, event, placed)
            }
            _ => Ok(()),
        }
    }

    fn pair_syscall_enter(
        &mut self,
        kind: &InputEventType,
        number: usize,
        event: &Event,
        placed: &Placed,
    ) -> Result<(), Error> {
        let Some(lwp) = placed.lwp.filter(|lwp| *lwp != Lwp::IDLE) else { return Ok(()) };
        let Some(entry) = self.lwps.get_mut(lwp) else { return Ok(()) };
        let pairing = &mut self.intervals.pairing;
        let call = call_event(kind, number, event);
        if let Some(open) = entry.call.open() {
            if pairing.syscalls.is_same_entry(open, &call, event.tick) {
                return Ok(());
            }
            let end = CallEnd { at: open.known_until(), ret: None, on_cpu: None, reason: EndReason::Unseen };
            end_call(entry, pairing, end)?;
        }
        let first = first_argument(kind, &call);
        let args = event.params.numbers_or_zero_from(first);
        let at_entry = AtEntry {
            thread: entry.mounted.thread(),
            is_idle_carrier: entry.carries_threads && entry.mounted == Mounted::Nobody,
            on_cpu: time_on_cpu(entry, event.tick),
        };
        if let Some(code) = pairing.syscalls.enter(&mut entry.call, &call, args, at_entry, event.tick) {
            entry.exit_code = Some(code);
        }
        // A gap of any CPU may hide its end.
        if entry.place == Place::Unknown {
            self.list_off_cpu(lwp);
        }
        Ok(())
    }

    fn pair_syscall_exit(
        &mut self,
        kind: &InputEventType,
        number: usize,
        event: &Event,
        placed: &Placed,
    ) -> Result<(), Error> {
        let Some(lwp) = placed.lwp.filter(|lwp| *lwp != Lwp::IDLE) else { return Ok(()) };
        let Some(entry) = self.lwps.get_mut(lwp) else { return Ok(()) };
        let pairing = &mut self.intervals.pairing;
        let Some(open) = entry.call.open() else {
            entry.call.leave();
            return Ok(());
        };
        let call_number = kind.number_field.and_then(|field| event.params.number(field));
        let is_exit = (call_number.is_some() && call_number == open.number())
            || pairing.syscalls.is_exit_of(open, &call_event(kind, number, event));
        if !is_exit {
            return Ok(());
        }
        let ret = kind.return_field.and_then(|field| event.params.number(field));
        let on_cpu = time_on_cpu(entry, event.tick);
        end_call(entry, pairing, CallEnd { at: event.tick, ret, on_cpu, reason: EndReason::Returned })
    }

    /// The system call that an LWP is in has ended.
    fn end_call(&mut self, lwp: Lwp, end: CallEnd) -> Result<(), Error> {
        self.lwps.get_mut(lwp).map_or(Ok(()), |entry| end_call(entry, &mut self.intervals.pairing, end))
    }

    /// Events of the LWP are missing from here on.
    pub(super) fn lose_call(&mut self, lwp: Lwp, tick: Ticks) -> Result<(), Error> {
        let Some(entry) = self.lwps.get_mut(lwp) else { return Ok(()) };
        let end = CallEnd { at: tick, ret: None, on_cpu: None, reason: EndReason::Lost };
        end_call(entry, &mut self.intervals.pairing, end)?;
        entry.call.lose();
        Ok(())
    }

    /// The LWP has ended, and its end was not traced.
    pub(super) fn end_call_unseen(&mut self, lwp: Lwp) -> Result<(), Error> {
        let Some(open) = self.lwps.get(lwp).and_then(|entry| entry.call.open()) else { return Ok(()) };
        let end = CallEnd { at: open.known_until(), ret: None, on_cpu: None, reason: EndReason::Unseen };
        self.end_call(lwp, end)
    }

    /// An LWP was created by another: where system calls of the one are traced, those of the other are, too.
    pub(super) fn child_of(&mut self, parent: Option<Lwp>, child: Lwp) {
        let is_known = parent.and_then(|parent| self.lwps.get(parent)).is_some_and(|lwp| lwp.call.is_known());
        if is_known && let Some(entry) = self.lwps.get_mut(child) {
            entry.call.leave();
        }
    }

    fn pair_interrupt(&mut self, kind: &InputEventType, event: &Event, placed: &Placed) -> Result<(), Error> {
        let (Some(cpu), tick) = (placed.cpu, event.tick) else { return Ok(()) };
        let of_effect = |number: i64| match number.checked_neg().map(|number| number - 1) {
            // Softirqs have the numbers −1, −2, …
            Some(vec) if number < 0 => {
                InterruptEvent { kind: InterruptKind::Softirq, number: Some(vec), name: None }
            }
            _ => InterruptEvent { kind: InterruptKind::Irq, number: Some(number), name: None },
        };
        let interrupted = (placed.lwp, placed.lwp.and_then(|lwp| self.lwps.get(lwp)?.mounted.thread()));
        let interrupts = &mut self.intervals.pairing.interrupts;
        match (kind.known.map(|known| known.meaning()), event.effect) {
            (Some(Meaning::InterruptEnter(interrupt)), _) => {
                interrupts.enter(cpu, interrupt_event(kind, interrupt, event), interrupted, tick)
            }
            (Some(Meaning::InterruptExit(interrupt)), _) => {
                interrupts.exit(cpu, interrupt_event(kind, interrupt, event), tick)
            }
            (Some(Meaning::NmiHandled), _) => {
                let length =
                    kind.known.and_then(|known| event.params.get(known.field(Role::DurationNs)?)?.number);
                let (Some(hz), Some(length)) = (self.tick_hz, length) else { return Ok(()) };
                let length = (length.max(0) as f64 * hz.per_second() / 1e9) as u64;
                let since = Ticks(tick.0.saturating_sub(length));
                interrupts.ended(
                    cpu,
                    interrupt_event(kind, InterruptKind::Nmi, event),
                    interrupted,
                    (since, tick),
                )
            }
            (_, Effect::InterruptEnter(number)) => {
                interrupts.enter(cpu, of_effect(number), interrupted, tick)
            }
            (_, Effect::InterruptExit(number)) => interrupts.exit(cpu, of_effect(number), tick),
            _ => Ok(()),
        }
    }

    fn pair_span(&mut self, kind: &InputEventType, event: &Event, placed: &Placed) -> Result<(), Error> {
        let (Some(known), Some(owner)) = (kind.known, owner_of(placed)) else { return Ok(()) };
        let code = known.field(Role::Code).and_then(|field| event.params.get(field));
        let (address, text) = code.map_or((None, None), |code| (code.number, code.text));
        let (kind, begins, by_name) = match known.meaning() {
            Meaning::SpanBegin => (SpanKind::Span, true, false),
            Meaning::SpanEnd => (SpanKind::Span, false, false),
            Meaning::FunctionEnter(key) => (SpanKind::Function, true, key == FunctionKey::Name),
            Meaning::FunctionExit(key) => (SpanKind::Function, false, key == FunctionKey::Name),
            _ => return Ok(()),
        };
        let activity = self.activity(owner, event.tick);
        let span = SpanEvent { kind, address, text, by_name };
        let spans = &mut self.intervals.pairing.spans;
        if begins {
            spans.begin(owner, placed.lwp, span, activity, event.tick);
            return Ok(());
        }
        spans.end(owner, span, activity, event.tick)
    }

    /// How long an owner of spans was active until now.
    fn activity(&self, owner: Owner, tick: Ticks) -> Option<Activity> {
        match owner {
            Owner::Lwp(lwp) => {
                let entry = self.lwps.get(lwp)?;
                Some(Activity { active: time_on_cpu(entry, tick)?, doubts: entry.doubts })
            }
            Owner::Thread(thread) => {
                let entry = self.threads.get(thread)?;
                if matches!(entry.state, ThreadState::Unknown | ThreadState::Mounted) {
                    return None;
                }
                let stretch = entry.lwp.and_then(|lwp| self.lwps.get(lwp)).map(|lwp| lwp.stretch);
                let now = match stretch {
                    Some(Stretch::Active { thread: active, since, .. }) if active == thread => {
                        tick.0 - since.0
                    }
                    _ => 0,
                };
                Some(Activity { active: entry.active + now, doubts: entry.doubts })
            }
        }
    }

    fn pair_lock(&mut self, kind: &InputEventType, event: &Event, placed: &Placed) -> Result<(), Error> {
        let (Some(known), Some(owner)) = (kind.known, owner_of(placed)) else { return Ok(()) };
        let number = |role| known.field(role).and_then(|field| event.params.get(field)?.number);
        let (Some(address), Some(wait_kind)) = (number(Role::Object), number(Role::WaitKind)) else {
            return Ok(());
        };
        let Some(wait_kind) = WaitKind::from_number(wait_kind as u64).filter(|kind| is_lock(*kind)) else {
            return Ok(());
        };
        let pid = kind.pid.or(placed.lwp.and_then(|lwp| self.lwps.get(lwp)?.pid));
        let (lock, tick) = ((pid, address as u64), event.tick);
        let pairing = &mut self.intervals.pairing;
        if !pairing.locks.is_written() {
            return Ok(());
        }
        if known.meaning() == Meaning::LockRelease {
            return pairing.locks.releases(owner, lock, wait_kind, tick);
        }
        let call_site = pairing.spans.innermost(owner);
        let in_gap = self.gaps.hide_threads(pid);
        // How long an LWP has waited that carries no user threads, its system calls know.
        let may_go_on = match owner {
            Owner::Thread(thread) => {
                self.threads.get_mut(thread).is_none_or(|entry| std::mem::take(&mut entry.may_request))
            }
            Owner::Lwp(_) => true,
        };
        let pairing = &mut self.intervals.pairing;
        pairing.locks.takes(LockRequest {
            may_go_on,
            in_gap,
            owner,
            lwp: placed.lwp,
            lock,
            kind: wait_kind,
            since: tick,
            call_site,
        })
    }

    /// A user thread has left its LWP, and is in `state` now.
    pub(super) fn pair_departure(
        &mut self,
        thread: Thread,
        left_in: ThreadState,
        wait: Wait,
        state: ThreadState,
        tick: Ticks,
    ) -> Result<(), Error> {
        let owner = Owner::Thread(thread);
        let Some(entry) = self.threads.get_mut(thread) else { return Ok(()) };
        // It was unparked while it was mounted: if it did not block after that, it was awake.
        if left_in != ThreadState::Blocked
            && let Some(wakeup) = entry.wakeup.take()
        {
            self.intervals.pairing.wakeups.write(&wakeup, None)?;
        }
        let (pid, lwp) = (entry.pid, entry.last_lwp);
        let pairing = &mut self.intervals.pairing;
        let lock = wait.kind.filter(|kind| left_in == ThreadState::Blocked && is_lock(*kind)).zip(wait.on);
        match lock {
            Some((kind, on)) if matches!(state, ThreadState::Blocked | ThreadState::Ready) => {
                if !pairing.locks.is_written() {
                    return Ok(());
                }
                let call_site = pairing.spans.innermost(owner);
                let (lock, since, in_gap) = ((pid, on), tick, self.gaps.hide_threads(pid));
                let may_go_on = std::mem::take(&mut entry.may_request);
                pairing.locks.blocks(LockRequest {
                    owner,
                    lwp,
                    lock,
                    kind,
                    since,
                    call_site,
                    may_go_on,
                    in_gap,
                })?;
                if state == ThreadState::Ready { pairing.locks.wakes(owner, tick) } else { Ok(()) }
            }
            _ if left_in == ThreadState::Blocked => {
                // Of a lock, if it is not known how long: it may have been unparked before.
                entry.may_request = lock.is_some();
                pairing.locks.blocks_elsewhere(owner, tick)
            }
            _ => Ok(()),
        }
    }

    /// A user thread ends.
    pub(super) fn pair_thread_end(&mut self, thread: Thread, tick: Ticks) -> Result<(), Error> {
        let owner = Owner::Thread(thread);
        let activity = self.activity(owner, tick);
        let Some(entry) = self.threads.get_mut(thread) else { return Ok(()) };
        let pairing = &mut self.intervals.pairing;
        if let Some(wakeup) = entry.wakeup.take() {
            pairing.wakeups.write(&wakeup, None)?;
        }
        pairing.counters.moves(entry.queue.take(), None, tick)?;
        pairing.spans.end_all(owner, activity, tick, EndReason::Exit)?;
        pairing.locks.ends(owner, tick)
    }

    /// An LWP ends.
    pub(super) fn pair_lwp_end(&mut self, lwp: Lwp, tick: Ticks) -> Result<(), Error> {
        let owner = Owner::Lwp(lwp);
        let activity = self.activity(owner, tick);
        let Some(entry) = self.lwps.get_mut(lwp) else { return Ok(()) };
        // It has left its CPU already.
        let on_cpu = Some(entry.on_cpu).filter(|_| matches!(entry.place, Place::Off(_)));
        let pairing = &mut self.intervals.pairing;
        if let Some(wakeup) = entry.wakeup.take() {
            pairing.wakeups.write(&wakeup, None)?;
        }
        pairing.counters.moves(entry.counted_in.take(), None, tick)?;
        pairing.spans.end_all(owner, activity, tick, EndReason::Exit)?;
        pairing.locks.ends(owner, tick)?;
        self.end_call(lwp, CallEnd { at: tick, ret: None, on_cpu, reason: EndReason::Exit })
    }

    /// An LWP is in another place from here on.
    #[inline]
    pub(super) fn pair_place(
        &mut self,
        lwp: Lwp,
        (before, place): (Place, Place),
        reason: EndReason,
        tick: Ticks,
    ) -> Result<(), Error> {
        let Some(entry) = self.lwps.get_mut(lwp) else { return Ok(()) };
        match place {
            Place::On(..) => {
                entry.is_waking = false;
                if let Some(wakeup) = entry.wakeup.take() {
                    let is_first = matches!(before, Place::Off(_)) && !wakeup.in_gap;
                    self.intervals.pairing.wakeups.write(&wakeup, Some(tick).filter(|_| is_first))?;
                }
            }
            Place::Lost => {
                entry.doubts += 1;
                entry.is_waking = false;
                entry.call.lose_cpu();
                if let Some(wakeup) = entry.wakeup.take() {
                    self.intervals.pairing.wakeups.write(&wakeup, None)?;
                }
                if reason != EndReason::Resync {
                    self.lose_call(lwp, tick)?;
                }
            }
            // It leaves a CPU that nobody knew it to be on: it was awake when it was woken.
            Place::Off(_) if reason != EndReason::Woken => {
                if let Some(wakeup) = entry.wakeup.take() {
                    self.intervals.pairing.wakeups.write(&wakeup, None)?;
                }
            }
            Place::Off(_) | Place::Unknown => {}
        }
        self.count_runnable(lwp, tick)
    }

    /// Counts an LWP in the run queue that it waits in, if it is runnable.
    pub(super) fn count_runnable(&mut self, lwp: Lwp, tick: Ticks) -> Result<(), Error> {
        let Some(entry) = self.lwps.get_mut(lwp) else { return Ok(()) };
        let is_runnable = entry.place == Place::Off(LwpState::Runnable);
        let queue = entry.queue.filter(|_| is_runnable).map(Queue::Run);
        let before = std::mem::replace(&mut entry.counted_in, queue);
        self.intervals.pairing.counters.moves(before, queue, tick)
    }

    /// An LWP is about to be woken.
    pub(super) fn pair_waking(&mut self, lwp: Lwp, placed: &Placed, tick: Ticks) -> Result<(), Error> {
        if lwp == Lwp::IDLE {
            return Ok(());
        }
        self.lwp(lwp, tick).is_waking = true;
        self.wakes(lwp, None, placed, tick)
    }

    /// An LWP is made runnable.
    pub(super) fn pair_wakeup(
        &mut self,
        lwp: Lwp,
        cpu: Option<Cpu>,
        placed: &Placed,
        tick: Ticks,
    ) -> Result<(), Error> {
        if lwp == Lwp::IDLE {
            return Ok(());
        }
        let entry = self.lwp(lwp, tick);
        if !std::mem::take(&mut entry.is_waking) {
            return self.wakes(lwp, cpu, placed, tick);
        }
        let opened = self.gaps.cpu_opened;
        if let Some(wakeup) = &mut self.lwp(lwp, tick).wakeup {
            // What was lost since may be the rest of that wakeup, and the waking of this one.
            wakeup.in_gap |= opened.is_some_and(|opened| opened >= wakeup.at);
            // One that waits for its dispatch already may be woken again, and has been moved perhaps.
            wakeup.target_cpu = wakeup.target_cpu.or(cpu).filter(|_| !wakeup.in_gap);
        }
        Ok(())
    }

    fn wakes(
        &mut self,
        lwp: Lwp,
        target_cpu: Option<Cpu>,
        placed: &Placed,
        tick: Ticks,
    ) -> Result<(), Error> {
        let in_gap = self.gaps.hide_lwps(tick);
        let entry = self.lwp(lwp, tick);
        let is_awake = matches!(entry.place, Place::On(..) | Place::Off(LwpState::Runnable));
        let wakeup = Wakeup {
            at: tick,
            level: Level::Kern,
            context: placed.context,
            waker_lwp: placed.lwp,
            waker_thread: placed.thread,
            lwp: Some(lwp),
            thread: entry.mounted.thread(),
            cpu: placed.cpu,
            // What is awake is put into no run queue.
            target_cpu: target_cpu.filter(|_| !is_awake),
            in_gap,
        };
        if is_awake {
            return self.intervals.pairing.wakeups.write(&wakeup, None);
        }
        match entry.wakeup.replace(wakeup) {
            Some(before) => self.intervals.pairing.wakeups.write(&before, None),
            None => Ok(()),
        }
    }

    /// A user thread was made ready.
    pub(super) fn pair_unpark(&mut self, thread: Thread, placed: &Placed, tick: Ticks) -> Result<(), Error> {
        let Some(entry) = self.threads.get_mut(thread) else { return Ok(()) };
        let pairing = &mut self.intervals.pairing;
        let wakeup = Wakeup {
            at: tick,
            level: Level::User,
            context: placed.context,
            waker_lwp: placed.lwp,
            waker_thread: placed.thread,
            lwp: None,
            thread: Some(thread),
            cpu: placed.cpu,
            target_cpu: None,
            in_gap: entry.lwp.is_none() && entry.state == ThreadState::Unknown,
        };
        if entry.lwp.is_none() {
            pairing.locks.wakes(Owner::Thread(thread), tick)?;
        }
        match entry.wakeup {
            // It was unparked already, and is not dispatched yet.
            Some(_) => pairing.wakeups.write(&wakeup, None),
            None => {
                entry.wakeup = Some(wakeup);
                Ok(())
            }
        }
    }

    /// The trace ends: what is open ends with it.
    pub(super) fn end_pairs(&mut self, tick: Ticks) -> Result<(), Error> {
        self.intervals.pairing.interrupts.end_trace(tick)?;
        let mut lwps: Vec<Lwp> = self.lwps.iter_mut().map(|entry| entry.lwp).collect();
        lwps.sort_unstable();
        for lwp in lwps {
            let Some(entry) = self.lwps.get_mut(lwp) else { continue };
            let on_cpu = time_on_cpu(entry, tick).or_else(|| off_cpu_time(entry));
            if let Some(wakeup) = entry.wakeup.take() {
                self.intervals.pairing.wakeups.write(&wakeup, None)?;
            }
            self.end_call(lwp, CallEnd { at: tick, ret: None, on_cpu, reason: EndReason::TraceEnd })?;
        }
        let mut threads: Vec<Thread> = self.threads.iter_mut().map(|entry| entry.thread).collect();
        threads.sort_unstable();
        for thread in threads {
            if let Some(wakeup) = self.threads.get_mut(thread).and_then(|entry| entry.wakeup.take()) {
                self.intervals.pairing.wakeups.write(&wakeup, None)?;
            }
        }
        for owner in self.intervals.pairing.spans.owners() {
            let activity = self.activity(owner, tick);
            self.intervals.pairing.spans.end_all(owner, activity, tick, EndReason::TraceEnd)?;
        }
        self.intervals.pairing.locks.end_trace(tick)
    }
}

/// The system call that an LWP is in has ended.
#[inline]
fn end_call(entry: &mut LwpEntry, pairing: &mut Pairing, end: CallEnd) -> Result<(), Error> {
    let Some(open) = entry.call.open() else { return Ok(()) };
    pairing.syscalls.write(entry.lwp, open, end)?;
    if open.slept() && !open.is_of_idle_carrier() {
        end_futex_wait(entry.lwp, open, pairing, end)?;
    }
    entry.call.leave();
    Ok(())
}

fn end_futex_wait(lwp: Lwp, open: &OpenCall, pairing: &mut Pairing, end: CallEnd) -> Result<(), Error> {
    let Some(name) = open.name() else { return Ok(()) };
    let Some(address) = awaited(pairing.syscalls.name(name), open.args()) else { return Ok(()) };
    let owner = open.thread().map_or(Owner::Lwp(lwp), Owner::Thread);
    let reason = if end.reason == EndReason::Returned { EndReason::Woken } else { end.reason };
    pairing.locks.futex(owner, lwp, address, (open.since(), end.at), reason)
}

/// Its time on CPUs, if it is on one.
#[inline]
fn time_on_cpu(entry: &LwpEntry, tick: Ticks) -> Option<u64> {
    matches!(entry.place, Place::On(..)).then(|| entry.on_cpu_until(tick))
}

/// Its time on CPUs, if it is known to be on none.
fn off_cpu_time(entry: &LwpEntry) -> Option<u64> {
    matches!(entry.place, Place::Off(_)).then_some(entry.on_cpu)
}

/// The user thread, or the LWP if that carries none.
fn owner_of(placed: &Placed) -> Option<Owner> {
    placed.thread.map(Owner::Thread).or(placed.lwp.map(Owner::Lwp))
}

#[inline(always)]
fn call_event<'e>(kind: &'e InputEventType, number: usize, event: &'e Event) -> CallEvent<'e> {
    let field = kind.number_field.and_then(|field| event.params.get(field));
    CallEvent {
        event_kind: number,
        number: field.and_then(|field| field.number),
        name: kind.named.as_deref().or(field.and_then(|field| field.text)),
    }
}

/// The position of a system call's first argument: after its number, if that is a field.
#[inline]
fn first_argument(kind: &InputEventType, call: &CallEvent<'_>) -> usize {
    let after_number = kind.number_field.filter(|_| call.number.is_some()).map(|field| field + 1);
    kind.argument_field.or(after_number).unwrap_or(0)
}

fn interrupt_event<'e>(
    kind: &'e InputEventType,
    interrupt: InterruptKind,
    event: &'e Event,
) -> InterruptEvent<'e> {
    let param = |role| kind.known.and_then(|known| event.params.get(known.field(role)?));
    let number = param(Role::Number);
    let name = match interrupt {
        InterruptKind::Irq | InterruptKind::Nmi => param(Role::Name).or(number).and_then(|param| param.text),
        InterruptKind::Softirq => number.and_then(|number| number.text),
        InterruptKind::Timer | InterruptKind::Ipi | InterruptKind::Vector => {
            let name = kind.event_type.name.as_str();
            Some(name.strip_suffix("_entry").or_else(|| name.strip_suffix("_exit")).unwrap_or(name))
        }
    };
    InterruptEvent { kind: interrupt, number: number.and_then(|number| number.number), name }
}
