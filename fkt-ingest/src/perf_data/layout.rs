//! The numbers of perf.data and of perf's records (include/uapi/linux/perf_event.h, v6.12;
//! tools/perf/Documentation/perf.data-file-format.txt).

pub(crate) const MAGIC: &[u8] = b"PERFILE2";
/// The magic in a file of a big-endian machine, where it is byte-swapped.
pub(crate) const MAGIC_BIG: &[u8] = b"2ELIFREP";
/// Size of the file's header.
pub(crate) const HEADER_SIZE: u64 = 104;
/// Size of the header of a recording through a pipe: magic and size.
pub(crate) const PIPE_HEADER_SIZE: u64 = 16;
/// Size of `struct perf_event_attr` in our files (`PERF_ATTR_SIZE_VER7`).
pub(crate) const ATTR_SIZE: u64 = 128;

pub(crate) const PERF_TYPE_SOFTWARE: u32 = 1;
pub(crate) const PERF_TYPE_TRACEPOINT: u32 = 2;
pub(crate) const PERF_COUNT_SW_DUMMY: u64 = 9;

pub(crate) const PERF_RECORD_MMAP: u32 = 1;
pub(crate) const PERF_RECORD_LOST: u32 = 2;
pub(crate) const PERF_RECORD_COMM: u32 = 3;
pub(crate) const PERF_RECORD_EXIT: u32 = 4;
pub(crate) const PERF_RECORD_FORK: u32 = 7;
pub(crate) const PERF_RECORD_SAMPLE: u32 = 9;
pub(crate) const PERF_RECORD_MMAP2: u32 = 10;
pub(crate) const PERF_RECORD_LOST_SAMPLES: u32 = 13;
pub(crate) const PERF_RECORD_SWITCH: u32 = 14;
pub(crate) const PERF_RECORD_SWITCH_CPU_WIDE: u32 = 15;
/// Types from here on are perf's own records, without `sample_id`.
pub(crate) const PERF_RECORD_USER_TYPE_START: u32 = 64;
pub(crate) const PERF_RECORD_HEADER_ATTR: u32 = 64;
pub(crate) const PERF_RECORD_HEADER_TRACING_DATA: u32 = 66;
pub(crate) const PERF_RECORD_FINISHED_ROUND: u32 = 68;
pub(crate) const PERF_RECORD_ID_INDEX: u32 = 69;
pub(crate) const PERF_RECORD_AUXTRACE: u32 = 71;
pub(crate) const PERF_RECORD_EVENT_UPDATE: u32 = 78;
pub(crate) const PERF_RECORD_TIME_CONV: u32 = 79;
pub(crate) const PERF_RECORD_HEADER_FEATURE: u32 = 80;
pub(crate) const PERF_RECORD_COMPRESSED: u32 = 81;
pub(crate) const PERF_RECORD_FINISHED_INIT: u32 = 82;
pub(crate) const PERF_RECORD_COMPRESSED2: u32 = 83;
/// Larger record types count as damage; 6.17 has types up to 84.
pub(crate) const HIGHEST_RECORD: u32 = 127;

pub(crate) const PERF_RECORD_MISC_CPUMODE_MASK: u16 = 7;
pub(crate) const PERF_RECORD_MISC_SWITCH_OUT: u16 = 1 << 13;
pub(crate) const PERF_RECORD_MISC_SWITCH_OUT_PREEMPT: u16 = 1 << 14;

pub(crate) const PERF_SAMPLE_IP: u64 = 1 << 0;
pub(crate) const PERF_SAMPLE_TID: u64 = 1 << 1;
pub(crate) const PERF_SAMPLE_TIME: u64 = 1 << 2;
pub(crate) const PERF_SAMPLE_ADDR: u64 = 1 << 3;
pub(crate) const PERF_SAMPLE_READ: u64 = 1 << 4;
pub(crate) const PERF_SAMPLE_CALLCHAIN: u64 = 1 << 5;
pub(crate) const PERF_SAMPLE_ID: u64 = 1 << 6;
pub(crate) const PERF_SAMPLE_CPU: u64 = 1 << 7;
pub(crate) const PERF_SAMPLE_PERIOD: u64 = 1 << 8;
pub(crate) const PERF_SAMPLE_STREAM_ID: u64 = 1 << 9;
pub(crate) const PERF_SAMPLE_RAW: u64 = 1 << 10;
pub(crate) const PERF_SAMPLE_IDENTIFIER: u64 = 1 << 16;

pub(crate) const PERF_FORMAT_TOTAL_TIME_ENABLED: u64 = 1 << 0;
pub(crate) const PERF_FORMAT_TOTAL_TIME_RUNNING: u64 = 1 << 1;
pub(crate) const PERF_FORMAT_ID: u64 = 1 << 2;
pub(crate) const PERF_FORMAT_GROUP: u64 = 1 << 3;
pub(crate) const PERF_FORMAT_LOST: u64 = 1 << 4;

/// Bits of `perf_event_attr`'s flags.
pub(crate) const ATTR_SAMPLE_ID_ALL: u64 = 1 << 18;
pub(crate) const ATTR_USE_CLOCKID: u64 = 1 << 25;
pub(crate) const ATTR_CONTEXT_SWITCH: u64 = 1 << 26;

/// Values in a call chain from here on are marks between its parts (`PERF_CONTEXT_MAX`, -4095).
pub(crate) const PERF_CONTEXT_MAX: u64 = -4095i64 as u64;

/// Bits of the header's feature bitmap (`HEADER_*`, tools/perf/util/header.h, v6.12).
pub(crate) mod feature {
    pub(crate) const TRACING_DATA: u32 = 1;
    pub(crate) const HOSTNAME: u32 = 3;
    pub(crate) const OSRELEASE: u32 = 4;
    pub(crate) const VERSION: u32 = 5;
    pub(crate) const ARCH: u32 = 6;
    pub(crate) const NRCPUS: u32 = 7;
    pub(crate) const CPUDESC: u32 = 8;
    pub(crate) const CPUID: u32 = 9;
    pub(crate) const TOTAL_MEM: u32 = 10;
    pub(crate) const CMDLINE: u32 = 11;
    pub(crate) const EVENT_DESC: u32 = 12;
    pub(crate) const CLOCKID: u32 = 23;
    pub(crate) const CLOCK_DATA: u32 = 29;
}

/// The fields at the end of every record of our own recordings.
pub(crate) const OUR_SAMPLE_TYPE: u64 =
    PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CPU | PERF_SAMPLE_IDENTIFIER;
