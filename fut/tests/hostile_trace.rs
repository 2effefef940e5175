//! Hostile user traces with correct checksums. The result is an error, or a part with its losses; never a panic, never
//! much memory, never more than linear time.

#[path = "common/memory.rs"]
mod memory;

use std::{
    os::unix::fs::FileExt,
    time::{Duration, Instant},
};

use fut::trace::{
    DECLARED_BIT, Declaration, PACKET_HEAD_LEN, PacketHead, PacketKind, RecordHead, UserTrace,
    encode_declarations, file_head,
};
use sigmund_model::{
    Event, EventStream, EventType, Field, FieldType, Level, Loss, LossKind, Lwp, Pid, Severity, Thread, Ticks,
};
use tempfile::NamedTempFile;

/// Events and losses; `None` if the trace is refused.
fn read(bytes: &[u8]) -> Option<(Vec<Event>, Vec<Loss>)> {
    thread_local! {
        static FILE: NamedTempFile = NamedTempFile::new().unwrap();
    }
    let path = FILE.with(|file| {
        file.as_file().set_len(bytes.len() as u64).unwrap();
        file.as_file().write_all_at(bytes, 0).unwrap();
        file.path().to_owned()
    });
    memory::bounded(|| UserTrace::open(&path).ok().map(|trace| drain(&trace)))
}

/// All streams are open at once, as those of a merge are.
fn drain(trace: &UserTrace) -> (Vec<Event>, Vec<Loss>) {
    let (mut events, mut losses) = (Vec::new(), [trace.losses(), trace.notes()].concat());
    let types = trace.event_types();
    let mut event = Event::default();
    for stream in &mut trace.streams() {
        while stream.next_into(&mut event).unwrap() {
            assert!((event.kind as usize) < types.len());
            events.push(event.clone());
        }
        losses.extend(stream.take_losses());
    }
    for loss in &losses {
        assert!(loss.from.zip(loss.to).is_none_or(|(from, to)| from <= to), "{loss:?}");
    }
    (events, losses)
}

fn head(kind: PacketKind, lwp: u32, sequence: u64, ticks: (u64, u64)) -> PacketHead {
    PacketHead {
        lwp: Lwp(lwp),
        sequence,
        last_tick: Ticks(ticks.1),
        thread: Some(Thread(5)),
        ..PacketHead::about(kind, Pid(10), Ticks(ticks.0))
    }
}

fn declared(code: u32, name: &str, types: &[FieldType]) -> Declaration {
    let event = EventType {
        code: Some(DECLARED_BIT | code),
        level: Level::User,
        key: 1,
        name: name.to_owned(),
        fields: types.iter().map(|ty| Field { name: "f".to_owned(), ty: *ty }).collect(),
        format: String::new(),
    };
    Declaration { event, file: String::new(), line: 0 }
}

fn declarations() -> Vec<u8> {
    encode_declarations(
        [
            declared(1, "USER_THREAD_NEW", &[FieldType::Thread, FieldType::Text]),
            declared(2, "USER_CONTEXT_SWITCH", &[FieldType::Thread, FieldType::U64, FieldType::U64]),
            declared(3, "said", &[FieldType::I64, FieldType::Text]),
        ]
        .iter(),
    )
}

fn record(tick: u64, code: u32, words: &[u64]) -> Vec<u8> {
    let head = RecordHead { code: DECLARED_BIT | code, words: words.len() as u8, flags: 0, cpu: 2 }.to_word();
    [&[tick, head], words].concat().into_iter().flat_map(u64::to_le_bytes).collect()
}

/// Packets of a small trace: two of LWP 3, with five events, and its end.
fn small() -> Vec<Vec<u8>> {
    let text = u64::from_le_bytes(*b"a text!!");
    let first =
        [record(10, 1, &[8, 8, text]), record(20, 2, &[8, 1, 0]), record(30, 3, &[1, 3, text])].concat();
    let second = [record(40, 3, &[2, 0]), record(50, 2, &[0, 1, 0])].concat();
    vec![
        head(PacketKind::DECLARATIONS, 0, 0, (0, 0)).encode(&declarations()),
        head(PacketKind::EVENTS, 3, 0, (10, 30)).encode(&first),
        head(PacketKind::EVENTS, 3, 1, (40, 50)).encode(&second),
        head(PacketKind::LWP_END, 3, 2, (60, 60)).encode(&[0; 16]),
    ]
}

