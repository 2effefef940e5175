//! Many streams, each in the order of time, as one.
//!
//! The stream whose event is the oldest is read until another has an older one; a heap knows the others. Of two with
//! the same tick, the one of the stream that was given first comes first; a listing is one stream, so its own order is
//! kept.

use std::{cmp::Reverse, collections::BinaryHeap, io, path::PathBuf, sync::Arc};

use fkt_ingest::TraceStream;
use sigmund_model::{Cpu, Effect, Event, EventStream, Loss, Ticks};

use crate::{ahead::Ahead, error::Error, helpers::Helpers};

/// A stream, and what is next in it.
struct Head {
    feed: Feed,
    source: usize,
    cpu: Option<Cpu>,
    buffer: String,
    last: Ticks,
    /// Whether any of its events moved anybody.
    schedules: bool,
}

/// Where the events of a stream come from.
enum Feed {
    /// From the stream itself, one by one.
    Direct { stream: Box<dyn EventStream + Send>, event: Event },
    /// From helpers that read ahead.
    Ahead(Ahead),
}

/// What comes next in the merged stream.
pub(crate) enum Step<'s> {
    /// An event, and the number of its source.
    Event(usize, &'s Event),
    /// Something that is missing, and may have moved somebody: told before the event behind it, of any stream.
    Missing(&'s Loss),
}

/// The merged stream.
pub(crate) struct Ordered {
    heads: Vec<Head>,
    heap: BinaryHeap<Reverse<(Ticks, usize)>>,
    /// What a stream told with the event it has just gone to.
    found: Vec<Loss>,
    losses: Vec<Loss>,
    /// Those of them that the machine has not been told yet.
    gaps: Vec<Loss>,
    /// Events whose tick was before that of the event before them in their own stream.
    pub(crate) late: u64,
}

impl Ordered {
    /// Starts the streams; each belongs to the source with the number beside it.
    pub(crate) fn new(
        streams: Vec<(usize, TraceStream)>,
        helpers: Option<&Arc<Helpers>>,
    ) -> Result<Ordered, Error> {
        let mut ordered = Ordered {
            heads: Vec::new(),
            heap: BinaryHeap::new(),
            found: Vec::new(),
            losses: Vec::new(),
            gaps: Vec::new(),
            late: 0,
        };
        let batch = Ahead::batch_events(streams.len());
        for (index, (source, stream)) in streams.into_iter().enumerate() {
            let TraceStream { cpu, buffer, events, .. } = stream;
            let feed = match helpers {
                Some(helpers) => Feed::Ahead(Ahead::new(events, Arc::clone(helpers), batch)),
                None => Feed::Direct { stream: events, event: Event::default() },
            };
            ordered.heads.push(Head { feed, source, cpu, buffer, last: Ticks(0), schedules: false });
            if ordered.advance(index)? {
                ordered.heap.push(Reverse((ordered.heads[index].last, index)));
            }
        }
        Ok(ordered)
    }

    /// Gives all events to `take`, and what is missing between them.
    pub(crate) fn each(&mut self, mut take: impl FnMut(Step<'_>) -> Result<(), Error>) -> Result<(), Error> {
        while let Some(Reverse((_, index))) = self.heap.pop() {
            let next_of_others = self.heap.peek().map(|Reverse(next)| *next);
            loop {
                self.gaps.drain(..).try_for_each(|gap| take(Step::Missing(&gap)))?;
                let head = &mut self.heads[index];
                let event = head.feed.event();
                head.schedules |= event.effect != Effect::None;
                take(Step::Event(head.source, event))?;
                if !self.advance(index)? {
                    break;
                }
                let here = (self.heads[index].last, index);
                if next_of_others.is_some_and(|next| next < here) {
                    self.heap.push(Reverse(here));
                    break;
                }
            }
        }
        self.gaps.drain(..).try_for_each(|gap| take(Step::Missing(&gap)))
    }

    /// Goes to the next event of a stream; `false` at its end.
    #[inline]
    fn advance(&mut self, index: usize) -> Result<bool, Error> {
        let head = &mut self.heads[index];
        let more = head.advance(index, &mut self.found, &mut self.late)?;
        if !self.found.is_empty() {
            let next = more.then_some(head.last);
            self.lose(index, next);
        }
        Ok(more)
    }

    /// What the streams found missing since this was last asked.
    pub(crate) fn take_losses(&mut self) -> Vec<Loss> {
        std::mem::take(&mut self.losses)
    }

    /// Notes what a stream found missing, together with its next event, if it has one.
    #[cold]
    fn lose(&mut self, index: usize, next: Option<Ticks>) {
        let mut losses = std::mem::take(&mut self.found);
        for loss in &mut losses {
            // Without an end, it is what is missing before this event; behind the last one, it has none.
            loss.to = loss.to.or(next.filter(|next| loss.from.is_none_or(|from| from <= *next)));
        }
        if self.may_schedule(index) {
            self.gaps.extend(losses.iter().cloned());
        }
        self.losses.append(&mut losses);
    }

    /// Whether what is missing from a stream may have moved anybody. Not what is missing from a buffer for other events
    /// (an instance for system calls, say): one that has shown none that did, while another buffer of its CPU has.
    fn may_schedule(&self, index: usize) -> bool {
        let head = &self.heads[index];
        let is_beside = |other: &&Head| other.source == head.source && other.buffer != head.buffer;
        let is_part = |other: &&Head| other.source == head.source && other.buffer == head.buffer;
        head.cpu.is_none()
            || self.heads.iter().filter(is_part).any(|other| other.schedules)
            || !self.heads.iter().filter(is_beside).any(|other| other.schedules && other.cpu == head.cpu)
    }
}

impl Head {
    /// Goes to the next event; `false` at the end.
    #[inline]
    fn advance(&mut self, index: usize, losses: &mut Vec<Loss>, late: &mut u64) -> Result<bool, Error> {
        let more = match &mut self.feed {
            Feed::Direct { stream, event } => {
                stream.next_into(event).inspect(|_| losses.append(&mut stream.take_losses()))
            }
            Feed::Ahead(ahead) => ahead.advance(losses),
        };
        let more = more.map_err(|error: io::Error| Error::Io {
            path: PathBuf::from(format!("stream {index}")),
            error,
        })?;
        if more {
            // A stream that goes back is kept in order by calling its late events as old as the newest before.
            let event = self.feed.event_mut();
            *late += u64::from(event.tick < self.last);
            event.tick = event.tick.max(self.last);
            self.last = event.tick;
        }
        Ok(more)
    }
}

impl Feed {
    #[inline]
    fn event(&self) -> &Event {
        match self {
            Feed::Direct { event, .. } => event,
            Feed::Ahead(ahead) => ahead.event(),
        }
    }

    #[inline]
    fn event_mut(&mut self) -> &mut Event {
        match self {
            Feed::Direct { event, .. } => event,
            Feed::Ahead(ahead) => ahead.event_mut(),
        }
    }
}
