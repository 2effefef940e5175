//! The sites of probes: the five bytes in the code that decide whether a probe records.
//!
//! A probe that is off is a nop of five bytes, which touches no memory; one that is on is a jump to the code that
//! records, which stands out of line. [`patch`](super::patch) turns the one into the other while the program runs.
//! Every site has an entry in the section `fut_sites`, which the linker gathers:
//!
//! ```text
//! site     0                          5
//!          | nop, or jump to `target` |
//!
//! entry    0             4               8                     12
//!          | site - here | target - here | event's name - here | when |   `here` is the address of each field
//! ```
//! The fields are relative to themselves, so that a position-independent program needs no relocation for them, and
//! the `target` and the function that gives the event are in the same object as the site.
//!
//! Elsewhere than on x86-64, and with `--cfg fut_no_patching`, a site loads the key mask, tests and branches.

use super::EventDecl;

/// The type of an event, made by [`events!`](crate::events): what a site needs to know.
pub trait Declared {
    /// The key mask that switches it.
    const KEY: u64;

    /// Its declaration.
    fn event() -> &'static EventDecl;
}

/// Whether the event is recorded now. False costs a nop, true a jump.
#[inline(always)]
pub fn is_on<E: Declared>() -> bool {
    site::<E, { When::EVENT_ON }>()
}

/// Whether the process records, this event excepted: for state that must be kept up to date all the same.
#[inline(always)]
pub(crate) fn only_others_are_on<E: Declared>() -> bool {
    site::<E, { When::ONLY_OTHERS_ON }>()
}

/// When a site jumps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct When(u32);

impl When {
    const EVENT_ON: u32 = 0;
    const ONLY_OTHERS_ON: u32 = 1;

    fn jumps(self, recording: bool, event_on: bool) -> bool {
        match self.0 {
            When::EVENT_ON => event_on,
            _ => recording && !event_on,
        }
    }
}

#[cfg(all(target_arch = "x86_64", not(fut_no_patching)))]
mod patched {
    use super::{Declared, When};
    use crate::probe::{
        EventDecl,
        patch::{Change, SITE_LEN},
    };

    // Without a single site the linker would not make the symbols of the section's bounds. Hidden: a program and a
    // shared object that both have probes each have a table.
    std::arch::global_asm!(
        ".pushsection fut_sites,\"aR\",@progbits",
        ".p2align 2",
        ".popsection",
        ".hidden __start_fut_sites",
        ".hidden __stop_fut_sites",
    );

    unsafe extern "C" {
        static __start_fut_sites: Entry;
        static __stop_fut_sites: Entry;
    }

    /// See the head of the module.
    #[repr(C)]
    struct Entry {
        site: i32,
        target: i32,
        event: i32,
        when: u32,
    }

    impl Entry {
        fn site(&self) -> *const u8 {
            address(&self.site)
        }

        /// What follows the opcode of the jump: the distance from the end of the site.
        fn distance(&self) -> i32 {
            let target = address(&self.target).addr().cast_signed();
            (target - self.site().addr().cast_signed() - SITE_LEN.cast_signed()) as i32
        }

        fn event(&self) -> &'static EventDecl {
            let function = address(&self.event);
            // SAFETY: `site` stored the address of `Declared::event` of its event, which has this signature.
            let function = unsafe { std::mem::transmute::<*const u8, fn() -> &'static EventDecl>(function) };
            function()
        }
    }

    fn address(field: &i32) -> *const u8 {
        std::ptr::from_ref(field).cast::<u8>().wrapping_offset(*field as isize)
    }

    #[inline(always)]
    pub(super) fn site<E: Declared, const WHEN: u32>() -> bool {
        'site: {
            // SAFETY: a nop, or a jump to the block below; in between, for a moment, an instruction that changes
            // nothing but the flags (`patch`), which this may. The entry is data of another section.
            unsafe {
                std::arch::asm!(
                    "2: .byte 0x0f, 0x1f, 0x44, 0x00, 0x00",
                    ".pushsection fut_sites,\"aR\",@progbits",
                    ".p2align 2",
                    ".long 2b - .",
                    ".long {target} - .",
                    ".long {event} - .",
                    ".long {when}",
                    ".popsection",
                    target = label { break 'site true },
                    event = sym E::event,
                    when = const WHEN,
                    options(nomem, nostack),
                );
            }
            false
        }
    }

    fn entries() -> &'static [Entry] {
        let (start, stop) = (&raw const __start_fut_sites, &raw const __stop_fut_sites);
        let count = (stop.addr() - start.addr()) / size_of::<Entry>();
        // SAFETY: the linker puts all entries of the section, and nothing else, between the two symbols.
        unsafe { std::slice::from_raw_parts(start, count) }
    }

    /// What to do at every site so that sites of events for which `is_on` is true record.
    pub(in crate::probe) fn changes(
        recording: bool,
        is_on: impl Fn(&EventDecl) -> bool,
    ) -> impl Iterator<Item = Change> {
        entries().iter().map(move |entry| {
            let event = entry.event();
            let jumps = When(entry.when).jumps(recording, is_on(event));
            Change { site: entry.site().cast_mut(), distance: entry.distance(), jumps, event }
        })
    }
}

#[cfg(all(target_arch = "x86_64", not(fut_no_patching)))]
pub(super) use patched::changes;
#[cfg(all(target_arch = "x86_64", not(fut_no_patching)))]
use patched::site;

/// Load, test, branch. What concerns single events is asked after the branch.
#[cfg(not(all(target_arch = "x86_64", not(fut_no_patching))))]
#[inline(always)]
fn site<E: Declared, const WHEN: u32>() -> bool {
    use std::sync::atomic::Ordering;

    use super::{keys, switch::RECORDING};

    #[cold]
    #[inline(never)]
    fn jumps(event: &EventDecl, when: When) -> bool {
        let on = keys::enabled(event.key()) && !event.is_switched_off();
        when.jumps(RECORDING.load(Ordering::Relaxed), on)
    }
    let perhaps =
        if WHEN == When::EVENT_ON { keys::enabled(E::KEY) } else { RECORDING.load(Ordering::Relaxed) };
    perhaps && jumps(E::event(), When(WHEN))
}
