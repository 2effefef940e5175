//! Discard mode: the producer against the drain.

use loom::{sync::Arc, thread};

use super::{
    platform::{PACKET_HEAD_LEN, PACKET_LEN},
    producer::{Memory, Producer, Run, numbers, points_passed, with_all_interruptions},
};

/// A producer of five records and its handlers run against a drain that polls three times. Then the rest is taken, as
/// after the death of the producer. There are two packets of two records each, so that packets are reused, and some
/// records are lost.
fn discard(run: &Run) -> usize {
    let memory = Arc::new(Memory::new(2, false));
    let drained = run.at_once.then(|| {
        let memory = Arc::clone(&memory);
        thread::spawn(move || {
            // SAFETY: this is the only consumer until this thread is joined.
            let mut ring = unsafe { memory.ring().consumer() };
            let mut bytes = [0; PACKET_LEN - PACKET_HEAD_LEN];
            let mut drained = Vec::new();
            for _ in 0..2 {
                let sequence = ring.next_to_take();
                if let Some(taken) = ring.take_closed(&mut bytes) {
                    assert_eq!(taken.head.sequence, sequence);
                    drained.extend(numbers(&bytes[..taken.head.length as usize]));
                    ring.release();
                }
                thread::yield_now();
            }
            drained
        })
    });
    let producer = Producer::new(&memory);
    producer.run(5, &run.handlers_at);
    let points = points_passed();
    let mut drained = drained.map_or_else(Vec::new, |drain| drain.join().unwrap());

    // SAFETY: the drain's thread has ended.
    let mut ring = unsafe { memory.ring().consumer() };
    let mut bytes = [0; PACKET_LEN - PACKET_HEAD_LEN];
    for sequence in ring.next_to_take()..=ring.position().0 {
        let taken = ring.take_left(&mut bytes);
        assert_eq!((taken.head.sequence, taken.holes), (sequence, 0));
        drained.extend(numbers(&bytes[..taken.head.length as usize]));
        ring.release();
    }
    let emitted = producer.emitted();
    if !run.has_handlers() {
        assert!(drained.is_sorted(), "{drained:?}");
    }
    drained.sort_unstable();
    assert_eq!(drained, emitted.stored, "every stored record, once");
    assert_eq!(ring.lost(), emitted.lost);
    points
}

#[test]
fn loom_discard_loses_nothing_that_it_does_not_count() {
    with_all_interruptions([3, 2], discard);
}

/// Rule 8a: a producer of three records and its handlers run against a drain that copies, once, the committed part of
/// the packet that is being filled.
fn cut(run: &Run) -> usize {
    let memory = Arc::new(Memory::new(2, false));
    let copied = run.at_once.then(|| {
        let memory = Arc::clone(&memory);
        thread::spawn(move || {
            // SAFETY: this is the only consumer until this thread is joined.
            let ring = unsafe { memory.ring().consumer() };
            let mut bytes = [0; PACKET_LEN - PACKET_HEAD_LEN];
            let taken = ring.copy_begun(&mut bytes).expect("the first packet is open");
            bytes[..taken.head.length as usize].to_vec()
        })
    });
    let producer = Producer::new(&memory);
    producer.run(3, &run.handlers_at);
    let points = points_passed();
    let copied = copied.map_or_else(Vec::new, |drain| drain.join().unwrap());

    // SAFETY: the drain's thread has ended.
    let mut ring = unsafe { memory.ring().consumer() };
    let mut bytes = [0; PACKET_LEN - PACKET_HEAD_LEN];
    let taken = ring.take_left(&mut bytes);
    assert!(bytes[..taken.head.length as usize].starts_with(&copied), "the begin of the packet");
    points
}

#[test]
fn loom_what_was_copied_of_an_open_packet_is_its_begin_when_it_is_taken() {
    with_all_interruptions([3, 2], cut);
}
