//! Events whose time does not fit into a column are damage: they are left out and reported; all other events are kept.

use fut::trace::file_head;
use sigmund_model::{LossKind, Lwp};

use crate::supertrace::{
    Inputs, Merged,
    user_file::{Packet, lwp_end},
};

fn merge_file(name: &str, bytes: impl AsRef<[u8]>) -> Merged {
    Inputs::new().file(name, bytes).merge()
}

fn ticks(merged: &Merged) -> Vec<Option<i64>> {
    merged.read("events").numbers("ts_tick")
}

/// The count and detail of the only loss that is damage.
fn damage(merged: &Merged) -> (Option<u64>, String) {
    let losses = merged.summary.losses.iter().filter(|loss| loss.kind == LossKind::Damaged);
    let [loss] = losses.collect::<Vec<_>>()[..] else { panic!("{:?}", merged.summary.losses) };
    (loss.count, loss.detail.clone())
}

fn listing(head: &str, ticks: &[u64]) -> String {
    let line = |tick: &u64| format!("USER\t{tick}\t70\t3\t5\tMESSAGE\t\n");
    let lines: String = ticks.iter().map(line).collect();
    format!("{head}type\tdate_tick\tpid\tcpu\tthr\tname\tparams\n{lines}")
}

#[test]
fn a_time_beyond_292_years_in_a_listing_is_left_out_and_reported() {
    let far = i64::MAX as u64 - 7;
    let merged = merge_file("far.tsv", listing("# tick_hz=1000\n", &[100, far, 200]));
    assert_eq!(ticks(&merged), [Some(100), Some(200)]);
    let (count, detail) = damage(&merged);
    assert_eq!(count, Some(1));
    assert!(detail.contains("far.tsv: event 3: expected a tick of at most 9223372036854"), "{detail}");
    assert!(detail.ends_with("found 9223372036854775800"), "{detail}");
    assert!(merged.summary.is_damaged());
    // With ticks of a nanosecond or less, the limit is the largest tick.
    let merged = merge_file("near.tsv", listing("# tick_hz=2800000000\n", &[100, far, 200]));
    assert_eq!(ticks(&merged), [Some(100), Some(200), Some(far as i64)]);
    assert_eq!(merged.summary.losses, []);
}

#[test]
fn a_tick_beyond_signed_numbers_is_left_out_and_its_line_reported() {
    let merged = merge_file("far.tsv", listing("", &[100, 1 << 63, 200]));
    assert_eq!(ticks(&merged), [Some(100), Some(200)]);
    let (_, detail) = damage(&merged);
    assert!(detail.contains("far.tsv: line 3: expected a tick"), "{detail}");
}

fn packet(sequence: u64, ticks: &[u64]) -> Vec<u8> {
    let events: Vec<(u64, u32, &[u64])> = ticks.iter().map(|tick| (*tick, 7, [].as_slice())).collect();
    Packet { lwp: 70, sequence, thread: 0, lost: 0, events: &events }.encode()
}

#[test]
fn an_overwritten_record_is_lost_and_the_records_after_it_are_kept() {
    let parts = [
        file_head().to_vec(),
        packet(0, &[100, 1 << 63, u64::MAX, 130]),
        packet(1, &[140, 150]),
        packet(2, &[u64::MAX - 1]),
        packet(3, &[160]),
        lwp_end(70, 0),
    ];
    let merged = merge_file("user-60.fut", parts.concat());
    assert_eq!(ticks(&merged), [100, 130, 140, 150, 160].map(Some));
    let far: Vec<_> =
        merged.summary.losses.iter().filter(|loss| loss.detail.contains("a tick of at most")).collect();
    let [first, second] = far[..] else { panic!("{:?}", merged.summary.losses) };
    assert_eq!((first.count, first.lwp, second.count), (Some(2), Some(Lwp(70)), Some(1)));
    assert!(first.detail.contains("user-60.fut: packet 0 of LWP 70: byte 16 of its records"), "{first:?}");
    // Numbers in tables are signed.
    let losses = merged.read("losses");
    for column in ["from_tick", "to_tick", "count"] {
        assert!(losses.numbers(column).iter().flatten().all(|number| *number >= 0), "{column}");
    }
}
