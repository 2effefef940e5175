//! Holders and hold times of locks: compares the trace with the program's own counts.

mod common;

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use fut::{
    Recording, Runtime, keys,
    model::{Effect, Event, EventStream, Thread, WaitKind},
    shm::Geometry,
    spawn,
    sync::{Condvar, Mutex, RwLock, RwLockWriteGuard},
    yield_now,
};

const THREADS: u64 = 12;
const ROUNDS: u64 = 400;
const MUTEXES: usize = 3;

/// Every lock of the program, and how often each was taken in which way.
struct World {
    mutexes: [Mutex<u64>; MUTEXES],
    /// Whoever finds it odd makes it even, and the other way round.
    turns: (Mutex<u64>, Condvar),
    rwlock: RwLock<u64>,
    reads: AtomicU64,
    writes: AtomicU64,
    of_turns: AtomicU64,
}

impl World {
    fn new() -> World {
        World {
            mutexes: [0; MUTEXES].map(Mutex::new),
            turns: (Mutex::new(0), Condvar::new()),
            rwlock: RwLock::new(0),
            reads: AtomicU64::new(0),
            writes: AtomicU64::new(0),
            of_turns: AtomicU64::new(0),
        }
    }

    fn round(&self, thread: u64, round: u64) {
        let count = |counter: &AtomicU64| counter.fetch_add(1, Ordering::Relaxed);
        let mutex = &self.mutexes[(thread + round) as usize % MUTEXES];
        let mut guard = match round % 4 {
            0 => mutex.try_lock().unwrap_or_else(|| mutex.lock()),
            _ => mutex.lock(),
        };
        *guard += 1;
        if round.is_multiple_of(3) {
            // Others want it meanwhile: they block.
            yield_now();
        }
        if round.is_multiple_of(5) {
            count(&self.reads);
            let reader = self.rwlock.read();
            // Not in the order in which they were taken.
            drop(guard);
            yield_now();
            drop(reader);
            return;
        }
        drop(guard);
        if round.is_multiple_of(7) {
            count(&self.writes);
            let mut writer = self.rwlock.write();
            *writer += 1;
            yield_now();
            count(&self.reads);
            let reader = RwLockWriteGuard::downgrade(writer);
            yield_now();
            drop(reader);
        }
    }

    /// Two threads wait for each other by turns.
    fn take_turns(&self, parity: u64) {
        for _ in 0..ROUNDS {
            let mut turn = self.turns.0.lock();
            self.of_turns.fetch_add(1, Ordering::Relaxed);
            while *turn % 2 != parity {
                turn = self.turns.1.wait(turn);
                // It was given back, and taken again.
                self.of_turns.fetch_add(1, Ordering::Relaxed);
            }
            *turn += 1;
            self.turns.1.notify_one();
        }
    }
}

/// A lock had by a thread, from when to when.
#[derive(Clone, Copy, Debug)]
struct Hold {
    from: u64,
    to: u64,
}

/// By address and kind.
type Holds = BTreeMap<(u64, WaitKind), Vec<Hold>>;

/// The holds in the trace. Acquiring a held lock twice, or releasing one that is not held, is an error.
fn holds(path: &std::path::Path) -> Holds {
    let trace = common::opened(path);
    let types = trace.event_types();
    let mut all = Vec::new();
    for mut stream in trace.streams() {
        let (mut event, mut mounted) = (Event::default(), None);
        while stream.next_into(&mut event).unwrap() {
            let (name, thread) = (types[event.kind as usize].name.as_str(), mounted);
            if let Effect::UserSwitch { next, .. } = event.effect {
                mounted = next;
            }
            let taken = match name {
                "LOCK_ACQUIRE" => true,
                "LOCK_RELEASE" => false,
                _ => continue,
            };
            let [lock, kind] = [0, 1].map(|index| event.params.get(index).unwrap());
            let kind_of = WaitKind::from_number(kind.number.unwrap() as u64).unwrap();
            assert_eq!(kind.text, Some(kind_of.name()), "the number has its name");
            let thread = thread.expect("only user threads lock here");
            all.push((event.tick.0, thread, (lock.number.unwrap() as u64, kind_of), taken));
        }
        assert!(stream.take_losses().is_empty());
    }
    // An LWP's events are in order, whatever their ticks; so are those of a thread.
    all.sort_by_key(|(tick, ..)| *tick);
    let mut open: BTreeMap<(Thread, (u64, WaitKind)), u64> = BTreeMap::new();
    let mut holds = Holds::default();
    for (tick, thread, lock, taken) in all {
        let since = open.remove(&(thread, lock));
        match (taken, since) {
            (true, None) => drop(open.insert((thread, lock), tick)),
            (false, Some(from)) => holds.entry(lock).or_default().push(Hold { from, to: tick }),
            _ => panic!("thread {thread}, {lock:?}: taken {taken} at {tick}, had since {since:?}"),
        }
    }
    assert_eq!(open, BTreeMap::new(), "all are given back");
    holds
}

