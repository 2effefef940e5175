//! Common parts of the models: memory for a ring, a producer with its handlers, and all interruption points.

use std::{cell::Cell, collections::VecDeque, ptr::NonNull, rc::Rc, sync::atomic::Ordering};

use loom::sync::Arc;
use sigmund_model::{Lwp, Pid, Ticks};

use super::{
    platform::{AtomicU32, AtomicU64, PACKET_LEN, interruption_point, local_fetch_add, with_handlers},
    ring::{Control, Producer as RingProducer, Ring, Room},
};
use crate::trace::{RecordHead, Records};

pub(super) const RECORD: usize = 16;
/// The tick of record `n` is this plus `n`.
pub(super) const FIRST_TICK: u64 = 1 << 50;
/// A point that no producer reaches.
pub(super) const NEVER: usize = 1000;

/// The memory of one ring.
pub(super) struct Memory {
    control: Control,
    state: AtomicU32,
    packets: Vec<AtomicU64>,
    count: u64,
}

impl Memory {
    pub(super) fn new(count: u64, overwrites: bool) -> Memory {
        let packets = (0..count as usize * PACKET_LEN / 8).map(|_| AtomicU64::new(0)).collect();
        let memory = Memory { control: Control::zero(), state: AtomicU32::new(0), packets, count };
        let producer = memory.ring().take_free().expect("zeros are a free ring");
        producer.begin(overwrites, Pid(1), Lwp(1), NonNull::dangling(), Ticks(FIRST_TICK));
        producer.go_live();
        memory
    }

    pub(super) fn ring(&self) -> Ring<'_> {
        let packets = NonNull::from(&self.packets[0]);
        // SAFETY: all memory is borrowed from `self`, and has the required length.
        unsafe {
            Ring::from_raw(NonNull::from(&self.state), NonNull::from(&self.control), packets, self.count)
        }
    }
}

/// What the producer knows about its records.
#[derive(Clone, Debug, Default)]
pub(super) struct Emitted {
    pub(super) stored: Vec<u32>,
    pub(super) lost: u64,
}

/// The producer: the probes of one thread and of its handlers.
pub(super) struct Producer {
    memory: Arc<Memory>,
    pub(super) next: Cell<u32>,
    emitted: Cell<Emitted>,
}

impl Producer {
    pub(super) fn new(memory: &Arc<Memory>) -> Rc<Producer> {
        Rc::new(Producer { memory: Arc::clone(memory), next: Cell::new(1), emitted: Cell::default() })
    }

    /// Emits `records` records, and is interrupted at these points by a handler that emits one.
    pub(super) fn run(self: &Rc<Producer>, records: usize, interrupted_at: &[usize]) {
        let this = Rc::clone(self);
        with_handlers(|handlers| {
            handlers.passed = 0;
            handlers.at = VecDeque::from(interrupted_at.to_vec());
            handlers.handler = Some(Rc::new(move || this.emit()));
        });
        (0..records).for_each(|_| self.emit());
        with_handlers(|handlers| handlers.handler = None);
    }

    pub(super) fn emit(&self) {
        let number = self.next.get();
        self.next.set(number + 1);
        // SAFETY: `Memory::new` took the ring, and the producer is one thread with its handlers; it is neither sent nor
        // shared.
        let room = emit(&unsafe { RingProducer::of_ring(self.memory.ring()) }, number);
        let mut emitted = self.emitted.take();
        match room {
            Room::Lost => emitted.lost += 1,
            Room::TryAgain => emitted.stored.push(number),
        }
        self.emitted.set(emitted);
    }

    pub(super) fn emitted(&self) -> Emitted {
        let mut emitted = self.emitted.take();
        emitted.stored.sort_unstable();
        emitted
    }
}

