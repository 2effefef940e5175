//! One record, with its LWP, time and CPU.

use sigmund_model::{Cpu, Lwp};

use super::attr::Attr;
use super::fields;
use super::layout::{
    PERF_RECORD_COMM, PERF_RECORD_EXIT, PERF_RECORD_FORK, PERF_RECORD_LOST, PERF_RECORD_LOST_SAMPLES,
    PERF_RECORD_MMAP, PERF_RECORD_MMAP2, PERF_RECORD_SAMPLE, PERF_RECORD_SWITCH, PERF_RECORD_SWITCH_CPU_WIDE,
    PERF_RECORD_USER_TYPE_START,
};
use crate::cut::ByteOrder;

/// Larger CPU numbers count as damage: `NR_CPUS` is at most 8192.
const MOST_CPUS: u32 = 8192;
/// Ids within a range of this size are found in a table, others by binary search.
const MOST_DENSE_IDS: u64 = 1 << 20;
const NO_ATTR: u16 = u16::MAX;

/// One record: `u32 type | u16 misc | u16 size | body`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Record<'a> {
    pub(super) ty: u32,
    pub(super) misc: u16,
    pub(super) body: &'a [u8],
    pub(super) order: ByteOrder,
}

impl<'a> Record<'a> {
    /// Whether the kernel wrote it, not perf.
    pub(super) fn is_of_the_kernel(&self) -> bool {
        self.ty < PERF_RECORD_USER_TYPE_START
    }

    /// Whether it becomes an event, or a loss.
    #[inline]
    pub(super) fn is_read(&self) -> bool {
        matches!(
            self.ty,
            PERF_RECORD_SAMPLE
                | PERF_RECORD_SWITCH
                | PERF_RECORD_SWITCH_CPU_WIDE
                | PERF_RECORD_COMM
                | PERF_RECORD_FORK
                | PERF_RECORD_EXIT
                | PERF_RECORD_MMAP
                | PERF_RECORD_MMAP2
                | PERF_RECORD_LOST
                | PERF_RECORD_LOST_SAMPLES
        )
    }

    pub(super) fn u32_at(&self, at: usize) -> Option<u32> {
        self.order.u32_at(self.body, at)
    }

    pub(super) fn u64_at(&self, at: usize) -> Option<u64> {
        self.order.u64_at(self.body, at)
    }

    /// The LWP and its name of a COMM, `u32 pid | u32 tid | comm\0`.
    pub(super) fn comm(&self) -> Option<(Lwp, String)> {
        let text = self.body.get(8..).filter(|_| self.ty == PERF_RECORD_COMM)?;
        Some((Lwp(self.u32_at(4)?), fields::text(text)))
    }
}

/// The attribute, LWP, time and CPU of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stamp {
    /// Index of its attribute.
    pub(super) attr: u16,
    /// `None` for an LWP without a number: it is being released.
    pub(super) lwp: Option<Lwp>,
    pub(super) time: u64,
    /// `None` if its attribute does not request CPUs.
    pub(super) cpu: Option<Cpu>,
}

/// The attributes of a file, and the mapping of records to them.
#[derive(Debug)]
pub(super) struct Attrs {
    list: Vec<Attr>,
    /// Sorted by id.
    ids: Vec<(u64, u16)>,
    first_id: u64,
    /// Attribute by id − `first_id`; empty if the ids are too far apart.
    dense: Vec<u16>,
    /// The position of the stamp if it is the same in all samples; `None` if it depends on the attribute.
    everywhere: Option<StampPlaces>,
}

/// The positions of a sample's stamp.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct StampPlaces {
    id: Option<u16>,
    time: u16,
    tid: u16,
    cpu: u16,
}

impl StampPlaces {
    /// `None` if the sample has no time, LWP or CPU.
    fn of(attr: &Attr) -> Option<StampPlaces> {
        let places = &attr.sample;
        Some(StampPlaces { id: places.id, time: places.time?, tid: places.tid?, cpu: places.cpu? })
    }
}

