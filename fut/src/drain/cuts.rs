//! Where a part of a trace ends in the middle of packets. An LWP that records little fills one packet for hours, but
//! its records belong to the parts in which they were made.
//!
//! ```text
//! packet 7 of an LWP   | a  b  c  d | e  f  g |
//!                        └ part 3   │ └ part 4: the rest, flagged as CONTINUED
//!                                   └ what was committed when part 3 ended
//! ```
//!
//! The producer does not take part in this, and its packet stays where it is (rule 8a of the ring). When the packet is
//! taken later, the records that were already written are left out.

use std::collections::HashMap;

use sigmund_model::{Thread, Ticks, names};

use super::output::Output;
use crate::{
    shm::ring::{Consumer, Taken},
    trace::{PACKET_HEAD_LEN, PacketFlags, PacketHead, PacketKind, Records, decode_declarations},
};

/// The packets of an arena that are partly written, by the number of their ring.
#[derive(Debug, Default)]
pub(super) struct Cuts(HashMap<u32, Cut>);

/// How much of a packet has been written.
#[derive(Clone, Copy, Debug)]
struct Cut {
    sequence: u64,
    /// Bytes of records.
    len: usize,
    records: u64,
    last_tick: Ticks,
    /// The user thread that was mounted after these records.
    thread: Option<Thread>,
}

impl Cuts {
    /// Writes the committed part of the packet that the drain would take next. `switch` is the code of user context
    /// switches.
    pub(super) fn write_begun(
        &mut self,
        index: u32,
        ring: &Consumer<'_>,
        switch: Option<u32>,
        out: &mut Output,
    ) -> Option<Taken> {
        let mut taken = ring.copy_begun(out.payload())?;
        let (len, records) = (taken.head.length as usize, taken.records);
        let mounted = mounted_after(&out.payload()[..len], switch);
        self.leave_out_written(index, &mut taken, out.payload());
        if taken.records == 0 {
            return None;
        }
        let thread = mounted.unwrap_or(taken.head.thread);
        let cut =
            Cut { sequence: taken.head.sequence, len, records, last_tick: taken.head.last_tick, thread };
        self.0.insert(index, cut);
        out.push(&taken.head, taken.records);
        Some(taken)
    }

    /// Writes a taken packet, whose records are in the payload of `out`. Records that were already written are left
    /// out.
    pub(super) fn write_taken(&mut self, index: u32, mut taken: Taken, out: &mut Output) -> Taken {
        let cut = self.leave_out_written(index, &mut taken, out.payload());
        self.0.remove(&index);
        if cut.is_none() || taken.records > 0 {
            out.push(&taken.head, taken.records);
        }
        taken
    }

    /// Called when the next packets of a ring are those of another LWP.
    pub(super) fn forget(&mut self, index: u32) {
        self.0.remove(&index);
    }

    /// Removes the records of a packet that were already written.
    fn leave_out_written(&self, index: u32, taken: &mut Taken, payload: &mut [u8]) -> Option<Cut> {
        let cut = *self.0.get(&index).filter(|cut| cut.sequence == taken.head.sequence)?;
        let whole = taken.head.length as usize;
        // The process may have changed what it had committed, so the packet may be shorter than its written part.
        let written = cut.len.min(whole);
        payload.copy_within(written..whole, 0);
        let PacketFlags(flags) = taken.head.flags;
        taken.head = PacketHead {
            flags: PacketFlags(flags | PacketFlags::CONTINUED.0),
            length: (whole - written) as u32,
            first_tick: cut.last_tick,
            thread: cut.thread,
            last_tick: taken.head.last_tick.max(cut.last_tick),
            ..taken.head
        };
        taken.records = taken.records.saturating_sub(cut.records);
        Some(cut)
    }
}

/// The user thread that is mounted after these records; `None` if they have no user context switch.
fn mounted_after(records: &[u8], switch: Option<u32>) -> Option<Option<Thread>> {
    let switch = switch?;
    let switches = Records::of(records).filter(|record| record.head.code == switch);
    switches.last().map(|record| record.word(0).and_then(Thread::from_switch))
}

/// The code of user context switches, according to the declarations in these metadata packets.
pub(super) fn switch_code(mut metadata: &[u8]) -> Option<u32> {
    while let Ok((head, _)) = PacketHead::parse(metadata, 0) {
        let end = PACKET_HEAD_LEN + head.length as usize;
        let payload = metadata.get(PACKET_HEAD_LEN..end)?;
        if head.kind == PacketKind::DECLARATIONS {
            let declared = decode_declarations(payload, 0).ok()?;
            let found =
                declared.into_iter().find(|declared| declared.event.name == names::USER_CONTEXT_SWITCH);
            if let Some(found) = found {
                return found.event.code;
            }
        }
        metadata = &metadata[end..];
    }
    None
}
