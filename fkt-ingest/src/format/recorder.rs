//! The LWP that recorded an event, and its context: the fields at the start of all events of a kernel.
//!
//! ```text
//!   0             2            3                     4            8
//!   | common_type | common_flags | common_preempt_count | common_pid | the event's own fields …
//! ```
//!
//! This layout is the same on every kernel seen. The positions are nevertheless read from the trace's declarations.

use sigmund_model::{Context, Lwp};

use super::number::{Number, Shape};

/// `common_flags` (`enum trace_flag_type`, include/linux/trace_events.h, v6.12).
const TRACE_FLAG_HARDIRQ: u8 = 0x08;
const TRACE_FLAG_SOFTIRQ: u8 = 0x10;
const TRACE_FLAG_NMI: u8 = 0x40;

/// The positions of `common_flags` and `common_pid`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Recorder {
    /// The layout above on a little-endian machine, read as eight bytes at once.
    Usual,
    Declared {
        flags: Option<Number>,
        pid: Option<Number>,
    },
}

impl Recorder {
    pub(super) fn new(flags: Option<Number>, pid: Option<Number>) -> Recorder {
        let usual = (Number { offset: 2, shape: Shape::U8 }, Number { offset: 4, shape: Shape::I32 });
        if (flags, pid) == (Some(usual.0), Some(usual.1)) {
            return Recorder::Usual;
        }
        Recorder::Declared { flags, pid }
    }

    #[inline]
    pub(super) fn read(self, record: &[u8]) -> (Context, Option<Lwp>) {
        let (flags, lwp) = match (self, record.first_chunk()) {
            (Recorder::Usual, Some([_, _, flags, _, a, b, c, d])) => {
                (*flags, u32::try_from(i32::from_le_bytes([*a, *b, *c, *d])).ok().map(Lwp))
            }
            // Too short to hold a PID.
            (Recorder::Usual, None) => (record.get(2).copied().unwrap_or(0), None),
            (Recorder::Declared { flags, pid }, _) => {
                let flags = flags.and_then(|n| n.read(record)).unwrap_or(0) as u8;
                (flags, pid.and_then(|n| n.read_lwp(record)))
            }
        };
        (context(flags, lwp), lwp)
    }
}

/// The context of the CPU: an NMI interrupts interrupts, which interrupt softirqs.
#[inline]
pub(super) fn context(flags: u8, lwp: Option<Lwp>) -> Context {
    match lwp {
        _ if flags & TRACE_FLAG_NMI != 0 => Context::Nmi,
        _ if flags & TRACE_FLAG_HARDIRQ != 0 => Context::Irq,
        _ if flags & TRACE_FLAG_SOFTIRQ != 0 => Context::Softirq,
        Some(Lwp::IDLE) => Context::Idle,
        _ => Context::Task,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nmi_beats_irq_beats_softirq_beats_idle() {
        assert_eq!(context(0x58, Some(Lwp(7))), Context::Nmi);
        assert_eq!(context(0x18, Some(Lwp(7))), Context::Irq);
        assert_eq!(context(0x10, Some(Lwp(0))), Context::Softirq);
        assert_eq!(context(0x00, Some(Lwp(0))), Context::Idle);
        assert_eq!(context(0x01, Some(Lwp(7))), Context::Task);
    }

    // |type|0x08|0|pid 70| as usual, and with the flags after the pid; then cut off
    #[test]
    fn the_usual_place_is_read_as_the_declared_one() {
        let flags = |offset| Some(Number { offset, shape: Shape::U8 });
        let pid = Some(Number { offset: 4, shape: Shape::I32 });
        let usual = Recorder::new(flags(2), pid);
        assert_eq!(usual, Recorder::Usual);
        let declared = Recorder::Declared { flags: flags(2), pid };
        for record in [[9, 9, 8, 0, 70, 0, 0, 0, 0], [9, 9, 0x40, 0, 0xff, 0xff, 0xff, 0xff, 0]] {
            for len in 0..=record.len() {
                assert_eq!(usual.read(&record[..len]), declared.read(&record[..len]), "{len} bytes");
            }
        }
        let elsewhere = Recorder::new(flags(8), pid);
        assert_eq!(elsewhere.read(&[9, 9, 0, 0, 70, 0, 0, 0, 8]), (Context::Irq, Some(Lwp(70))));
    }
}