fn file(packets: &[Vec<u8>]) -> Vec<u8> {
    [&file_head()[..], &packets.concat()].concat()
}

/// A packet with a checksum for what it holds now, and the length that it really has.
fn sealed(packet: &[u8]) -> Vec<u8> {
    let Ok((head, _)) = PacketHead::parse(packet, 0) else { return packet.to_vec() };
    head.encode(&packet[PACKET_HEAD_LEN..])
}

/// xorshift64: the same numbers every time.
fn random(state: &mut u64) -> usize {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    *state as usize
}

#[test]
fn a_small_trace_is_whole_and_cut_anywhere_says_so() {
    let whole = file(&small());
    let (events, losses) = read(&whole).unwrap();
    assert_eq!((events.len(), losses), (5, vec![]));
    let ends: Vec<usize> = (0..=4).map(|n| file(&small()[..n]).len()).collect();
    for len in 16..whole.len() {
        let (events, losses) = read(&whole[..len]).unwrap();
        assert!(events.len() == 5 || !losses.is_empty() || ends.contains(&len), "cut at {len}");
    }
}

/// 10^5 traces with one to three flipped bits each, every other with the right checksum all the same.
#[test]
fn flipped_bits_with_a_correct_checksum_do_no_harm() {
    let packets = small();
    let mut state = 0x5167_4d75_6e64_0005;
    let mut read_some = 0;
    for flips in 0..100_000 {
        let mut packets = packets.clone();
        for _ in 0..1 + random(&mut state) % 3 {
            let packet = random(&mut state) % packets.len();
            let at = random(&mut state) % packets[packet].len();
            packets[packet][at] ^= 1 << (random(&mut state) % 8);
            if flips % 2 == 0 {
                packets[packet] = sealed(&packets[packet]);
            }
        }
        read_some += usize::from(read(&file(&packets)).is_some_and(|(events, _)| !events.is_empty()));
    }
    assert!(read_some > 80_000, "events in {read_some} of 100000");
}

/// All bits set of two, four or eight bytes, at every place, with and without the right checksum.
#[test]
fn absurd_sizes_and_counts_cost_no_memory() {
    let packets = small();
    for packet in 0..packets.len() {
        for at in 0..packets[packet].len() - 7 {
            let mut packets = packets.clone();
            packets[packet][at..at + [2, 4, 8][at % 3]].fill(0xff);
            read(&file(&packets)).unwrap();
            packets[packet] = sealed(&packets[packet]);
            read(&file(&packets)).unwrap();
        }
    }
}

/// `head | head | …`, each of which claims all bytes to the end of the file: 65 536 of them, 4 MiB.
#[test]
fn heads_that_all_claim_the_rest_of_the_file_are_not_all_believed() {
    let count = 1 << 16;
    let began = Instant::now();
    for kind in [PacketKind::EVENTS, PacketKind::DECLARATIONS] {
        let mut bytes = [&file_head()[..], &[0]].concat();
        for left in (0..count).rev() {
            let mut packet = head(kind, 3, 0, (1, 1)).encode(&[]);
            packet[8..12].copy_from_slice(&(64 * left as u32).to_le_bytes());
            bytes.extend(packet);
        }
        let (events, losses) = read(&bytes).unwrap();
        assert!(events.is_empty() && !losses.is_empty());
    }
    assert!(began.elapsed() < Duration::from_secs(30), "{:?}", began.elapsed());
}

