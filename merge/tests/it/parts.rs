//! Recordings that were cut into parts: merged as one, from the instant at which the first part that was kept begins.

use fut::trace::file_head;
use sigmund_merge::{
    KernelSide, Manifest, MergeOptions, Part, PartFile, Removed, Rotation, UserSide, user_carried_name,
    user_part_name,
};
use sigmund_model::{FieldType, LossKind, Severity};

use crate::{
    supertrace::{
        Inputs, Merged, ftrace_text, switch,
        user_file::{self, Packet, lwp_end},
    },
    user_trace::SMALL_TRACE,
};

const SWITCH: u32 = 23014;
const MESSAGE: u32 = 7;
const BEGAN: u64 = 50;

fn declarations() -> Vec<u8> {
    let switch = [("next", FieldType::Thread), ("reason", FieldType::U8), ("on", FieldType::Pointer)];
    user_file::declarations(&[
        (SWITCH, "USER_CONTEXT_SWITCH", &switch),
        (MESSAGE, "received_msg", &[("len", FieldType::U64)]),
    ])
}

/// Packets of two LWPs as they were drained, each with its last tick and its number of events.
fn packets() -> Vec<(u64, u64, Vec<u8>)> {
    let packet = |lwp, sequence, thread, events: &[(u64, u32, &[u64])]| {
        let last = events.last().map_or(0, |event| event.0);
        let bytes = Packet { lwp, sequence, thread, lost: 0, events }.encode();
        (last, events.len() as u64, bytes)
    };
    vec![
        packet(70, 0, 0, &[(100, SWITCH, &[5, 0, 0]), (110, MESSAGE, &[8]), (120, SWITCH, &[6, 1, 0])]),
        packet(71, 0, 0, &[(105, MESSAGE, &[9]), (125, SWITCH, &[5, 0, 0])]),
        packet(70, 1, 6, &[(130, MESSAGE, &[10]), (140, SWITCH, &[0, 3, 0xbeef])]),
        packet(71, 1, 5, &[(135, MESSAGE, &[11]), (150, SWITCH, &[6, 4, 0]), (160, MESSAGE, &[12])]),
        (0, 0, [lwp_end(70, 0), lwp_end(71, 0)].concat()),
    ]
}

/// A recording whose packets are in parts, cut before each of these packets; the first `removed` parts are gone.
struct Recording {
    files: Vec<(String, Vec<u8>)>,
    manifest: Manifest,
    /// When what is kept begins.
    begins: u64,
}

fn recording(cuts: &[usize], removed: usize) -> Recording {
    let packets = packets();
    let bounds: Vec<usize> = [&[0], cuts, &[packets.len()]].concat();
    let (mut files, mut gone) = (Vec::new(), Removed::default());
    // A part begins after all that the ones before hold.
    let mut begins = vec![BEGAN];
    for (number, pair) in (1u32..).zip(bounds.windows(2)) {
        let of_part = &packets[pair[0]..pair[1]];
        let mut bytes = [file_head().to_vec(), declarations()].concat();
        of_part.iter().for_each(|(.., packet)| bytes.extend(packet));
        let events = of_part.iter().map(|(_, events, _)| events).sum();
        let name = format!("user-60.part-{number:05}.fut");
        let file =
            PartFile { name: name.clone(), bytes: bytes.len() as u64, to_be_made: false, events, lost: 0 };
        let begun = begins[begins.len() - 1];
        begins.push(of_part.iter().map(|(last, ..)| last + 1).max().unwrap_or(0).max(begun));
        if number as usize <= removed {
            gone = Removed { parts: gone.parts + 1, user_events: gone.user_events + events, ..gone };
            continue;
        }
        let part =
            Part { recording: "r".into(), number, begins: begun, files: vec![file], ..Part::default() };
        files.push((name, bytes));
        files.push((Part::name(number), serde_json::to_vec(&part).unwrap()));
    }
    let (first, last) = (removed as u32 + 1, cuts.len() as u32 + 1);
    let rotation =
        Rotation { recording: "r".into(), began: BEGAN, first, last, removed: gone, ..Rotation::default() };
    let side = UserSide {
        file: "user-60.fut".into(),
        parts: (first..=last).collect(),
        pid: 60,
        ..UserSide::default()
    };
    let kernel_side = KernelSide { means: "none".into(), ..KernelSide::default() };
    let manifest =
        Manifest { rotation: Some(rotation), user_side: vec![side], kernel_side, ..Manifest::default() };
    Recording { files, manifest, begins: begins[removed] }
}

