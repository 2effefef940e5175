//! Many streams, each in the order of time, as one.
//!
//! A heap of the streams' next events. Of two with the same tick, the one of the stream that was given first comes
//! first; a listing is one stream, so its own order is kept.

use std::{cmp::Reverse, collections::BinaryHeap, io, path::PathBuf};

use fkt_ingest::TraceStream;
use sigmund_model::{Cpu, Effect, Event, EventStream, Loss, Ticks};

use crate::error::Error;

/// A stream, and what is next in it.
struct Head {
    stream: Box<dyn EventStream + Send>,
    event: Event,
    source: usize,
    cpu: Option<Cpu>,
    buffer: String,
    last: Ticks,
    /// Whether any of its events moved anybody.
    schedules: bool,
}

/// The merged stream.
pub(crate) struct Ordered {
    heads: Vec<Head>,
    heap: BinaryHeap<Reverse<(Ticks, usize)>>,
    losses: Vec<Loss>,
    /// Those of them that the machine has not been told yet.
    gaps: Vec<Loss>,
    /// Events whose tick was before that of the event before them in their own stream.
    pub(crate) late: u64,
}

impl Ordered {
    /// Starts the streams; each belongs to the source with the number beside it.
    pub(crate) fn new(streams: Vec<(usize, TraceStream)>) -> Result<Ordered, Error> {
        let mut ordered = Ordered {
            heads: Vec::new(),
            heap: BinaryHeap::new(),
            losses: Vec::new(),
            gaps: Vec::new(),
            late: 0,
        };
        for (source, stream) in streams {
            let TraceStream { cpu, buffer, events, .. } = stream;
            let event = Event::default();
            let head = Head { stream: events, event, source, cpu, buffer, last: Ticks(0), schedules: false };
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
        let head = &mut self.heads[index];
        head.schedules |= head.event.effect != Effect::None;
        take(head.source, &head.event)?;
        self.advance(index)?;
        Ok(true)
    }

    /// What the streams found missing since this was last asked.
    pub(crate) fn take_losses(&mut self) -> Vec<Loss> {
        std::mem::take(&mut self.losses)
    }

    /// What was found missing, to be told to the machine before the next event.
    pub(crate) fn take_gaps(&mut self) -> Vec<Loss> {
        std::mem::take(&mut self.gaps)
    }

    /// Notes what a stream found missing, together with its next event, if it has one.
    #[cold]
    fn lose(&mut self, index: usize, mut losses: Vec<Loss>, next: Option<Ticks>) {
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

    fn advance(&mut self, index: usize) -> Result<(), Error> {
        let head = &mut self.heads[index];
        let more = head.stream.next_into(&mut head.event).map_err(|error: io::Error| Error::Io {
            path: PathBuf::from(format!("stream {index}")),
            error,
        })?;
        let losses = head.stream.take_losses();
        if more {
            // A stream that goes back is kept in order by calling its late events as old as the newest before.
            self.late += u64::from(head.event.tick < head.last);
            head.event.tick = head.event.tick.max(head.last);
            head.last = head.event.tick;
            self.heap.push(Reverse((head.event.tick, index)));
        }
        if !losses.is_empty() {
            let next = more.then_some(self.heads[index].event.tick);
            self.lose(index, losses, next);
        }
        Ok(())
    }
}
