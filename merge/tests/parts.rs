//! Recordings that were cut into parts: merged as one, from the instant at which the first part that was kept begins.

mod supertrace;

use fut::trace::file_head;
use sigmund_merge::{KernelSide, Manifest, MergeOptions, Part, PartFile, Removed, Rotation, UserSide};
use sigmund_model::{FieldType, LossKind, Severity};

use self::supertrace::{
    Inputs, Merged,
    user_file::{self, Packet, lwp_end},
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

/// All events: ts_tick, name, lwp, thread, cpu, args.
const EVENTS: [&str; 10] = [
    "100 USER_CONTEXT_SWITCH 70 ? 3 [5, 0, 0]",
    "105 received_msg 71 ? 3 [9]",
    "110 received_msg 70 5 3 [8]",
    "120 USER_CONTEXT_SWITCH 70 5 3 [6, 1, 0]",
    "125 USER_CONTEXT_SWITCH 71 ? 3 [5, 0, 0]",
    "130 received_msg 70 6 3 [10]",
    "135 received_msg 71 5 3 [11]",
    "140 USER_CONTEXT_SWITCH 70 6 3 [0, 3, 48879]",
    "150 USER_CONTEXT_SWITCH 71 5 3 [6, 4, 0]",
    "160 received_msg 71 6 3 [12]",
];

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
        let file = PartFile { name: name.clone(), bytes: bytes.len() as u64, events, lost: 0 };
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
                    EVENTS.iter().filter(|line| tick(line) >= recording.begins).copied().collect();
                let place = format!("cut before {first} and {second}, without {removed}");
                assert_eq!(events(&merged), kept, "{place}");
                assert_eq!(gaps(&merged), Vec::<String>::new(), "{place}");
                let removed_events = merged.summary.losses.iter().filter(|loss| {
                    loss.kind == LossKind::Overwritten
                        && loss.severity == Severity::Note
                        && loss.count > Some(0)
                });
                let counted: u64 = removed_events.filter_map(|loss| loss.count).sum();
                assert_eq!(kept.len() as u64 + counted, EVENTS.len() as u64, "{place}");
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
    let expected: Vec<&str> =
        EVENTS.iter().filter(|line| !line.starts_with("130") && !line.starts_with("140")).copied().collect();
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
