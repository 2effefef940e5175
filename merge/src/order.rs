//! Many streams, each in the order of time, as one.
//!
//! A heap of the streams' next events. Of two with the same tick, the one of the stream that was given first comes
//! first; a listing is one stream, so its own order is kept.

use std::{cmp::Reverse, collections::BinaryHeap, io, path::PathBuf};

use sigmund_model::{Event, EventStream, Loss, Ticks};

use crate::error::Error;

/// A stream, and what is next in it.
struct Head {
    stream: Box<dyn EventStream + Send>,
    event: Event,
    source: usize,
    last: Ticks,
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
    pub(crate) fn new(streams: Vec<(usize, Box<dyn EventStream + Send>)>) -> Result<Ordered, Error> {
        let mut ordered = Ordered { heads: Vec::new(), heap: BinaryHeap::new(), losses: Vec::new(), late: 0 };
        for (source, stream) in streams {
            let head = Head { stream, event: Event::default(), source, last: Ticks(0) };
            ordered.heads.push(head);
            ordered.advance(ordered.heads.len() - 1)?;
        }
        Ok(ordered)
    }

    /// Gives the next event to `take`, with the number of its source; `false` at the end.
    pub(crate) fn next(
        &mut self,
        take: impl FnOnce(usize, &Event) -> Result<(), Error>,
    ) -> Result<bool, Error> {
        let Some(Reverse((_, index))) = self.heap.pop() else { return Ok(false) };
        let head = &self.heads[index];
        take(head.source, &head.event)?;
        self.advance(index)?;
        Ok(true)
    }

    /// What the streams found missing since this was last asked.
    pub(crate) fn take_losses(&mut self) -> Vec<Loss> {
        std::mem::take(&mut self.losses)
    }

    fn advance(&mut self, index: usize) -> Result<(), Error> {
        let head = &mut self.heads[index];
        let more = head.stream.next_into(&mut head.event).map_err(|error: io::Error| Error::Io {
            path: PathBuf::from(format!("stream {index}")),
            error,
        })?;
        self.losses.append(&mut head.stream.take_losses());
        if more {
            // A stream that goes back is kept in order by calling its late events as old as the newest before.
            self.late += u64::from(head.event.tick < head.last);
            head.event.tick = head.event.tick.max(head.last);
            head.last = head.event.tick;
            self.heap.push(Reverse((head.event.tick, index)));
        }
        Ok(())
    }
}
