//! One unpacking for all streams of a compressed file.
//!
//! The records of all CPUs are in one zstd stream, which can only be read from its start. If each stream unpacked it
//! separately, reading would take as many passes as there are CPUs. So the streams of one call share one pass: a stream
//! that needs a record continues the pass, and puts the records of others into their queues.
//!
//! ```text
//!   | COMPRESSED | COMPRESSED | …        one RecordCursor
//!        │ a stream without records reads on
//!        ├──▶ cpu 0: a chunk of its records, taken whole
//!        ├──▶ cpu 1: queued chunks, at most 32 MiB in total for few CPUs
//!        └──▶ cpu 2: the longest queue when there is no room: it is dropped, and its stream unpacks separately
//! ```
//!
//! A merge reads the streams side by side, at most a few rounds apart: then the queues suffice, and there is one pass.
//! A program that reads one stream after the other pays one more pass for each stream that was dropped. In either case
//! memory is bounded, nothing is written to disk, and the order is that of each CPU, however large a round is; a single
//! sorted stream of all CPUs would have to hold two whole rounds.
//!
//! A chunk holds records as they were unpacked, one after the other, and a stream parses their stamps again, which is
//! cheaper than passing them on. Chunks are reused, so that their pages are already in memory.

use std::collections::VecDeque;
use std::fmt;
use std::mem;
use std::sync::{Arc, Mutex, PoisonError};

use super::decode::RecordDecoder;
use super::record::{Attrs, Record, Stamp};
use super::record_cursor::{RecordCursor, RecordRange, first_record};
use sigmund_model::Cpu;

/// Size of a chunk in bytes: any record fits.
const CHUNK: usize = 64 << 10;
/// A stream takes a chunk with at least this many bytes, even if it is not full.
const ENOUGH: usize = CHUNK / 2;
/// Largest number of queued chunks of all streams: 32 MiB.
const MOST_CHUNKS: usize = 512;
/// Largest number per stream if there are many: 2 MiB, more than three rounds of a CPU's ring (512 KiB, as perf maps
/// it).
const CHUNKS_EACH: usize = 32;

/// The pass that streams share.
pub(super) struct SharedPass(Mutex<Pass>);

struct Pass {
    cursor: RecordCursor,
    decoder: Arc<RecordDecoder>,
    /// Number of records seen.
    seen: u64,
    queues: Vec<Queue>,
    /// The queue of the last record.
    last: usize,
    /// Number of chunks in all queues, and its limit.
    waiting: usize,
    most_waiting: usize,
    /// Chunks to reuse.
    spare: Vec<Vec<u8>>,
}

/// The queued records of one stream.
#[derive(Default)]
struct Queue {
    cpu: Option<Cpu>,
    chunks: VecDeque<Chunk>,
    /// Number of the first record that was dropped for it.
    dropped_from: Option<u64>,
}

/// Records of one CPU.
struct Chunk {
    bytes: Vec<u8>,
    /// Number of the first record in it, among the records of all CPUs.
    first: u64,
}

/// The access of one stream to the shared pass.
#[derive(Debug)]
pub(super) struct Subscriber {
    shared: Arc<SharedPass>,
    queue: usize,
    record_range: RecordRange,
    /// Its current chunk, and the part of it that has been read.
    chunk: Vec<u8>,
    done: usize,
    /// Its own pass, once it has been dropped from the shared one.
    own: Option<RecordCursor>,
}

/// What a stream gets when it asks for more records.
enum NextChunk {
    Chunk,
    Dropped(u64),
    End,
}

