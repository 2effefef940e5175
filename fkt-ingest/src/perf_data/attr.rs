//! `struct perf_event_attr`: what an event counts, and which fields its records have.
//!
//! ```text
//!   0     4     8       16             24           32           40     …  92            (v6.12)
//!   | type | size | config | sample period | sample type | read format | flags | … | clockid | …
//! ```
//!
//! A sample has the fields that the sample type names; those of a fixed size are first, in this order, so the attribute
//! determines their positions:
//!
//! ```text
//!   identifier | ip | pid u32, tid u32 | time | addr | id | stream id | cpu u32, 0 u32 | period | read … | callchain … | raw …
//! ```
//!
//! Every other record of the kernel ends with a `sample_id`, which has some of the same fields:
//!
//! ```text
//!   pid u32, tid u32 | time | id | stream id | cpu u32, 0 u32 | identifier
//! ```

use sigmund_model::ClockDomain;

use super::layout::{
    ATTR_CONTEXT_SWITCH, ATTR_SAMPLE_ID_ALL, ATTR_USE_CLOCKID, PERF_FORMAT_GROUP, PERF_FORMAT_ID,
    PERF_FORMAT_LOST, PERF_FORMAT_TOTAL_TIME_ENABLED, PERF_FORMAT_TOTAL_TIME_RUNNING, PERF_SAMPLE_ADDR,
    PERF_SAMPLE_CALLCHAIN, PERF_SAMPLE_CPU, PERF_SAMPLE_ID, PERF_SAMPLE_IDENTIFIER, PERF_SAMPLE_IP,
    PERF_SAMPLE_PERIOD, PERF_SAMPLE_RAW, PERF_SAMPLE_READ, PERF_SAMPLE_STREAM_ID, PERF_SAMPLE_TID,
    PERF_SAMPLE_TIME, PERF_TYPE_TRACEPOINT,
};
use crate::cut::ByteOrder;

/// One attribute, its ids, and the positions of the fields in its records.
#[derive(Clone, Debug)]
pub(super) struct Attr {
    pub(super) ty: u32,
    pub(super) config: u64,
    pub(super) sample_type: u64,
    read_format: u64,
    flags: u64,
    clockid: i32,
    /// The ids in its records: one for each CPU or LWP.
    pub(super) ids: Vec<u64>,
    /// perf's name: `sched:sched_switch`, `cycles:u`; empty if the file does not have it.
    pub(super) name: String,
    pub(super) sample: SampleLayout,
    pub(super) sample_id: SampleIdLayout,
}

/// Positions of the fields of a sample, from its start; `None` for a field that the sample does not have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct SampleLayout {
    pub(super) id: Option<u16>,
    pub(super) ip: Option<u16>,
    pub(super) tid: Option<u16>,
    pub(super) time: Option<u16>,
    pub(super) addr: Option<u16>,
    pub(super) cpu: Option<u16>,
    pub(super) period: Option<u16>,
    /// The position of the first field of variable size.
    variable: usize,
}

/// Positions of the fields of a `sample_id`, in bytes from the end of a record.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct SampleIdLayout {
    pub(super) id: Option<u16>,
    pub(super) tid: Option<u16>,
    pub(super) time: Option<u16>,
    pub(super) cpu: Option<u16>,
    /// Its size: the bytes before it are the record's own fields.
    pub(super) size: usize,
}

/// The parts of a sample that have a variable size.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Variable<'a> {
    /// Instruction pointers of eight bytes each, the innermost first, with marks between kernel and user parts.
    pub(super) callchain: Option<&'a [u8]>,
    /// The bytes that the tracepoint wrote.
    pub(super) raw: Option<&'a [u8]>,
}

/// The clock with this number in `clock_gettime`; `Ticks` for an unknown number.
pub(super) fn clock_of_id(id: i32) -> ClockDomain {
    match id {
        0 => ClockDomain::Realtime,
        1 => ClockDomain::Monotonic,
        4 => ClockDomain::MonotonicRaw,
        7 => ClockDomain::Boottime,
        _ => ClockDomain::Ticks,
    }
}

