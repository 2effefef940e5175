//! A stream that helpers read ahead, batch by batch.

use std::{
    io,
    sync::{Arc, Mutex, MutexGuard},
};

use sigmund_model::{Event, EventStream, Loss};

use crate::helpers::Helpers;

/// Events that all streams together keep in memory, in each of three batches of a stream.
const BATCHED_EVENTS: usize = 16 << 10;

/// The events of a stream, the next of them decoded already.
pub(crate) struct Ahead {
    reader: Arc<Mutex<Reader>>,
    helpers: Arc<Helpers>,
    batch: Batch,
    /// Events taken from the batch; the current one is the last of them.
    taken: usize,
    losses_taken: usize,
}

struct Reader {
    stream: Box<dyn EventStream + Send>,
    next: Option<Batch>,
    /// Memory for the batch behind it.
    spare: Batch,
    ended: bool,
}

/// Events, refilled again and again, and the losses found while each was read.
#[derive(Default)]
struct Batch {
    events: Vec<Event>,
    len: usize,
    losses: Vec<(usize, Loss)>,
    error: Option<io::Error>,
}

impl Ahead {
    /// How many events a batch holds: many streams share what a few may have.
    pub(crate) fn batch_events(streams: usize) -> usize {
        (BATCHED_EVENTS / streams.max(1)).clamp(16, 512)
    }

    pub(crate) fn new(stream: Box<dyn EventStream + Send>, helpers: Arc<Helpers>, batch: usize) -> Ahead {
        let empty = || Batch { events: vec![Event::default(); batch], ..Batch::default() };
        let reader = Reader { stream, next: None, spare: empty(), ended: false };
        let mut ahead = Ahead {
            reader: Arc::new(Mutex::new(reader)),
            helpers,
            batch: empty(),
            taken: 0,
            losses_taken: 0,
        };
        ahead.read_ahead();
        ahead
    }

    /// Goes to the next event; `false` at the end.
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
        let mut reader = lock(&self.reader);
        if reader.next.is_none() && !reader.ended {
            reader.read();
        }
        (self.taken, self.losses_taken) = (0, 0);
        self.batch.len = 0;
        let Some(next) = reader.next.take() else { return Ok(()) };
        reader.spare = std::mem::replace(&mut self.batch, next);
        let ended = reader.ended;
        drop(reader);
        if !ended {
            self.read_ahead();
        }
        self.batch.error.take().map_or(Ok(()), Err)
    }

    fn read_ahead(&mut self) {
        let reader = Arc::clone(&self.reader);
        self.helpers.decode(move || {
            let mut reader = lock(&reader);
            if reader.next.is_none() && !reader.ended {
                reader.read();
            }
        });
    }
}

fn lock(reader: &Mutex<Reader>) -> MutexGuard<'_, Reader> {
    reader.lock().expect("a stream that panicked ends the merge")
}

impl Reader {
    /// Fills the next batch.
    fn read(&mut self) {
        let mut batch = std::mem::take(&mut self.spare);
        batch.losses.clear();
        batch.len = 0;
        while let Some(event) = batch.events.get_mut(batch.len) {
            let read = self.stream.next_into(event);
            let found = self.stream.take_losses();
            if !found.is_empty() {
                batch.losses.extend(found.into_iter().map(|loss| (batch.len, loss)));
            }
            match read {
                Ok(true) => batch.len += 1,
                Ok(false) => {
                    self.ended = true;
                    break;
                }
                Err(error) => {
                    batch.error = Some(error);
                    self.ended = true;
                    break;
                }
            }
        }
        self.next = Some(batch);
    }
}