impl SharedPass {
    /// A shared pass for the streams of these CPUs.
    pub(super) fn new(
        record_range: &RecordRange,
        decoder: Arc<RecordDecoder>,
        cpus: impl Iterator<Item = Option<Cpu>>,
    ) -> Arc<SharedPass> {
        let queues: Vec<Queue> = cpus.map(|cpu| Queue { cpu, ..Queue::default() }).collect();
        Arc::new(SharedPass(Mutex::new(Pass {
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

    /// Exchanges a chunk that was read for the next one of this queue.
    fn take(&self, queue: usize, chunk: &mut Vec<u8>) -> NextChunk {
        // A thread that panicked while it held the lock left whole records in the queues, because each is pushed in one
        // step.
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take(queue, chunk)
    }
}

impl Pass {
    fn take(&mut self, queue: usize, chunk: &mut Vec<u8>) -> NextChunk {
        if chunk.capacity() > 0 {
            self.recycle(mem::take(chunk));
        }
        while self.queues.get(queue).is_some_and(Queue::needs_records) && self.read_one() {}
        let Some(own) = self.queues.get_mut(queue) else { return NextChunk::End };
        match (own.chunks.pop_front(), own.dropped_from) {
            (Some(next), _) => {
                self.waiting -= 1;
                *chunk = next.bytes;
                NextChunk::Chunk
            }
            (None, Some(seen)) => NextChunk::Dropped(seen),
            (None, None) => NextChunk::End,
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
            // Sorted by CPU, like the index.
            match self.queues.binary_search_by_key(&stamp.cpu, |queue| queue.cpu) {
                Ok(at) => self.last = at,
                Err(_) => return true,
            }
        }
        if self.queues[self.last].push(bytes) {
            return true;
        }
        if self.waiting >= self.most_waiting {
            drop_longest(&mut self.queues, &mut self.waiting, &mut self.spare);
        }
        let queue = &mut self.queues[self.last];
        if queue.dropped_from.is_none() {
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

/// Drops the longest queue.
#[cold]
fn drop_longest(queues: &mut [Queue], waiting: &mut usize, spare: &mut Vec<Vec<u8>>) {
    let Some(queue) = queues.iter_mut().max_by_key(|queue| queue.chunks.len()) else { return };
    queue.dropped_from = queue.chunks.front().map(|chunk| chunk.first);
    *waiting -= queue.chunks.len();
    for Chunk { mut bytes, .. } in queue.chunks.drain(..) {
        bytes.clear();
        spare.push(bytes);
    }
}

impl Queue {
    /// Whether its stream must continue the pass to get records.
    #[inline]
    fn needs_records(&self) -> bool {
        self.dropped_from.is_none() && self.chunks.front().is_none_or(|chunk| chunk.bytes.len() < ENOUGH)
    }

    /// Adds a record if its last chunk has room; records of a dropped queue are ignored.
    #[inline]
    fn push(&mut self, record: &[u8]) -> bool {
        match self.chunks.back_mut() {
            Some(Chunk { bytes, .. }) if bytes.len() + record.len() <= CHUNK => {
                bytes.extend_from_slice(record);
                true
            }
            _ => self.dropped_from.is_some(),
        }
    }
}

impl Subscriber {
    pub(super) fn new(shared: Arc<SharedPass>, queue: usize, record_range: RecordRange) -> Subscriber {
        Subscriber { shared, queue, record_range, chunk: Vec::new(), done: 0, own: None }
    }

    /// The next record and its stamp: one of this stream's CPU, or, from a pass of its own, of any CPU.
    #[inline]
    pub(super) fn next(&mut self, attrs: &Attrs) -> Option<(Record<'_>, Stamp)> {
        while self.own.is_none() && self.done >= self.chunk.len() {
            self.refill()?;
        }
        if let Some(cursor) = &mut self.own {
            let stamp = cursor.advance_to_stamped(attrs)?;
            return cursor.record().map(|record| (record, stamp));
        }
        let (record, size) = first_record(self.chunk.get(self.done..)?, self.record_range.order)?;
        self.done += size;
        attrs.stamp_of_read(&record).map(|stamp| (record, stamp))
    }

    /// Takes queued records, or begins a pass of its own; `None` at the end.
    #[cold]
    fn refill(&mut self) -> Option<()> {
        self.done = 0;
        match self.shared.take(self.queue, &mut self.chunk) {
            NextChunk::Chunk => {}
            NextChunk::End => return None,
            NextChunk::Dropped(seen) => {
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

impl fmt::Debug for SharedPass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SharedPass")
    }
}