impl Attr {
    /// Reads an attribute. Attributes of older versions are shorter: their missing fields are 0. `None` if it has no
    /// sample type.
    pub(super) fn parse(bytes: &[u8], order: ByteOrder) -> Option<Attr> {
        let own_size = order.u32_at(bytes, 4).filter(|size| *size != 0).unwrap_or(64);
        let bytes = bytes.get(..(own_size as usize).min(bytes.len()))?;
        let flags = order.u64_at(bytes, 40)?;
        let sample_type = order.u64_at(bytes, 24)?;
        // The flags are a C bit field, which a big-endian compiler allocates from the other end.
        let flags = if order == ByteOrder::Big { flags.reverse_bits() } else { flags };
        Some(Attr {
            ty: order.u32_at(bytes, 0)?,
            config: order.u64_at(bytes, 8)?,
            sample_type,
            read_format: order.u64_at(bytes, 32)?,
            flags,
            clockid: order.u32_at(bytes, 92).unwrap_or(0) as i32,
            ids: Vec::new(),
            name: String::new(),
            sample: SampleLayout::new(sample_type),
            sample_id: SampleIdLayout::new(sample_type, flags),
        })
    }

    pub(super) fn is_tracepoint(&self) -> bool {
        self.ty == PERF_TYPE_TRACEPOINT
    }

    pub(super) fn has(&self, bits: u64) -> bool {
        self.sample_type & bits != 0
    }

    /// Whether it requests records of context switches.
    pub(super) fn reports_switches(&self) -> bool {
        self.flags & ATTR_CONTEXT_SWITCH != 0
    }

    pub(super) fn clock(&self) -> ClockDomain {
        if self.flags & ATTR_USE_CLOCKID == 0 { ClockDomain::Local } else { clock_of_id(self.clockid) }
    }

    /// Finds the parts of variable size of a sample with this attribute, as far as the sample contains them completely.
    #[inline]
    pub(super) fn variable<'a>(&self, sample: &'a [u8], order: ByteOrder) -> Variable<'a> {
        let mut found = Variable::default();
        let _ = self.find_variable(sample, order, &mut found);
        found
    }

    #[inline]
    fn find_variable<'a>(&self, sample: &'a [u8], order: ByteOrder, found: &mut Variable<'a>) -> Option<()> {
        let mut rest = sample.get(self.sample.variable..)?;
        if self.has(PERF_SAMPLE_READ) {
            rest = rest.get(self.read_size(rest, order)?..)?;
        }
        if self.has(PERF_SAMPLE_CALLCHAIN) {
            // u64 n, n × u64
            let size = usize::try_from(order.u64_at(rest, 0)?).ok()?.checked_mul(8)?;
            let (chain, after) = rest.get(8..)?.split_at_checked(size)?;
            found.callchain = Some(chain);
            rest = after;
        }
        if self.has(PERF_SAMPLE_RAW) {
            // u32 n, n bytes
            let size = order.u32_at(rest, 0)? as usize;
            found.raw = Some(rest.get(4..)?.get(..size)?);
        }
        Some(())
    }

    /// Bytes of `struct read_format`: `value, enabled?, running?, id?, lost?`, or of a group
    /// `n, enabled?, running?, n × (value, id?, lost?)`.
    fn read_size(&self, bytes: &[u8], order: ByteOrder) -> Option<usize> {
        let words = |bits: u64| (self.read_format & bits).count_ones() as usize;
        let times = words(PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING);
        let value = 1 + words(PERF_FORMAT_ID | PERF_FORMAT_LOST);
        if self.read_format & PERF_FORMAT_GROUP == 0 {
            return Some(8 * (times + value));
        }
        let count = usize::try_from(order.u64_at(bytes, 0)?).ok()?;
        count.checked_mul(value)?.checked_add(1 + times)?.checked_mul(8)
    }
}

