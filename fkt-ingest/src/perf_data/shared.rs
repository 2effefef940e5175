//! One unpacking for all streams of a compressed file.
//!
//! The records of all CPUs are in one zstd stream, which can only be read from its start. Were each stream to unpack it
//! for itself, reading would cost as many passes as there are CPUs. So the streams of one call share one pass: the stream
//! that needs a record continues the pass, and puts the others' records into their queues.
//!
//! ```text
//!   | COMPRESSED | COMPRESSED | …        one RecordCursor
//!        │ a stream without records reads on
//!        ├──▶ cpu 0: a chunk of its records, taken whole
//!        ├──▶ cpu 1: chunks that wait, of few CPUs 32 MiB for all together
//!        └──▶ cpu 2: most wait for it when there is no room: it is dropped, and unpacks for itself
//! ```
//!
//! A merge reads the streams side by side, some rounds apart at most: the queues are enough, and it is one pass. Who
//! reads one stream after the other pays a pass for each that was dropped from the shared pass. Memory is bounded either way, nothing is
//! written to disk, and the order is that of each CPU, however large a round is; a single stream of all CPUs would need
//! to hold two whole rounds to be in order.
//!
//! A chunk holds records as they were unpacked, one after the other, and a stream finds their stamps again: that is
//! cheaper than to hand them over. Chunks that were read are filled again, so that their pages are in memory already.

use std::collections::VecDeque;
use std::fmt;
use std::mem;
use std::sync::{Arc, Mutex, PoisonError};

use super::decode::RecordDecoder;
use super::record::{Attrs, Record, Stamp};
use super::record_cursor::{RecordCursor, RecordRange, first_record};
use sigmund_model::Cpu;

/// Bytes of a chunk: each record fits.
const CHUNK: usize = 64 << 10;
/// A stream that finds so many takes them, also if the chunk is not full.
const ENOUGH: usize = CHUNK / 2;
/// Chunks that wait for all streams at most: 32 MiB.
const MOST_CHUNKS: usize = 512;
/// And for each of many: 2 MiB, more than a CPU's ring (512 KiB, as perf maps it) holds in three rounds.
const CHUNKS_EACH: usize = 32;

/// The pass that streams share.
pub(super) struct Shared(Mutex<Pass>);

struct Pass {
    cursor: RecordCursor,
    decoder: Arc<RecordDecoder>,
    /// Records seen so far.
    seen: u64,
    queues: Vec<Queue>,
    /// Whose record was seen last.
    last: usize,
    /// Chunks in all queues, and how many there may be.
    waiting: usize,
    most_waiting: usize,
    /// Chunks to be filled again.
    spare: Vec<Vec<u8>>,
}

/// What waits for one stream.
#[derive(Default)]
struct Queue {
    cpu: Option<Cpu>,
    chunks: VecDeque<Chunk>,
    /// Number of the first record that it has missed.
    left_behind: Option<u64>,
}

/// Records of one CPU.
struct Chunk {
    bytes: Vec<u8>,
    /// Number of the first of them among all.
    first: u64,
}

/// One stream's side of it.
#[derive(Debug)]
pub(super) struct Subscriber {
    shared: Arc<Shared>,
    queue: usize,
    record_range: RecordRange,
    /// Its chunk, and how much of it is read.
    chunk: Vec<u8>,
    done: usize,
    /// A pass of its own, once it was dropped from the shared one.
    own: Option<RecordCursor>,
}

/// What a stream finds when it asks for more.
enum Taken {
    Chunk,
    LeftBehind(u64),
    End,
}

impl Shared {
    /// A pass for the streams of these CPUs.
    pub(super) fn new(
        record_range: &RecordRange,
        decoder: Arc<RecordDecoder>,
        cpus: impl Iterator<Item = Option<Cpu>>,
    ) -> Arc<Shared> {
        let queues: Vec<Queue> = cpus.map(|cpu| Queue { cpu, ..Queue::default() }).collect();
        Arc::new(Shared(Mutex::new(Pass {
            cursor: record_range.cursor(),
            decoder,
            seen: 0,
            last: 0,
            waiting: 0,
            most_waiting: MOST_CHUNKS.max(CHUNKS_EACH * queues.len()),
            spare: Vec::new(),
            queues,
        })))
    }

    /// Gives the next chunk of this queue for one that was read.
    fn take(&self, queue: usize, chunk: &mut Vec<u8>) -> Taken {
        // Who panicked while it held the lock left whole records in the queues: they are pushed as one.
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take(queue, chunk)
    }
}

