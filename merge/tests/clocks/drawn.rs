//! Traces as a test draws them: a perf.data of context switches on any clock, a user trace on the TSC.

use fut::trace::{
    Declaration, PacketFlags, PacketHead, PacketKind, RecordHead, encode_declarations, file_head,
};
use sigmund_model::{EventType, Field, FieldType, Level, Lwp, Pid, Ticks};

/// A switch of the kernel: (when, on which CPU, who leaves, who comes). LWP 0 is the idle task.
pub(crate) type Switch = (u64, u32, u32, u32);
/// An event of the program: (when, on which CPU, on which LWP).
pub(crate) type Message = (u64, u32, u32);

/// The numbers of clocks, as `clock_gettime` and perf's `clockid` have them.
pub(crate) const REALTIME: i32 = 0;
pub(crate) const MONOTONIC: i32 = 1;
pub(crate) const BOOTTIME: i32 = 7;

const IDENTIFIER: u64 = 5;

/// A perf.data with `PERF_RECORD_SWITCH_CPU_WIDE` records. Without a clock, it is perf's own.
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

/// A user trace of one packet for each LWP. Messages of each are in the order of time.
pub(crate) fn user_trace(messages: &[Message]) -> Vec<u8> {
    let declared = Declaration {
        event: EventType {
            level: Level::User,
            code: Some(7),
            name: "received_msg".into(),
            key: 1,
            fields: vec![Field { name: "len".into(), ty: FieldType::U64 }],
            format: String::new(),
        },
        file: "drawn.rs".into(),
        line: 1,
    };
    let mut trace = file_head().to_vec();
    trace.extend(head(PacketKind::DECLARATIONS, 0).encode(&encode_declarations([&declared].into_iter())));
    let mut lwps: Vec<u32> = messages.iter().map(|(_, _, lwp)| *lwp).collect();
    lwps.sort_unstable();
    lwps.dedup();
    for lwp in lwps {
        let of_lwp: Vec<&Message> = messages.iter().filter(|message| message.2 == lwp).collect();
        let (first, last) = (of_lwp[0].0, of_lwp[of_lwp.len() - 1].0);
        let payload: Vec<u8> = of_lwp.into_iter().flat_map(record).collect();
        let (first_tick, last_tick) = (Ticks(first), Ticks(last));
        trace.extend(PacketHead { first_tick, last_tick, ..head(PacketKind::EVENTS, lwp) }.encode(&payload));
        trace.extend(head(PacketKind::LWP_END, lwp).encode(&[]));
    }
    trace
}

fn record((tick, cpu, lwp): &Message) -> Vec<u8> {
    let head = RecordHead { code: 7, words: 1, flags: 0, cpu: *cpu as u16 };
    [*tick, head.to_word(), u64::from(*lwp)].into_iter().flat_map(u64::to_le_bytes).collect()
}

fn head(kind: PacketKind, lwp: u32) -> PacketHead {
    PacketHead {
        kind,
        flags: PacketFlags::default(),
        length: 0,
        pid: Pid(60),
        lwp: Lwp(lwp),
        sequence: 0,
        first_tick: Ticks(0),
        thread: None,
        lost: 0,
        last_tick: Ticks(0),
    }
}
