//! perf.data, some 1.5 KiB: a tracepoint, PC samples with call chains, switches, processes and losses on two CPUs.
//!
//! The layouts are those of perf's `Documentation/perf.data-file-format.txt` and of `perf_event.h` (v6.12).

use super::{EVENT, Tiny};

/// Samples, switches, process events and mappings.
const EVENTS: usize = 11;
/// identifier, ip, tid, time, cpu, period, raw data.
const TRACEPOINT: u64 = 0x10587;
/// The same with a call chain, and no raw data.
const PROGRAM_COUNTER: u64 = 0x101a7;
const TRACEPOINT_ID: u64 = 11;
const PROGRAM_COUNTER_ID: u64 = 21;

pub(super) fn all() -> Vec<Tiny> {
    let tiny = |name, bytes| Tiny { name, bytes, events: EVENTS };
    vec![
        tiny("perf_data-file", file(&records())),
        tiny("perf_data-file-zstd", file(&compressed(&records()))),
        tiny("perf_data-pipe", pipe(&records())),
        tiny("perf_data-pipe-zstd", pipe(&compressed(&records()))),
    ]
}

fn u64s(numbers: &[u64]) -> Vec<u8> {
    numbers.iter().flat_map(|n| n.to_le_bytes()).collect()
}

fn u32s(numbers: &[u32]) -> Vec<u8> {
    numbers.iter().flat_map(|n| n.to_le_bytes()).collect()
}

/// 128 bytes; every record has an id, switches are recorded, the clock is `CLOCK_MONOTONIC`.
fn attr(ty: u32, config: u64, sample_type: u64) -> Vec<u8> {
    let flags = 1 << 18 | 1 << 25 | 1 << 26;
    let mut attr = [u32s(&[ty, 128]), u64s(&[config, 1, sample_type, 0, flags])].concat();
    attr.resize(92, 0);
    attr.extend(u32s(&[1]));
    attr.resize(128, 0);
    attr
}