impl Recording {
    fn try_merge(&self) -> Result<Merged, sigmund_merge::Error> {
        let files: Vec<(&str, &[u8])> =
            self.files.iter().map(|(name, bytes)| (name.as_str(), bytes.as_slice())).collect();
        Inputs::new().run(&files, Some(&self.manifest)).try_merge(&MergeOptions::default())
    }

    fn file(&mut self, name: &str) -> &mut Vec<u8> {
        &mut self.files.iter_mut().find(|(of, _)| of == name).unwrap().1
    }

    fn without(mut self, name: &str) -> Recording {
        self.files.retain(|(of, _)| of != name);
        self
    }
}

fn events(merged: &Merged) -> Vec<String> {
    merged.table("events", &["ts_tick", "name", "lwp", "thread", "cpu", "args"])
}

/// Details of what is missing from what is kept.
fn gaps(merged: &Merged) -> Vec<String> {
    let losses = merged.summary.losses.iter();
    // There is no kernel side, as was asked for.
    let losses = losses.filter(|loss| loss.severity != Severity::Note && loss.kind != LossKind::NotRecorded);
    losses.map(|loss| loss.detail.clone()).collect()
}

#[test]
fn wherever_it_was_cut_and_whatever_was_removed_the_rest_is_whole() {
    let mut tried = 0;
    for first in 1..5 {
        for second in first..5 {
            for removed in 0..3 {
                let recording = recording(&[first, second], removed);
                let merged = recording.try_merge().unwrap();
                let tick = |line: &&&str| line.split(' ').next().unwrap().parse::<u64>().unwrap();
                let kept: Vec<&str> =
                    SMALL_TRACE.iter().filter(|line| tick(line) >= recording.begins).copied().collect();
                let place = format!("cut before {first} and {second}, without {removed}");
                assert_eq!(events(&merged), kept, "{place}");
                assert_eq!(gaps(&merged), Vec::<String>::new(), "{place}");
                let removed_events = merged.summary.losses.iter().filter(|loss| {
                    loss.kind == LossKind::Overwritten
                        && loss.severity == Severity::Note
                        && loss.count > Some(0)
                });
                let counted: u64 = removed_events.filter_map(|loss| loss.count).sum();
                assert_eq!(kept.len() as u64 + counted, SMALL_TRACE.len() as u64, "{place}");
                tried += 1;
            }
        }
    }
    assert_eq!(tried, 30);
}

#[test]
fn a_part_that_is_missing_or_of_another_recording_is_named_and_the_others_are_merged() {
    let whole = || recording(&[2, 3], 0);
    let named = |recording: Recording, words: &[&str]| {
        let merged = recording.try_merge().unwrap();
        let found = gaps(&merged);
        for word in words {
            assert!(found.iter().any(|detail| detail.contains(word)), "{word}: {found:?}");
        }
        assert!(!found.iter().any(|detail| detail.contains("mounted on a second LWP")), "{found:?}");
        events(&merged)
    };
    let expected: Vec<&str> = SMALL_TRACE
        .iter()
        .filter(|line| !line.starts_with("130") && !line.starts_with("140"))
        .copied()
        .collect();
    let ends = |lines: Vec<String>| lines.iter().filter(|line| line.starts_with("160")).count();
    let missing = named(
        whole().without("user-60.part-00002.fut"),
        &["part 2 of a user trace cannot be read", "LWP 70: part 2 is missing"],
    );
    assert_eq!(missing.len(), expected.len(), "{missing:?}");
    assert_eq!(
        ends(named(whole().without("part-00002.json"), &["part 2 is missing: ", "part-00002.json"])),
        1
    );
    // A file of another recording: before it began, or after the part ended.
    for foreign in [7, 5000] {
        let mut other = whole();
        let packet = Packet { lwp: 70, sequence: 1, thread: 0, lost: 0, events: &[(foreign, MESSAGE, &[1])] };
        *other.file("user-60.part-00002.fut") =
            [file_head().to_vec(), declarations(), packet.encode()].concat();
        let lines = named(other, &["user-60.part-00002.fut", "it is a part of another recording"]);
        assert_eq!(lines.len(), expected.len(), "{lines:?}");
    }
    let mut other = whole();
    let described = Part { recording: "another".into(), number: 2, begins: 126, ..Part::default() };
    *other.file("part-00002.json") = serde_json::to_vec(&described).unwrap();
    assert_eq!(ends(named(other, &["expected a part of recording r, found one of another"])), 1);
    // Cut off.
    let mut cut = whole();
    cut.file("user-60.part-00002.fut").truncate(100);
    assert_eq!(ends(named(cut, &["user-60.part-00002.fut: expected"])), 1);
}

