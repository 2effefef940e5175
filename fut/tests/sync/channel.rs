//! Channels.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use fut::{
    spawn,
    sync::channel::{self, Receiver, RecvTimeoutError, SendTimeoutError, Sender, TryRecvError, TrySendError},
    yield_now,
};

use super::{Dice, LONG, SOON, join_all, on_one_and_four_lwps};

/// Each kind there is.
fn kinds<T>() -> [(Sender<T>, Receiver<T>); 4] {
    [channel::bounded(0), channel::bounded(1), channel::bounded(7), channel::unbounded()]
}

#[test]
fn what_one_sends_another_receives_in_order() {
    on_one_and_four_lwps(|| {
        for (sender, receiver) in kinds() {
            let producer = spawn(move || (0..1_000).for_each(|n| sender.send(n).unwrap()));
            assert!(receiver.iter().eq(0..1_000));
            producer.join().unwrap();
        }
    });
}

#[test]
fn many_senders_and_many_receivers_lose_and_double_nothing() {
    on_one_and_four_lwps(|| {
        for (sender, receiver) in kinds() {
            let producers: Vec<_> = (0..8_u64)
                .map(|p| {
                    let sender = sender.clone();
                    spawn(move || (0..500).for_each(|n| sender.send(p * 500 + n).unwrap()))
                })
                .collect();
            let consumers: Vec<_> = (0..8)
                .map(|_| {
                    let receiver = receiver.clone();
                    spawn(move || receiver.into_iter().collect::<Vec<u64>>())
                })
                .collect();
            drop((sender, receiver));
            join_all(producers);
            let mut all = join_all(consumers).concat();
            all.sort_unstable();
            assert!(all.into_iter().eq(0..4_000));
        }
    });
}

#[test]
fn a_full_channel_refuses_and_an_empty_one_too() {
    let (sender, receiver) = channel::bounded(2);
    assert_eq!(receiver.try_recv(), Err(TryRecvError::Empty));
    assert_eq!((sender.try_send(1), sender.try_send(2)), (Ok(()), Ok(())));
    assert_eq!(sender.try_send(3), Err(TrySendError::Full(3)));
    assert!(sender.is_full() && receiver.is_full() && !sender.is_empty());
    assert_eq!((sender.len(), receiver.len(), receiver.capacity()), (2, 2, Some(2)));
    assert!(receiver.try_iter().eq([1, 2]));
    drop(sender);
    assert_eq!(receiver.try_recv(), Err(TryRecvError::Disconnected));

    let (sender, receiver) = channel::bounded(0);
    assert_eq!(sender.try_send(1), Err(TrySendError::Full(1)));
    drop(receiver);
    assert_eq!(sender.try_send(1), Err(TrySendError::Disconnected(1)));
    assert_eq!(channel::unbounded::<()>().0.capacity(), None);
}

#[test]
fn with_room_for_none_try_send_needs_a_receiver_that_waits() {
    on_one_and_four_lwps(|| {
        let (sender, receiver) = channel::bounded(0);
        let taker = spawn(move || receiver.recv());
        while sender.try_send(5).is_err() {
            yield_now();
        }
        assert_eq!(taker.join().unwrap(), Ok(5));
    });
}

#[test]
fn receivers_get_the_rest_and_then_an_error_when_all_senders_were_dropped() {
    on_one_and_four_lwps(|| {
        for (sender, receiver) in kinds::<u32>() {
            let waiting: Vec<_> = (0..40)
                .map(|_| {
                    let receiver = receiver.clone();
                    spawn(move || receiver.recv().is_err())
                })
                .collect();
            yield_now();
            drop(sender);
            assert!(join_all(waiting).into_iter().all(|gone| gone));
        }
        let (sender, receiver) = channel::unbounded();
        sender.send(1).unwrap();
        drop(sender);
        assert_eq!((receiver.recv().ok(), receiver.recv().ok()), (Some(1), None));
    });
}

#[test]
fn senders_get_their_values_back_when_all_receivers_were_dropped() {
    on_one_and_four_lwps(|| {
        let (sender, receiver) = channel::bounded(1);
        sender.send(0).unwrap();
        let waiting: Vec<_> = (1..=40)
            .map(|n| {
                let sender = sender.clone();
                spawn(move || sender.send(n).unwrap_err().into_inner())
            })
            .collect();
        (0..50).for_each(|_| yield_now());
        drop(receiver);
        assert!(join_all(waiting).into_iter().eq(1..=40));
        assert!(sender.send(41).is_err());
    });
}

#[test]
fn what_is_left_in_it_is_dropped_with_the_last_receiver() {
    let value = Arc::new(());
    let (sender, receiver) = channel::unbounded();
    (0..3).for_each(|_| sender.send(Arc::clone(&value)).unwrap());
    drop(receiver);
    assert_eq!(Arc::strong_count(&value), 1);
    drop(sender);
}

