//! Writes the seeds of the fuzz targets to `fuzz/seeds/TARGET/`: the tiny files of the tests, one of each variant, and
//! small fixtures. Short inputs are fast to read, and each of their bytes is mutated more often.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use fut::trace::{
    DECLARED_BIT, Declaration, PacketHead, PacketKind, ProbeCosts, RecordHead, code_with_text, encode_costs,
    encode_declarations, file_head,
};
use sigmund_model::{EventType, Field, FieldType, Level, Lwp, Pid, Thread, Ticks};

// Modules of the tests, which use more of them.
#[allow(dead_code, unreachable_pub)]
#[path = "../../fkt-ingest/tests/it/fxt_made.rs"]
mod fxt_made;
#[allow(dead_code)]
#[path = "../../fkt-ingest/tests/it/generator/mod.rs"]
mod generator;
#[allow(dead_code)]
#[path = "../../fkt-ingest/tests/it/tiny/mod.rs"]
mod tiny;

// It is built with the same flags as the targets, which require libFuzzer's coverage functions.
use libfuzzer_sys as _;

fn main() -> io::Result<()> {
    for file in tiny::all() {
        let target = file.name.split('-').next().unwrap_or_default();
        seed(target, file.name, &file.bytes)?;
    }
    let ingest = in_project("fkt-ingest/tests/fixtures");
    seed("fxt", "fixture", &read(&ingest.join("small-fut-test.fxt"))?)?;
    for name in ["figure2", "figure3"] {
        seed("listing", name, &read(&in_project("tests/fixtures/paper").join(name).with_extension("tsv"))?)?;
    }
    for name in ["small-ust", "mixed-ust"] {
        seed("ctf", name, &ctf(&ingest.join("ctf").join(name))?)?;
    }
    let [declarations, costs, events, switches, end] = user_packets();
    let all = [&declarations, &costs, &events, &switches, &end];
    let packets = all.map(|(head, payload)| head.encode(payload)).concat();
    seed("user_trace", "whole", &[&file_head()[..], &packets].concat())?;
    let payloads = all.map(|(head, payload)| unframed(head, payload)).concat();
    seed("user_trace", "payloads", &payloads)?;
    let before = carried().map(|(head, payload)| unframed(&head, &payload)).concat();
    seed("carried", "whole", &[&(before.len() as u16).to_le_bytes()[..], &before, &payloads].concat())?;
    seed("carried", "part", &[&[0, 0], &payloads[..]].concat())
}

/// A file of what was carried before: a thread, and an LWP with an open span.
fn carried() -> [Payload; 3] {
    let about = |kind| PacketHead::about(kind, Pid(1), Ticks(0));
    let owner = |tag: u8, number: u64, name: &str, spans: &[[u64; 3]]| {
        let mut bytes = vec![tag];
        bytes.extend(number.to_le_bytes());
        bytes.extend((name.len() as u32).to_le_bytes());
        bytes.extend(name.bytes());
        // Creation, creator, mounted; on LWP 3; left, for a mutex at 9, made ready.
        bytes.extend([2_u64, 1, 4].map(u64::to_le_bytes).concat());
        bytes.extend(3_u32.to_le_bytes());
        bytes.extend(5_u64.to_le_bytes());
        bytes.extend([3, 1]);
        bytes.extend([9_u64, 6].map(u64::to_le_bytes).concat());
        bytes.extend((spans.len() as u32).to_le_bytes());
        bytes.extend(spans.iter().flatten().flat_map(|word| word.to_le_bytes()));
        bytes
    };
    let owners = [owner(0, 7, "server", &[]), owner(1, 3, "", &[[3 << 32 | 5, 16, 8]])].concat();
    let lwps = [0_u64, 3, 1, 0, 0].map(u64::to_le_bytes).concat();
    let end = [2_u64, 0].map(u64::to_le_bytes).concat();
    [
        (about(PacketKind::CARRIED_LWPS), lwps),
        (about(PacketKind::CARRIED_THREADS), owners),
        (about(PacketKind::CARRIED_END), end),
    ]
}

fn in_project(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(path)
}

fn seed(target: &str, name: &str, bytes: &[u8]) -> io::Result<()> {
    let folder = in_project("fuzz/seeds").join(target);
    fs::create_dir_all(&folder)?;
    fs::write(folder.join(name), bytes)
}