/// `| EVENTS, damaged: claims up to X | a small whole packet | EVENTS, damaged: up to X | a small whole packet | … X: no head`
#[test]
fn damaged_packets_within_each_other_are_read_once() {
    let count = 20_000;
    let small = head(PacketKind::EVENTS, 3, 0, (10, 10)).encode(&record(10, 3, &[2, 0]));
    let pair = PACKET_HEAD_LEN + small.len();
    let mut bytes = file_head().to_vec();
    for left in (1..=count).rev() {
        let mut packet = head(PacketKind::EVENTS, 3, 0, (1, 1)).encode(&[]);
        packet[8..12].copy_from_slice(&((left * pair - PACKET_HEAD_LEN) as u32).to_le_bytes());
        bytes.extend(packet);
        bytes.extend(&small);
    }
    bytes.extend([0; 100]);
    let began = Instant::now();
    let (events, losses) = read(&bytes).unwrap();
    assert!(began.elapsed() < Duration::from_secs(30), "{:?}", began.elapsed());
    assert!(!events.is_empty() && !losses.is_empty());
}

/// Every packet is of another LWP, or of another process.
#[test]
fn fifty_thousand_lwps_take_no_longer_than_as_many_packets_of_one() {
    let began = Instant::now();
    let packet =
        |n: u32| PacketHead { pid: Pid(n % 3), ..head(PacketKind::EVENTS, n, 0, (1, 1)) }.encode(&[]);
    let packets: Vec<Vec<u8>> = (0..50_000).map(packet).collect();
    let (events, _) = read(&file(&packets)).unwrap();
    assert!(events.is_empty());
    assert!(began.elapsed() < Duration::from_secs(30), "{:?}", began.elapsed());
}

/// 2000 declarations and 2000 LWPs are 4 million of nothing.
#[test]
fn declarations_are_kept_once_for_all_lwps() {
    let many: Vec<Declaration> = (0..2000).map(|code| declared(code, "e", &[FieldType::U64; 4])).collect();
    let mut packets =
        vec![head(PacketKind::DECLARATIONS, 0, 0, (0, 0)).encode(&encode_declarations(many.iter()))];
    packets
        .extend((0..2000).map(|lwp| head(PacketKind::EVENTS, lwp, 0, (1, 1)).encode(&record(1, 3, &[1; 4]))));
    let (events, losses) = read(&file(&packets)).unwrap();
    assert_eq!((events.len(), losses.len()), (2000, 0));
}

#[test]
fn counts_of_what_was_overwritten_add_up_to_no_more_than_there_is_room_for() {
    let payload: Vec<u8> = [u64::MAX; 4].into_iter().flat_map(u64::to_le_bytes).collect();
    let packet = head(PacketKind::OVERWRITTEN, 0, 0, (1, 1)).encode(&payload);
    let (_, losses) = read(&file(&[packet.clone(), packet])).unwrap();
    assert_eq!(losses.len(), 2);
}

// | LWP 3, ticks 50 … 10: damaged |
#[test]
fn a_damaged_packet_is_no_gap_that_ends_before_it_begins() {
    let mut packets = small();
    packets[1] = head(PacketKind::EVENTS, 3, 0, (50, 10)).encode(&record(10, 3, &[2, 0]));
    let last = packets[1].len() - 1;
    packets[1][last] ^= 1;
    let (events, losses) = read(&file(&packets)).unwrap();
    assert_eq!(events.len(), 2);
    assert!(!losses.is_empty());
}

// packet 0: 40, 50    packet 1: 60    packet 2: 10    packet 3: 70
#[test]
fn events_of_a_packet_that_goes_back_in_time_get_the_tick_before_and_a_note() {
    let packet = |sequence, ticks: &[u64]| {
        let records: Vec<u8> = ticks.iter().flat_map(|tick| record(*tick, 3, &[1, 0])).collect();
        head(PacketKind::EVENTS, 3, sequence, (ticks[0], ticks[ticks.len() - 1])).encode(&records)
    };
    let packets = [packet(0, &[40, 50]), packet(1, &[60]), packet(2, &[10]), packet(3, &[70])];
    let (events, losses) = read(&file(&packets)).unwrap();
    // A packet is held back until the next is known: what is older than that can still be put in its place.
    assert_eq!(events.iter().map(|event| event.tick.0).collect::<Vec<_>>(), [40, 50, 50, 60, 70]);
    let notes: Vec<_> = losses.iter().map(|loss| (loss.kind, loss.severity, loss.count)).collect();
    assert_eq!(notes, [(LossKind::Contradiction, Severity::Note, Some(1))]);
}
