//! The header of a packet: `packet.header`, which identifies the trace and the stream, and `packet.context`, with its
//! size, its time, its CPU, and the count of lost events.
//!
//! ```text
//!   0               first event             content_size     packet_size
//!   | header, context | event | event | …     | padding        |           in bits
//! ```

use sigmund_model::Cpu;

use super::bits::Bits;
use super::plan::{DiscardValues, Register, State, Stop, run};
use super::table::Table;
use crate::error::ParseError;

/// `magic` of every packet of events.
pub(super) const MAGIC: u32 = 0xc1fc_1fc1;

/// A parsed header and context of a packet.
#[derive(Clone, Debug)]
pub(super) struct Packet {
    /// Index of its stream's plan.
    pub(super) stream: usize,
    pub(super) stream_instance_id: Option<u64>,
    /// The position of its first event, in bits from its start.
    pub(super) first_event: u64,
    /// Size of the content in bits; at most to the end of the file.
    pub(super) content: u64,
    /// In bytes; `None` for a packet that extends to the end of the file.
    pub(super) size: Option<u64>,
    /// Bits of content after the end of the file.
    pub(super) missing: u64,
    pub(super) begin: Option<u64>,
    pub(super) end: Option<u64>,
    pub(super) sequence: Option<u64>,
    /// Number of events discarded since the stream began.
    pub(super) discarded: Option<u64>,
    pub(super) cpu: Option<Cpu>,
}

/// Reads the header of the packet at the start of `bytes`, which extend to the end of the file; `at` is their position
/// in it.
pub(super) fn read(
    table: &Table,
    uuid: Option<[u8; 16]>,
    bytes: &[u8],
    at: u64,
    state: &mut State,
) -> Result<Packet, ParseError> {
    let parse_error = |part, expected: String, found: String| Err(ParseError { at, part, expected, found });
    let all = bytes.len() as u64 * 8;
    let mut bits = Bits::new(bytes, 0, all);
    let stopped = |stop: Stop| ParseError {
        at,
        part: "packet header",
        expected: "a complete header".to_owned(),
        found: format!("{} bytes to the end of the file ({stop:?})", bytes.len()),
    };
    run(&table.header.ops, &mut bits, state, &mut DiscardValues).map_err(stopped)?;
    let header = &table.header;
    let get = |state: &State, register: Option<Register>| register.map(|register| state.get(register));
    if let Some(magic) = get(state, header.magic).filter(|magic| *magic as u32 != MAGIC) {
        return parse_error("packet header", format!("magic {MAGIC:#x}"), format!("{magic:#x}"));
    }
    if header.has_uuid && uuid.is_some_and(|uuid| uuid != state.uuid) {
        let found = format!("{:02x?}", state.uuid);
        return parse_error("packet header", "the uuid of the metadata".to_owned(), found);
    }
    let stream_id = get(state, header.stream_id);
    let Some((stream, plan)) = table.stream(stream_id) else {
        let found = stream_id.map_or("none".to_owned(), |id| id.to_string());
        return parse_error("packet header", "the id of a declared stream".to_owned(), found);
    };
    run(&plan.context, &mut bits, state, &mut DiscardValues).map_err(stopped)?;

    let known = &plan.well_known;
    let size = get(state, known.packet_size);
    let content = get(state, known.content_size).or(size).unwrap_or(all);
    let fits = bits.pos() <= content && size.is_none_or(|size| content <= size && size % 8 == 0);
    if !fits || size.is_some_and(|size| size == 0) {
        let expected = format!("{} ≤ content_size ≤ packet_size", bits.pos());
        return parse_error("packet context", expected, format!("{content} and {size:?} bits"));
    }
    let begin = get(state, known.timestamp_begin).map(|begin| {
        state.widen(begin, known.timestamp_size);
        state.time
    });
    // 0 is an end that was never written, because the program was killed.
    let end = get(state, known.timestamp_end).filter(|end| *end != 0).map(|end| {
        let begin = state.time;
        state.widen(end, known.timestamp_size);
        std::mem::replace(&mut state.time, begin)
    });
    if let (Some(begin), Some(end)) = (begin, end)
        && end < begin
    {
        return parse_error("packet context", format!("timestamp_end of at least {begin}"), end.to_string());
    }
    Ok(Packet {
        stream,
        stream_instance_id: get(state, header.stream_instance_id),
        first_event: bits.pos(),
        content: content.min(all),
        size: size.map(|size| size / 8),
        missing: content.saturating_sub(all),
        begin,
        end,
        sequence: get(state, known.packet_seq_num),
        discarded: get(state, known.events_discarded),
        cpu: get(state, known.cpu_id).and_then(|cpu| u32::try_from(cpu).ok()).map(Cpu),
    })
}