/// In the target's format: `u16 length, u16 length | metadata | stream | other stream`. The metadata is plain text,
/// where adding or removing a byte does not shift the rest out of its packet; of the streams only the first packets.
fn ctf(trace: &Path) -> io::Result<Vec<u8>> {
    let packets = read(&trace.join("metadata.zst"))?;
    // `magic u32 | uuid 16 | checksum u32 | content u32 | packet u32 | …`, both in bits; 37 bytes in all.
    let size =
        |at: usize| packets[at..].first_chunk().map_or(0, |bits| u32::from_le_bytes(*bits) as usize / 8);
    let metadata = &packets[37..size(24)];
    let one = read(&trace.join("ch_1.zst"))?;
    let one = &one[..one.len().min(4096)];
    let lengths = [metadata.len() as u16, one.len() as u16].map(u16::to_le_bytes).concat();
    Ok([&lengths, metadata, one, one].concat())
}

/// A file, decompressed if its name has the suffix of a compressed one.
fn read(path: &Path) -> io::Result<Vec<u8>> {
    let bytes = fs::read(path)?;
    if path.extension().is_some_and(|e| e == "zst") { zstd::decode_all(bytes.as_slice()) } else { Ok(bytes) }
}

type Payload = (PacketHead, Vec<u8>);

/// Packets of one LWP with two user threads.
fn user_packets() -> [Payload; 5] {
    let about = |kind, first, last| PacketHead {
        lwp: Lwp(3),
        thread: Some(Thread(7)),
        last_tick: Ticks(last),
        ..PacketHead::about(kind, Pid(1), Ticks(first))
    };
    let declared = |(code, name, types): (u32, &str, &[FieldType])| Declaration {
        event: EventType {
            code: Some(DECLARED_BIT | code),
            level: Level::User,
            key: 1,
            name: name.to_owned(),
            fields: types.iter().map(|ty| Field { name: ty.name().to_owned(), ty: *ty }).collect(),
            format: String::new(),
        },
        file: "said.rs".to_owned(),
        line: 7,
    };
    use FieldType::{I64, Text, U64};
    let declarations = [
        (1, "USER_THREAD_NEW", &[FieldType::Thread, Text][..]),
        (2, "USER_THREAD_READY", &[FieldType::Thread]),
        (3, "USER_CONTEXT_SWITCH", &[FieldType::Thread, U64, U64]),
        (4, "LWP_ATTACH", &[U64]),
        (5, "said", &[I64, Text]),
    ];
    let declarations = encode_declarations(declarations.map(declared).iter());
    let record = |tick: u64, code: u32, words: &[u64]| {
        let head = RecordHead { code, words: words.len() as u8, flags: 0, cpu: 2 }.to_word();
        [&[tick, head], words].concat().into_iter().flat_map(u64::to_le_bytes).collect::<Vec<u8>>()
    };
    let text = u64::from_le_bytes(*b"a text!!");
    let rust = |tick, code: u32, words: &[u64]| record(tick, DECLARED_BIT | code, words);
    let said = [rust(10, 4, &[99]), rust(15, 5, &[42, 8, text]), rust(20, 5, &[43, 0])].concat();
    // The last one is from a C program without declarations, with a text after a number.
    let scheduled = [
        rust(30, 1, &[8, 0]),
        rust(31, 2, &[8]),
        rust(40, 3, &[8, 1, 0]),
        record(50, code_with_text(9, 1), &[1, 8, text]),
    ]
    .concat();
    let costs = encode_costs(&ProbeCosts { record: 30.5, per_word: 1.0, clock_read: 20.0 });
    [
        (about(PacketKind::DECLARATIONS, 0, 0), declarations),
        (about(PacketKind::COSTS, 0, 0), costs),
        (about(PacketKind::EVENTS, 10, 20), said),
        (PacketHead { sequence: 1, ..about(PacketKind::EVENTS, 30, 50) }, scheduled),
        (PacketHead { sequence: 2, ..about(PacketKind::LWP_END, 60, 60) }, vec![0; 16]),
    ]
}

/// In the target's format: `u8 kind | u8 LWP | u8 sequence | u8 first tick, u8 last tick | u16 length | payload`.
fn unframed(head: &PacketHead, payload: &[u8]) -> Vec<u8> {
    let numbers = [
        u64::from(head.kind.0),
        head.lwp.0.into(),
        head.sequence,
        head.first_tick.0,
        head.last_tick.0,
        payload.len() as u64 & 0xff,
        payload.len() as u64 >> 8,
    ];
    [&numbers.map(|number| number as u8)[..], payload].concat()
}
