//! Truncated, flipped and invalid traces: an error or a part of the events, with the losses counted, and never much
//! memory or time.

use std::fs;
use std::process::Command;

use fkt_ingest::{CtfTrace, TraceFile};
use sigmund_model::{Event, EventStream};

use super::parts;
use super::writer::{self, Head, Order};

/// Events and losses; `None` if the trace is refused.
fn try_all(metadata: &[u8], streams: Vec<(String, Vec<u8>)>) -> Option<(usize, usize)> {
    // An error names its position.
    let trace = CtfTrace::from_bytes("hostile", metadata, streams);
    let trace = trace.inspect_err(|e| assert!(e.offset().is_some(), "{e}")).ok()?;
    let mut event = Event::default();
    let (mut events, mut losses) = (0, TraceFile::losses(&trace).len());
    for mut stream in trace.streams() {
        while stream.next_into(&mut event).unwrap() {
            events += 1;
        }
        losses += stream.take_losses().len();
    }
    Some((events, losses))
}

/// xorshift64: the same flips in every run.
fn random(state: &mut u64) -> u64 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    *state
}

/// The metadata as plain text, and only the first packet-sized part of the busy stream: small enough to try every byte.
fn small() -> (Vec<u8>, Vec<u8>) {
    let (metadata, mut streams) = parts("mixed-ust");
    (metadata, streams.remove(1).1)
}

#[test]
fn a_metadata_truncated_anywhere_is_refused_or_has_a_loss() {
    let (metadata, stream) = small();
    let content = u32::from_le_bytes(metadata[24..28].try_into().unwrap()) as usize / 8;
    let all = try_all(&metadata, vec![("ch_1".to_owned(), stream.clone())]).unwrap();
    assert_eq!(all, (400, 0));
    let mut refused = 0;
    let step = if cfg!(debug_assertions) { 3 } else { 1 };
    for cut in (0..content).step_by(step) {
        match try_all(&metadata[..cut], vec![("ch_1".to_owned(), stream[..4096].to_vec())]) {
            None => refused += step,
            Some((_, losses)) => assert!(losses > 0, "cut at {cut}"),
        }
    }
    // The block `trace` is at the beginning.
    assert!(refused < content / 2, "{refused} of {content} refused");
}

#[test]
fn a_stream_cut_anywhere_keeps_what_is_readable() {
    let (metadata, stream) = small();
    let step = if cfg!(debug_assertions) { 61 } else { 1 };
    let mut before = 0;
    for cut in (0..stream.len()).step_by(step) {
        let streams = vec![("ch_1".to_owned(), stream[..cut].to_vec())];
        let (events, losses) = try_all(&metadata, streams).unwrap();
        assert!(events >= before, "cut at {cut}: {events} events, {before} when cut before");
        // Packets may end with bytes that no event needs, and a file where a packet does.
        assert!(
            losses > 0 || events == 400 || is_border(&stream, cut),
            "cut at {cut}: {events} events, no loss"
        );
        before = events;
    }
    assert_eq!(before, 400);
}

/// Whether a file truncated here ends after the content of a packet, so that it lacks nothing that it begins.
fn is_border(stream: &[u8], cut: usize) -> bool {
    let word = |at: usize| u64::from_le_bytes(stream[at..at + 8].try_into().unwrap()) as usize / 8;
    let mut at = 0;
    while at < cut {
        // magic, uuid, stream, instance: 32 bytes; begin, end, content, size.
        let (content, size) = (word(at + 48), word(at + 56));
        if cut < at + content {
            return false;
        }
        at += size;
    }
    true
}

