//! A stream that is read batch by batch. Workers prefetch the batches, or the events are read here when they are
//! needed.

use std::{
    collections::VecDeque,
    io, mem,
    sync::{Arc, Mutex, MutexGuard},
};

use sigmund_model::{Event, EventStream, Loss};

use crate::worker_pool::WorkerPool;

/// Number of events that all streams together keep in memory.
const EVENTS_IN_MEMORY: usize = 48 << 10;
/// Maximum number of events of a batch. It is small, so that they are still in the cache when they are merged. Workers
/// get the batches one by one.
const MOST_PREFETCHED: usize = 512;
/// Maximum number of events of a batch that is not prefetched.
const MOST_HERE: usize = 32;
/// Maximum number of prefetched batches of a stream.
const MOST_BATCHES: usize = 16;

/// The events of a stream. The next event is already decoded.
pub(crate) struct Prefetch {
    from: Reading,
    batch: Batch,
    /// Number of events taken from the batch. The current event is the last of these.
    taken: usize,
    losses_taken: usize,
}

/// Where the stream is read.
enum Reading {
    Here(Reader),
    Pool(Arc<WorkerPool>, Arc<Prefetched>),
}

/// A reader, and the batches that it has read. A task holds the reader until its batch is in `batches`. So the next
/// task that gets the reader finds everything that was read.
struct Prefetched {
    reader: Mutex<Reader>,
    batches: Mutex<Batches>,
    /// Maximum number of prefetched batches.
    most: usize,
}

/// Batches after the one that is being merged.
struct Batches {
    ready: VecDeque<Batch>,
    /// Used batches, whose memory is used again.
    spare: Vec<Batch>,
    /// Whether a worker is reading a batch, or will.
    asked: bool,
    /// Whether the last batch of `ready` is the last one of the stream.
    ended: bool,
}

struct Reader {
    stream: Box<dyn EventStream + Send>,
    ended: bool,
}

/// Events, and the losses found while each was read. The memory is used again and again.
#[derive(Default)]
struct Batch {
    events: Vec<Event>,
    len: usize,
    losses: Vec<(usize, Loss)>,
    error: Option<io::Error>,
}

impl Prefetch {
    /// Makes one of this number of `streams`. If there are many, each has a smaller part of the memory.
    pub(crate) fn new(
        stream: Box<dyn EventStream + Send>,
        pool: Option<&Arc<WorkerPool>>,
        streams: usize,
    ) -> Prefetch {
        let reader = Reader { stream, ended: false };
        let of_stream = EVENTS_IN_MEMORY / streams.max(1);
        let most = if pool.is_some() { MOST_PREFETCHED } else { MOST_HERE };
        let events = (of_stream / 3).clamp(16, most);
        let from = match pool {
            None => Reading::Here(reader),
            Some(pool) => {
                let batches = (of_stream / events).clamp(3, MOST_BATCHES + 2) - 1;
                Reading::Pool(Arc::clone(pool), Arc::new(Prefetched::new(reader, batches, events)))
            }
        };
        from.prefetch();
        Prefetch { from, batch: Batch::of(events), taken: 0, losses_taken: 0 }
    }

    /// Goes to the next event. `false` at the end.
    #[inline]
    pub(crate) fn advance(&mut self, losses: &mut Vec<Loss>) -> io::Result<bool> {
        if self.taken >= self.batch.len {
            self.next_batch(losses)?;
        }
        let more = self.taken < self.batch.len;
        self.taken += usize::from(more);
        if self.losses_taken < self.batch.losses.len() {
            self.take_losses(losses);
        }
        Ok(more)
    }

    /// The event that [`advance`](Self::advance) went to.
    #[inline]
    pub(crate) fn event(&self) -> &Event {
        &self.batch.events[self.taken - 1]
    }

    #[inline]
    pub(crate) fn event_mut(&mut self) -> &mut Event {
        &mut self.batch.events[self.taken - 1]
    }

