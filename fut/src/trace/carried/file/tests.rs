//! The contents of removed parts, written to a file and read again.

use sigmund_model::{EventType, Field, FieldType, Level};

use super::*;
use crate::trace::{
    CarriedState, Declaration, NamedPlace, PacketFlags, RecordHead, encode_declarations, encode_places,
};

const SWITCH: u32 = 1 | crate::trace::DECLARED_BIT;
const NEW: u32 = 2 | crate::trace::DECLARED_BIT;
const READY: u32 = 3 | crate::trace::DECLARED_BIT;
const SPAN_BEGIN: u32 = 4 | crate::trace::DECLARED_BIT;
const SPAN_END: u32 = 5 | crate::trace::DECLARED_BIT;
/// The code of an event of a C program.
const PROF_IN: u32 = 6;
const PROF_OUT: u32 = 7;

const YIELD: u64 = 1;
const BLOCK: u64 = 3;
const EXIT: u64 = 4;

fn head(kind: PacketKind, lwp: u32) -> PacketHead {
    PacketHead { lwp: Lwp(lwp), ..PacketHead::about(kind, Pid(60), Ticks(0)) }
}

/// Code, name and fields of an event.
type Declared = (u32, &'static str, &'static [(&'static str, FieldType)]);

fn metadata() -> Vec<u8> {
    const THREAD: (&str, FieldType) = ("thread", FieldType::Thread);
    let declared: [Declared; 7] = [
        (SWITCH, "USER_CONTEXT_SWITCH", &[("next", FieldType::Thread), ("reason", FieldType::U8)]),
        (NEW, "USER_THREAD_NEW", &[THREAD, ("name", FieldType::Text)]),
        (READY, "USER_THREAD_READY", &[THREAD]),
        (SPAN_BEGIN, "SPAN_BEGIN", &[("span", FieldType::Pointer)]),
        (SPAN_END, "SPAN_END", &[("span", FieldType::Pointer)]),
        (PROF_IN, "PROF_IN", &[("function", FieldType::Pointer)]),
        (PROF_OUT, "PROF_OUT", &[("function", FieldType::Pointer)]),
    ];
    let declarations = declared.map(|(code, name, fields)| Declaration {
        event: EventType {
            level: Level::User,
            code: Some(code),
            name: name.into(),
            key: 1,
            fields: fields.iter().map(|(name, ty)| Field { name: (*name).into(), ty: *ty }).collect(),
            format: String::new(),
        },
        file: String::new(),
        line: 0,
    });
    let place = |address| {
        let (name, file) = ("work".to_string(), "work.c".to_string());
        NamedPlace { pid: Pid(60), address, name, file, line: address as u32 }
    };
    let declarations = head(PacketKind::DECLARATIONS, 0).encode(&encode_declarations(declarations.iter()));
    let places = head(PacketKind::PLACES, 0).encode(&encode_places(&[place(0x71), place(0x72)]));
    [declarations, places].concat()
}

/// A record: tick, code, words.
type Drawn<'d> = (u64, u32, &'d [u64]);

fn packet(lwp: u32, sequence: u64, thread: u64, records: &[Drawn<'_>]) -> Vec<u8> {
    let record = |(tick, code, words): &Drawn<'_>| {
        let head = RecordHead { code: *code, words: words.len() as u8, flags: 0, cpu: 0 };
        [&[*tick, head.to_word()], *words].concat()
    };
    let payload: Vec<u8> = records.iter().flat_map(record).flat_map(u64::to_le_bytes).collect();
    PacketHead {
        sequence,
        first_tick: Ticks(records[0].0),
        thread: Thread::from_switch(thread),
        last_tick: Ticks(records[records.len() - 1].0),
        ..head(PacketKind::EVENTS, lwp)
    }
    .encode(&payload)
}

fn text(name: &str) -> [u64; 2] {
    let mut bytes = [0; 8];
    bytes[..name.len()].copy_from_slice(name.as_bytes());
    [name.len() as u64, u64::from_le_bytes(bytes)]
}

fn new(thread: u64, name: &str) -> [u64; 3] {
    let [len, bytes] = text(name);
    [thread, len, bytes]
}

/// Removes part after part, and keeps what is carried over. A part consists of packets.
struct Carrying {
    folder: tempfile::TempDir,
    parts: usize,
}

impl Carrying {
    fn begin() -> Carrying {
        Carrying { folder: tempfile::tempdir().unwrap(), parts: 0 }
    }

    fn path(&self, what: &str, number: usize) -> PathBuf {
        self.folder.path().join(format!("{what}-{number}"))
    }

    fn remove(&mut self, packets: &[Vec<u8>]) -> CarriedSummary {
        self.remove_with_room(packets, u64::MAX)
    }

    fn remove_with_room(&mut self, packets: &[Vec<u8>], most_bytes: u64) -> CarriedSummary {
        let part = self.path("part", self.parts);
        std::fs::write(&part, [vec![file_head().to_vec(), metadata()], packets.to_vec()].concat().concat())
            .unwrap();
        let before = (self.parts > 0).then(|| self.file());
        self.parts += 1;
        let out = File::create_new(self.path("carried", self.parts)).unwrap();
        carry_over(before, vec![(part.clone(), File::open(part).unwrap())], out, most_bytes).unwrap()
    }

    fn file(&self) -> CarriedFile {
        let path = self.path("carried", self.parts);
        CarriedFile::open(&path, File::open(&path).unwrap()).unwrap()
    }

    /// Number, name and state of the threads.
    fn threads(&self) -> Vec<(u64, String, CarriedState)> {
        let mut file = self.file();
        let lwps = file.lwps().clone();
        let mut threads = Vec::new();
        while let Some((owner, facts)) = file.next_owner().unwrap() {
            if let CarriedOwner::Thread(thread) = owner {
                threads.push((thread.0, facts.name.to_string(), facts.state(&lwps).unwrap()));
            }
        }
        threads
    }

    /// Addresses of the open spans of all owners, and when they began.
    fn spans(&self) -> Vec<(CarriedOwner, Vec<(u64, u64)>)> {
        let spans = |(owner, facts): (_, Carried)| {
            (owner, facts.spans.iter().map(|span| (span.address, span.since.0)).collect())
        };
        self.file().map(spans).collect()
    }
}

// LWP 70  | new 5, 6, 7; 5 runs, blocks on 0xbeef; 6 exits; 7 runs … │ (nothing)
#[test]
fn threads_that_live_are_carried_over_part_after_part_and_others_are_not() {
    let blocked = CarriedState::Blocked(Wait { kind: Some(WaitKind::Mutex), on: Some(0xbeef) });
    let mutex = u64::from(WaitKind::Mutex.number());
    let mut carrying = Carrying::begin();
    let first = packet(
        70,
        0,
        4,
        &[
            (10, NEW, &new(5, "five")),
            (11, NEW, &new(6, "six")),
            (12, NEW, &new(7, "")),
            (13, NEW, &new(8, "eight")),
            (20, SWITCH, &[5, BLOCK, 0, 0]),
            (30, SWITCH, &[6, BLOCK, 0xbeef, mutex]),
            (40, SWITCH, &[7, EXIT, 0, 0]),
        ],
    );
    let summary = carrying.remove(&[first]);
    let expected = [
        (4, "", CarriedState::Blocked(Wait::default())),
        (5, "five", blocked),
        (7, "", CarriedState::Mounted(Lwp(70))),
        (8, "eight", CarriedState::New),
    ];
    let expected = expected.map(|(thread, name, state)| (thread, name.to_string(), state)).to_vec();
    assert_eq!((summary.owners, summary.left_out, carrying.threads()), (4, 0, expected.clone()));
    // A part in which nothing happens.
    carrying.remove(&[]);
    assert_eq!(carrying.threads(), expected);
    // A thread continues on another LWP, whose packet comes first in the file. Another thread blocks in the rest of a
    // packet.
    let continued = packet(70, 0, 7, &[(50, READY, &[5]), (60, SWITCH, &[0, YIELD, 0, 0])]);
    let mut rest = PacketHead::parse(&continued, 0).unwrap().0;
    rest.flags = PacketFlags::CONTINUED;
    let continued = rest.encode(&continued[PACKET_HEAD_LEN..]);
    carrying.remove(&[packet(71, 0, 0, &[(55, SWITCH, &[5, 0, 0, 0])]), continued]);
    let states: Vec<_> = carrying.threads().into_iter().map(|(thread, _, state)| (thread, state)).collect();
    let [mounted, ready] = [CarriedState::Mounted(Lwp(71)), CarriedState::Ready];
    let blocked = CarriedState::Blocked(Wait::default());
    assert_eq!(states, [(4, blocked), (5, mounted), (7, ready), (8, CarriedState::New)]);
    // LWP 71 ends while it carries thread 5.
    carrying.remove(&[head(PacketKind::LWP_END, 71).encode(&[])]);
    assert_eq!(carrying.threads()[1], (5, "five".into(), CarriedState::Unmounted));
}

#[test]
fn lost_events_leave_states_unknown_and_names_known() {
    let mut carrying = Carrying::begin();
    carrying.remove(&[packet(70, 0, 0, &[(10, NEW, &new(5, "five")), (11, NEW, &new(6, "six"))])]);
    let mut lost = PacketHead::parse(&packet(70, 1, 0, &[(50, READY, &[6])]), 0).unwrap().0;
    lost.lost = 3;
    let payload = packet(70, 1, 0, &[(50, READY, &[6])]).split_off(PACKET_HEAD_LEN);
    carrying.remove(&[lost.encode(&payload)]);
    let expected = [(5, "five".into(), CarriedState::Unknown), (6, "six".into(), CarriedState::Ready)];
    assert_eq!(carrying.threads(), expected);
    // A packet between two parts is missing.
    carrying.remove(&[packet(70, 3, 0, &[(60, READY, &[5])])]);
    let expected = [(5, "five".into(), CarriedState::Ready), (6, "six".into(), CarriedState::Unknown)];
    assert_eq!(carrying.threads(), expected);
}

// thread 5 on LWP 70  | (a  (b │  b)  (c  │ on LWP 71: c)  (work
#[test]
fn spans_stay_open_until_their_end_is_in_a_part() {
    let thread = |number| CarriedOwner::Thread(Thread(number));
    let mut carrying = Carrying::begin();
    let spans = [(10, SPAN_BEGIN, &[0xa][..]), (11, SPAN_BEGIN, &[0xb]), (12, SWITCH, &[0, BLOCK, 0, 0])];
    carrying.remove(&[packet(70, 0, 5, &spans)]);
    assert_eq!(carrying.spans(), [(thread(5), vec![(0xa, 10), (0xb, 11)])]);
    let spans = [(20, SWITCH, &[5, 0, 0, 0][..]), (21, SPAN_END, &[0xb]), (22, SPAN_BEGIN, &[0xc])];
    carrying.remove(&[packet(70, 1, 0, &spans)]);
    assert_eq!(carrying.spans(), [(thread(5), vec![(0xa, 10), (0xc, 22)])]);
    // The thread moves to an LWP whose packet comes first in the file. Begin and end of a function have different
    // addresses.
    let spans = [
        (32, SWITCH, &[5, 0, 0, 0][..]),
        (33, SPAN_END, &[0xc]),
        (34, PROF_IN, &[0x71]),
        (35, PROF_IN, &[0x72]),
    ];
    let left = [(29, SPAN_BEGIN, &[0xd][..]), (30, SPAN_END, &[0xd]), (31, SWITCH, &[0, YIELD, 0, 0])];
    carrying.remove(&[packet(71, 0, 0, &spans), packet(70, 2, 5, &left)]);
    assert_eq!(carrying.spans(), [(thread(5), vec![(0xa, 10), (0x71, 34), (0x72, 35)])]);
    carrying.remove(&[packet(71, 1, 5, &[(40, PROF_OUT, &[0x71]), (41, PROF_OUT, &[0x71])])]);
    assert_eq!(carrying.spans(), [(thread(5), vec![(0xa, 10)])]);
    // The end of an outer span also ends the spans in it. An LWP without a user thread has its own spans.
    carrying.remove(&[
        packet(71, 2, 5, &[(50, SPAN_BEGIN, &[0xe]), (51, SPAN_END, &[0xa])]),
        packet(72, 0, 0, &[(52, SPAN_BEGIN, &[0xa])]),
    ]);
    assert_eq!(carrying.spans(), [(thread(5), vec![]), (CarriedOwner::Lwp(Lwp(72)), vec![(0xa, 52)])]);
    carrying.remove(&[head(PacketKind::LWP_END, 72).encode(&[])]);
    assert_eq!(carrying.spans(), [(thread(5), vec![])]);
}

#[test]
fn what_has_no_room_is_counted_and_damage_ends_what_is_read() {
    let names: Vec<[u64; 3]> = (1..=5000).map(|thread| new(thread, "a name")).collect();
    let records: Vec<Drawn<'_>> = (10..).zip(&names).map(|(tick, name)| (tick, NEW, &name[..])).collect();
    let mut carrying = Carrying::begin();
    let whole = carrying.remove(&[packet(70, 0, 0, &records)]);
    assert_eq!((whole.owners, whole.left_out), (5000, 0));
    let path = carrying.path("carried", 1);
    assert_eq!(std::fs::metadata(&path).unwrap().len(), whole.bytes);
    let mut carrying = Carrying::begin();
    let half = carrying.remove_with_room(&[packet(70, 0, 0, &records)], whole.bytes / 2);
    assert_eq!(half.owners + half.left_out, 5000);
    assert!((2000..2600).contains(&half.owners) && half.bytes < whole.bytes / 2 + 1000, "{half:?}");
    let mut file = carrying.file();
    while file.next_owner().unwrap().is_some() {}
    assert_eq!(file.left_out(), half.left_out);
    // The file is cut at any place, and any bit of a packet is flipped.
    let path = carrying.path("carried", 1);
    let bytes = std::fs::read(&path).unwrap();
    for len in [0, 10, 16, 60, 100, bytes.len() / 2, bytes.len() - 1] {
        std::fs::write(&path, &bytes[..len]).unwrap();
        let opened = CarriedFile::open(&path, File::open(&path).unwrap());
        let error = opened.and_then(|mut file| {
            while file.next_owner()?.is_some() {}
            Ok(())
        });
        assert!(error.is_err(), "cut at {len}");
    }
    let mut flipped = bytes.clone();
    flipped[bytes.len() / 2] ^= 4;
    std::fs::write(&path, &flipped).unwrap();
    let mut file = carrying.file();
    let error = loop {
        match file.next_owner() {
            Ok(owner) => assert!(owner.is_some(), "the damage is found"),
            Err(error) => break error.to_string(),
        }
    };
    assert!(error.contains("checksum"), "{error}");
}

/// `cargo test -p sigmund-fut --release --lib a_million_threads -- --ignored --nocapture`. The memory that it prints is
/// what the process uses in addition to what it used before.
#[test]
#[ignore = "a measurement"]
fn a_million_threads() {
    const THREADS: u64 = 1_000_000;
    let peak_mb = || {
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
        line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() / 1024
    };
    let cpu_ms = || {
        let times = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
        times.split(' ').next().unwrap().parse::<u64>().unwrap() / 1_000_000
    };
    let folder = tempfile::tempdir().unwrap();
    let mut number = 0;
    let mut part = |packets: &mut dyn Iterator<Item = Vec<u8>>| {
        number += 1;
        let path = folder.path().join(format!("part-{number}"));
        let mut file = BufWriter::new(File::create_new(&path).unwrap());
        file.write_all(&[file_head().to_vec(), metadata()].concat()).unwrap();
        packets.for_each(|packet| file.write_all(&packet).unwrap());
        file.flush().unwrap();
        path
    };
    let all: Vec<u64> = (1..=THREADS).collect();
    let create = |(sequence, threads): (usize, &[u64])| {
        let words: Vec<_> = threads.iter().map(|thread| new(*thread, "worker")).collect();
        let record = |(thread, words): (&u64, &'static [u64])| (10 + thread, NEW, words);
        let words: Vec<&'static [u64]> = words.into_iter().map(|w| &*Vec::leak(w.to_vec())).collect();
        packet(70, sequence as u64, 0, &threads.iter().zip(words).map(record).collect::<Vec<_>>())
    };
    // Each thread is mounted, and blocks.
    let run = |(sequence, threads): (usize, &[u64])| {
        let record =
            |thread: &u64| (2_000_000 + thread, SWITCH, &*Vec::leak(vec![*thread, BLOCK, 0xbeef, 1]));
        packet(70, 1000 + sequence as u64, 0, &threads.iter().map(record).collect::<Vec<_>>())
    };
    let plain = |sequence: u64| {
        let first = 4_000_000 + 1500 * sequence;
        packet(71, sequence, 0, &(0..1500).map(|i| (first + i, 99, &[1, 2][..])).collect::<Vec<_>>())
    };
    let parts = [
        ("creates them", part(&mut all.chunks(1000).enumerate().map(create))),
        ("runs each", part(&mut all.chunks(1000).enumerate().map(run))),
        ("has 3 million other events", part(&mut (0..2000).map(plain))),
        ("has none", part(&mut std::iter::empty())),
    ];
    let mut before: Option<PathBuf> = None;
    for (what, path) in parts {
        let len = std::fs::metadata(&path).unwrap().len();
        let out = path.with_extension("carried");
        std::fs::write("/proc/self/clear_refs", "5").unwrap();
        let (memory, start) = (peak_mb(), cpu_ms());
        let file = before.map(|path: PathBuf| CarriedFile::open(&path, File::open(&path).unwrap()).unwrap());
        let file = carry_over(
            file,
            vec![(path.clone(), File::open(&path).unwrap())],
            File::create_new(&out).unwrap(),
            u64::MAX,
        );
        let (took, memory) = (cpu_ms() - start, peak_mb() - memory);
        eprintln!(
            "a part of {} MB that {what}: {took} ms of CPU time, {memory} MB of memory; {:?}",
            len >> 20,
            file.unwrap()
        );
        before = Some(out);
    }
}
