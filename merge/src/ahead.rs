//! A stream that is read batch by batch: ahead by helpers, or here when the events are wanted.

use std::{
    io, mem,
    sync::{Arc, Mutex, MutexGuard},
};

use sigmund_model::{Event, EventStream, Loss};

use crate::helpers::Helpers;

/// Events that all streams together keep in memory, in each of three batches of a stream that is read ahead.
const BATCHED_EVENTS: usize = 16 << 10;
/// Most events of a batch that helpers read.
const MOST_AHEAD: usize = 512;
/// Most events of a batch that is read here: few, so that they are still in the cache when they are merged.
const MOST_HERE: usize = 32;

/// The events of a stream, the next of them decoded already.
pub(crate) struct Ahead {
    from: From,
    batch: Batch,
    /// Events taken from the batch; the current one is the last of them.
    taken: usize,
    losses_taken: usize,
}

/// Who reads.
enum From {
    Here(Reader),
    Helpers(Arc<Helpers>, Arc<Mutex<ReadAhead>>),
}

/// A reader, and the batch behind the one that is being merged.
struct ReadAhead {
    reader: Reader,
    /// Whether a helper has been asked for a batch, and has not come to it yet.
    asked: bool,
    next: Option<Batch>,
    /// Memory for the batch behind it.
    spare: Batch,
}

struct Reader {
    stream: Box<dyn EventStream + Send>,
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
    /// One of so many `streams`: of many, each has a small part of the memory that a few may have.
    pub(crate) fn new(
        stream: Box<dyn EventStream + Send>,
        helpers: Option<&Arc<Helpers>>,
        streams: usize,
    ) -> Ahead {
        let reader = Reader { stream, ended: false };
        let most = if helpers.is_some() { MOST_AHEAD } else { MOST_HERE };
        let events = (BATCHED_EVENTS / streams.max(1)).clamp(16, most);
        let from = match helpers {
            None => From::Here(reader),
            Some(helpers) => {
                let ahead = ReadAhead { reader, asked: false, next: None, spare: Batch::of(events) };
                From::Helpers(Arc::clone(helpers), Arc::new(Mutex::new(ahead)))
            }
        };
        from.read_ahead();
        Ahead { from, batch: Batch::of(events), taken: 0, losses_taken: 0 }
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
        (self.taken, self.losses_taken) = (0, 0);
        let more = match &mut self.from {
            From::Here(reader) => reader.fill(&mut self.batch),
            From::Helpers(_, ahead) => lock(ahead).swap(&mut self.batch),
        };
        if more {
            self.from.read_ahead();
        }
        self.batch.error.take().map_or(Ok(()), Err)
    }
}

impl From {
    fn read_ahead(&self) {
        let From::Helpers(helpers, ahead) = self else { return };
        if mem::replace(&mut lock(ahead).asked, true) {
            return;
        }
        let ahead = Arc::clone(ahead);
        helpers.decode(move || {
            let mut ahead = lock(&ahead);
            ahead.asked = false;
            ahead.read();
        });
    }
}

fn lock(ahead: &Mutex<ReadAhead>) -> MutexGuard<'_, ReadAhead> {
    ahead.lock().expect("a stream that panicked ends the merge")
}

impl ReadAhead {
    /// Reads the next batch, if nobody has.
    fn read(&mut self) {
        if self.next.is_none() && !self.reader.ended {
            let mut batch = mem::take(&mut self.spare);
            self.reader.fill(&mut batch);
            self.next = Some(batch);
        }
    }

    /// Gives the next batch for one that is done with; whether there is more to be read behind it.
    fn swap(&mut self, batch: &mut Batch) -> bool {
        self.read();
        batch.len = 0;
        if let Some(next) = self.next.take() {
            self.spare = mem::replace(batch, next);
        }
        !self.reader.ended
    }
}

impl Reader {
    /// Fills a batch anew; `false` if nothing is behind it.
    fn fill(&mut self, batch: &mut Batch) -> bool {
        batch.losses.clear();
        batch.len = 0;
        while !self.ended
            && let Some(event) = batch.events.get_mut(batch.len)
        {
            let read = self.stream.next_into(event);
            let found = self.stream.take_losses();
            if !found.is_empty() {
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
        !self.ended
    }
}

impl Batch {
    fn of(events: usize) -> Batch {
        Batch { events: vec![Event::default(); events], ..Batch::default() }
    }
}
