//! Overwrite mode: the producer against a snapshot.

use loom::{sync::Arc, thread};

use super::producer::{Memory, NEVER, Producer, RECORD, Run, numbers, points_passed, with_all_interruptions};

/// A producer that overwrites runs against a snapshot. There are two or four packets of one record each, all full when
/// the snapshot begins.
fn overwrite(run: &Run) -> usize {
    // Rule 11: with handlers, four packets are required.
    let count = if run.has_handlers() { 4 } else { 2 };
    let before = count as usize;
    let memory = Arc::new(Memory::new(count, true));
    let producer = Producer::new(&memory);
    producer.run(before, &[NEVER]);
    let copied = run.at_once.then(|| {
        let memory = Arc::clone(&memory);
        thread::spawn(move || memory.ring().snapshot().expect("a live ring"))
    });
    // One record and that of a handler are two as well. These are few enough to check every interleaving.
    producer.run(if run.has_handlers() && run.at_once { 1 } else { 2 }, &run.handlers_at);
    let points = points_passed();
    let copied = copied.map(|copies| copies.join().unwrap());
    let last = memory.ring().snapshot().expect("a live ring");
    let emitted = producer.emitted();
    assert_eq!(emitted.lost, 0);

    for (snapshot, whole) in copied.map(|copied| (copied, false)).into_iter().chain([(last, true)]) {
        let sequences: Vec<u64> = snapshot.packets.iter().map(|(taken, _)| taken.head.sequence).collect();
        let expected: Vec<u64> = (snapshot.overwritten..).take(sequences.len()).collect();
        assert_eq!(sequences, expected, "no gap");
        let mut kept = Vec::new();
        for (taken, at) in &snapshot.packets {
            kept.extend(numbers(&snapshot.bytes[*at..][..taken.head.length as usize]));
        }
        if !run.has_handlers() {
            assert!(kept.is_sorted(), "{kept:?}");
        }
        kept.sort_unstable();
        let unique = kept.windows(2).all(|pair| pair[0] < pair[1]);
        assert!(unique && kept.iter().all(|n| *n <= producer.next.get()), "{kept:?}");
        let first_kept = emitted.stored.len() as u64 - kept.len() as u64;
        if whole {
            // The producer has stopped, so all missing records were overwritten, and are counted.
            assert_eq!(
                memory.ring().position().0 + 1 - snapshot.overwritten,
                count.min(snapshot.packets.len() as u64)
            );
            assert!(snapshot.packets.iter().all(|(taken, _)| taken.holes == 0));
            assert_eq!(snapshot.overwritten_bytes, RECORD as u64 * first_kept, "{kept:?} of {emitted:?}");
        }
        if !run.has_handlers() {
            // The snapshot has all records that existed when it began and were not overwritten meanwhile.
            let first = snapshot.overwritten as u32 + 1;
            assert!(kept.iter().copied().eq((first..).take(kept.len())), "{kept:?}");
            assert!(kept.len() + first as usize > before, "{kept:?} from {first}");
        }
    }
    points
}

#[test]
fn loom_a_snapshot_is_complete_whatever_the_producer_does() {
    with_all_interruptions([1, 0], overwrite);
}