fn attrs() -> [(Vec<u8>, u64, &'static str); 2] {
    [
        (attr(2, 9, TRACEPOINT), TRACEPOINT_ID, "x:e"),
        (attr(1, 0, PROGRAM_COUNTER), PROGRAM_COUNTER_ID, "cpu-clock"),
    ]
}

/// `type u32 | misc u16 | size u16 | …`
fn record(ty: u32, misc: u16, parts: &[&[u8]]) -> Vec<u8> {
    let mut body = parts.concat();
    body.resize(body.len().next_multiple_of(8), 0);
    let size = body.len() as u16 + 8;
    [&ty.to_le_bytes()[..], &misc.to_le_bytes(), &size.to_le_bytes(), &body].concat()
}

/// `tid | time | cpu | identifier`
fn sample_id(lwp: u32, time: u64, cpu: u32) -> Vec<u8> {
    [u32s(&[lwp, lwp]), u64s(&[time]), u32s(&[cpu, 0]), u64s(&[TRACEPOINT_ID])].concat()
}

fn sample(id: u64, lwp: u32, time: u64, cpu: u32) -> Vec<u8> {
    let head =
        [u64s(&[id, 0x40_1000]), u32s(&[lwp, lwp]), u64s(&[time]), u32s(&[cpu, 0]), u64s(&[1])].concat();
    if id == PROGRAM_COUNTER_ID {
        // The count, then the positions of the kernel's and the program's part.
        return record(9, 2, &[&head, &u64s(&[4, -128_i64 as u64, 0xffff_8000, -512_i64 as u64, 0x40_1000])]);
    }
    let raw = [&[9, 0, 0, 0][..], &u32s(&[lwp, 5 << 16 | 16, 1]), b"text\0\0\0\0\0\0\0\0"].concat();
    record(9, 2, &[&head, &u32s(&[raw.len() as u32]), &raw])
}

/// Records of two rounds; the second round's first one is older than the first's last.
fn records() -> Vec<u8> {
    let switch = |lwp, time, out: bool| record(14, u16::from(out) << 13, &[&sample_id(lwp, time, 0)]);
    let switch_to = |next, lwp, time| record(15, 1 << 13, &[&u32s(&[next, next]), &sample_id(lwp, time, 1)]);
    let round = record(68, 0, &[]);
    [
        record(3, 0, &[&u32s(&[7, 7]), b"seven\0\0\0", &sample_id(7, 900, 0)]),
        sample(TRACEPOINT_ID, 7, 1000, 0),
        sample(TRACEPOINT_ID, 8, 1100, 1),
        switch(7, 1200, true),
        record(7, 0, &[&u32s(&[9, 7, 9, 7]), &u64s(&[1250]), &sample_id(7, 1250, 0)]),
        record(
            10,
            2,
            &[
                &u32s(&[7, 7]),
                &u64s(&[0x40_0000, 0x1000, 0]),
                &[0; 24],
                &u32s(&[5, 2]),
                b"/bin/seven\0\0\0\0\0\0",
                &sample_id(7, 1260, 0),
            ],
        ),
        sample(PROGRAM_COUNTER_ID, 8, 1300, 1),
        round.clone(),
        switch(9, 1280, false),
        switch_to(0, 8, 1400),
        record(2, 0, &[&u64s(&[TRACEPOINT_ID, 5]), &sample_id(8, 1450, 1)]),
        sample(TRACEPOINT_ID, 9, 1500, 0),
        record(4, 0, &[&u32s(&[9, 7, 9, 7]), &u64s(&[1600]), &sample_id(9, 1600, 0)]),
        record(13, 0, &[&u64s(&[3]), &sample_id(8, 1700, 1)]),
        round,
    ]
    .concat()
}

/// All records within one zstd stream, cut within records.
fn compressed(records: &[u8]) -> Vec<u8> {
    let packed = zstd::bulk::compress(records, 1).unwrap();
    packed
        .chunks(200)
        .flat_map(|chunk| {
            [&u32s(&[81]), &[0, 0][..], &(8 + chunk.len() as u16).to_le_bytes(), chunk].concat()
        })
        .collect()
}

/// The declarations of events, as perf stores those of the kernel.
fn tracing_data() -> Vec<u8> {
    let text = |text: &str| [&u64s(&[text.len() as u64]), text.as_bytes()].concat();
    [
        b"\x17\x08\x44tracing0.6\0\0\x08".to_vec(),
        u32s(&[4096]),
        b"header_page\0".to_vec(),
        text(""),
        b"header_event\0".to_vec(),
        text(""),
        u32s(&[0, 1]),
        b"x\0".to_vec(),
        u32s(&[1]),
        text(EVENT),
        u32s(&[0, 0]),
        text("7 seven\n"),
    ]
    .concat()
}

/// Features by their bits: tracing data, architecture, event descriptions, clock id, compression, clock data.
fn features() -> Vec<(u32, Vec<u8>)> {
    let text = |text: &str| [&u32s(&[text.len() as u32 + 1]), text.as_bytes(), &[0]].concat();
    let [one, other] = attrs().map(|(attr, id, name)| [attr, u32s(&[1]), text(name), u64s(&[id])].concat());
    vec![
        (1, tracing_data()),
        (6, text("x86_64")),
        (12, [u32s(&[2, 128]), one, other].concat()),
        (23, u64s(&[1_000_000_000])),
        (27, u32s(&[1, 1, 1, 2, 4096])),
        (29, [u32s(&[1, 1]), u64s(&[1_700_000_000_000_000_000, 900])].concat()),
    ]
}

/// `header | ids | attributes | records | positions of features | features`
fn file(records: &[u8]) -> Vec<u8> {
    let ids_at = 104;
    let attrs_at = ids_at + 16;
    let data_at = attrs_at + 2 * 144;
    let end = data_at + records.len() as u64;
    let features = features();
    let bits = features.iter().fold(0, |bits, (bit, _)| bits | 1_u64 << bit);
    let mut bytes = b"PERFILE2".to_vec();
    bytes.extend(u64s(&[104, 144, attrs_at, 2 * 144, data_at, records.len() as u64, 0, 0, bits, 0, 0, 0]));
    bytes.extend(u64s(&[TRACEPOINT_ID, PROGRAM_COUNTER_ID]));
    for (place, (attr, _, _)) in (ids_at..).step_by(8).zip(attrs()) {
        bytes.extend([attr, u64s(&[place, 8])].concat());
    }
    bytes.extend(records);
    let mut at = end + 16 * features.len() as u64;
    for (_, feature) in &features {
        bytes.extend(u64s(&[at, feature.len() as u64]));
        at += feature.len() as u64;
    }
    features.iter().for_each(|(_, feature)| bytes.extend(feature));
    bytes
}

/// The same in records.
fn pipe(records: &[u8]) -> Vec<u8> {
    let mut bytes = [b"PERFILE2", &16_u64.to_le_bytes()[..]].concat();
    for (attr, id, _) in attrs() {
        bytes.extend(record(64, 0, &[&attr, &u64s(&[id])]));
    }
    for (bit, feature) in features() {
        if bit == 1 {
            let mut data = feature;
            data.resize(data.len().next_multiple_of(8), 0);
            // Its data follows it.
            bytes.extend([u32s(&[66, 12 << 16, data.len() as u32]), data].concat());
        } else {
            bytes.extend(record(80, 0, &[&u64s(&[bit.into()]), &feature]));
        }
    }
    bytes.extend(records);
    bytes
}