// The recorder had compressed the kernel side of part 1, and was killed before it noted the length of that.
#[test]
fn a_length_that_its_recorder_did_not_come_to_note_is_no_damage() {
    let lengths = |to_be_made: bool, unfinished: bool| {
        let mut recording = recording(&[2, 3], 0);
        let kernel =
            ftrace_text(&[(100_000, 0, 0, &switch(0, "R", 70)), (160_000, 0, 70, &switch(70, "S", 0))]);
        let name = fkt_ingest::live::part_name(1);
        let mut part: Part = serde_json::from_slice(recording.file(&Part::name(1))).unwrap();
        part.files.push(PartFile { name: name.clone(), bytes: 778_240, to_be_made, events: 2, lost: 0 });
        *recording.file(&Part::name(1)) = serde_json::to_vec(&part).unwrap();
        recording.files.push((name, kernel.into_bytes()));
        recording.manifest.unfinished = unfinished;
        let merged = recording.try_merge().unwrap();
        gaps(&merged).into_iter().filter(|gap| gap.contains("expected 778240 bytes")).collect::<Vec<_>>()
    };
    assert_eq!(lengths(true, true), [""; 0]);
    // Of a whole recording, a wrong length is one.
    assert_eq!(lengths(false, false).len(), 1);
}

#[test]
fn a_manifest_without_its_parts_or_with_too_many_is_refused() {
    let mut none = recording(&[2, 3], 0);
    none.files.retain(|(name, _)| !name.starts_with("part-"));
    let error = none.try_merge().map(drop).unwrap_err().to_string();
    assert!(
        error.contains("expected parts 1 to 3 of the recording") && error.contains("part-00001.json"),
        "{error}"
    );
    for (first, last) in [(0, 3), (3, 2), (1, u32::MAX)] {
        let mut wrong = recording(&[2, 3], 0);
        let rotation = wrong.manifest.rotation.take().unwrap();
        wrong.manifest.rotation = Some(Rotation { first, last, ..rotation });
        let error = wrong.try_merge().map(drop).unwrap_err().to_string();
        assert!(error.contains("rotation: expected parts from 1 on"), "{error}");
    }
}

const NEW: u32 = 23015;
const READY: u32 = 23016;
const SPAN_BEGIN: u32 = 23017;
const SPAN_END: u32 = 23018;
const BLOCK: u64 = 3;
const EXIT: u64 = 4;

/// Declarations of everything that is carried over.
fn scheduling() -> Vec<u8> {
    let switch = [
        ("next", FieldType::Thread),
        ("reason", FieldType::U8),
        ("on", FieldType::Pointer),
        ("blocked_for", FieldType::U8),
    ];
    user_file::declarations(&[
        (SWITCH, "USER_CONTEXT_SWITCH", &switch),
        (NEW, "USER_THREAD_NEW", &[("new", FieldType::Thread), ("name", FieldType::Text)]),
        (READY, "USER_THREAD_READY", &[("ready", FieldType::Thread)]),
        (SPAN_BEGIN, "SPAN_BEGIN", &[("span", FieldType::Pointer)]),
        (SPAN_END, "SPAN_END", &[("span", FieldType::Pointer)]),
        (MESSAGE, "received_msg", &[("len", FieldType::U64)]),
    ])
}

/// A name of at most 8 bytes, as the words of a record.
fn new(thread: u64, name: &str) -> [u64; 3] {
    let mut bytes = [0; 8];
    bytes[..name.len()].copy_from_slice(name.as_bytes());
    [thread, name.len() as u64, u64::from_le_bytes(bytes)]
}

/// A recording whose first part was removed, and what was carried over from it. The second begins at 200.
fn with_removed_part(first: &[Vec<u8>], second: &[Vec<u8>]) -> Merged {
    let of =
        |packets: &[Vec<u8>]| [vec![file_head().to_vec(), scheduling()], packets.to_vec()].concat().concat();
    let folder = tempfile::tempdir().unwrap();
    let (removed, out) = (folder.path().join("removed"), folder.path().join("carried"));
    std::fs::write(&removed, of(first)).unwrap();
    let part = (removed.clone(), std::fs::File::open(&removed).unwrap());
    fut::trace::carry_over(None, vec![part], std::fs::File::create_new(&out).unwrap(), u64::MAX).unwrap();
    let carried = std::fs::read(&out).unwrap();
    let kept = of(second);
    let name = user_part_name("user-60.fut", 2);
    let file =
        PartFile { name: name.clone(), bytes: kept.len() as u64, to_be_made: false, events: 0, lost: 0 };
    let part = Part { recording: "r".into(), number: 2, begins: 200, files: vec![file], ..Part::default() };
    let rotation = Rotation { recording: "r".into(), began: BEGAN, first: 2, last: 2, ..Rotation::default() };
    let side = UserSide { file: "user-60.fut".into(), parts: vec![2], pid: 60, ..UserSide::default() };
    let kernel_side = KernelSide { means: "none".into(), ..KernelSide::default() };
    let manifest =
        Manifest { rotation: Some(rotation), user_side: vec![side], kernel_side, ..Manifest::default() };
    let files = [
        (name, kept),
        (user_carried_name("user-60.fut", 2), carried),
        (Part::name(2), serde_json::to_vec(&part).unwrap()),
    ];
    let files: Vec<(&str, &[u8])> =
        files.iter().map(|(name, bytes)| (name.as_str(), bytes.as_slice())).collect();
    Inputs::new().run(&files, Some(&manifest)).merge()
}

