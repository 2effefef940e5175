//! User threads that do everything at once, at random, on more LWPs than there are CPUs: spawn, join, detach, block,
//! time out, sleep and be woken early, panic, compute past their quantum, block their LWP, migrate. Every thread must
//! end: after a lost wakeup nothing proceeds, and the watchdog reports which thread waits for what.
//!
//! `FUT_STRESS_SECONDS` says how long (10), `FUT_STRESS_SEED` how it begins.

use std::{
    env,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use fut::{
    Builder, Policy, Priority, Runtime, checkpoint, live_threads, sleep, spawn,
    sync::{
        Barrier, Condvar, Mutex, RwLock, Semaphore,
        channel::{Receiver, Sender, bounded, unbounded},
    },
    yield_now,
};

/// Longer than anything here may take; a deadline that is reached is a wakeup that was lost.
const FOR_EVER: Duration = Duration::from_secs(600);
/// The watchdog gives up when nothing has ended for so long.
const STANDSTILL: Duration = Duration::from_secs(15);

static ENDED: AtomicU64 = AtomicU64::new(0);

/// xorshift64*: random numbers from a given seed.
#[derive(Clone)]
struct Chance(u64);

impl Chance {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    fn below(&mut self, n: u64) -> u64 {
        (self.next() >> 33) % n
    }

    fn split(&mut self) -> Chance {
        Chance(self.next() | 1)
    }
}

/// What the threads of one family share.
struct Family {
    mutex: Mutex<u64>,

    rwlock: RwLock<(u64, u64)>,
    semaphore: Semaphore,
    messages: (Sender<u64>, Receiver<u64>),
    hand_to_hand: (Sender<u64>, Receiver<u64>),
    locked: AtomicU64,
}

fn family() -> Arc<Family> {
    Arc::new(Family {
        mutex: Mutex::new(0),

        rwlock: RwLock::new((0, 0)),
        semaphore: Semaphore::new(2),
        messages: unbounded(),
        hand_to_hand: bounded(0),
        locked: AtomicU64::new(0),
    })
}

fn compute(chance: &mut Chance) {
    for _ in 0..chance.below(2000) {
        std::hint::black_box(chance.next());
        checkpoint();
    }
}

/// A member of a family: some steps at random, some of them more members.
fn live(family: &Arc<Family>, mut chance: Chance, depth: u64) -> u64 {
    let mut ended = 1;
    for _ in 0..chance.below(6) {
        match chance.below(15) {
            0 => yield_now(),
            1 => compute(&mut chance),
            2 => sleep(Duration::from_micros(chance.below(300))),
            3 => {
                let mut guard = family.mutex.lock();
                family.locked.fetch_add(1, Ordering::Relaxed);
                *guard += 1;
                if chance.below(2) == 0 {
                    yield_now();
                }
            }
            4 => match family.mutex.try_lock_for(Duration::from_micros(chance.below(100))) {
                Some(mut guard) => {
                    family.locked.fetch_add(1, Ordering::Relaxed);
                    *guard += 1;
                }
                None => yield_now(),
            },
            5 => {
                let mut pair = family.rwlock.write();
                pair.0 += 1;
                yield_now();
                pair.1 += 1;
            }
            6 => {
                let pair = family.rwlock.read();
                assert_eq!(pair.0, pair.1, "a reader sees half a write");
            }
            7 => {
                let _permit = family.semaphore.acquire().expect("nobody closes it");
                compute(&mut chance);
            }
            8 => {
                family.messages.0.send(chance.next()).expect("the receiver lives");
                family.messages.1.recv_timeout(FOR_EVER).expect("as many are sent as received");
            }
            9 => a_pair_meets(family),
            10 => wakes_a_sleeper(&mut chance),
            11 => {
                let panics = spawn(|| panic!("on purpose"));
                assert!(panics.join().is_err());
                ended += 1;
            }
            12 => {
                ended += fut::blocking(|| {
                    thread::sleep(Duration::from_micros(50));
                    0
                })
            }
            13 => barrier_of(3),
            _ if depth > 0 => ended += children(family, &mut chance, depth),
            _ => {}
        }
    }
    ENDED.fetch_add(1, Ordering::Relaxed);
    ended
}

fn children(family: &Arc<Family>, chance: &mut Chance, depth: u64) -> u64 {
    let priorities = [Priority::Normal, Priority::Normal, Priority::Background, Priority::Urgent];
    let child = |chance: &mut Chance| {
        let (family, mine) = (Arc::clone(family), chance.split());
        let priority = priorities[chance.below(4) as usize];
        Builder::new().priority(priority).spawn(move || live(&family, mine, depth - 1))
    };
    let children: Vec<_> = (0..chance.below(4)).map(|_| child(chance)).collect();
    children.into_iter().map(|child| child.join().expect("a member panicked")).sum()
}

/// A message from one thread to another that waits for it; whoever comes first waits.
fn a_pair_meets(family: &Arc<Family>) {
    let sends = Arc::clone(family);
    let sender = spawn(move || sends.hand_to_hand.0.send_timeout(1, FOR_EVER).expect("somebody receives"));
    family.hand_to_hand.1.recv_timeout(FOR_EVER).expect("somebody sends");
    sender.join().expect("the sender panicked");
}

/// A thread that waits with a deadline near the time at which it is notified: either may come first.
fn wakes_a_sleeper(chance: &mut Chance) {
    let gate = Arc::new((Mutex::new(false), Condvar::new()));
    let (waits, patience) = (Arc::clone(&gate), Duration::from_micros(chance.below(200)));
    let sleeper = spawn(move || {
        let mut open = waits.0.lock();
        while !*open {
            let (guard, _timed_out) = waits.1.wait_timeout(open, patience);
            open = guard;
        }
    });
    sleep(Duration::from_micros(chance.below(200)));
    *gate.0.lock() = true;
    gate.1.notify_one();
    sleeper.join().expect("the sleeper panicked");
}

fn barrier_of(threads: usize) {
    let barrier = Arc::new(Barrier::new(threads));
    let waits = |barrier: Arc<Barrier>| move || u64::from(barrier.wait().is_leader());
    let others: Vec<_> = (1..threads).map(|_| spawn(waits(Arc::clone(&barrier)))).collect();
    let leaders = waits(barrier)() + others.into_iter().map(|t| t.join().expect("one panicked")).sum::<u64>();
    assert_eq!(leaders, 1);
}

/// Reports all waits, and ends the process, if no thread has ended for long.
fn watch(stop: &AtomicBool, seed: u64) {
    let (mut seen, mut since) = (0, Instant::now());
    while !stop.load(Ordering::Relaxed) {
        thread::sleep(Duration::from_millis(100));
        let ended = ENDED.load(Ordering::Relaxed);
        if ended != seen {
            (seen, since) = (ended, Instant::now());
        } else if since.elapsed() > STANDSTILL {
            eprintln!("standstill after {ended} threads, seed {seed}:");
            live_threads().iter().for_each(|thread| eprintln!("  {thread:?}"));
            std::process::abort();
        }
    }
}

fn stress(policy: Policy, migrating: bool, for_how_long: Duration, seed: u64) -> u64 {
    let builder = Runtime::builder().lwps(4).policy(policy).quantum(Duration::from_micros(200));
    // SAFETY: nothing here keeps anything of an LWP across a call that can switch.
    let builder = if migrating { unsafe { builder.migrating() } } else { builder };
    let runtime = builder.build().unwrap();
    let ended = runtime.run(move || {
        let (until, mut chance) = (Instant::now() + for_how_long, Chance(seed | 1));
        let mut ended = 0;
        while Instant::now() < until {
            let family = family();
            let members: Vec<_> = (0..20)
                .map(|_| {
                    let (family, mine) = (Arc::clone(&family), chance.split());
                    spawn(move || live(&family, mine, 3))
                })
                .collect();
            ended += members.into_iter().map(|m| m.join().expect("a member panicked")).sum::<u64>();
            assert_eq!(*family.mutex.lock(), family.locked.load(Ordering::Relaxed));
            assert_eq!(family.semaphore.available_permits(), 2);
            assert!(family.messages.1.is_empty());
        }
        ended
    });
    let left = live_threads();
    assert!(left.is_empty(), "threads are left: {left:?}");
    ended
}

#[test]
fn every_thread_comes_to_its_end() {
    // What panics on purpose need not be told.
    std::panic::set_hook(Box::new(|panic| {
        if panic.payload().downcast_ref::<&str>() != Some(&"on purpose") {
            eprintln!("{panic}");
        }
    }));
    let number = |name, default: u64| env::var(name).map_or(default, |n| n.parse().expect(name));
    let seconds = number("FUT_STRESS_SECONDS", 10);
    let seed = number("FUT_STRESS_SEED", std::process::id().into());
    let stop = Arc::new(AtomicBool::new(false));
    let stopped = Arc::clone(&stop);
    let watchdog = thread::spawn(move || watch(&stopped, seed));
    let mut ended = 0;
    let kinds = [
        (Policy::WorkStealing, false),
        (Policy::WorkStealing, true),
        (Policy::SharedFifo, false),
        (Policy::SharedFifo, true),
        (Policy::Affinity, false),
    ];
    for (policy, migrating) in kinds {
        let round = || stress(policy, migrating, Duration::from_millis(seconds * 1000 / 5), seed);
        match catch_unwind(AssertUnwindSafe(round)) {
            Ok(round) => ended += round,
            Err(_) => panic!("under {policy:?}, migrating: {migrating}, seed {seed}"),
        }
    }
    stop.store(true, Ordering::Relaxed);
    watchdog.join().unwrap();
    println!("{ended} user threads ended in {seconds} s, seed {seed}");
    assert!(ended > 1000, "only {ended} threads in {seconds} s");
}