impl Pass {
    fn take(&mut self, queue: usize, chunk: &mut Vec<u8>) -> Taken {
        if chunk.capacity() > 0 {
            self.recycle(mem::take(chunk));
        }
        while self.queues.get(queue).is_some_and(Queue::lacks) && self.read_one() {}
        let Some(own) = self.queues.get_mut(queue) else { return Taken::End };
        match (own.chunks.pop_front(), own.left_behind) {
            (Some(next), _) => {
                self.waiting -= 1;
                *chunk = next.bytes;
                Taken::Chunk
            }
            (None, Some(seen)) => Taken::LeftBehind(seen),
            (None, None) => Taken::End,
        }
    }

    /// Puts the next record into its CPU's queue; `false` at the end.
    #[inline]
    fn read_one(&mut self) -> bool {
        if !self.cursor.advance() {
            return false;
        }
        let Some((record, bytes)) = self.cursor.record_in_bytes() else { return false };
        let number = self.seen;
        self.seen += 1;
        let Some(stamp) = self.decoder.attrs.stamp_of_read(&record) else { return true };
        if self.queues.get(self.last).is_none_or(|queue| queue.cpu != stamp.cpu) {
            // Sorted by CPU, as the index is.
            match self.queues.binary_search_by_key(&stamp.cpu, |queue| queue.cpu) {
                Ok(at) => self.last = at,
                Err(_) => return true,
            }
        }
        if self.queues[self.last].push(bytes) {
            return true;
        }
        if self.waiting >= self.most_waiting {
            leave_behind(&mut self.queues, &mut self.waiting, &mut self.spare);
        }
        let queue = &mut self.queues[self.last];
        if queue.left_behind.is_none() {
            let mut chunk = self.spare.pop().unwrap_or_else(|| Vec::with_capacity(CHUNK));
            chunk.extend_from_slice(bytes);
            queue.chunks.push_back(Chunk { bytes: chunk, first: number });
            self.waiting += 1;
        }
        true
    }

    fn recycle(&mut self, mut chunk: Vec<u8>) {
        if self.waiting + self.spare.len() < self.most_waiting {
            chunk.clear();
            self.spare.push(chunk);
        }
    }
}

/// Gives up what waits for the one for which most does.
#[cold]
fn leave_behind(queues: &mut [Queue], waiting: &mut usize, spare: &mut Vec<Vec<u8>>) {
    let Some(queue) = queues.iter_mut().max_by_key(|queue| queue.chunks.len()) else { return };
    queue.left_behind = queue.chunks.front().map(|chunk| chunk.first);
    *waiting -= queue.chunks.len();
    for Chunk { mut bytes, .. } in queue.chunks.drain(..) {
        bytes.clear();
        spare.push(bytes);
    }
}

impl Queue {
    /// Whether its stream must read on to have something.
    #[inline]
    fn lacks(&self) -> bool {
        self.left_behind.is_none() && self.chunks.front().is_none_or(|chunk| chunk.bytes.len() < ENOUGH)
    }

    /// Adds a record, if its last chunk has room, or if the stream was dropped and needs none.
    #[inline]
    fn push(&mut self, record: &[u8]) -> bool {
        match self.chunks.back_mut() {
            Some(Chunk { bytes, .. }) if bytes.len() + record.len() <= CHUNK => {
                bytes.extend_from_slice(record);
                true
            }
            _ => self.left_behind.is_some(),
        }
    }
}

impl Subscriber {
    pub(super) fn new(shared: Arc<Shared>, queue: usize, record_range: RecordRange) -> Subscriber {
        Subscriber { shared, queue, record_range, chunk: Vec::new(), done: 0, own: None }
    }

    /// The next record and its stamp: of this stream's CPU, or, from a pass of its own, of any.
    #[inline]
    pub(super) fn next(&mut self, attrs: &Attrs) -> Option<(Record<'_>, Stamp)> {
        while self.own.is_none() && self.done >= self.chunk.len() {
            self.go_on()?;
        }
        if let Some(cursor) = &mut self.own {
            let stamp = cursor.advance_to_stamped(attrs)?;
            return cursor.record().map(|record| (record, stamp));
        }
        let (record, size) = first_record(self.chunk.get(self.done..)?, self.record_range.order)?;
        self.done += size;
        attrs.stamp_of_read(&record).map(|stamp| (record, stamp))
    }

    /// Takes what waits for it, or begins a pass of its own; `None` at the end.
    #[cold]
    fn go_on(&mut self) -> Option<()> {
        self.done = 0;
        match self.shared.take(self.queue, &mut self.chunk) {
            Taken::Chunk => {}
            Taken::End => return None,
            Taken::LeftBehind(seen) => {
                let mut cursor = self.record_range.cursor();
                if !(0..seen).all(|_| cursor.advance()) {
                    return None;
                }
                self.own = Some(cursor);
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