#[test]
fn flipped_bits_cost_at_most_what_they_touch() {
    let (metadata, stream) = small();
    let mut state = 0x5167_4d75_6e64_0003;
    let rounds = if cfg!(debug_assertions) { 800 } else { 100_000 };
    let (mut refused, mut lost_most) = (0, 0);
    for _ in 0..rounds {
        let (mut metadata, mut stream) = (metadata.clone(), stream.clone());
        let at = random(&mut state) as usize;
        let bit = 1u8 << (random(&mut state) % 8);
        let in_metadata = random(&mut state).is_multiple_of(4);
        let bytes = if in_metadata { &mut metadata } else { &mut stream };
        let at = at % bytes.len();
        bytes[at] ^= bit;
        match try_all(&metadata, vec![("ch_1".to_owned(), stream)]) {
            None => {
                assert!(in_metadata, "a flipped bit of a stream refuses the trace");
                refused += 1;
            }
            Some((events, _)) if !in_metadata => lost_most += usize::from(events < 200),
            Some(_) => {}
        }
    }
    assert!(refused < rounds / 8, "{refused} of {rounds} refused");
    assert!(lost_most < rounds / 100, "{lost_most} of {rounds} lost more than half");
}

/// Moves, copies and drops parts of the bytes, and flips some bits.
fn stir(bytes: &mut Vec<u8>, state: &mut u64) {
    for _ in 0..1 + random(state) % 4 {
        let at = random(state) as usize % bytes.len();
        let to = (at + 1 + random(state) as usize % 40).min(bytes.len());
        let part = bytes[at..to].to_vec();
        let other = random(state) as usize % bytes.len();
        match random(state) % 4 {
            0 => bytes[at] ^= 1 << (random(state) % 8),
            1 => drop(bytes.splice(other..other, part)),
            2 => bytes[at..to].fill(random(state) as u8),
            _ if bytes.len() > 100 => drop(bytes.drain(at..to)),
            _ => {}
        }
    }
}

#[test]
fn stirred_bytes_are_survived() {
    let order = Order::Big;
    let (metadata, mut streams) = super::made::kernel(order);
    let stream = streams.remove(0).1;
    let mut state = 0x5167_4d75_6e64_0009;
    let rounds = if cfg!(debug_assertions) { 400 } else { 100_000 };
    let mut read = 0;
    for _ in 0..rounds {
        let (mut metadata, mut stream) = (metadata.clone().into_bytes(), stream.clone());
        match random(&mut state) % 3 {
            0 => stir(&mut stream, &mut state),
            _ => stir(&mut metadata, &mut state),
        }
        read += usize::from(try_all(&metadata, vec![("s".to_owned(), stream)]).is_some_and(|(n, _)| n > 0));
    }
    assert!(read > rounds / 4, "{read} of {rounds} gave events");
}

