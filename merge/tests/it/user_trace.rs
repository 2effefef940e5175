//! User traces that are whole, truncated, with flipped bits, or hostile: readable events are in the super-trace,
//! others are counted in `losses`. There is no kernel side: the CPU is as read by the probe.

use fut::trace::{
    FILE_HEAD_LEN, PacketFlags, PacketHead, PacketKind, ProbeCosts, RecordHead, encode_costs, file_head,
};
use sigmund_merge::{Error, MergeOptions};
use sigmund_model::{FieldType, LossKind, Pid, Thread, Ticks};

use crate::supertrace::{
    Inputs, Merged,
    user_file::{self, Packet, head, lwp_end, record},
};

const SWITCH: u32 = 23014;
const MESSAGE: u32 = 7;
const ATTACH: u32 = 8;

fn declarations() -> Vec<u8> {
    let switch = [("next", FieldType::Thread), ("reason", FieldType::U8), ("on", FieldType::Pointer)];
    user_file::declarations(&[
        (SWITCH, "USER_CONTEXT_SWITCH", &switch),
        (MESSAGE, "received_msg", &[("len", FieldType::U64)]),
        (ATTACH, "LWP_ATTACH", &[]),
    ])
}

/// The packets of a small trace: head and declarations, then the interleaved packets of two LWPs.
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