fn packet(lwp: u32, sequence: u64, thread: u64, events: &[(u64, u32, &[u64])]) -> Vec<u8> {
    Packet { lwp, sequence, thread, lost: 0, events }.encode()
}

fn states(merged: &Merged) -> Vec<String> {
    let columns =
        ["thread", "state", "ts_tick", "dur_tick", "lwp", "blocked_for", "blocked_on", "end_reason"];
    let mut states = merged.table("thread_states", &columns);
    states.sort();
    states
}

//                 removed                    │200 kept
//  LWP 70  new 5, 6, 7, 8; 5 blocks; 6 …      │ … 6: message, span ends, exit
//  LWP 71  9, all the time                    │
#[test]
fn threads_older_than_what_is_kept_have_names_states_and_spans_from_its_begin_on() {
    let mutex = 1;
    let first = [
        packet(
            70,
            0,
            4,
            &[
                (100, NEW, &new(5, "waits")),
                (101, NEW, &new(6, "works")),
                (102, NEW, &new(7, "is new")),
                (103, NEW, &new(8, "ended")),
                (110, SWITCH, &[8, BLOCK, 5, 0]),
                (111, SWITCH, &[5, EXIT, 0, 0]),
                (120, SWITCH, &[6, BLOCK, 0xbeef, mutex]),
                (121, SPAN_BEGIN, &[0xa]),
            ],
        ),
        packet(71, 0, 0, &[(130, SWITCH, &[9, 0, 0, 0])]),
    ];
    let second = [
        // Before what is kept begins: a thread is made ready that had ended, and one is created.
        packet(
            70,
            1,
            6,
            &[
                (190, READY, &[8]),
                (191, NEW, &new(10, "younger")),
                (230, MESSAGE, &[1]),
                (240, SPAN_END, &[0xa]),
                (250, SWITCH, &[0, EXIT, 0, 0]),
            ],
        ),
        packet(72, 0, 0, &[(220, MESSAGE, &[2]), (260, MESSAGE, &[3])]),
        [lwp_end(70, 0), lwp_end(71, 0), lwp_end(72, 0)].concat(),
    ];
    let merged = with_removed_part(&first, &second);
    assert_eq!(gaps(&merged), Vec::<String>::new());
    let mut threads = merged
        .table("threads", &["thread", "name", "pid", "ts_tick", "dur_tick", "created_by", "dispatches"]);
    threads.sort();
    let expected = [
        "10 younger 60 220 ? 6 0",
        "4 ? 60 220 ? ? 0",
        "5 waits 60 220 ? 4 0",
        "6 works 60 220 30 4 0",
        "7 is new 60 220 ? 4 0",
        "9 ? 60 220 ? ? 0",
    ];
    assert_eq!(threads, expected);
    let expected = [
        "10 new 220 40 ? ? ? trace-end",
        "4 blocked 220 40 ? ? 5 trace-end",
        "5 blocked 220 40 ? mutex 48879 trace-end",
        "6 exited 250 ? ? ? ? ?",
        "6 mounted 220 30 70 ? ? exit",
        "7 new 220 40 ? ? ? trace-end",
        "9 mounted 220 40 71 ? ? trace-end",
    ];
    assert_eq!(states(&merged), expected);
    let spans = merged.table("spans", &["thread", "lwp", "kind", "ts_tick", "dur_tick", "end_reason"]);
    assert_eq!(spans, ["6 70 span 220 20 returned"]);
    let locks = merged.table("locks", &["thread", "object", "ts_tick", "wait_tick", "end_reason"]);
    assert_eq!(locks, ["5 48879 220 40 trace-end"]);
    // No row is of an event that was removed.
    let ticks = merged.table("events", &["ts_tick"]);
    assert_eq!(ticks, ["220", "230", "240", "250", "260"]);
}
