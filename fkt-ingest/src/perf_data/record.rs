//! One record, and the `sample_id` behind it.

use sigmund_model::{ClockDomain, Cpu, Lwp};

use super::layout::{
    PERF_RECORD_COMM, PERF_RECORD_EXIT, PERF_RECORD_FORK, PERF_RECORD_LOST, PERF_RECORD_SWITCH,
    PERF_RECORD_SWITCH_CPU_WIDE, PERF_RECORD_USER_TYPE_START, PERF_SAMPLE_CPU, PERF_SAMPLE_ID,
    PERF_SAMPLE_IDENTIFIER, PERF_SAMPLE_STREAM_ID, PERF_SAMPLE_TID, PERF_SAMPLE_TIME,
};
use crate::cut::Cut;
use crate::error::Misfit;

/// Bits of `perf_event_attr`'s flags.
const SAMPLE_ID_ALL: u64 = 1 << 18;
const USE_CLOCKID: u64 = 1 << 25;

/// One record: `u32 type | u16 misc | u16 size | body`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Record<'a> {
    pub(super) at: u64,
    pub(super) ty: u32,
    pub(super) misc: u16,
    pub(super) body: &'a [u8],
}

impl<'a> Record<'a> {
    /// Whether it is of a kind that streams read.
    pub(super) fn is_read(&self) -> bool {
        matches!(
            self.ty,
            PERF_RECORD_SWITCH
                | PERF_RECORD_SWITCH_CPU_WIDE
                | PERF_RECORD_COMM
                | PERF_RECORD_FORK
                | PERF_RECORD_EXIT
                | PERF_RECORD_LOST
        )
    }

    /// Whether the kernel wrote it, not perf.
    pub(super) fn is_of_the_kernel(&self) -> bool {
        self.ty < PERF_RECORD_USER_TYPE_START
    }

    pub(super) fn u32_at(&self, at: usize) -> Option<u32> {
        self.body.get(at..)?.first_chunk().copied().map(u32::from_le_bytes)
    }

    pub(super) fn u64_at(&self, at: usize) -> Option<u64> {
        self.body.get(at..)?.first_chunk().copied().map(u64::from_le_bytes)
    }

    /// Of a COMM, `u32 pid | u32 tid | comm\0`: the LWP and its name.
    pub(super) fn comm(&self) -> Option<(Lwp, &'a str)> {
        let text = self.body.get(8..).filter(|_| self.ty == PERF_RECORD_COMM)?;
        let text = text.split(|b| *b == 0).next()?;
        Some((Lwp(self.u32_at(4)?), std::str::from_utf8(text).ok()?))
    }
}

/// Walks the records of a range of the file.
#[derive(Clone, Debug)]
pub(super) struct Records<'a> {
    cut: Cut<'a>,
}

impl<'a> Records<'a> {
    pub(super) fn new(file: &'a [u8], from: u64, to: u64) -> Records<'a> {
        let mut cut = Cut::of_file(file, from);
        let len = to.saturating_sub(from).min(cut.rest().len() as u64);
        let cut = cut.part(len, "records").unwrap_or(cut);
        Records { cut }
    }

    /// Where the next record is.
    pub(super) fn at(&self) -> u64 {
        self.cut.at()
    }

    pub(super) fn next(&mut self) -> Result<Option<Record<'a>>, Misfit> {
        if self.cut.rest().is_empty() {
            return Ok(None);
        }
        let before = self.cut.clone();
        let (ty, misc, size) = (self.cut.u32("record")?, self.cut.u16("record")?, self.cut.u16("record")?);
        let Some(len) = size.checked_sub(8) else {
            return Err(before.misfit("record", "at least 8 bytes".to_owned(), format!("{size} bytes")));
        };
        let body = self.cut.bytes(u64::from(len), "record")?;
        Ok(Some(Record { at: before.at(), ty, misc, body }))
    }
}

/// Where the fields of `sample_id` are, in bytes from the end of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SampleId {
    tid: usize,
    time: usize,
    cpu: usize,
}

/// What a `sample_id` says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sampled {
    pub(super) tid: u32,
    pub(super) time: u64,
    pub(super) cpu: Cpu,
}

impl SampleId {
    /// From an attribute; `Err` is what was expected and what there is.
    pub(super) fn new(sample_type: u64, flags: u64) -> Result<SampleId, (String, String)> {
        let needed = PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CPU;
        if flags & SAMPLE_ID_ALL == 0 || sample_type & needed != needed {
            let expected = "LWP, time and CPU in every record (sample_id_all)".to_owned();
            return Err((expected, format!("sample_type {sample_type:#x}")));
        }
        let size = |bits: u64| 8 * (sample_type & bits).count_ones() as usize;
        let cpu = 8 + size(PERF_SAMPLE_IDENTIFIER);
        let time = cpu + size(PERF_SAMPLE_STREAM_ID | PERF_SAMPLE_ID) + 8;
        Ok(SampleId { tid: time + 8, time, cpu })
    }

    /// Whether a record can be read by either.
    pub(super) fn same_place_as(&self, other: &SampleId) -> bool {
        self == other
    }

    pub(super) fn read(&self, record: &Record<'_>) -> Option<Sampled> {
        let from_end = |n: usize| record.body.len().checked_sub(n);
        let tid = record.u32_at(from_end(self.tid)? + 4)?;
        let time = record.u64_at(from_end(self.time)?)?;
        let cpu = Cpu(record.u32_at(from_end(self.cpu)?)?);
        Some(Sampled { tid, time, cpu })
    }
}

/// The clock of an attribute.
pub(super) fn clock(flags: u64, clockid: i32) -> ClockDomain {
    match clockid {
        _ if flags & USE_CLOCKID == 0 => ClockDomain::Local,
        0 => ClockDomain::Realtime,
        1 => ClockDomain::Monotonic,
        4 => ClockDomain::MonotonicRaw,
        7 => ClockDomain::Boottime,
        _ => ClockDomain::Ticks,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::perf_data::layout::OUR_SAMPLE_TYPE;

    // | pid 7, tid 8 | time 9 | cpu 1, 0 | identifier 5 |
    #[test]
    fn a_sample_id_is_counted_from_the_end() {
        let mut body = vec![0xff; 12];
        for number in [7u32, 8, 9, 0, 1, 0, 5, 0] {
            body.extend(number.to_le_bytes());
        }
        let record = Record { at: 0, ty: PERF_RECORD_SWITCH, misc: 0, body: &body };
        let sample_id = SampleId::new(OUR_SAMPLE_TYPE, SAMPLE_ID_ALL).unwrap();
        assert_eq!(sample_id.read(&record), Some(Sampled { tid: 8, time: 9, cpu: Cpu(1) }));
        let short = Record { body: &body[..20], ..record };
        assert_eq!(sample_id.read(&short), None);
        assert!(SampleId::new(PERF_SAMPLE_TID, SAMPLE_ID_ALL).is_err());
    }
}
