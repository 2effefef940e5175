//! Probes: the code in a program that records events.
//!
//! A disabled probe is a nop of five bytes (`site`). An enabled one is a jump (`patch`) to code that finds the ring of
//! its LWP, reads the TSC and the CPU number, reserves space with one `xadd`, and stores the record. It makes no system
//! call, takes no lock, allocates nothing, and has no loop. `shm::ring` documents the protocol.

mod costs;
mod current;
mod emit;
mod event;
pub mod keys;
mod param;
#[cfg(all(target_arch = "x86_64", not(fut_no_patching)))]
mod patch;
mod site;
mod slots;
mod switch;
mod switch_error;

pub(crate) use costs::measure as measure_costs;
pub(crate) use current::{CURRENT_NONE, clear_current, cpu_number, current, find_cpu_numbers, set_current};
pub use emit::record;
pub(crate) use emit::{record_and, ring};
pub(crate) use event::declared;
pub use event::{DeclaredTwice, EventDecl};
pub use param::{Fields, Param};
pub(crate) use site::only_others_are_on;
pub(crate) use slots::{are_of_this_process as slots_are_of_this_process, prepare as prepare_slots};
pub use switch::{EventInfo, SwitchEventsError, declared_events, is_recording, switch_events};
pub(crate) use switch::{after_fork, before_fork, name_fits, start_recording, stop_recording};
pub use switch_error::SwitchError;

#[doc(hidden)]
pub use event::DECLARED;
#[doc(hidden)]
pub use site::{Declared, is_on};