impl Attrs {
    /// `Err` is the reason why records cannot be attributed to attributes.
    pub(super) fn new(list: Vec<Attr>) -> Result<Attrs, &'static str> {
        let Some(first) = list.first() else { return Err("no attribute") };
        if list.len() >= usize::from(NO_ATTR) {
            return Err("more than 65534 attributes");
        }
        let agree =
            |attr: &Attr| attr.sample.id == first.sample.id && attr.sample_id.id == first.sample_id.id;
        if list.len() > 1 && !(list.iter().all(agree) && first.sample.id.is_some()) {
            return Err("several attributes with the id at different places");
        }
        if list.iter().all(|attr| attr.sample.time.is_none()) {
            return Err("records without a time");
        }
        let mut ids: Vec<(u64, u16)> = Vec::new();
        for (index, attr) in list.iter().enumerate() {
            ids.extend(attr.ids.iter().map(|id| (*id, index as u16)));
        }
        ids.sort_unstable();
        let (first_id, last_id) = (ids.first().map_or(0, |id| id.0), ids.last().map_or(0, |id| id.0));
        let mut dense = Vec::new();
        if last_id - first_id < MOST_DENSE_IDS {
            dense.resize((last_id - first_id) as usize + 1, NO_ATTR);
            ids.iter().for_each(|(id, attr)| dense[(id - first_id) as usize] = *attr);
        }
        let everywhere = StampPlaces::of(&list[0])
            .filter(|places| list.iter().all(|attr| StampPlaces::of(attr) == Some(*places)));
        Ok(Attrs { list, ids, first_id, dense, everywhere })
    }

    pub(super) fn list(&self) -> &[Attr] {
        &self.list
    }

    #[inline]
    pub(super) fn get(&self, stamp: &Stamp) -> Option<&Attr> {
        self.list.get(usize::from(stamp.attr))
    }

    #[inline]
    pub(super) fn by_id(&self, id: u64) -> Option<u16> {
        if self.list.len() == 1 {
            return Some(0);
        }
        if self.dense.is_empty() {
            let found = self.ids.binary_search_by_key(&id, |(id, _)| *id).ok()?;
            return Some(self.ids[found].1);
        }
        let index = usize::try_from(id.checked_sub(self.first_id)?).ok()?;
        self.dense.get(index).copied().filter(|attr| *attr != NO_ATTR)
    }

    /// The stamp of a record that becomes an event or a loss; `None` for others.
    #[inline(always)]
    pub(super) fn stamp_of_read(&self, record: &Record<'_>) -> Option<Stamp> {
        if record.is_of_the_kernel() && record.is_read() { self.stamp(record) } else { None }
    }

    /// `None` if the record has no attribute or no time, or is inconsistent.
    ///
    /// Always inlined: a stamp returned in memory is written field by field and copied as a whole, and the copy waits
    /// for the writes. That was half the time of `next_in_file` (`perf annotate`).
    #[inline(always)]
    pub(super) fn stamp(&self, record: &Record<'_>) -> Option<Stamp> {
        match self.everywhere {
            Some(StampPlaces { id, time, tid, cpu }) if record.ty == PERF_RECORD_SAMPLE => {
                let id = match id {
                    Some(at) => record.u64_at(usize::from(at))?,
                    None => 0,
                };
                let place = |at: u16| Some(usize::from(at));
                self.stamp_at(record, self.by_id(id)?, place(time), place(tid), place(cpu))
            }
            _ => self.stamp_by_attr(record),
        }
    }

    #[inline(never)]
    fn stamp_by_attr(&self, record: &Record<'_>) -> Option<Stamp> {
        let (body, first) = (record.body, self.list.first()?);
        if record.ty == PERF_RECORD_SAMPLE {
            let id = match first.sample.id {
                Some(at) => record.u64_at(usize::from(at))?,
                None => 0,
            };
            let attr = self.by_id(id)?;
            let places = &self.list[usize::from(attr)].sample;
            let place = |at: Option<u16>| at.map(usize::from);
            return self.stamp_at(record, attr, place(places.time), place(places.tid), place(places.cpu));
        }
        let from_end = |at: Option<u16>| at.and_then(|at| body.len().checked_sub(usize::from(at)));
        let id = match from_end(first.sample_id.id) {
            Some(at) => record.u64_at(at)?,
            None => 0,
        };
        // Records written by perf itself have no id; perf attributes them to the first attribute.
        let attr = if id == 0 { 0 } else { self.by_id(id)? };
        let places = &self.list[usize::from(attr)].sample_id;
        self.stamp_at(record, attr, from_end(places.time), from_end(places.tid), from_end(places.cpu))
    }

    /// The id at the end of a record that is not a sample.
    pub(super) fn trailing_id(&self, record: &Record<'_>) -> Option<u64> {
        let at = usize::from(self.list.first()?.sample_id.id?);
        record.u64_at(record.body.len().checked_sub(at)?)
    }

    #[inline(always)]
    fn stamp_at(
        &self,
        record: &Record<'_>,
        attr: u16,
        time: Option<usize>,
        tid: Option<usize>,
        cpu: Option<usize>,
    ) -> Option<Stamp> {
        let time = record.u64_at(time?)?;
        // u32 pid | u32 tid
        let lwp = match tid {
            Some(at) => Some(record.u32_at(at + 4)?).filter(|tid| *tid <= i32::MAX as u32).map(Lwp),
            None => None,
        };
        let cpu = match cpu {
            Some(at) => Some(Cpu(record.u32_at(at).filter(|cpu| *cpu < MOST_CPUS)?)),
            None => None,
        };
        Some(Stamp { attr, lwp, time, cpu })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::perf_data::layout::{ATTR_SAMPLE_ID_ALL, OUR_SAMPLE_TYPE, PERF_RECORD_SWITCH};

    fn attr(ids: &[u64]) -> Attr {
        let mut bytes = [0; 128];
        bytes[4] = 128;
        bytes[24..32].copy_from_slice(&OUR_SAMPLE_TYPE.to_le_bytes());
        bytes[40..48].copy_from_slice(&ATTR_SAMPLE_ID_ALL.to_le_bytes());
        let mut attr = Attr::parse(&bytes, ByteOrder::Little).unwrap();
        attr.ids = ids.to_vec();
        attr
    }

    // | pid 7, tid 8 | time 9 | cpu 1, 0 | identifier 5 |
    #[test]
    fn a_sample_id_is_counted_from_the_end() {
        let mut body = vec![0xff; 12];
        for number in [7u32, 8, 9, 0, 1, 0, 5, 0] {
            body.extend(number.to_le_bytes());
        }
        let order = ByteOrder::Little;
        let record = Record { ty: PERF_RECORD_SWITCH, misc: 0, body: &body, order };
        for far in [6, u64::MAX] {
            let attrs = Attrs::new(vec![attr(&[far, 4]), attr(&[5])]).unwrap();
            let stamp = Stamp { attr: 1, lwp: Some(Lwp(8)), time: 9, cpu: Some(Cpu(1)) };
            assert_eq!(attrs.stamp(&record), Some(stamp));
            let short = Record { body: &body[..20], ..record };
            assert_eq!(attrs.stamp(&short), None);
            assert_eq!((attrs.by_id(4), attrs.by_id(7), attrs.by_id(0)), (Some(0), None, None));
        }
    }
}