fn assert_no_overlap(what: &str, holds: &[Hold]) {
    let mut holds = holds.to_vec();
    holds.sort_by_key(|hold| hold.from);
    for pair in holds.windows(2) {
        assert!(pair[0].to <= pair[1].from, "{what}: {pair:?}");
    }
}

// thread 1   |-- mutex A --|      |---- A ----|
// thread 2        blocked  |- A -|   |-- B -------|
#[test]
fn a_trace_shows_the_holder_of_each_lock_and_holds_do_not_overlap() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("user.fut");
    let recording = Recording::start(&path, Geometry::default()).unwrap();
    assert_eq!(keys::mask(), keys::DEFAULT);
    let unseen = Mutex::new(0);
    *unseen.lock() += 1;
    keys::set(keys::ALL).unwrap();

    let world = Arc::new(World::new());
    Runtime::builder().lwps(2).build().unwrap().run({
        let world = Arc::clone(&world);
        move || {
            let workers = (0..THREADS).map(|thread| {
                let world = Arc::clone(&world);
                spawn(move || (0..ROUNDS).for_each(|round| world.round(thread, round)))
            });
            let mut threads: Vec<_> = workers.collect();
            for parity in [0, 1] {
                let world = Arc::clone(&world);
                threads.push(spawn(move || world.take_turns(parity)));
            }
            threads.into_iter().for_each(|thread| thread.join().unwrap());
        }
    });
    recording.finish().unwrap();

    let holds = holds(&path);
    let of = |kind: WaitKind| holds.iter().filter(move |((_, k), _)| *k == kind);
    for ((lock, _), holds) in of(WaitKind::Mutex) {
        assert_no_overlap(&format!("mutex {lock:#x}"), holds);
    }
    let mut counted: Vec<u64> = world.mutexes.iter().map(|mutex| *mutex.lock()).collect();
    counted.push(world.of_turns.load(Ordering::Relaxed));
    counted.sort_unstable();
    let mut found: Vec<u64> = of(WaitKind::Mutex).map(|(_, holds)| holds.len() as u64).collect();
    found.sort_unstable();
    assert_eq!(found, counted, "holds of each mutex; one was taken when nobody asked for locks");

    let [reads, writes] = [WaitKind::RwLockRead, WaitKind::RwLockWrite].map(|kind| {
        let all: Vec<_> = of(kind).collect();
        assert_eq!(all.len(), 1, "{all:?}");
        (all[0].0.0, all[0].1.clone())
    });
    assert_eq!(reads.0, writes.0, "one lock, one address");
    let counted = (world.reads.load(Ordering::Relaxed), world.writes.load(Ordering::Relaxed));
    assert_eq!((reads.1.len() as u64, writes.1.len() as u64), counted);
    for read in &reads.1 {
        let with_it: Vec<Hold> = writes.1.iter().copied().chain([*read]).collect();
        assert_no_overlap("a reader and the writers", &with_it);
    }
    let is_shared = |read: &Hold| reads.1.iter().filter(|r| r.from < read.to && read.from < r.to).count() > 1;
    assert!(reads.1.iter().any(is_shared), "readers share");
}
