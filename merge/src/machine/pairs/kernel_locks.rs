//! Locks of the kernel: waits of LWPs, and of interrupts.

use sigmund_model::{
    Context, Event, Lwp,
    vocabulary::{Meaning, Role},
};

use crate::{
    error::Error,
    input_event_types::InputEventType,
    machine::{Machine, Placed},
    pairing::{KernelWait, KernelWaiter, kernel_lock_kind},
};

impl Machine {
    pub(super) fn pair_kernel_lock(
        &mut self,
        kind: &InputEventType,
        event: &Event,
        placed: &Placed,
    ) -> Result<(), Error> {
        if !self.intervals.pairing.locks.is_written() {
            return Ok(());
        }
        let number = |role| event.params.get(kind.known?.field(role)?)?.number;
        let in_task = placed.context.is_none_or(|context| context == Context::Task);
        let lwp = placed.lwp.filter(|lwp| in_task && *lwp != Lwp::IDLE);
        let waiter = lwp.map(KernelWaiter::Lwp).or(placed.cpu.map(KernelWaiter::Cpu));
        let (Some(object), Some(waiter)) = (number(Role::Object), waiter) else { return Ok(()) };
        let pairing = &mut self.intervals.pairing;
        if kind.meaning == Some(Meaning::KernelLockWaitEnd) {
            return pairing.locks.kernel_wait_ends(waiter, object, event.tick);
        }
        let call = lwp.and_then(|lwp| self.lwps.get(lwp)?.call.open()?.name());
        pairing.locks.kernel_waits(KernelWait {
            since: event.tick,
            waiter,
            cpu: placed.cpu,
            thread: placed.thread.filter(|_| lwp.is_some()),
            object,
            kind: kernel_lock_kind(number(Role::LockFlags)),
            call_site: call.map(|name| pairing.syscalls.name(name).to_string()),
        });
        Ok(())
    }
}
