//! A signal handler may record while its LWP attaches: whichever instruction of the first probe it interrupts, the LWP
//! gets one ring, and both records are stored.
//!
//! With the processor's trap flag, a handler is called after every instruction; at one of them, a different one for
//! each thread, it records.

use std::{
    arch::asm,
    cell::Cell,
    collections::HashMap,
    ffi::c_void,
    ptr,
    sync::atomic::{AtomicU64, Ordering},
};

use fut::{Recording, model::LossKind, shm::Geometry, trace::UserTrace};

fut::events! {
    /// The first probe of its thread.
    fn first(thread: u64);
    /// Recorded by the handler, during the other.
    fn within(thread: u64);
}

/// The trap flag of `EFLAGS` (Intel SDM, volume 1, 3.4.3.3).
const TRAP: i64 = 0x100;

/// The instruction at which the handler records.
static AT: AtomicU64 = AtomicU64::new(0);

thread_local! {
    static STEPS: Cell<u64> = const { Cell::new(0) };
}

unsafe extern "C" fn on_trap(_: libc::c_int, _: *mut libc::siginfo_t, context: *mut c_void) {
    let step = STEPS.get();
    STEPS.set(step + 1);
    if step == AT.load(Ordering::Relaxed) {
        within(step);
        // SAFETY: the kernel gives a handler with SA_SIGINFO a `ucontext_t` of its own.
        let context = unsafe { &mut *context.cast::<libc::ucontext_t>() };
        context.uc_mcontext.gregs[libc::REG_EFL as usize] &= !TRAP;
    }
}

fn trap_every_instruction(on: bool) {
    if on {
        // SAFETY: sets a flag; every instruction from here on calls `on_trap`, which only records.
        unsafe { asm!("pushfq", "or qword ptr [rsp], 0x100", "popfq") };
    } else {
        // SAFETY: clears it.
        unsafe { asm!("pushfq", "and qword ptr [rsp], -0x101", "popfq") };
    }
}

/// A thread whose first probe is interrupted at this instruction. Returns how many there were.
fn attach_interrupted_at(instruction: u64) -> u64 {
    AT.store(instruction, Ordering::Relaxed);
    let thread = std::thread::spawn(move || {
        trap_every_instruction(true);
        first(instruction);
        trap_every_instruction(false);
        STEPS.get()
    });
    thread.join().unwrap()
}

#[test]
fn a_handler_that_records_while_its_lwp_attaches_does_not_get_it_a_second_ring() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("user.fut");
    let recording = Recording::start(&path, Geometry::default()).unwrap();
    // SAFETY: all zeros are a `sigaction` without a handler, flags and mask.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    action.sa_sigaction = on_trap as *const () as usize;
    action.sa_flags = libc::SA_SIGINFO;
    // SAFETY: `action` is whole, and the old one is not asked for.
    assert_eq!(unsafe { libc::sigaction(libc::SIGTRAP, &raw const action, ptr::null_mut()) }, 0);

    let all = attach_interrupted_at(u64::MAX);
    assert!(all > 20, "{all} instructions");
    // Every one at the beginning, where the probe decides to attach; of the rest, system calls mostly, some.
    let interrupted: Vec<u64> = (0..all.min(400)).chain((400..all).step_by(1 + all as usize / 300)).collect();
    for instruction in &interrupted {
        attach_interrupted_at(*instruction);
    }
    let summary = recording.finish().unwrap();

    let trace = UserTrace::open(&path).unwrap();
    assert!(trace.losses().iter().all(|loss| loss.kind == LossKind::Dropped), "{:?}", trace.losses());
    assert_eq!(trace.unattached_lost(), summary.lost);
    let codes: HashMap<u32, &str> =
        trace.declarations().iter().map(|d| (d.event.code.unwrap(), d.event.name.as_str())).collect();
    let mut counts: HashMap<&str, u64> = HashMap::new();
    for lwp in trace.lwps() {
        let sequences: Vec<u64> = lwp.heads().map(|head| head.sequence).collect();
        assert_eq!(sequences, (0..sequences.len() as u64).collect::<Vec<_>>(), "LWP {}", lwp.lwp);
        for index in 0..lwp.len() {
            let packet = lwp.packet(index).unwrap().unwrap().unwrap();
            for record in packet.records() {
                *counts.entry(codes[&record.head.code]).or_default() += 1;
            }
        }
    }
    let threads = interrupted.len() as u64;
    assert_eq!((counts["first"], counts["LWP_ATTACH"]), (threads + 1, threads + 1), "{summary:?}");
    // Between the claim to attach and the ring, a handler's record is counted as lost.
    assert_eq!(counts["within"] + summary.lost, threads, "{summary:?}");
    assert!(counts["within"] > threads / 4, "{counts:?}");
}