fn with_fields(fields: &str, write: impl FnOnce(&mut writer::Bits)) -> Option<(usize, usize)> {
    let rest = format!(
        "stream {{ id = 0; packet.context := struct packet_context; }};
         event {{ name = \"e\"; id = 0; stream_id = 0; fields := struct {{ {fields} }}; }};"
    );
    let head = Head { begin: 1, end: 2, ..Head::default() };
    let stream = writer::packet(Order::Little, head, write);
    try_all((writer::head(Order::Little, "ust") + &rest).as_bytes(), vec![("s".to_owned(), stream)])
}

#[test]
fn absurd_counts_are_refused_or_counted() {
    // An array of 2^63 bytes, and one with a length from the packet.
    let all = |bits: &mut writer::Bits| bits.put(64, 8, -1);
    assert_eq!(with_fields("uint8_t a[0x8000000000000000];", all), Some((0, 1)));
    assert_eq!(with_fields("uint64_t n; uint8_t a[n];", all), Some((0, 1)));
    // 2^64 elements without a bit, alone and nested; the event takes the bits of its length.
    assert_eq!(with_fields("uint64_t n; struct {} a[n];", all), Some((1, 0)));
    assert_eq!(with_fields("uint64_t n; struct { struct {} b[n]; } a[n];", all), Some((1, 0)));
    // An event without a bit.
    assert_eq!(with_fields("", all), Some((0, 1)));
    // A tag without its option.
    let variant = "enum : uint8_t { a } t; variant <t> { uint8_t a; } v;";
    assert_eq!(with_fields(variant, all), Some((0, 1)));
    // Sequences that take a step each and no bits, for each bit of the packet.
    let steps = "uint8_t l[zero];".repeat(2000).replace("l[", "l[inner.");
    let steps = format!("struct {{ uint8_t zero; }} inner; {steps}");
    let zeros = |bits: &mut writer::Bits| (0..50_000).for_each(|_| bits.put(8, 8, 0));
    let (events, losses) = with_fields(&steps, zeros).unwrap();
    assert!(events > 100 && events < 10_000 && losses == 1, "{events} events, {losses} losses");
}

#[test]
fn absurd_declarations_are_refused() {
    let refused = |fields: &str| with_fields(fields, |bits| bits.put(8, 8, 0)).is_none_or(|(_, l)| l > 0);
    let deep = |open: &str, close: &str| open.repeat(100_000) + &close.repeat(100_000);
    assert!(refused(&deep("struct { ", "} a;")));
    assert!(refused(&deep("enum : ", "")));
    assert!(refused(&deep("variant <a> { ", "} b;")));
    assert!(refused(&format!("uint8_t a{};", "[9]".repeat(100_000))));
    assert!(refused("integer { size = 65; } a;"));
    assert!(refused("integer { size = 8; align = 3; } a;"));
    assert!(refused("integer { size = 8; align = 0x100000000; } a;"));
    assert!(refused("nothing_of_this_name a;"));
    assert!(refused("variant <none> { uint8_t a; } v;"));
    assert!(refused("uint8_t a[none];"));
    // 2^40 fields by nested names; each has twice the fields of the previous one.
    let mut doubled = "struct s0 { uint8_t a; };".to_owned();
    for n in 1..40 {
        doubled += &format!("struct s{n} {{ struct s{} a; struct s{} b; }};", n - 1, n - 1);
    }
    let metadata = writer::head(Order::Little, "ust") + &doubled;
    let event = "event { name = \"e\"; id = 0; fields := struct s15; };";
    assert_eq!(try_all((metadata.clone() + event).as_bytes(), Vec::new()), Some((0, 1)));
    let doubled = doubled.split("struct s20").next().unwrap();
    let metadata = writer::head(Order::Little, "ust") + doubled;
    assert_eq!(try_all((metadata + event).as_bytes(), Vec::new()), None);
}

#[test]
fn links_and_fifos_among_the_streams_are_losses_and_never_block() {
    let (metadata, parts) = parts("mixed-ust");
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("metadata"), metadata).unwrap();
    parts.iter().for_each(|(name, bytes)| fs::write(dir.path().join(name), bytes).unwrap());
    let whole = CtfTrace::open(dir.path()).unwrap();
    let streams = whole.streams().len();
    assert!(streams > 0 && whole.losses().is_empty(), "{:?}", whole.losses());
    std::os::unix::fs::symlink("/etc/passwd", dir.path().join("link")).unwrap();
    assert!(Command::new("mkfifo").arg(dir.path().join("fifo")).status().unwrap().success());
    fs::create_dir(dir.path().join("index")).unwrap();
    let trace = CtfTrace::open(dir.path()).unwrap();
    let details: Vec<&str> = trace.losses().iter().map(|loss| loss.detail.as_str()).collect();
    assert_eq!(details.len(), 2, "{details:?}");
    assert!(details[0].ends_with("fifo: expected a regular file, found a FIFO"), "{details:?}");
    assert!(details[1].ends_with("link: expected a regular file, found a symbolic link"), "{details:?}");
    assert_eq!(trace.streams().len(), streams);
}

#[test]
fn a_metadata_or_a_perf_directory_that_is_a_fifo_is_refused() {
    for name in ["metadata", "data"] {
        let dir = tempfile::tempdir().unwrap();
        assert!(Command::new("mkfifo").arg(dir.path().join(name)).status().unwrap().success());
        let Err(error) = fkt_ingest::open(dir.path()) else { panic!("a FIFO is no trace") };
        assert!(error.to_string().contains("none"), "{error}");
        let Err(error) = fkt_ingest::open(&dir.path().join(name)) else { panic!("a FIFO is no trace") };
        assert!(error.to_string().contains("expected a regular file, found a FIFO"), "{error}");
    }
}