impl SampleLayout {
    fn new(sample_type: u64) -> SampleLayout {
        let mut layout = SampleLayout::default();
        let mut place = |bit: u64| {
            let at = (sample_type & bit != 0).then_some(layout.variable as u16);
            layout.variable += at.map_or(0, |_| 8);
            at
        };
        let identifier = place(PERF_SAMPLE_IDENTIFIER);
        let (ip, tid, time) = (place(PERF_SAMPLE_IP), place(PERF_SAMPLE_TID), place(PERF_SAMPLE_TIME));
        let (addr, id, _) = (place(PERF_SAMPLE_ADDR), place(PERF_SAMPLE_ID), place(PERF_SAMPLE_STREAM_ID));
        let (cpu, period) = (place(PERF_SAMPLE_CPU), place(PERF_SAMPLE_PERIOD));
        SampleLayout { id: identifier.or(id), ip, tid, time, addr, cpu, period, ..layout }
    }
}

impl SampleIdLayout {
    fn new(sample_type: u64, flags: u64) -> SampleIdLayout {
        let mut layout = SampleIdLayout::default();
        if flags & ATTR_SAMPLE_ID_ALL == 0 {
            return layout;
        }
        // From the end.
        let mut place = |bit: u64| {
            layout.size += if sample_type & bit != 0 { 8 } else { 0 };
            (sample_type & bit != 0).then_some(layout.size as u16)
        };
        let (identifier, cpu) = (place(PERF_SAMPLE_IDENTIFIER), place(PERF_SAMPLE_CPU));
        let (_, id) = (place(PERF_SAMPLE_STREAM_ID), place(PERF_SAMPLE_ID));
        let (time, tid) = (place(PERF_SAMPLE_TIME), place(PERF_SAMPLE_TID));
        SampleIdLayout { id: identifier.or(id), tid, time, cpu, ..layout }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // 0x10587: identifier | ip | pid, tid | time | cpu | period | raw
    #[test]
    fn the_places_of_a_tracepoints_fields_follow_from_its_sample_type() {
        let sample = SampleLayout::new(0x10587);
        assert_eq!((sample.id, sample.ip, sample.tid, sample.time), (Some(0), Some(8), Some(16), Some(24)));
        assert_eq!((sample.cpu, sample.period, sample.variable), (Some(32), Some(40), 48));
        // pid, tid | time | cpu | identifier
        let layout = SampleIdLayout::new(0x10587, ATTR_SAMPLE_ID_ALL);
        assert_eq!((layout.id, layout.cpu, layout.time, layout.tid), (Some(8), Some(16), Some(24), Some(32)));
        assert_eq!(SampleIdLayout::new(0x10587, 0), SampleIdLayout::default());
    }

    // | n = 2 | value, id | value, id | callchain: 1, ip | raw: 3, "abc"
    #[test]
    fn parts_of_variable_size_are_found_after_each_other_or_not_at_all() {
        let mut bytes = vec![0; 112];
        bytes[24..32]
            .copy_from_slice(&(PERF_SAMPLE_READ | PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_RAW).to_le_bytes());
        bytes[32..40].copy_from_slice(&(PERF_FORMAT_GROUP | PERF_FORMAT_ID).to_le_bytes());
        bytes[4] = 112;
        let attr = Attr::parse(&bytes, ByteOrder::Little).unwrap();
        let words = [2u64, 10, 11, 20, 21, 1, 0xffff];
        let mut sample: Vec<u8> = words.iter().flat_map(|w| w.to_le_bytes()).collect();
        sample.extend(3u32.to_le_bytes());
        sample.extend(b"abc");
        let found = attr.variable(&sample, ByteOrder::Little);
        assert_eq!((found.callchain, found.raw), (Some(&sample[48..56]), Some(&b"abc"[..])));
        let short = attr.variable(&sample[..61], ByteOrder::Little);
        assert!(short.callchain.is_some() && short.raw.is_none());
        sample[..8].fill(0xff);
        assert!(attr.variable(&sample, ByteOrder::Little).raw.is_none());
    }
}
