//! The codes that libfxt and PM2 define (fxt/fut.h and `fkt_code_table` of libfxt 0.3.13; their arguments are from the
//! probes of PM2's marcel and of StarPU), with the names that `fxt_print` uses.

use sigmund_model::vocabulary::InterruptKind;
use sigmund_model::{Field, FieldType};

use super::records::UNSHIFTED_LIMIT;
use crate::effect_plan::interrupt_number;

pub(super) const FUT_NEW_LWP: u64 = 0xfff6;

pub(super) const FKT_RET_FROM_SYS_CALL: u64 = 0x300;

/// Code, name, fields: a number, `:a` an address, `:t` a text, `:u` a user thread.
type Known = (u64, &'static str, &'static [&'static str]);

const USER: &[Known] = &[
    (0xffff, "fut_setup", &["keymask", "thread", "buffer_size"]),
    (0xfffe, "fut_keychange", &["keymask", "thread"]),
    (0xfffd, "fut_reset", &["keymask", "thread"]),
    (0xfffc, "fut_calibrate0", &[]),
    (0xfffb, "fut_calibrate1", &["first"]),
    (0xfffa, "fut_calibrate2", &["first", "second"]),
    (0xfff9, "fut_thread_birth", &["thread:u"]),
    (0xfff8, "fut_thread_death", &["thread:u"]),
    (0xfff7, "fut_set_thread_name", &["thread:u", "name:t"]),
    // The second is the user thread that it carries (PM2), or the LWP itself (StarPU).
    (FUT_NEW_LWP, "fut_new_lwp", &["number", "carries"]),
    (0xfff5, "fut_start_flush", &[]),
    (0xfff4, "fut_stop_flush", &[]),
    (0xffef, "fut_rqs_newlevel", &["count"]),
    (0xffee, "fut_rqs_newlwprq", &["number", "queue:a"]),
    (0xffed, "fut_rqs_newrq", &["level", "queue:a"]),
    (0x31a, "fut_switch_to", &["next:u", "next_number"]),
    (0x301, "fut_main_entry", &[]),
    (0x401, "fut_main_exit", &[]),
    (0x320, "fut_gcc_instrument_entry", &["function:a"]),
    (0x420, "fut_gcc_instrument_exit", &["function:a"]),
];

const KERNEL: &[Known] = &[
    (0xffff, "fkt_setup", &[]),
    (0xfffe, "fkt_keychange", &[]),
    (0xfffd, "fkt_reset", &[]),
    (0xfffc, "fkt_calibrate0", &[]),
    (0xfffb, "fkt_calibrate1", &[]),
    (0xfffa, "fkt_calibrate2", &[]),
    (0xfff9, "do_fork", &["child_pid"]),
    // Recorded when the parent has waited for the process.
    (0xfff8, "end_of_pid", &["pid"]),
    (0xfff7, "do_execve", &["name:t"]),
    // An LWP of PM2 records its number, and the thread that it carries.
    (0xfff6, "user_fork", &["number", "thread"]),
    (0xffef, "fkt_record_writing", &[]),
    (0xffee, "fkt_record_written", &[]),
    (FKT_RET_FROM_SYS_CALL, "ret_from_sys_call", &[]),
    (0x31a, "switch_to", &["next_pid"]),
    (0x37f, "do_softirq_entry", &[]),
    (0x47f, "do_softirq_exit", &[]),
    (0x321, "tasklet_entry", &[]),
    (0x421, "tasklet_exit", &[]),
    (0x308, "open_entry", &["name:t"]),
    (0x408, "open_exit", &[]),
    (0x31b, "wait4_entry", &[]),
    (0x41b, "wait4_exit", &[]),
    (0x320, "gcc_instrument_entry", &["function:a"]),
    (0x420, "gcc_instrument_exit", &["function:a"]),
];

/// libfxt's name and fields of a code.
pub(super) fn known(kernel: bool, code: u64) -> Option<(&'static str, Vec<Field>)> {
    let table = if kernel { KERNEL } else { USER };
    let (_, name, fields) = table.iter().find(|(number, ..)| *number == code)?;
    Some((name, fields.iter().map(|field| field_of(field)).collect()))
}

fn field_of(field: &str) -> Field {
    let (name, ty) = match field.split_once(':') {
        Some((name, "a")) => (name, FieldType::Pointer),
        Some((name, "t")) => (name, FieldType::Text),
        Some((name, "u")) => (name, FieldType::Thread),
        _ => (field, FieldType::U64),
    };
    Field { name: name.to_owned(), ty }
}

/// A kernel's unshifted code: an entry of some kind, with a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum KernelEntry {
    SystemCall(u64),
    Trap(u64),
    Interrupt(u64),
    /// An interrupt of the local APIC, by vector.
    SystemInterrupt(u64),
}

impl KernelEntry {
    /// The names of the events of all kinds: those of the paper where it has one.
    pub(super) const NAMES: [(&'static str, &'static str); 4] =
        [("SYSTEM_CALL", "id"), ("trap", "trap"), ("IRQ", "irq"), ("sys_irq", "vector")];

    /// `None` for a code that is shifted.
    pub(super) fn of(code: u64) -> Option<KernelEntry> {
        Some(match code {
            0..0x200 => KernelEntry::SystemCall(code),
            0x200..0x220 => KernelEntry::Trap(code - 0x200),
            0x220..0x2ef => KernelEntry::Interrupt(code - 0x220),
            0x2ef..UNSHIFTED_LIMIT => KernelEntry::SystemInterrupt(code - 0x2ef + 0xee),
            _ => return None,
        })
    }

    /// Index in [`NAMES`](Self::NAMES), and the number.
    pub(super) fn split(self) -> (usize, u64) {
        match self {
            KernelEntry::SystemCall(number) => (0, number),
            KernelEntry::Trap(number) => (1, number),
            KernelEntry::Interrupt(number) => (2, number),
            KernelEntry::SystemInterrupt(number) => (3, number),
        }
    }

    /// A number that is unique among interrupts; `None` for an entry that is not an interrupt.
    pub(super) fn interrupt(self) -> Option<i64> {
        match self {
            KernelEntry::Interrupt(number) => interrupt_number(InterruptKind::Irq, number as i64),
            KernelEntry::SystemInterrupt(vector) => interrupt_number(InterruptKind::Vector, vector as i64),
            _ => None,
        }
    }
}