/// The expected events of the small trace: ts_tick, name, lwp, thread, cpu, args.
pub(crate) const SMALL_TRACE: [&str; 10] = [
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

impl Merged {
    fn events(&self) -> Vec<String> {
        self.table("events", &["ts_tick", "name", "lwp", "thread", "cpu", "args"])
    }

    fn losses(&self) -> Vec<String> {
        self.table("losses", &["kind", "lwp", "from_tick", "to_tick", "count"])
    }
}

/// Merges a user trace; an error must name the file.
fn try_merged(bytes: &[u8]) -> Result<Merged, Error> {
    let result = Inputs::new().file("user-60.fut", bytes).try_merge(&MergeOptions::default());
    if let Err(error) = &result {
        assert!(error.to_string().contains("/user-60.fut"), "{error}");
    }
    result
}

fn merged(bytes: &[u8]) -> Merged {
    try_merged(bytes).unwrap()
}

#[test]
fn a_whole_trace_is_merged_without_losses() {
    let merged = merged(&small_trace().concat());
    assert_eq!(merged.events(), SMALL_TRACE);
    assert_eq!(merged.losses(), [""; 0]);
    // Traces of earlier versions do not contain the kind of wait.
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
fn a_truncated_trace_keeps_its_whole_packets_and_reports_the_missing_ones() {
    let packets = small_trace();
    let bytes = packets.concat();
    let ends: Vec<usize> = (1..=packets.len()).map(|n| packets[..n].concat().len()).collect();
    let events_by_then = [0, 0, 3, 5, 7, 10, 10, 10];
    // LWPs whose end is missing at that point; a truncated packet is one more loss.
    let open_by_then = [0, 0, 1, 2, 2, 2, 1, 0];
    for len in (0..bytes.len()).step_by(11).chain(ends.iter().copied()) {
        let result = try_merged(&bytes[..len]);
        if len < FILE_HEAD_LEN {
            assert!(result.is_err(), "cut at {len}");
            continue;
        }
        let whole = ends.iter().rposition(|end| *end <= len).unwrap();
        if events_by_then[whole] == 0 && ends.contains(&len) {
            let error = result.err().unwrap().to_string();
            assert!(error.contains("expected packets with events of an LWP, found none"), "{error}");
            continue;
        }
        let merged = result.unwrap();
        let events = merged.events();
        assert_eq!(events.len(), events_by_then[whole], "cut at {len}");
        assert!(events.iter().all(|event| SMALL_TRACE.contains(&event.as_str())), "cut at {len}: {events:?}");
        let kinds: Vec<_> = merged.summary.losses.iter().map(|loss| loss.kind).collect();
        let losses = open_by_then[whole] + usize::from(!ends.contains(&len));
        assert_eq!(kinds, vec![LossKind::Truncated; losses], "cut at {len}");
        assert_eq!(merged.summary.is_damaged(), losses > 0);
    }
}

#[test]
fn a_flipped_bit_loses_its_packet_and_changes_no_other() {
    let packets = small_trace();
    let bytes = packets.concat();
    let (declared_until, events_until) = (packets[..2].concat().len(), packets[..6].concat().len());
    // Every 37th bit covers each bit of a byte and each field of a head.
    for bit in (0..8 * events_until).step_by(37) {
        let Ok(merged) = try_merged(&flipped(&bytes, bit)) else {
            assert!(bit < 8 * 12, "bit {bit} is neither in the magic nor in the version");
            continue;
        };
        let summary = &merged.summary;
        let is_reserved = bit < 8 * FILE_HEAD_LEN;
        assert_eq!(summary.is_damaged(), !is_reserved, "bit {bit}: {:?}", summary.losses);
        let events = merged.events();
        if bit / 8 < declared_until && !is_reserved {
            assert_eq!(events.len(), SMALL_TRACE.len(), "bit {bit}: events without a declaration are kept");
            continue;
        }
        assert!(events.len() >= SMALL_TRACE.len() - 3, "bit {bit}: {events:?}");
        let mut all = SMALL_TRACE.iter();
        let is_one_of_them = |event: &String| all.any(|whole| whole == event);
        assert!(events.iter().all(is_one_of_them), "bit {bit}: {events:?}");
    }
}

#[test]
fn a_flipped_bit_does_not_invent_lost_events() {
    let packets = small_trace();
    let bytes = packets.concat();
    let (events_from, events_until) = (packets[..2].concat().len(), packets[..6].concat().len());
    let of_events = (8 * events_from..8 * events_until).step_by(37);
    for bit in of_events.chain((8 * events_until..8 * bytes.len()).step_by(13)) {
        let merged = merged(&flipped(&bytes, bit));
        let lost = merged.read("lwps").numbers("lost_events");
        assert!(lost.iter().all(|lost| *lost == Some(0)), "bit {bit}: {lost:?}");
        assert!(merged.summary.is_damaged(), "bit {bit}");
    }
}

fn flipped(bytes: &[u8], bit: usize) -> Vec<u8> {
    let mut flipped = bytes.to_vec();
    flipped[bit / 8] ^= 1 << (bit % 8);
    flipped
}

// LWP 70   packet 0: A mounted | packet 1, lost: A leaves, B mounted | packet 2: event of B, then A again
//          A: mounted ..... 110 | unknown ........................................... 210 | mounted
#[test]
fn after_a_lost_packet_the_mounted_thread_is_read_from_the_next_head() {
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
    let [gap] = merged.summary.losses.as_slice() else { panic!("one loss") };
    assert!(gap.detail.contains("user-60.fut") && gap.detail.contains("expected packet 1, found 2"));
    let states = merged.table("thread_states", &["ts_tick", "dur_tick", "thread", "state", "end_reason"]);
    let of_5: Vec<_> = states.iter().filter(|line| line.split(' ').nth(2) == Some("5")).collect();
    assert_eq!(of_5, ["100 10 5 mounted lost", "110 100 5 unknown dispatched", "210 10 5 mounted trace-end"]);
}

// user-60.fut     LWP 70 carries 5 when its process executes another program
// user-60-2.fut   LWP 70 attaches again, and carries the 5 of that program
#[test]
fn threads_before_and_after_an_exec_are_different() {
    let packet = |events| Packet { lwp: 70, sequence: 0, thread: 0, lost: 0, events }.encode();
    let file = |events| [file_head().to_vec(), declarations(), packet(events), lwp_end(70, 0)].concat();
    let merged = Inputs::new()
        .file("user-60.fut", file(&[(100, ATTACH, &[]), (110, SWITCH, &[5]), (120, MESSAGE, &[1])]))
        .file("user-60-2.fut", file(&[(200, ATTACH, &[]), (210, SWITCH, &[5]), (220, MESSAGE, &[2])]))
        .merge();
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
fn missing_packets_before_the_first_one_of_an_lwp_are_a_row() {
    let late = Packet { lwp: 71, sequence: 2, thread: 5, lost: 0, events: &[(300, MESSAGE, &[1])] };
    let bytes =
        [file_head().to_vec(), declarations(), late.encode(), lwp_end(71, 0), lwp_end(70, 9)].concat();
    let merged = merged(&bytes);
    assert_eq!(merged.events(), ["300 received_msg 71 5 3 [1]"]);
    assert_eq!(merged.losses(), ["damaged 71 ? 300 ?", "dropped 70 ? ? 9"]);
    assert!(merged.summary.losses[0].detail.contains("expected packet 0, found 2"));
}

#[test]
fn dropped_records_are_rows() {
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
    assert!(!merged.summary.is_damaged(), "no recorded event is missing");
}

// LWP 70   9 records lost, then one packet, which is damaged
#[test]
fn dropped_records_are_a_row_even_if_no_packet_is_readable() {
    let only = Packet { lwp: 70, sequence: 0, thread: 0, lost: 9, events: &[(100, MESSAGE, &[1])] };
    let mut damaged = only.encode();
    *damaged.last_mut().unwrap() ^= 1;
    let merged = merged(&[file_head().to_vec(), declarations(), damaged, lwp_end(70, 9)].concat());
    assert_eq!(merged.losses(), ["damaged 70 100 100 ?", "dropped 70 ? ? 9"]);
}

#[test]
fn a_packet_that_was_never_finished_is_a_note() {
    let unfinished = PacketHead { flags: PacketFlags::UNFINISHED, ..head(PacketKind::EVENTS, 70) };
    let packet = unfinished.encode(&record(100, user_file::CPU, MESSAGE, &[8]));
    let merged = merged(&[file_head().to_vec(), declarations(), packet, lwp_end(70, 0)].concat());
    assert_eq!(merged.events(), ["100 received_msg 70 ? 3 [8]"]);
    assert_eq!(merged.table("losses", &["kind", "severity", "lwp"]), ["unfinished note 70"]);
}

#[test]
fn a_truncated_record_and_an_undeclared_event_are_reported_separately() {
    let record = RecordHead { code: 99, words: 2, flags: 0, cpu: 3 }.to_word();
    let payload: Vec<u8> = [100, record, 8, 9, 110, record].into_iter().flat_map(u64::to_le_bytes).collect();
    let packet = head(PacketKind::EVENTS, 70).encode(&payload);
    let merged = merged(&[file_head().to_vec(), declarations(), packet, lwp_end(70, 0)].concat());
    assert_eq!(merged.events(), ["100 undeclared 70 ? 3 [99, 8, 9]"]);
    assert_eq!(merged.table("losses", &["kind", "lwp"]), ["damaged 70"]);
}

/// A hostile writer with correct checksums: each number of a head and of a record at its limits.
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
        let merged = try_merged(&bytes).unwrap_or_else(|error| panic!("{n}: {error}"));
        // Three records in each of four or five packets. One of `n` and `!n` is a tick that does not fit into a table.
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
fn sequence_numbers_wrap_around() {
    let packet = |sequence| Packet { lwp: 70, sequence, thread: 0, lost: 0, events: &[] }.encode();
    let merged = merged(&[file_head().to_vec(), packet(u64::MAX), packet(0), lwp_end(70, 0)].concat());
    // The packets before the first are missing; none is missing between the two.
    assert_eq!(merged.losses(), ["damaged 70 ? 0 ?"]);
    assert!(merged.summary.losses[0].detail.contains(&format!("expected packet 0, found {}", u64::MAX)));
}

#[test]
fn another_version_is_rejected() {
    let mut bytes = small_trace().concat();
    bytes[8] = 2;
    let error = try_merged(&bytes).err().unwrap().to_string();
    assert!(error.ends_with("at byte 8: expected version 1, found version 2"), "{error}");
}

#[test]
fn an_empty_directory_is_not_a_run() {
    let result = Inputs::new().run(&[], None).try_merge(&MergeOptions::default());
    let error = result.err().unwrap().to_string();
    assert!(error.contains("/run: ") && error.contains("expected a run (run.json, kernel.dat"), "{error}");
}

#[test]
fn a_run_whose_recorder_was_killed_is_read_from_its_files() {
    let merged = Inputs::new().run(&[("user-60.fut", &small_trace().concat())], None).merge();
    assert_eq!(merged.events(), SMALL_TRACE);
}

#[test]
fn the_cost_of_recording_is_kept_for_each_process_that_reports_it() {
    let info = |packets: &[Vec<u8>]| {
        let merged = merged(&packets.concat());
        let mut costs = merged.table("info", &["key", "value"]);
        costs.retain(|fact| fact.starts_with("probe_"));
        (costs, merged)
    };
    let (costs, merged) = info(&small_trace());
    assert_eq!((costs, merged.summary.losses.as_slice()), (Vec::new(), [].as_slice()));

    let mut packets = small_trace();
    let costs = ProbeCosts { clock_read: 24.75, record: 26.5, per_word: 0.125 };
    packets.insert(1, head(PacketKind::COSTS, 0).encode(&encode_costs(&costs)));
    let (kept, merged) = info(&packets);
    assert_eq!(kept, ["probe_ticks_60 26.5", "probe_word_ticks_60 0.125", "probe_clock_ticks_60 24.75"]);
    assert_eq!(merged.summary.losses, []);

    // A truncated packet of costs is a loss, and nothing else is lost.
    packets[1] = head(PacketKind::COSTS, 0).encode(&encode_costs(&costs)[..20]);
    let (kept, merged) = info(&packets);
    assert_eq!(kept, [""; 0]);
    let kinds: Vec<_> = merged.summary.losses.iter().map(|loss| loss.kind).collect();
    assert_eq!(kinds, [LossKind::Damaged]);
    assert_eq!(merged.events().len(), 10);
}

/// Two snapshots of one process, the second of which has later packets.
#[test]
fn user_traces_with_packets_in_common_are_refused() {
    let packets = small_trace();
    let without = |place: usize| {
        let left: Vec<_> = packets.iter().enumerate().filter(|(other, _)| *other != place).collect();
        left.into_iter().flat_map(|(_, packet)| packet.clone()).collect::<Vec<u8>>()
    };
    let both = |first: &[u8], second: &[u8]| {
        let inputs = Inputs::new().file("first.fut", first).file("second.fut", second);
        inputs.try_merge(&MergeOptions::default()).map(|merged| merged.events().len())
    };
    let error = both(&without(5), &without(2)).map(drop).unwrap_err().to_string();
    assert!(error.contains("second.fut") && error.contains("first.fut holds, too"), "{error}");
    // Of other times: nothing in common.
    let later: Vec<Vec<u8>> = vec![
        file_head().to_vec(),
        declarations(),
        Packet { lwp: 70, sequence: 0, thread: 0, lost: 0, events: &[(1100, MESSAGE, &[8])] }.encode(),
        lwp_end(70, 0),
    ];
    assert_eq!(both(&packets.concat(), &later.concat()).unwrap(), SMALL_TRACE.len() + 1);
}