#[test]
fn the_time_is_over_and_the_value_comes_back() {
    on_one_and_four_lwps(|| {
        let (sender, receiver) = channel::bounded(1);
        assert_eq!(receiver.recv_timeout(SOON), Err(RecvTimeoutError::Timeout));
        assert_eq!(sender.send_timeout(1, SOON), Ok(()));
        assert_eq!(sender.send_timeout(2, SOON), Err(SendTimeoutError::Timeout(2)));
        assert_eq!(sender.send_deadline(2, Instant::now()), Err(SendTimeoutError::Timeout(2)));
        // No trace of those who gave up: one value comes out, and the next one finds room.
        assert_eq!(receiver.recv_timeout(LONG), Ok(1));
        assert_eq!(receiver.recv_deadline(Instant::now()), Err(RecvTimeoutError::Timeout));
        assert_eq!(sender.try_send(3), Ok(()));
        assert_eq!(receiver.recv(), Ok(3));
        drop(sender);
        assert_eq!(receiver.recv_timeout(LONG), Err(RecvTimeoutError::Disconnected));
    });
}

/// Deadlines on both sides meet values at random: what was sent was received, once, and nothing else.
#[test]
fn deadlines_lose_and_double_nothing() {
    on_one_and_four_lwps(|| {
        for (sender, receiver) in kinds() {
            let next = Arc::new(AtomicUsize::new(0));
            let producers: Vec<_> = (1..=8)
                .map(|seed| {
                    let (sender, next) = (sender.clone(), Arc::clone(&next));
                    spawn(move || {
                        let mut dice = Dice(seed * 15_485_863);
                        let mut sent = Vec::new();
                        for _ in 0..60 {
                            let n = next.fetch_add(1, Ordering::Relaxed);
                            match sender.send_timeout(n, Duration::from_micros(dice.roll(200))) {
                                Ok(()) => sent.push(n),
                                Err(back) => assert_eq!(back.into_inner(), n),
                            }
                        }
                        sent
                    })
                })
                .collect();
            let consumers: Vec<_> = (1..=8)
                .map(|seed| {
                    let receiver = receiver.clone();
                    spawn(move || {
                        let mut dice = Dice(seed * 32_452_843);
                        let mut received = Vec::new();
                        loop {
                            match receiver.recv_timeout(Duration::from_micros(dice.roll(200))) {
                                Ok(n) => received.push(n),
                                Err(RecvTimeoutError::Timeout) => yield_now(),
                                Err(RecvTimeoutError::Disconnected) => return received,
                            }
                        }
                    })
                })
                .collect();
            drop((sender, receiver));
            let (mut sent, mut received) = (join_all(producers).concat(), join_all(consumers).concat());
            sent.sort_unstable();
            received.sort_unstable();
            assert_eq!(sent, received);
        }
    });
}

#[test]
fn a_value_of_no_size_is_counted() {
    on_one_and_four_lwps(|| {
        for (sender, receiver) in kinds() {
            let producer = spawn(move || (0..100).for_each(|_| sender.send(()).unwrap()));
            assert_eq!(receiver.iter().count(), 100);
            producer.join().unwrap();
        }
    });
}

/// CPU time of the calling kernel thread.
fn cpu_time() -> Duration {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(now.tv_sec as u64, now.tv_nsec as u32)
}

/// Growing moves no value: neither the sender nor others, which spin meanwhile, wait for that. Moving them would take as long in
/// each run; what else a machine did in the longest send (its hypervisor's time counts as the thread's) is not in all of them.
#[test]
fn no_send_to_a_long_unbounded_channel_takes_long() {
    let longest_send = || {
        let (sender, receiver) = channel::unbounded();
        let (mut longest, mut before) = (Duration::ZERO, cpu_time());
        for n in 0..1_u64 << 23 {
            sender.send(n).unwrap();
            let now = cpu_time();
            longest = longest.max(now - before);
            before = now;
        }
        assert!(receiver.try_iter().eq(0..1 << 23));
        longest
    };
    let limit = Duration::from_millis(12);
    let mut longest = longest_send();
    for _ in 0..3 {
        if longest >= limit {
            longest = longest.min(longest_send());
        }
    }
    assert!(longest < limit, "{longest:?}");
}

/// A full channel whose senders wait, with a capacity of several blocks.
#[test]
fn values_of_waiting_senders_keep_their_order_in_a_large_buffer() {
    on_one_and_four_lwps(|| {
        for capacity in [3, 40, 700] {
            let (sender, receiver) = channel::bounded(capacity);
            let senders: Vec<_> = (0..4_u64)
                .map(|thread| {
                    let sender = sender.clone();
                    spawn(move || (0..3_000).for_each(|n| sender.send(thread << 32 | n).unwrap()))
                })
                .collect();
            drop(sender);
            let mut next = [0; 4];
            for value in receiver.iter() {
                let thread = (value >> 32) as usize;
                assert_eq!(value & 0xffff_ffff, next[thread]);
                next[thread] += 1;
                if value % 7 == 0 {
                    yield_now();
                }
            }
            assert_eq!(next, [3_000; 4]);
            join_all(senders);
        }
    });
}
