//! User traces that are whole, cut, flipped, or lie: what is readable is in the super-trace, and `losses` says what is
//! not. No kernel side: the CPU is the one that the probe saw.

mod supertrace;

use std::{
    fs,
    path::{Path, PathBuf},
};

use fut::trace::{
    Declaration, FILE_HEAD_LEN, PacketFlags, PacketHead, PacketKind, ProbeCosts, RecordHead, encode_costs,
    encode_declarations, file_head,
};
use sigmund_merge::{Error, MergeOptions, Summary, merge};
use sigmund_model::{EventType, Field, FieldType, Level, LossKind, Lwp, Pid, Thread, Ticks};
use tempfile::TempDir;

use self::supertrace::Table;

const SWITCH: u32 = 23014;
const MESSAGE: u32 = 7;
const ATTACH: u32 = 8;

/// A packet of one LWP, before it is bytes. Its events are (tick, code, words).
struct Packet<'e> {
    lwp: u32,
    sequence: u64,
    thread: u64,
    lost: u64,
    events: &'e [(u64, u32, &'e [u64])],
}

impl Packet<'_> {
    fn encode(&self) -> Vec<u8> {
        let mut payload = Vec::new();
        for (tick, code, words) in self.events {
            let head = RecordHead { code: *code, words: words.len() as u8, flags: 0, cpu: 3 };
            let all = [*tick, head.to_word()].into_iter().chain(words.iter().copied());
            payload.extend(all.flat_map(u64::to_le_bytes));
        }
        let ticks = || self.events.iter().map(|(tick, ..)| *tick);
        let (first, last) = (ticks().min().unwrap_or(0), ticks().max().unwrap_or(0));
        PacketHead {
            sequence: self.sequence,
            first_tick: Ticks(first),
            thread: Thread::from_switch(self.thread),
            lost: self.lost,
            last_tick: Ticks(last),
            ..head(PacketKind::EVENTS, self.lwp)
        }
        .encode(&payload)
    }
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

fn lwp_end(lwp: u32, lost: u64) -> Vec<u8> {
    PacketHead { lost, ..head(PacketKind::LWP_END, lwp) }.encode(&[])
}

fn declarations() -> Vec<u8> {
    let declared = |code, name: &str, fields: &[(&str, FieldType)]| Declaration {
        event: EventType {
            level: Level::User,
            code: Some(code),
            name: name.into(),
            key: 1,
            fields: fields.iter().map(|(name, ty)| Field { name: (*name).into(), ty: *ty }).collect(),
            format: String::new(),
        },
        file: "daemon.rs".into(),
        line: 17,
    };
    let switch = [("next", FieldType::Thread), ("reason", FieldType::U8), ("on", FieldType::Pointer)];
    let all = [
        declared(SWITCH, "USER_CONTEXT_SWITCH", &switch),
        declared(MESSAGE, "received_msg", &[("len", FieldType::U64)]),
        declared(ATTACH, "LWP_ATTACH", &[]),
    ];
    head(PacketKind::DECLARATIONS, 0).encode(&encode_declarations(all.iter()))
}

/// The packets of a small trace: what is said once, then two LWPs whose packets are interleaved.
fn small_trace() -> Vec<Vec<u8>> {
    let packet = |lwp, sequence, thread, events| Packet { lwp, sequence, thread, lost: 0, events }.encode();
    vec![
        file_head().to_vec(),
        declarations(),
        packet(70, 0, 0, &[(100, SWITCH, &[5, 0, 0]), (110, MESSAGE, &[8]), (120, SWITCH, &[6, 1, 0])]),
        packet(71, 0, 0, &[(105, MESSAGE, &[9]), (125, SWITCH, &[5, 0, 0])]),
        packet(70, 1, 6, &[(130, MESSAGE, &[10]), (140, SWITCH, &[0, 3, 0xbeef])]),
        packet(71, 1, 5, &[(135, MESSAGE, &[11]), (150, SWITCH, &[6, 4, 0]), (160, MESSAGE, &[12])]),
        lwp_end(70, 0),
        lwp_end(71, 0),
    ]
}

