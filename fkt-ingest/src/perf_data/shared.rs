//! One unpacking for all streams of a compressed file.
//!
//! The records of all CPUs are in one zstd stream, which can only be read from its start. Were each stream to unpack it
//! for itself, reading would cost as many passes as there are CPUs. So the streams of one call share one pass: who needs
//! a record goes on with it, and puts the others' records into their queues.
//!
//! ```text
//!   | COMPRESSED | COMPRESSED | …        one Walk
//!        │ who has nothing left reads on
//!        ├──▶ cpu 0: taken at once
//!        ├──▶ cpu 1: queue, at most 2 MiB, of few CPUs more, taken whole
//!        └──▶ cpu 2: queue is full: it is left behind, and unpacks for itself from where its queue ended
//! ```
//!
//! A merge reads the streams side by side, some rounds apart at most: the queues are enough, and it is one pass. Who
//! reads one stream after the other pays a pass for each that was left behind. Memory is bounded either way, nothing is
//! written to disk, and the order is that of each CPU, however large a round is; a single stream of all CPUs would need
//! to hold two whole rounds to be in order.

use std::fmt;
use std::mem;
use std::sync::{Arc, Mutex, PoisonError};

use super::decode::Meaning;
use super::record::{Attrs, Record, Stamp};
use super::tape::{Tape, Walk};
use sigmund_model::Cpu;

/// Bytes that wait for all streams at most.
const MOST_WAITING: usize = 16 << 20;
/// And for one of them, at least: more than a CPU's ring (512 KiB, as perf maps it) holds in three rounds.
const LEAST_WAITING: usize = 2 << 20;
/// Bytes that a stream takes at a time.
const BATCH: usize = 64 << 10;

/// The pass that streams share.
pub(super) struct Shared(Mutex<Pass>);

struct Pass {
    walk: Walk,
    meaning: Arc<Meaning>,
    /// Records seen so far.
    seen: u64,
    queues: Vec<Queue>,
    /// Bytes that wait in one queue at most.
    most_waiting: usize,
}

/// What waits for one stream.
#[derive(Default)]
struct Queue {
    cpu: Option<Cpu>,
    batch: Batch,
    /// How many records had been seen when it was full.
    left_behind: Option<u64>,
}

/// Records of one CPU.
#[derive(Debug, Default)]
struct Batch {
    records: Vec<Waiting>,
    /// Their bodies, one behind the other.
    bytes: Vec<u8>,
}

/// A record of which the body is elsewhere.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    at: u64,
    ty: u32,
    misc: u16,
    stamp: Stamp,
    /// Where its body ends.
    end: usize,
}

/// One stream's side of it.
#[derive(Debug)]
pub(super) struct Subscriber {
    shared: Arc<Shared>,
    queue: usize,
    tape: Tape,
    batch: Batch,
    /// Records of it that are done, and their bytes.
    done: usize,
    done_bytes: usize,
    /// A pass of its own, once it was left behind.
    own: Option<Walk>,
}

/// What a stream finds when it asks for more.
enum Taken {
    Batch,
    LeftBehind(u64),
    End,
}

impl Shared {
    /// A pass for the streams of these CPUs.
    pub(super) fn new(
        tape: &Tape,
        meaning: Arc<Meaning>,
        cpus: impl Iterator<Item = Option<Cpu>>,
    ) -> Arc<Shared> {
        let queues: Vec<Queue> = cpus.map(|cpu| Queue { cpu, ..Queue::default() }).collect();
        let most_waiting = LEAST_WAITING.max(MOST_WAITING / queues.len().max(1));
        Arc::new(Shared(Mutex::new(Pass { walk: tape.walk(), meaning, seen: 0, queues, most_waiting })))
    }

    fn take(&self, queue: usize, batch: &mut Batch) -> Taken {
        // Who panicked while it held the lock left whole records in the queues: they are pushed as one.
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take(queue, batch)
    }
}

impl Pass {
    fn take(&mut self, queue: usize, batch: &mut Batch) -> Taken {
        batch.clear();
        loop {
            let Some(own) = self.queues.get_mut(queue) else { return Taken::End };
            if own.batch.bytes.len() >= BATCH || own.left_behind.is_some() {
                break;
            }
            if !self.read_one() {
                break;
            }
        }
        let own = &mut self.queues[queue];
        match own.left_behind {
            _ if !own.batch.records.is_empty() => {
                mem::swap(&mut own.batch, batch);
                Taken::Batch
            }
            Some(seen) => Taken::LeftBehind(seen),
            None => Taken::End,
        }
    }

    /// Puts the next record into its CPU's queue; `false` at the end.
    fn read_one(&mut self) -> bool {
        if !self.walk.advance() {
            return false;
        }
        let Some(record) = self.walk.record() else { return false };
        self.seen += 1;
        let Some(stamp) = self.meaning.attrs.stamp_of_read(&record) else { return true };
        // Sorted by CPU, as the index is.
        if let Ok(at) = self.queues.binary_search_by_key(&stamp.cpu, |queue| queue.cpu) {
            let queue = &mut self.queues[at];
            if queue.left_behind.is_none() && queue.batch.len() + record.body.len() > self.most_waiting {
                queue.left_behind = Some(self.seen - 1);
            }
            if queue.left_behind.is_none() {
                queue.batch.push(&record, stamp);
            }
        }
        true
    }
}

impl Batch {
    fn clear(&mut self) {
        self.records.clear();
        self.bytes.clear();
    }

    /// Bytes that it holds.
    fn len(&self) -> usize {
        self.bytes.len() + mem::size_of_val(&self.records[..])
    }

    fn push(&mut self, record: &Record<'_>, stamp: Stamp) {
        self.bytes.extend_from_slice(record.body);
        let Record { at, ty, misc, .. } = *record;
        self.records.push(Waiting { at, ty, misc, stamp, end: self.bytes.len() });
    }
}

impl Subscriber {
    pub(super) fn new(shared: Arc<Shared>, queue: usize, tape: Tape) -> Subscriber {
        Subscriber { shared, queue, tape, batch: Batch::default(), done: 0, done_bytes: 0, own: None }
    }

    /// The next record and its stamp: of this stream's CPU, or, from a pass of its own, of any.
    #[inline]
    pub(super) fn next(&mut self, attrs: &Attrs) -> Option<(Record<'_>, Stamp)> {
        while self.own.is_none() && self.done >= self.batch.records.len() {
            self.go_on()?;
        }
        if let Some(walk) = &mut self.own {
            let stamp = walk.advance_to_stamped(attrs)?;
            return walk.record().map(|record| (record, stamp));
        }
        let Waiting { at, ty, misc, stamp, end } = *self.batch.records.get(self.done)?;
        let body = self.batch.bytes.get(self.done_bytes..end)?;
        self.done += 1;
        self.done_bytes = end;
        Some((Record { at, ty, misc, body, order: self.tape.order, packed: true }, stamp))
    }

    /// Takes what waits for it, or begins a pass of its own; `None` at the end.
    #[cold]
    fn go_on(&mut self) -> Option<()> {
        (self.done, self.done_bytes) = (0, 0);
        match self.shared.take(self.queue, &mut self.batch) {
            Taken::Batch => {}
            Taken::End => return None,
            Taken::LeftBehind(seen) => {
                let mut walk = self.tape.walk();
                if !(0..seen).all(|_| walk.advance()) {
                    return None;
                }
                self.own = Some(walk);
            }
        }
        Some(())
    }
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Shared")
    }
}
