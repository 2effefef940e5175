//! What recording cost the program, as `sigmund info` estimates it.

use fut::trace::{
    DECLARED_BIT, Declaration, PacketHead, PacketKind, ProbeCosts, RecordHead, encode_costs,
    encode_declarations, file_head,
};
use sigmund_model::{EventType, Field, FieldType, Level, Lwp, Pid, Ticks};

use crate::{
    kernel,
    sigmund::{Sigmund, figure, program},
};

const SWITCH: u32 = DECLARED_BIT | 1;
const NOTE: u32 = DECLARED_BIT | 2;

fn about(kind: PacketKind, payload: &[u8]) -> Vec<u8> {
    PacketHead::about(kind, Pid(60), Ticks(0)).encode(payload)
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
        declared(NOTE, "note", &[("number", FieldType::U64), ("text", FieldType::Text)]),
    ];
    about(PacketKind::DECLARATIONS, &encode_declarations(all.iter()))
}

/// LWP 70: switches to thread 5, which notes eleven letters and a number, twice, and leaves.
fn events() -> Vec<u8> {
    let letters = |part: &[u8; 8]| u64::from_le_bytes(*part);
    let note = [9, 11, letters(b"eleven l"), letters(b"ett\0\0\0\0\0")];
    let records: [(u64, u32, &[u64]); 4] =
        [(1000, SWITCH, &[5, 0, 0]), (1100, NOTE, &note), (1200, NOTE, &note), (2000, SWITCH, &[0, 4, 0])];
    let mut payload = Vec::new();
    for (tick, code, words) in records {
        let head = RecordHead { code, words: words.len() as u8, flags: 0, cpu: 0 };
        let all = [tick, head.to_word()].into_iter().chain(words.iter().copied());
        payload.extend(all.flat_map(u64::to_le_bytes));
    }
    let head = PacketHead::about(PacketKind::EVENTS, Pid(60), Ticks(1000));
    PacketHead { lwp: Lwp(70), last_tick: Ticks(2000), ..head }.encode(&payload)
}

fn user_trace(costs: Option<ProbeCosts>) -> Vec<u8> {
    let end = PacketHead { lwp: Lwp(70), ..PacketHead::about(PacketKind::LWP_END, Pid(60), Ticks(2000)) };
    let costs = costs.map(|costs| about(PacketKind::COSTS, &encode_costs(&costs))).unwrap_or_default();
    [file_head().to_vec(), declarations(), costs, events(), end.encode(&[])].concat()
}

fn info_of(costs: Option<ProbeCosts>, hz: &[&str]) -> String {
    let sigmund = Sigmund::new();
    sigmund.write("user.fut", &user_trace(costs));
    sigmund.run([&["merge", "user.fut", "-o", "user.supertrace"], hz].concat()).found();
    sigmund.run(["info", "user.supertrace"]).found()
}

#[track_caller]
fn has_line(text: &str, words: &[&str]) {
    let has = |line: &str| line.split_whitespace().eq(words.iter().copied());
    assert!(text.lines().any(has), "{words:?} in {text}");
}

#[test]
fn info_says_events_times_cost_and_who_paid() {
    let costs = ProbeCosts { clock_read: 20.0, record: 25.0, per_word: 1.0 };
    let text = info_of(Some(costs), &["--hz", "1GHz"]);
    // Words: 3 for each switch; of a note 1 for the number, 1 for the length, 2 for eleven letters.
    has_line(&text, &["events", "of", "the", "program", "4,", "with", "14", "words", "of", "parameters"]);
    // 4 × 25 + 14 × 1 = 114 ns, of which the first switch, before the thread, 25 + 3 × 1 = 28.
    has_line(&text, &["estimated", "cost", "of", "each", "28.5", "ns"]);
    assert!(text.contains("114.0 ns; the active time of user threads is unknown"), "{text}");
    has_line(&text, &["5", "3", "0.086"]);
    has_line(&text, &["70", "1", "0.028"]);
    assert!(
        text.contains("kernel tracepoints, caches that records displaced, the drain, lost events"),
        "{text}"
    );
    has_line(&text, &["probe_ticks_60", "25"]);
    // Nobody knows how long a tick is: then in ticks.
    let text = info_of(Some(costs), &[]);
    has_line(&text, &["estimated", "cost", "of", "each", "28.5", "cycles"]);
    has_line(&text, &["5", "3", "86.000"]);
}

#[test]
fn info_says_that_it_does_not_know_what_recording_cost() {
    let unknown = "unknown: no user trace contains it";
    let text = info_of(None, &[]);
    assert!(text.contains(unknown), "{text}");
    let listing = Sigmund::with_listing("figure3", &figure(3));
    let text = listing.run(["info", "figure3.supertrace"]).found();
    assert!(text.contains(unknown), "{text}");
}

#[test]
fn info_estimates_what_recording_cost_sumtime() {
    let _alone = kernel::alone();
    let sigmund = Sigmund::new();
    sigmund.run(["record", "-o", "RUN", "--", program(), "sumtime", "6", "2", "1000"]).found();
    let text = sigmund.run(["info", "RUN.supertrace"]).found();
    let events = sigmund.number("RUN.supertrace", "SELECT count(*) FROM events WHERE level = 'USER'");
    assert!(events > 2 * 127, "{events}");
    assert!(text.contains(&format!(" {events}, with ")), "{events} events in {text}");
    let words = "SELECT sum(cardinality(field_names) * events) FROM event_types WHERE level = 'USER'";
    let fixed = sigmund.number("RUN.supertrace", words);
    let said = text.split(" events of the program").nth(1).and_then(|rest| rest.split_whitespace().nth(2));
    let said: i64 = said.unwrap_or_default().parse().unwrap_or_else(|e| panic!("{e}: {said:?} in {text}"));
    // Each name of a thread has some words more.
    assert!((fixed + 100..fixed + 127 * 8).contains(&said), "{said} words, {fixed} fields");
    let tracing = text.split("\ntracing\n").nth(1).unwrap();
    // What is known of all, a blank line, a heading, and ten threads.
    assert_eq!(tracing.lines().count(), 6 + 1 + 1 + 10, "{tracing}");
}
