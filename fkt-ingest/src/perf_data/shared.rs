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
//!        ├──▶ cpu 1: queue, at most 2 MiB, taken whole
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
use super::record::Record;
use super::tape::{Tape, Walk};
use sigmund_model::Cpu;

/// Bytes that wait for a stream at most; more than a CPU's ring (512 KiB, as perf maps it) holds in three rounds.
const MOST_WAITING: usize = 2 << 20;
/// Bytes that a stream takes at a time.
const BATCH: usize = 64 << 10;
/// `at u64 | type u32 | misc u16 | length of the body u16`, before each record in a batch.
const HEAD: usize = 16;

/// The pass that streams share.
pub(super) struct Shared(Mutex<Pass>);

struct Pass {
    walk: Walk,
    meaning: Arc<Meaning>,
    /// Records seen so far.
    seen: u64,
    queues: Vec<Queue>,
}

/// What waits for one stream.
#[derive(Default)]
struct Queue {
    cpu: Option<Cpu>,
    bytes: Vec<u8>,
    /// How many records had been seen when it was full.
    left_behind: Option<u64>,
}

/// One stream's side of it.
#[derive(Debug)]
pub(super) struct Subscriber {
    shared: Arc<Shared>,
    queue: usize,
    tape: Tape,
    batch: Vec<u8>,
    done: usize,
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
        let queues = cpus.map(|cpu| Queue { cpu, ..Queue::default() }).collect();
        Arc::new(Shared(Mutex::new(Pass { walk: tape.walk(), meaning, seen: 0, queues })))
    }

    fn take(&self, queue: usize, batch: &mut Vec<u8>) -> Taken {
        // Who panicked while it held the lock left whole records in the queues: they are pushed as one.
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take(queue, batch)
    }
}

impl Pass {
    fn take(&mut self, queue: usize, batch: &mut Vec<u8>) -> Taken {
        batch.clear();
        loop {
            let Some(own) = self.queues.get_mut(queue) else { return Taken::End };
            if own.bytes.len() >= BATCH || own.left_behind.is_some() {
                break;
            }
            if !self.read_one() {
                break;
            }
        }
        let own = &mut self.queues[queue];
        match own.left_behind {
            _ if !own.bytes.is_empty() => {
                mem::swap(&mut own.bytes, batch);
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
        let Some(stamp) = self.meaning.attrs.stamp(&record).filter(|_| record.is_read()) else { return true };
        // Sorted by CPU, as the index is.
        if let Ok(at) = self.queues.binary_search_by_key(&stamp.cpu, |queue| queue.cpu) {
            self.queues[at].push(&record, self.seen - 1);
        }
        true
    }
}

impl Queue {
    fn push(&mut self, record: &Record<'_>, before: u64) {
        if self.left_behind.is_some() {
            return;
        }
        if self.bytes.len() + HEAD + record.body.len() > MOST_WAITING {
            self.left_behind = Some(before);
            return;
        }
        self.bytes.extend(record.at.to_le_bytes());
        self.bytes.extend(record.ty.to_le_bytes());
        self.bytes.extend(record.misc.to_le_bytes());
        // An unpacked record has at most 65 527 bytes; others may have more, and are no events.
        self.bytes.extend((record.body.len() as u16).to_le_bytes());
        self.bytes.extend(&record.body[..usize::from(record.body.len() as u16)]);
    }
}

impl Subscriber {
    pub(super) fn new(shared: Arc<Shared>, queue: usize, tape: Tape) -> Subscriber {
        Subscriber { shared, queue, tape, batch: Vec::new(), done: 0, own: None }
    }

    /// The next record: of this stream's CPU, or, from a pass of its own, of any.
    pub(super) fn next(&mut self) -> Option<Record<'_>> {
        while self.own.is_none() && self.done >= self.batch.len() {
            self.done = 0;
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
        }
        if let Some(walk) = &mut self.own {
            return if walk.advance() { walk.record() } else { None };
        }
        let (head, body) = self.batch[self.done..].split_first_chunk::<HEAD>()?;
        let [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p] = *head;
        let len = usize::from(u16::from_le_bytes([o, p]));
        self.done += HEAD + len;
        Some(Record {
            at: u64::from_le_bytes([a, b, c, d, e, f, g, h]),
            ty: u32::from_le_bytes([i, j, k, l]),
            misc: u16::from_le_bytes([m, n]),
            body: body.get(..len)?,
            order: self.tape.order,
            packed: true,
        })
    }
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Shared")
    }
}
