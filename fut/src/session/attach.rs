//! Attaches LWPs to the session: an LWP gets a ring, and keeps it until it ends.

use std::{
    cell::Cell,
    ptr::NonNull,
    sync::atomic::{Ordering, compiler_fence},
};

use sigmund_model::{Lwp, Ticks};

use super::{Session, current as session, last_thread, lwp_end};
use crate::{
    clock,
    probe::{CURRENT_NONE, clear_current, cpu_number, current, set_current},
    shm::{
        Mode,
        ring::{Control, Producer},
    },
};

crate::events! {
    /// The LWP starts recording. Parameter: its CPU time so far.
    fn LWP_ATTACH(cpu_time_ns: u64) in crate::keys::LWP => "attached, after {cpu_time_ns} ns on CPUs";
    /// The LWP stops recording. Parameter: its CPU time so far.
    fn LWP_DETACH(cpu_time_ns: u64) in crate::keys::LWP => "detached, after {cpu_time_ns} ns on CPUs";
}

/// The result of attaching.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub(crate) enum Attached {
    /// The LWP has this ring now.
    Now(NonNull<Control>),
    /// The LWP has no ring: nothing is recorded, or no ring is left, or the LWP is about to end.
    Not,
}

thread_local! {
    /// True while this thread attaches. A signal handler may interrupt that; the probes in it must not attach again.
    static ATTACHING: Cell<bool> = const { Cell::new(false) };
}

/// Attaches the calling LWP, if there is a session and it is not attached yet.
#[cfg(feature = "runtime")]
#[inline(never)]
pub(crate) fn attach_now() {
    if session().is_some() && current() == NonNull::from(&CURRENT_NONE) {
        let _ = attach();
    }
}

/// Attaches the calling LWP, which is not attached. Async-signal-safe: it only makes system calls, allocates nothing
/// and takes no lock. If it fails, the record to be written is counted as lost.
#[inline(never)]
pub(crate) fn attach() -> Attached {
    CURRENT_NONE.stay_full();
    let Some(session) = session() else {
        super::before::count();
        return Attached::Not;
    };
    if ATTACHING.replace(true) {
        session.arena.count_unattached();
        return Attached::Not;
    }
    // From here on no signal handler attaches. But one may have attached since the caller's check, and an LWP gets only
    // one ring.
    compiler_fence(Ordering::SeqCst);
    let control = current();
    if control != NonNull::from(&CURRENT_NONE) {
        ATTACHING.set(false);
        return Attached::Now(control);
    }
    let attached = take_ring(session);
    ATTACHING.set(false);
    if attached == Attached::Not {
        session.arena.count_unattached();
    } else {
        LWP_ATTACH(clock::lwp_cpu_time());
    }
    attached
}

fn take_ring(session: &'static Session) -> Attached {
    if !lwp_end::watch() {
        return Attached::Not;
    }
    let Some((number, producer)) = session.arena.use_ring() else { return Attached::Not };
    // SAFETY: takes no arguments and cannot fail.
    let tid = unsafe { libc::syscall(libc::SYS_gettid) };
    if tid as u32 == session.pid.0 {
        last_thread::main_is_watched();
    }
    let overwrites = session.arena.mode() == Mode::Overwrite;
    producer.begin(overwrites, session.pid, Lwp(tid as u32), cpu_number(), Ticks(clock::ticks()));
    producer.go_live();
    let control = NonNull::from(producer.control());
    if !set_current(number, control) {
        producer.end(Ticks(clock::ticks()));
        return Attached::Not;
    }
    Attached::Now(control)
}

/// Detaches the calling LWP, which is ending, from its ring.
pub(super) fn detach() {
    let control = current();
    if control == NonNull::from(&CURRENT_NONE) {
        return;
    }
    super::note_modules();
    LWP_DETACH(clock::lwp_cpu_time());
    clear_current();
    // SAFETY: this is not the stand-in, so it is the ring of this LWP in the session's arena, which is never unmapped.
    let producer = unsafe { Producer::of_lwp(control) };
    producer.end(Ticks(clock::ticks()));
}
