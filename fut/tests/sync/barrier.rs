//! The barrier.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use fut::{spawn, sync::Barrier};

use super::{join_all, on_one_and_four_lwps};

const THREADS: usize = 40;
const ROUNDS: usize = 50;

#[test]
fn no_thread_continues_until_all_have_arrived_and_one_leads_each_round() {
    on_one_and_four_lwps(|| {
        let barrier = Arc::new(Barrier::new(THREADS));
        let came = Arc::new(AtomicUsize::new(0));
        let led = join_all((0..THREADS).map(|_| {
            let (barrier, came) = (Arc::clone(&barrier), Arc::clone(&came));
            spawn(move || {
                let mut led = 0;
                for round in 1..=ROUNDS {
                    came.fetch_add(1, Ordering::Relaxed);
                    led += usize::from(barrier.wait().is_leader());
                    assert!(came.load(Ordering::Relaxed) >= round * THREADS);
                }
                led
            })
        }));
        assert_eq!(led.iter().sum::<usize>(), ROUNDS);
    });
}

#[test]
fn a_barrier_for_one_or_none_is_open() {
    assert!(Barrier::new(0).wait().is_leader());
    assert!(Barrier::new(1).wait().is_leader());
}
