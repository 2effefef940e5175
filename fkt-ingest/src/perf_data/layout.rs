//! The numbers of perf.data and of perf's records (include/uapi/linux/perf_event.h, v6.12;
//! tools/perf/Documentation/perf.data-file-format.txt).

pub(crate) const MAGIC: &[u8] = b"PERFILE2";
/// Size of the file's header.
pub(crate) const HEADER_SIZE: u64 = 104;
/// Size of `struct perf_event_attr` as we write it (`PERF_ATTR_SIZE_VER7`).
pub(crate) const ATTR_SIZE: u64 = 128;

pub(crate) const PERF_TYPE_SOFTWARE: u32 = 1;
pub(crate) const PERF_COUNT_SW_DUMMY: u64 = 9;

pub(crate) const PERF_RECORD_LOST: u32 = 2;
pub(crate) const PERF_RECORD_COMM: u32 = 3;
pub(crate) const PERF_RECORD_EXIT: u32 = 4;
pub(crate) const PERF_RECORD_FORK: u32 = 7;
pub(crate) const PERF_RECORD_SWITCH: u32 = 14;
pub(crate) const PERF_RECORD_SWITCH_CPU_WIDE: u32 = 15;
/// From here on, records are perf's own and have no `sample_id`.
pub(crate) const PERF_RECORD_USER_TYPE_START: u32 = 64;
pub(crate) const PERF_RECORD_FINISHED_ROUND: u32 = 68;

pub(crate) const PERF_RECORD_MISC_SWITCH_OUT: u16 = 1 << 13;
pub(crate) const PERF_RECORD_MISC_SWITCH_OUT_PREEMPT: u16 = 1 << 14;

pub(crate) const PERF_SAMPLE_TID: u64 = 1 << 1;
pub(crate) const PERF_SAMPLE_TIME: u64 = 1 << 2;
pub(crate) const PERF_SAMPLE_ID: u64 = 1 << 6;
pub(crate) const PERF_SAMPLE_CPU: u64 = 1 << 7;
pub(crate) const PERF_SAMPLE_STREAM_ID: u64 = 1 << 9;
pub(crate) const PERF_SAMPLE_IDENTIFIER: u64 = 1 << 16;

/// What our own recordings carry behind every record.
pub(crate) const OUR_SAMPLE_TYPE: u64 =
    PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CPU | PERF_SAMPLE_IDENTIFIER;
