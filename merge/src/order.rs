//! Many streams, each in the order of time, as one.
//!
//! The stream whose event is the oldest is read until another has an older one; a heap knows the others. Of two with
//! the same tick, the one of the stream that was given first comes first; a listing is one stream, so its own order is
//! kept.

use std::{cmp::Reverse, collections::BinaryHeap, io, path::PathBuf, sync::Arc};

use sigmund_model::{Event, EventStream, Loss, Ticks};

use crate::{ahead::Ahead, error::Error, helpers::Helpers};

/// A stream, and what is next in it.
struct Head {
    feed: Feed,
    source: usize,
    last: Ticks,
}

/// Where the events of a stream come from.
enum Feed {
    /// From the stream itself, one by one.
    Direct { stream: Box<dyn EventStream + Send>, event: Event },
    /// From helpers that read ahead.
    Ahead(Ahead),
}

/// The merged stream.
pub(crate) struct Ordered {
    heads: Vec<Head>,
    heap: BinaryHeap<Reverse<(Ticks, usize)>>,
    losses: Vec<Loss>,
    /// Events whose tick was before that of the event before them in their own stream.
    pub(crate) late: u64,
}

impl Ordered {
    /// Starts the streams; each belongs to the source with the number beside it.
    pub(crate) fn new(
        streams: Vec<(usize, Box<dyn EventStream + Send>)>,
        helpers: Option<&Arc<Helpers>>,
    ) -> Result<Ordered, Error> {
        let mut ordered = Ordered { heads: Vec::new(), heap: BinaryHeap::new(), losses: Vec::new(), late: 0 };
        let batch = Ahead::batch_events(streams.len());
        for (index, (source, stream)) in streams.into_iter().enumerate() {
            let feed = match helpers {
                Some(helpers) => Feed::Ahead(Ahead::new(stream, Arc::clone(helpers), batch)),
                None => Feed::Direct { stream, event: Event::default() },
            };
            let mut head = Head { feed, source, last: Ticks(0) };
            if head.advance(index, &mut ordered.losses, &mut ordered.late)? {
                ordered.heap.push(Reverse((head.last, index)));
            }
            ordered.heads.push(head);
        }
        Ok(ordered)
    }

    /// Gives all events to `take`, with the number of their source.
    pub(crate) fn each(
        &mut self,
        mut take: impl FnMut(usize, &Event) -> Result<(), Error>,
    ) -> Result<(), Error> {
        while let Some(Reverse((_, index))) = self.heap.pop() {
            let next_of_others = self.heap.peek().map(|Reverse(next)| *next);
            let head = &mut self.heads[index];
            loop {
                take(head.source, head.feed.event())?;
                if !head.advance(index, &mut self.losses, &mut self.late)? {
                    break;
                }
                if next_of_others.is_some_and(|next| next < (head.last, index)) {
                    self.heap.push(Reverse((head.last, index)));
                    break;
                }
            }
        }
        Ok(())
    }

    /// What the streams found missing since this was last asked.
    pub(crate) fn take_losses(&mut self) -> Vec<Loss> {
        std::mem::take(&mut self.losses)
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
