//! Selecting between channels, and channels of time.

use std::{
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

use fut::{
    Runtime, WaitKind, select, spawn,
    sync::channel::{self, Receiver, RecvError, after, never, tick},
    yield_now,
};

use super::{Dice, LONG, SOON, blocked, join_all, on_one_and_four_lwps};

#[test]
fn what_is_possible_is_selected_and_else_the_default() {
    on_one_and_four_lwps(|| {
        let (sender, receiver) = channel::bounded(1);
        let nothing: Receiver<u32> = never();
        let select_once = || {
            select! {
                recv(nothing) -> _ => "never",
                recv(receiver) -> value => if value == Ok(7) { "received" } else { "disconnected" },
                default => "default",
            }
        };
        assert_eq!(select_once(), "default");
        sender.send(7).unwrap();
        assert_eq!(select_once(), "received");
        let sent = select! { send(sender, 8) -> result => result.is_ok() };
        assert!(sent);
        let full = select! {
            send(&sender, 9) -> _ => false,
            default(SOON) => true,
        };
        assert!(full);
        drop(sender);
        assert_eq!(receiver.recv(), Ok(8));
        assert_eq!(select_once(), "disconnected");
    });
}

#[test]
fn one_that_waits_for_several_is_woken_by_each() {
    on_one_and_four_lwps(|| {
        let (to_first, first) = channel::bounded(0);
        let (to_second, second) = channel::unbounded();
        let (third, from_third) = channel::bounded(0);
        let selects = spawn(move || {
            let mut log = Vec::new();
            for _ in 0..4 {
                select! {
                    recv(first) -> value => log.push(value.unwrap()),
                    recv(second) -> value => {
                        log.push(value.unwrap());
                    }
                    send(third, 30) -> result => log.push(if result.is_ok() { 30 } else { 40 })
                }
            }
            log
        });
        let (kind, address) = blocked(selects.id());
        assert_eq!(kind, WaitKind::Select);
        assert_ne!(address, 0);
        to_first.send(10).unwrap();
        blocked(selects.id());
        to_second.send(20).unwrap();
        blocked(selects.id());
        assert_eq!(from_third.recv(), Ok(30));
        blocked(selects.id());
        drop(from_third);
        assert_eq!(selects.join().unwrap(), [10, 20, 30, 40]);
        assert!(to_first.try_send(1).is_err());
    });
}

/// Several threads select on both sides of several channels, with and without room, some with time limits, together with
/// threads that do not select.
#[test]
fn selections_lose_and_double_nothing() {
    for capacity in [0, 1, 5] {
        for lwps in [1, 4] {
            Runtime::builder().lwps(lwps).build().unwrap().run(move || {
                let (left_in, left_out) = channel::bounded(capacity);
                let (right_in, right_out) = channel::bounded(capacity);
                let senders: Vec<_> = (0..6_u64)
                    .map(|n| {
                        let (left, right) = (left_in.clone(), right_in.clone());
                        spawn(move || {
                            let mut dice = Dice(n * 15_485_863 + 1);
                            for value in n * 200..(n + 1) * 200 {
                                let mut unsent = Some(value);
                                while let Some(value) = unsent.take() {
                                    if n == 0 {
                                        left.send(value).unwrap();
                                        break;
                                    }
                                    select! {
                                        send(left, value) -> result => result.unwrap(),
                                        send(right, value) -> result => result.unwrap(),
                                        default(Duration::from_micros(dice.roll(300))) => unsent = Some(value),
                                    }
                                }
                            }
                        })
                    })
                    .collect();
                drop((left_in, right_in));
                let receivers: Vec<_> = (0..6)
                    .map(|n| {
                        let (mut left, mut right) = (left_out.clone(), right_out.clone());
                        spawn(move || {
                            let mut received = Vec::<u64>::new();
                            if n == 0 {
                                received.extend(right.iter());
                            }
                            let mut gone = 0;
                            while gone < 2 {
                                let value = select! {
                                    recv(left) -> value => value.inspect_err(|_| left = never()),
                                    recv(right) -> value => value.inspect_err(|_| right = never()),
                                };
                                match value {
                                    Ok(value) => received.push(value),
                                    Err(RecvError) => gone += 1,
                                }
                            }
                            received
                        })
                    })
                    .collect();
                drop((left_out, right_out));
                join_all(senders);
                let mut received = join_all(receivers).concat();
                received.sort_unstable();
                assert!(received.into_iter().eq(0..1_200));
            });
        }
    }
}

#[test]
fn both_sides_of_a_channel_in_one_selection_do_not_match() {
    on_one_and_four_lwps(|| {
        let (sender, receiver) = channel::bounded(0);
        let both = || {
            select! {
                send(sender, 1) -> result => result.map(|()| 0).unwrap(),
                recv(receiver) -> value => value.unwrap(),
                default(SOON) => 9,
            }
        };
        assert_eq!(both(), 9);
        // Two such selections match each other.
        let (sender, receiver) = (sender.clone(), receiver.clone());
        let selects = [0, 1].map(|_| {
            let (sender, receiver) = (sender.clone(), receiver.clone());
            spawn(move || {
                select! {
                    send(sender, 1) -> result => result.map(|()| 0).unwrap(),
                    recv(receiver) -> value => value.unwrap(),
                }
            })
        });
        let mut results = join_all(selects);
        results.sort_unstable();
        assert_eq!(results, [0, 1]);
    });
}

#[test]
fn losers_leave_their_channels_and_order_is_kept() {
    on_one_and_four_lwps(|| {
        let (to_first, first) = channel::bounded(1);
        let (to_second, second) = channel::bounded(1);
        let select_both = move || {
            select! {
                recv(first) -> value => value,
                recv(second) -> value => value,
            }
        };
        let selects = spawn(move || [(); 3].map(|()| select_both().unwrap()));
        blocked(selects.id());
        to_first.send(1).unwrap();
        to_second.send(2).unwrap();
        to_second.send(3).unwrap();
        let mut all = selects.join().unwrap();
        assert!(all.iter().position(|n| *n == 2) < all.iter().position(|n| *n == 3));
        all.sort_unstable();
        assert_eq!(all, [1, 2, 3]);
    });
}

#[test]
fn all_that_is_possible_gets_its_turn() {
    on_one_and_four_lwps(|| {
        let channels = [(); 2].map(|()| channel::unbounded());
        channels.iter().for_each(|(sender, _)| (0..100).for_each(|n| sender.send(n).unwrap()));
        let mut turns = [0; 2];
        for _ in 0..100 {
            select! {
                recv(channels[0].1) -> _ => turns[0] += 1,
                recv(channels[1].1) -> _ => turns[1] += 1,
            }
        }
        assert!(turns.iter().all(|turns| *turns > 10), "{turns:?}");
    });
}

#[test]
fn plain_threads_select() {
    let (sender, receiver) = channel::bounded(0);
    let (stop, stopped) = channel::bounded::<()>(0);
    let selects = thread::spawn(move || {
        let mut sum = 0;
        loop {
            select! {
                recv(receiver) -> value => sum += value.unwrap_or(0),
                recv(stopped) -> _ => return sum,
            }
        }
    });
    let runtime = Runtime::builder().lwps(1).build().unwrap();
    let total = runtime.run(move || {
        (1..=100).for_each(|n| sender.send(n).unwrap());
        drop(stop);
        // The receiver may still be selected once its sender is gone.
        selects
    });
    assert_eq!(total.join().unwrap(), 5_050);
}

#[test]
fn time_is_a_channel() {
    on_one_and_four_lwps(|| {
        let begun = Instant::now();
        let timer = after(SOON);
        assert!(timer.try_recv().is_err());
        assert_eq!(timer.recv().unwrap().duration_since(begun) / 1_000_000, SOON / 1_000_000);
        assert!(begun.elapsed() >= SOON);
        assert!(timer.recv_timeout(SOON).is_err(), "there is one message");
        let ticks = tick(SOON);
        let begun = Instant::now();
        (0..3).for_each(|_| assert!(ticks.recv().unwrap() > begun));
        assert!(begun.elapsed() >= 3 * SOON);
        let clones = [ticks.clone(), ticks].map(|ticks| spawn(move || ticks.recv().is_ok()));
        assert!(join_all(clones).into_iter().all(|ticked| ticked));
        let silent = never::<()>();
        let which = select! {
            recv(silent) -> _ => 0,
            recv(after(LONG)) -> _ => 1,
            recv(after(SOON)) -> _ => 2,
        };
        assert_eq!(which, 2);
        assert!(after(Duration::MAX).try_recv().is_err());
    });
}

#[test]
fn arms_may_leave_a_loop_and_move_the_channels() {
    on_one_and_four_lwps(|| {
        let (sender, receiver) = channel::unbounded();
        sender.send(Arc::new(5)).unwrap();
        let found = loop {
            select! {
                recv(receiver) -> value => {
                    drop(receiver);
                    break value;
                },
                default => yield_now(),
            }
        };
        assert_eq!(found.as_deref(), Ok(&5));
        assert!(sender.send(Arc::new(6)).is_err());
    });
}

/// Selections in turns over the same channels: none that stays possible is passed over.
#[test]
fn no_operation_that_stays_possible_starves() {
    on_one_and_four_lwps(|| {
        const VALUES: usize = 5_000;
        let channels = [(); 4].map(|()| channel::unbounded());
        for (sender, _) in &channels {
            (0..4 * VALUES).for_each(|n| sender.send(n).unwrap());
        }
        let [a, b, c, d] = channels.each_ref().map(|(_, receiver)| receiver);
        let mut counts = [0; 4];
        for _ in 0..VALUES {
            select! { recv(a) -> _ => counts[0] += 1, recv(b) -> _ => counts[1] += 1 }
            select! { recv(c) -> _ => counts[2] += 1, recv(d) -> _ => counts[3] += 1 }
        }
        assert!(counts.iter().all(|count| (2_200..2_800).contains(count)), "{counts:?}");
        // One that is not possible gives its turns to all others.
        let nothing: Receiver<usize> = never();
        let mut counts = [0; 3];
        for _ in 0..3 * VALUES {
            select! {
                recv(a) -> _ => counts[0] += 1,
                recv(nothing) -> _ => {}
                recv(b) -> _ => counts[1] += 1,
                recv(c) -> _ => counts[2] += 1,
            }
        }
        assert!(counts.iter().all(|count| (4_600..5_400).contains(count)), "{counts:?}");
    });
}