/// `probe::emit::record`, for a record without parameters (rules 1 to 3).
pub(super) fn emit(ring: &RingProducer<'_>, number: u32) -> Room {
    let tick = FIRST_TICK + u64::from(number);
    loop {
        interruption_point();
        let position = local_fetch_add(&ring.control().cursor, RECORD as u64);
        let (sequence, offset) = (position >> 32, position as u32 as usize);
        interruption_point();
        if offset + RECORD <= PACKET_LEN {
            let place = NonNull::new(ring.place(sequence, offset)).unwrap().cast::<AtomicU64>();
            // SAFETY: rule 2: the two words of the record are inside the packet, and reserved for this producer.
            let (at_tick, at_head) = unsafe { (place.as_ref(), place.add(1).as_ref()) };
            at_head
                .store(RecordHead { code: number, words: 0, flags: 0, cpu: 0 }.to_word(), Ordering::Relaxed);
            interruption_point();
            at_tick.store(tick, Ordering::Release);
            interruption_point();
            return Room::TryAgain;
        }
        if ring.make_room(position, Ticks(tick)) == Room::Lost {
            return Room::Lost;
        }
    }
}

/// The numbers of the records in these bytes. Asserts that none of the records is torn.
pub(super) fn numbers(bytes: &[u8]) -> Vec<u32> {
    let number = |record: crate::trace::Record<'_>| {
        assert_eq!(record.tick.0, FIRST_TICK + u64::from(record.head.code), "torn");
        record.head.code
    };
    Records::of(bytes).map(number).collect()
}

/// How a model is run: where handlers run, and whether the other side runs concurrently or only after the producer has
/// stopped.
#[derive(Clone, Debug)]
pub(super) struct Run {
    pub(super) handlers_at: Vec<usize>,
    pub(super) at_once: bool,
}

impl Run {
    pub(super) fn has_handlers(&self) -> bool {
        self.handlers_at[0] != NEVER
    }
}

/// Runs `model` without a handler, with a handler at every point, and with handlers at every pair of points. With one
/// handler and the other side running concurrently, it runs only a third of the points, unless `FUT_LONG` is set. With
/// a pair, the other side does not run concurrently, to limit the number of interleavings. A model returns how many
/// points its producer passed.
pub(super) fn with_all_interruptions(
    preemptions: [usize; 2],
    model: impl Fn(&Run) -> usize + Copy + Send + Sync + 'static,
) {
    let check = |preemptions: usize, run: Run| -> usize {
        let points = std::sync::Arc::new(std::sync::atomic::AtomicUsize::new(0));
        let seen = std::sync::Arc::clone(&points);
        let mut builder = loom::model::Builder::new();
        builder.preemption_bound = Some(preemptions);
        let executions = std::sync::Arc::new(std::sync::atomic::AtomicUsize::new(0));
        let counted = std::sync::Arc::clone(&executions);
        let shown = format!("{run:?}");
        builder.check(move || {
            counted.fetch_add(1, Ordering::Relaxed);
            seen.fetch_max(model(&run), Ordering::Relaxed);
        });
        println!("{shown}: {executions:?} executions");
        points.load(Ordering::Relaxed)
    };
    let is_long = crate::environment::variable("FUT_LONG").is_some();
    let points = check(preemptions[0], Run { handlers_at: vec![NEVER], at_once: true });
    let check_with_first_at = |first: usize| {
        // Nearly all executions are in these runs. So they are made for a third of the points only, or for all with
        // `FUT_LONG`.
        if is_long || first % 3 == 1 {
            check(preemptions[1], Run { handlers_at: vec![first], at_once: true });
        }
        let points = check(0, Run { handlers_at: vec![first, NEVER], at_once: false });
        for second in first + 1..=points {
            check(0, Run { handlers_at: vec![first, second], at_once: false });
        }
    };
    // One model takes longer than all others together. Its parts are independent, so they run on all CPUs.
    let next = std::sync::atomic::AtomicUsize::new(1);
    let take_part = || {
        while let first = next.fetch_add(1, Ordering::Relaxed)
            && first <= points
        {
            check_with_first_at(first);
        }
    };
    std::thread::scope(|scope| {
        let cpus = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        (0..cpus).for_each(|_| drop(scope.spawn(take_part)));
    });
}

/// Number of points passed so far by the calling thread.
pub(super) fn points_passed() -> usize {
    with_handlers(|handlers| handlers.passed)
}
