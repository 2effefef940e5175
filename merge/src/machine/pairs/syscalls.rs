//! System calls: entries and exits of LWPs.

use sigmund_model::{EndReason, Event, Lwp, Ticks};

use super::time_on_cpu;
use crate::{
    error::Error,
    input_event_types::InputEventType,
    machine::{
        Machine, Placed,
        lwp::{LwpEntry, Mounted, Place},
    },
    pairing::{AtEntry, CallEnd, CallEvent, KernelWaiter, OpenCall, Owner, Pairing, awaited},
};

impl Machine {
    pub(super) fn pair_syscall_enter(
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
            cpu: placed.cpu,
            thread: entry.mounted.thread(),
            is_idle_carrier: entry.carries_threads && entry.mounted == Mounted::Nobody,
            on_cpu: time_on_cpu(entry, event.tick),
        };
        if let Some(code) = pairing.syscalls.enter(&mut entry.call, &call, args, at_entry, event.tick) {
            entry.exit_code = Some(code);
        }
        // A gap of any CPU may contain the end of its call.
        if entry.place == Place::Unknown {
            self.list_off_cpu(lwp);
        }
        Ok(())
    }

    pub(super) fn pair_syscall_exit(
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
    pub(super) fn end_call(&mut self, lwp: Lwp, end: CallEnd) -> Result<(), Error> {
        self.lwps.get_mut(lwp).map_or(Ok(()), |entry| end_call(entry, &mut self.intervals.pairing, end))
    }

    /// Events of the LWP are missing from here on. Its system call, and its waits for locks of the kernel, are lost.
    pub(in crate::machine) fn lose_in_kernel(&mut self, lwp: Lwp, tick: Ticks) -> Result<(), Error> {
        let Some(entry) = self.lwps.get_mut(lwp) else { return Ok(()) };
        let end = CallEnd { at: tick, ret: None, on_cpu: None, reason: EndReason::Lost };
        end_call(entry, &mut self.intervals.pairing, end)?;
        entry.call.lose();
        self.intervals.pairing.locks.kernel_waits_end(KernelWaiter::Lwp(lwp), tick, EndReason::Lost)
    }

    /// The LWP has ended, and its end was not traced.
    pub(in crate::machine) fn end_in_kernel_unseen(&mut self, lwp: Lwp) -> Result<(), Error> {
        self.intervals.pairing.locks.kernel_waits_are_lost(KernelWaiter::Lwp(lwp))?;
        let Some(open) = self.lwps.get(lwp).and_then(|entry| entry.call.open()) else { return Ok(()) };
        let end = CallEnd { at: open.known_until(), ret: None, on_cpu: None, reason: EndReason::Unseen };
        self.end_call(lwp, end)
    }

    /// An LWP was created by another one. If the system calls of the parent are traced, those of the child are traced,
    /// too.
    pub(in crate::machine) fn child_of(&mut self, parent: Option<Lwp>, child: Lwp) {
        let is_known = parent.and_then(|parent| self.lwps.get(parent)).is_some_and(|lwp| lwp.call.is_known());
        if is_known && let Some(entry) = self.lwps.get_mut(child) {
            entry.call.leave();
        }
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
    pairing.locks.futex(owner, (lwp, open.cpu()), address, (open.since(), end.at), reason)
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

/// The position of a system call's first argument. It follows the number of the call, if that is a field.
#[inline]
fn first_argument(kind: &InputEventType, call: &CallEvent<'_>) -> usize {
    let after_number = kind.number_field.filter(|_| call.number.is_some()).map(|field| field + 1);
    kind.argument_field.or(after_number).unwrap_or(0)
}