/// What comes out of it: ts_tick, name, lwp, thread, cpu, args.
const SMALL_TRACE: [&str; 10] = [
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

/// A merge, and where its output is.
struct Merged {
    folder: TempDir,
    result: Result<Summary, Error>,
}

impl Merged {
    fn table(&self, name: &str, columns: &[&str]) -> Vec<String> {
        self.read(name).lines(columns)
    }

    fn read(&self, name: &str) -> Table {
        Table::read(&self.out(), name)
    }

    fn events(&self) -> Vec<String> {
        self.table("events", &["ts_tick", "name", "lwp", "thread", "cpu", "args"])
    }

    fn losses(&self) -> Vec<String> {
        self.table("losses", &["kind", "lwp", "from_tick", "to_tick", "count"])
    }

    fn summary(&self) -> &Summary {
        self.result.as_ref().unwrap()
    }

    fn out(&self) -> PathBuf {
        self.folder.path().join("out.supertrace")
    }
}

fn merged(bytes: &[u8]) -> Merged {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("user-60.fut");
    fs::write(&path, bytes).unwrap();
    merged_into(folder, &path)
}

fn merged_into(folder: TempDir, path: &Path) -> Merged {
    let out = folder.path().join("out.supertrace");
    let result = merge(&[path.to_path_buf()], &out, &MergeOptions::default(), |_| {});
    if let Err(error) = &result {
        let names_the_input = error.to_string().contains(&path.display().to_string());
        assert!(names_the_input && !out.exists(), "{error}");
    }
    Merged { folder, result }
}

#[test]
fn a_whole_trace_comes_out_whole() {
    let merged = merged(&small_trace().concat());
    assert_eq!(merged.events(), SMALL_TRACE);
    assert_eq!(merged.losses(), [""; 0]);
    // Traces of before do not tell of what kind it is.
    let columns = ["ts_tick", "dur_tick", "thread", "state", "blocked_on", "blocked_for"];
    let states = merged.table("thread_states", &columns);
    let of = |thread: &str| {
        let is_its = |line: &&String| line.split(' ').nth(2) == Some(thread);
        states.iter().filter(is_its).cloned().collect::<Vec<_>>()
    };
    assert_eq!(
        of("5"),
        ["100 20 5 mounted ? ?", "120 5 5 ready ? ?", "125 25 5 mounted ? ?", "150 ? 5 exited ? ?"]
    );
    assert_eq!(of("6"), ["120 20 6 mounted ? ?", "140 10 6 blocked 48879 ?", "150 10 6 mounted ? ?"]);
}

#[test]
fn a_truncated_trace_keeps_its_whole_packets_and_says_what_is_missing() {
    let packets = small_trace();
    let bytes = packets.concat();
    let ends: Vec<usize> = (1..=packets.len()).map(|n| packets[..n].concat().len()).collect();
    let events_by_then = [0, 0, 3, 5, 7, 10, 10, 10];
    // LWPs whose end is missing then; a cut within a packet is one more loss.
    let open_by_then = [0, 0, 1, 2, 2, 2, 1, 0];
    for len in (0..bytes.len()).step_by(11).chain(ends.iter().copied()) {
        let merged = merged(&bytes[..len]);
        if len < FILE_HEAD_LEN {
            assert!(merged.result.is_err(), "cut at {len}");
            continue;
        }
        let whole = ends.iter().rposition(|end| *end <= len).unwrap();
        if events_by_then[whole] == 0 && ends.contains(&len) {
            let error = merged.result.unwrap_err().to_string();
            assert!(error.contains("expected packets with events of an LWP, found none"), "{error}");
            continue;
        }
        let events = merged.events();
        assert_eq!(events.len(), events_by_then[whole], "cut at {len}");
        assert!(events.iter().all(|event| SMALL_TRACE.contains(&event.as_str())), "cut at {len}: {events:?}");
        let kinds: Vec<_> = merged.summary().losses.iter().map(|loss| loss.kind).collect();
        let losses = open_by_then[whole] + usize::from(!ends.contains(&len));
        assert_eq!(kinds, vec![LossKind::Truncated; losses], "cut at {len}");
        assert_eq!(merged.summary().is_damaged(), losses > 0);
    }
}

#[test]
fn a_flipped_bit_costs_the_packet_it_is_in_and_changes_no_other() {
    let packets = small_trace();
    let bytes = packets.concat();
    let (declared_until, events_until) = (packets[..2].concat().len(), packets[..6].concat().len());
    // Every 37th bit: each bit of a byte, and each field of a head, has its turn.
    for bit in (0..8 * events_until).step_by(37) {
        let merged = merged(&flipped(&bytes, bit));
        let Ok(summary) = &merged.result else {
            assert!(bit < 8 * 12, "bit {bit} is neither in the magic nor in the version");
            continue;
        };
        let is_reserved = bit < 8 * FILE_HEAD_LEN;
        assert_eq!(summary.is_damaged(), !is_reserved, "bit {bit}: {:?}", summary.losses);
        let events = merged.events();
        if bit / 8 < declared_until && !is_reserved {
            assert_eq!(
                events.len(),
                SMALL_TRACE.len(),
                "bit {bit}: nobody knows what they are, but they are"
            );
            continue;
        }
        assert!(events.len() >= SMALL_TRACE.len() - 3, "bit {bit}: {events:?}");
        let mut all = SMALL_TRACE.iter();
        let is_one_of_them = |event: &String| all.any(|whole| whole == event);
        assert!(events.iter().all(is_one_of_them), "bit {bit}: {events:?}");
    }
}

#[test]
fn a_flipped_bit_makes_up_no_lost_events() {
    let packets = small_trace();
    let bytes = packets.concat();
    let (events_from, events_until) = (packets[..2].concat().len(), packets[..6].concat().len());
    let of_events = (8 * events_from..8 * events_until).step_by(37);
    for bit in of_events.chain((8 * events_until..8 * bytes.len()).step_by(13)) {
        let merged = merged(&flipped(&bytes, bit));
        let lost = merged.read("lwps").numbers("lost_events");
        assert!(lost.iter().all(|lost| *lost == Some(0)), "bit {bit}: {lost:?}");
        assert!(merged.summary().is_damaged(), "bit {bit}");
    }
}

fn flipped(bytes: &[u8], bit: usize) -> Vec<u8> {
    let mut flipped = bytes.to_vec();
    flipped[bit / 8] ^= 1 << (bit % 8);
    flipped
}

// LWP 70   packet 0: A mounted | packet 1, lost: A leaves, B comes | packet 2: an event of B, then A again
//          A: mounted ..... 110 | unknown ........................................... 210 | mounted
#[test]
fn behind_a_lost_packet_the_next_ones_head_says_who_is_mounted() {
    let packet = |sequence, thread, events| Packet { lwp: 70, sequence, thread, lost: 0, events }.encode();
    let bytes = [
        file_head().to_vec(),
        declarations(),
        packet(0, 0, &[(100, SWITCH, &[5]), (110, MESSAGE, &[1])]),
        packet(2, 6, &[(200, MESSAGE, &[2]), (210, SWITCH, &[5])]),
        packet(3, 5, &[(220, MESSAGE, &[3])]),
        lwp_end(70, 0),
    ];
    let merged = merged(&bytes.concat());
    let expected = [
        "100 USER_CONTEXT_SWITCH 70 ? 3 [5, ?, ?]",
        "110 received_msg 70 5 3 [1]",
        "200 received_msg 70 6 3 [2]",
        "210 USER_CONTEXT_SWITCH 70 6 3 [5, ?, ?]",
        "220 received_msg 70 5 3 [3]",
    ];
    assert_eq!(merged.events(), expected);
    assert_eq!(merged.losses(), ["damaged 70 110 200 ?"]);
    let [gap] = merged.summary().losses.as_slice() else { panic!("one loss") };
    assert!(gap.detail.contains("user-60.fut") && gap.detail.contains("expected packet 1, found 2"));
    let states = merged.table("thread_states", &["ts_tick", "dur_tick", "thread", "state", "end_reason"]);
    let of_5: Vec<_> = states.iter().filter(|line| line.split(' ').nth(2) == Some("5")).collect();
    assert_eq!(of_5, ["100 10 5 mounted lost", "110 100 5 unknown dispatched", "210 10 5 mounted trace-end"]);
}

// user-60.fut     LWP 70 carries 5, when its process becomes another program by exec
// user-60-2.fut   LWP 70 attaches again, and carries the 5 of that program
#[test]
fn threads_of_the_program_that_a_process_became_are_not_those_of_the_one_before() {
    let packet = |events| Packet { lwp: 70, sequence: 0, thread: 0, lost: 0, events }.encode();
    let file = |events| [file_head().to_vec(), declarations(), packet(events), lwp_end(70, 0)].concat();
    let folder = tempfile::tempdir().unwrap();
    let paths = ["user-60.fut", "user-60-2.fut"].map(|name| folder.path().join(name));
    fs::write(&paths[0], file(&[(100, ATTACH, &[]), (110, SWITCH, &[5]), (120, MESSAGE, &[1])])).unwrap();
    fs::write(&paths[1], file(&[(200, ATTACH, &[]), (210, SWITCH, &[5]), (220, MESSAGE, &[2])])).unwrap();
    let out = folder.path().join("out.supertrace");
    let result = merge(&paths, &out, &MergeOptions::default(), |_| {});
    let merged = Merged { folder, result };
    assert_eq!(merged.losses(), [""; 0]);
    let expected = [
        "100 LWP_ATTACH 70 ? 3 []",
        "110 USER_CONTEXT_SWITCH 70 ? 3 [5, ?, ?]",
        "120 received_msg 70 5 3 [1]",
        "200 LWP_ATTACH 70 ? 3 []",
        "210 USER_CONTEXT_SWITCH 70 ? 3 [1099511627781, ?, ?]",
        "220 received_msg 70 1099511627781 3 [2]",
    ];
    assert_eq!(merged.events(), expected);
    let states = merged.table("thread_states", &["ts_tick", "dur_tick", "thread", "state"]);
    assert_eq!(states, ["110 90 5 mounted", "200 20 5 unmounted", "210 10 1099511627781 mounted"]);
}

// LWP 70   no packet at all, 9 records lost      LWP 71   packets 0 and 1 are missing
#[test]
fn what_is_missing_before_an_lwps_first_packet_is_a_row() {
    let late = Packet { lwp: 71, sequence: 2, thread: 5, lost: 0, events: &[(300, MESSAGE, &[1])] };
    let bytes =
        [file_head().to_vec(), declarations(), late.encode(), lwp_end(71, 0), lwp_end(70, 9)].concat();
    let merged = merged(&bytes);
    assert_eq!(merged.events(), ["300 received_msg 71 5 3 [1]"]);
    assert_eq!(merged.losses(), ["damaged 71 ? 300 ?", "dropped 70 ? ? 9"]);
    assert!(merged.summary().losses[0].detail.contains("expected packet 0, found 2"));
}

#[test]
fn records_that_found_no_room_are_rows() {
    let packet = |sequence, lost, events| Packet { lwp: 70, sequence, thread: 0, lost, events }.encode();
    let bytes = [
        file_head().to_vec(),
        declarations(),
        packet(0, 0, &[(100, MESSAGE, &[1]), (110, MESSAGE, &[2])]),
        packet(1, 17, &[(200, MESSAGE, &[3])]),
        lwp_end(70, 20),
    ];
    let merged = merged(&bytes.concat());
    assert_eq!(merged.losses(), ["dropped 70 110 200 17", "dropped 70 200 ? 3"]);
    assert_eq!(merged.table("lwps", &["lwp", "events", "lost_events"]), ["70 3 20"]);
    assert!(!merged.summary().is_damaged(), "what was recorded is all there");
}

// LWP 70   9 records lost, then one packet, which is damaged
#[test]
fn records_that_found_no_room_are_a_row_also_where_no_packet_can_be_read() {
    let only = Packet { lwp: 70, sequence: 0, thread: 0, lost: 9, events: &[(100, MESSAGE, &[1])] };
    let mut damaged = only.encode();
    *damaged.last_mut().unwrap() ^= 1;
    let merged = merged(&[file_head().to_vec(), declarations(), damaged, lwp_end(70, 9)].concat());
    assert_eq!(merged.losses(), ["damaged 70 100 100 ?", "dropped 70 ? ? 9"]);
}

#[test]
fn a_packet_that_was_never_finished_is_a_note() {
    let unfinished = PacketHead { flags: PacketFlags::UNFINISHED, ..head(PacketKind::EVENTS, 70) };
    let record = RecordHead { code: MESSAGE, words: 1, flags: 0, cpu: 3 }.to_word();
    let payload: Vec<u8> = [100, record, 8].into_iter().flat_map(u64::to_le_bytes).collect();
    let merged =
        merged(&[file_head().to_vec(), declarations(), unfinished.encode(&payload), lwp_end(70, 0)].concat());
    assert_eq!(merged.events(), ["100 received_msg 70 ? 3 [8]"]);
    assert_eq!(merged.table("losses", &["kind", "severity", "lwp"]), ["unfinished note 70"]);
}

#[test]
fn half_a_record_and_an_event_that_nobody_declared_are_kept_apart() {
    let record = RecordHead { code: 99, words: 2, flags: 0, cpu: 3 }.to_word();
    let payload: Vec<u8> = [100, record, 8, 9, 110, record].into_iter().flat_map(u64::to_le_bytes).collect();
    let packet = head(PacketKind::EVENTS, 70).encode(&payload);
    let merged = merged(&[file_head().to_vec(), declarations(), packet, lwp_end(70, 0)].concat());
    assert_eq!(merged.events(), ["100 undeclared 70 ? 3 [99, 8, 9]"]);
    assert_eq!(merged.table("losses", &["kind", "lwp"]), ["damaged 70"]);
}

/// A writer that lies, with the right checksums: each number of a head and of a record at its limits.
#[test]
fn no_number_in_a_trace_is_trusted() {
    let record = |code, words| RecordHead { code, words, flags: 0xff, cpu: 0xffff }.to_word();
    for n in [0, 1, u64::from(u32::MAX), 1 << 62, i64::MAX as u64, 1 << 63, u64::MAX - 1, u64::MAX] {
        let limit = |pid, sequence| PacketHead {
            sequence,
            first_tick: Ticks(n),
            last_tick: Ticks(!n),
            thread: Thread::from_switch(n),
            lost: n,
            pid: Pid(pid),
            ..head(PacketKind::EVENTS, n as u32)
        };
        let words = [n, record(SWITCH, 3), n, n, n, !n, record(MESSAGE, 1), n, n, record(n as u32, 0)];
        let payload: Vec<u8> = words.into_iter().flat_map(u64::to_le_bytes).collect();
        let packets = [(60, n), (60, !n), (60, n), (61, n)]
            .map(|(pid, sequence)| limit(pid, sequence).encode(&payload));
        let unknown_kind = PacketHead { kind: PacketKind(n as u16), ..limit(60, n) }.encode(&payload);
        let bytes = [file_head().to_vec(), declarations(), packets.concat(), unknown_kind].concat();
        let merged = merged(&bytes);
        assert!(merged.result.is_ok(), "{n}: {:?}", merged.result.err());
        // Three records in each of four packets, or five. Of `n` and `!n`, one is a tick that no table holds.
        let packets = if PacketKind(n as u16) == PacketKind::EVENTS { 5 } else { 4 };
        let kept = merged.events().len();
        assert_eq!(
            kept,
            if n > i64::MAX as u64 { packets } else { 2 * packets },
            "{n}: {:?}",
            merged.events()
        );
        let far = merged.table("losses", &["kind", "count", "detail"]);
        let far = far.iter().filter(|row| row.contains("expected a tick of at most"));
        let counted = far.filter_map(|row| row.split(' ').nth(1)?.parse::<usize>().ok()).sum::<usize>();
        assert_eq!(
            kept + counted,
            3 * packets,
            "{n}: {:?}",
            merged.table("losses", &["kind", "count", "detail"])
        );
    }
}

#[test]
fn behind_the_last_sequence_number_comes_the_first() {
    let packet = |sequence| Packet { lwp: 70, sequence, thread: 0, lost: 0, events: &[] }.encode();
    let merged = merged(&[file_head().to_vec(), packet(u64::MAX), packet(0), lwp_end(70, 0)].concat());
    // That the ones before it are missing is another thing; between the two, nothing is.
    assert_eq!(merged.losses(), ["damaged 70 ? 0 ?"]);
    assert!(merged.summary().losses[0].detail.contains(&format!("expected packet 0, found {}", u64::MAX)));
}

#[test]
fn another_version_is_refused() {
    let mut bytes = small_trace().concat();
    bytes[8] = 2;
    let error = merged(&bytes).result.unwrap_err().to_string();
    assert!(error.ends_with("at byte 8: expected version 1, found version 2"), "{error}");
}

#[test]
fn an_empty_directory_is_no_run() {
    let folder = tempfile::tempdir().unwrap();
    let run = folder.path().join("run");
    fs::create_dir(&run).unwrap();
    let error = merged_into(folder, &run).result.unwrap_err().to_string();
    assert!(error.contains("expected a run (run.json, kernel.dat"), "{error}");
}

#[test]
fn a_run_whose_recorder_was_killed_is_its_files() {
    let folder = tempfile::tempdir().unwrap();
    let run = folder.path().join("run");
    fs::create_dir(&run).unwrap();
    fs::write(run.join("user-60.fut"), small_trace().concat()).unwrap();
    assert_eq!(merged_into(folder, &run).events(), SMALL_TRACE);
}

#[test]
fn what_recording_cost_is_kept_for_each_process_that_says_it() {
    let folder = TempDir::new().unwrap();
    let info = |name: &str, packets: &[Vec<u8>]| {
        let (input, out) =
            (folder.path().join(format!("{name}.fut")), folder.path().join(format!("{name}.supertrace")));
        fs::write(&input, packets.concat()).unwrap();
        let summary = merge(&[input], &out, &MergeOptions::default(), |_| {}).unwrap();
        let mut costs = Table::read(&out, "info").lines(&["key", "value"]);
        costs.retain(|fact| fact.starts_with("probe_"));
        (costs, summary.losses)
    };
    assert_eq!(info("silent", &small_trace()), (Vec::new(), Vec::new()));

    let mut packets = small_trace();
    let costs = ProbeCosts { clock_read: 24.75, record: 26.5, per_word: 0.125 };
    packets.insert(1, head(PacketKind::COSTS, 0).encode(&encode_costs(&costs)));
    let expected = ["probe_ticks_60 26.5", "probe_word_ticks_60 0.125", "probe_clock_ticks_60 24.75"];
    assert_eq!(info("says", &packets), (expected.map(String::from).to_vec(), Vec::new()));

    // A cut one is a loss, and nothing else is lost.
    packets[1] = head(PacketKind::COSTS, 0).encode(&encode_costs(&costs)[..20]);
    let (kept, losses) = info("cut", &packets);
    assert_eq!(kept, Vec::<String>::new());
    assert_eq!(losses.iter().map(|loss| loss.kind).collect::<Vec<_>>(), [LossKind::Damaged]);
    let rows = Table::read(&folder.path().join("cut.supertrace"), "events").numbers("ts_tick");
    assert_eq!(rows.len(), 10);
}
