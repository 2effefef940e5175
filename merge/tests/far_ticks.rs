//! Events whose time no column can hold are damage: each is left out and named, and all others are kept.

mod supertrace;

use std::fs;

use fut::trace::{PacketFlags, PacketHead, PacketKind, RecordHead, file_head};
use sigmund_merge::{MergeOptions, Summary, merge};
use sigmund_model::{LossKind, Lwp, Pid, Ticks};
use tempfile::TempDir;

use self::supertrace::Table;

struct Merged {
    folder: TempDir,
    summary: Summary,
}

impl Merged {
    fn of(name: &str, bytes: &[u8]) -> Merged {
        let folder = tempfile::tempdir().unwrap();
        let input = folder.path().join(name);
        fs::write(&input, bytes).unwrap();
        let out = folder.path().join("out.supertrace");
        let summary = merge(&[input], &out, &MergeOptions::default(), |_| {}).unwrap();
        Merged { folder, summary }
    }

    fn ticks(&self) -> Vec<Option<i64>> {
        Table::read(&self.folder.path().join("out.supertrace"), "events").numbers("ts_tick")
    }

    /// The only loss that is damage.
    fn damage(&self) -> (Option<u64>, String) {
        let losses = self.summary.losses.iter().filter(|loss| loss.kind == LossKind::Damaged);
        let [loss] = losses.collect::<Vec<_>>()[..] else { panic!("{:?}", self.summary.losses) };
        (loss.count, loss.detail.clone())
    }
}

fn listing(head: &str, ticks: &[u64]) -> String {
    let line = |tick: &u64| format!("USER\t{tick}\t70\t3\t5\tMESSAGE\t\n");
    let lines: String = ticks.iter().map(line).collect();
    format!("{head}type\tdate_tick\tpid\tcpu\tthr\tname\tparams\n{lines}")
}

#[test]
fn a_time_beyond_292_years_is_left_out_of_a_listing_and_named() {
    let far = i64::MAX as u64 - 7;
    let merged = Merged::of("far.tsv", listing("# tick_hz=1000\n", &[100, far, 200]).as_bytes());
    assert_eq!(merged.ticks(), [Some(100), Some(200)]);
    let (count, detail) = merged.damage();
    assert_eq!(count, Some(1));
    assert!(detail.contains("far.tsv: event 3: expected a tick of at most 9223372036854"), "{detail}");
    assert!(detail.ends_with("found 9223372036854775800"), "{detail}");
    assert!(merged.summary.is_damaged());
    // With ticks of a nanosecond or less, it is the tick that has to have room.
    let merged = Merged::of("near.tsv", listing("# tick_hz=2800000000\n", &[100, far, 200]).as_bytes());
    assert_eq!(merged.ticks(), [Some(100), Some(200), Some(far as i64)]);
    assert_eq!(merged.summary.losses, []);
}

#[test]
fn a_tick_that_is_no_signed_number_is_left_out_of_a_listing_and_its_line_named() {
    let merged = Merged::of("far.tsv", listing("", &[100, 1 << 63, 200]).as_bytes());
    assert_eq!(merged.ticks(), [Some(100), Some(200)]);
    let (_, detail) = merged.damage();
    assert!(detail.contains("far.tsv: line 3: expected a tick"), "{detail}");
}

fn head(kind: PacketKind) -> PacketHead {
    PacketHead {
        kind,
        flags: PacketFlags::default(),
        length: 0,
        pid: Pid(60),
        lwp: Lwp(70),
        sequence: 0,
        first_tick: Ticks(0),
        thread: None,
        lost: 0,
        last_tick: Ticks(0),
    }
}

fn packet(sequence: u64, ticks: &[u64]) -> Vec<u8> {
    let record = RecordHead { code: 7, words: 0, flags: 0, cpu: 3 }.to_word();
    let payload: Vec<u8> = ticks.iter().flat_map(|tick| [*tick, record]).flat_map(u64::to_le_bytes).collect();
    let (first_tick, last_tick) = (Ticks(ticks[0]), Ticks(*ticks.last().unwrap()));
    PacketHead { sequence, first_tick, last_tick, ..head(PacketKind::EVENTS) }.encode(&payload)
}

#[test]
fn a_record_that_was_scribbled_over_costs_itself_and_none_of_those_after_it() {
    let parts = [
        file_head().to_vec(),
        packet(0, &[100, 1 << 63, u64::MAX, 130]),
        packet(1, &[140, 150]),
        packet(2, &[u64::MAX - 1]),
        packet(3, &[160]),
        head(PacketKind::LWP_END).encode(&[]),
    ];
    let merged = Merged::of("user-60.fut", &parts.concat());
    assert_eq!(merged.ticks(), [100, 130, 140, 150, 160].map(Some));
    let far: Vec<_> =
        merged.summary.losses.iter().filter(|loss| loss.detail.contains("a tick of at most")).collect();
    let [first, second] = far[..] else { panic!("{:?}", merged.summary.losses) };
    assert_eq!((first.count, first.lwp, second.count), (Some(2), Some(Lwp(70)), Some(1)));
    assert!(first.detail.contains("user-60.fut: packet 0 of LWP 70: byte 16 of its records"), "{first:?}");
    // What the tables hold is signed.
    let losses = Table::read(&merged.folder.path().join("out.supertrace"), "losses");
    for column in ["from_tick", "to_tick", "count"] {
        assert!(losses.numbers(column).iter().flatten().all(|number| *number >= 0), "{column}");
    }
}