    /// The losses found up to the current event.
    #[cold]
    fn take_losses(&mut self, losses: &mut Vec<Loss>) {
        let found = self.batch.losses[self.losses_taken..].iter();
        let found: Vec<Loss> =
            found.take_while(|(at, _)| *at < self.taken.max(1)).map(|(_, loss)| loss.clone()).collect();
        self.losses_taken += found.len();
        losses.extend(found);
    }

    #[cold]
    fn next_batch(&mut self, losses: &mut Vec<Loss>) -> io::Result<()> {
        losses.extend(self.batch.losses.drain(..).skip(self.losses_taken).map(|(_, loss)| loss));
        (self.taken, self.losses_taken) = (0, 0);
        match &mut self.from {
            Reading::Here(reader) => reader.fill(&mut self.batch),
            Reading::Pool(_, prefetched) => prefetched.swap(&mut self.batch),
        }
        self.from.prefetch();
        self.batch.error.take().map_or(Ok(()), Err)
    }
}

impl Reading {
    /// Makes the workers prefetch more, if half of the prefetched batches have been used.
    fn prefetch(&self) {
        let Reading::Pool(pool, prefetched) = self else { return };
        let mut batches = lock(&prefetched.batches);
        if batches.asked || batches.ended || batches.ready.len() > prefetched.most / 2 {
            return;
        }
        batches.asked = true;
        let prefetched = Arc::clone(prefetched);
        pool.decode(move || prefetched.read_one());
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().expect("a stream that panicked ends the merge")
}

impl Prefetched {
    /// Prefetches `batches` of `events` each.
    fn new(reader: Reader, batches: usize, events: usize) -> Prefetched {
        let spare = (0..batches).map(|_| Batch::of(events)).collect();
        let none = Batches { ready: VecDeque::new(), spare, asked: false, ended: false };
        Prefetched { reader: Mutex::new(reader), batches: Mutex::new(none), most: batches }
    }

    /// Prefetches one batch. Returns whether to prefetch another one after it.
    fn read_one(&self) -> bool {
        let mut reader = lock(&self.reader);
        let spare = lock(&self.batches).spare.pop();
        let Some(mut batch) = spare else {
            lock(&self.batches).asked = false;
            return false;
        };
        reader.fill(&mut batch);
        let mut batches = lock(&self.batches);
        batches.ended = reader.ended;
        batches.ready.push_back(batch);
        batches.asked = !reader.ended && !batches.spare.is_empty();
        batches.asked
    }

    /// Exchanges a used batch for the next one.
    fn swap(&self, batch: &mut Batch) {
        if self.swap_ready(batch) {
            return;
        }
        let mut reader = lock(&self.reader);
        // A worker may have read one meanwhile.
        if !self.swap_ready(batch) {
            reader.fill(batch);
            lock(&self.batches).ended = reader.ended;
        }
    }

    fn swap_ready(&self, batch: &mut Batch) -> bool {
        let mut batches = lock(&self.batches);
        let Some(next) = batches.ready.pop_front() else { return false };
        batches.spare.push(mem::replace(batch, next));
        true
    }
}

impl Reader {
    /// Fills a batch with the next events. At the end of the stream it stays empty.
    fn fill(&mut self, batch: &mut Batch) {
        batch.losses.clear();
        batch.len = 0;
        while !self.ended
            && let Some(event) = batch.events.get_mut(batch.len)
        {
            let read = self.stream.next_into(event);
            if self.stream.may_have_losses() {
                let found = self.stream.take_losses();
                batch.losses.extend(found.into_iter().map(|loss| (batch.len, loss)));
            }
            match read {
                Ok(true) => batch.len += 1,
                Ok(false) => self.ended = true,
                Err(error) => {
                    batch.error = Some(error);
                    self.ended = true;
                }
            }
        }
    }
}

impl Batch {
    fn of(events: usize) -> Batch {
        Batch { events: vec![Event::default(); events], ..Batch::default() }
    }
}
