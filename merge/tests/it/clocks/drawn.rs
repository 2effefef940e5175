//! A perf.data of context switches on any clock.

/// A context switch: time, CPU, previous LWP, next LWP. LWP 0 is the idle task.
pub(crate) type Switch = (u64, u32, u32, u32);

/// Clock ids of `clock_gettime` and perf's `clockid`.
pub(crate) const REALTIME: i32 = 0;
pub(crate) const MONOTONIC: i32 = 1;
pub(crate) const BOOTTIME: i32 = 7;

const IDENTIFIER: u64 = 5;

/// A perf.data with `PERF_RECORD_SWITCH_CPU_WIDE` records. Without a clock id, the clock is perf's.
pub(crate) fn perf_data(clock: Option<i32>, switches: &[Switch]) -> Vec<u8> {
    let mut attr = [0_u8; 128];
    let (sample_id_all, use_clockid, context_switch) = (1_u64 << 18, 1 << 25, 1 << 26);
    let flags = sample_id_all | context_switch | clock.map_or(0, |_| use_clockid);
    let (tid, time, cpu, identifier) = (1_u64 << 1, 1 << 2, 1 << 7, 1 << 16);
    attr[0..4].copy_from_slice(&1_u32.to_le_bytes());
    attr[4..8].copy_from_slice(&128_u32.to_le_bytes());
    attr[8..16].copy_from_slice(&9_u64.to_le_bytes());
    attr[24..32].copy_from_slice(&(tid | time | cpu | identifier).to_le_bytes());
    attr[40..48].copy_from_slice(&flags.to_le_bytes());
    attr[92..96].copy_from_slice(&clock.unwrap_or(0).to_le_bytes());

    let records: Vec<u8> = switches.iter().flat_map(switch_record).collect();
    let (ids_at, attr_at, records_at) = (104_u64, 112, 112 + 144);
    let mut file = b"PERFILE2".to_vec();
    for number in [104, 144, attr_at, 144, records_at, records.len() as u64] {
        file.extend(number.to_le_bytes());
    }
    file.resize(104, 0);
    file.extend(IDENTIFIER.to_le_bytes());
    file.extend(attr);
    file.extend([ids_at, 8].into_iter().flat_map(u64::to_le_bytes));
    file.extend(records);
    file
}

/// `type u32 | misc u16 | size u16 | next pid, tid | pid, tid | time | cpu, 0 | identifier`
fn switch_record((time, cpu, prev, next): &Switch) -> Vec<u8> {
    let (switch_cpu_wide, out_preempted) = (15_u32, (1_u16 << 13) | (1 << 14));
    let mut record = switch_cpu_wide.to_le_bytes().to_vec();
    record.extend(out_preempted.to_le_bytes());
    record.extend(48_u16.to_le_bytes());
    record.extend([*next, *next, *prev, *prev].into_iter().flat_map(u32::to_le_bytes));
    record.extend(time.to_le_bytes());
    record.extend([*cpu, 0].into_iter().flat_map(u32::to_le_bytes));
    record.extend(IDENTIFIER.to_le_bytes());
    record
}
