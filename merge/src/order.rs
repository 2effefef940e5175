//! Merges many streams, each in time order, into one.
//!
//! The stream with the oldest event is read until another stream has an older one. A heap contains the other streams.
//! If two events have the same tick, the one of the stream that was given first comes first. A listing is one stream,
//! so its own order is kept.

use std::{cmp::Reverse, collections::BinaryHeap, mem, path::PathBuf, sync::Arc};

use fkt_ingest::TraceStream;
use sigmund_model::{Cpu, Effect, Event, Loss, Ticks};

use crate::{
    error::Error,
    machine::{Begin, End},
    prefetch::Prefetch,
    recordings::{Recordings, Span},
    worker_pool::WorkerPool,
};

/// A stream, and the next event in it.
struct OrderedStream {
    events: Prefetch,
    source: usize,
    cpu: Option<Cpu>,
    buffer: String,
    last: Ticks,
    /// Whether any of its events has moved an LWP or a user thread.
    schedules: bool,
    /// Whether it is already taken into account that its source records the kernel's switches, or has ended.
    is_counted: bool,
}

/// The next step in the merged stream.
pub(crate) enum Step<'s> {
    /// An event, and the number of its source.
    Event(usize, &'s Event),
    /// Events are missing, and an LWP or thread may have moved. Reported before the event after the gap, of any stream.
    Missing(&'s Loss),
    /// A source of the kernel's switches begins. Reported before its first event that counts.
    Begin(&'s Begin),
    /// Such a source has ended, and other sources continue. Reported before the first event that is later.
    End(&'s End),
}

/// The merged stream.
pub(crate) struct Ordered {
    streams: Vec<OrderedStream>,
    heap: BinaryHeap<Reverse<(Ticks, usize)>>,
    /// The losses that a stream reported with its current event.
    found: Vec<Loss>,
    losses: Vec<Loss>,
    /// Those losses that have not been reported to the machine yet.
    gaps: Vec<Loss>,
    recordings: Recordings,
    /// Number of events whose tick was before that of the previous event in their own stream.
    pub(crate) late: u64,
}

impl Ordered {
    /// Starts the streams. The number of each stream is the number of its source. `spans` contains the statement of
    /// each source.
    pub(crate) fn new(
        streams: Vec<(usize, TraceStream)>,
        spans: Vec<Span>,
        pool: Option<&Arc<WorkerPool>>,
    ) -> Result<Ordered, Error> {
        let mut ordered = Ordered {
            streams: Vec::new(),
            heap: BinaryHeap::new(),
            found: Vec::new(),
            losses: Vec::new(),
            gaps: Vec::new(),
            recordings: Recordings::new(spans, streams.iter().map(|(source, stream)| (*source, stream.cpu))),
            late: 0,
        };
        let count = streams.len();
        for (index, (source, stream)) in streams.into_iter().enumerate() {
            let TraceStream { cpu, buffer, events, .. } = stream;
            let events = Prefetch::new(events, pool, count);
            ordered.streams.push(OrderedStream {
                events,
                source,
                cpu,
                buffer,
                last: Ticks(0),
                schedules: false,
                is_counted: false,
            });
            if ordered.advance(index)? {
                ordered.heap.push(Reverse((ordered.streams[index].last, index)));
            } else {
                ordered.recordings.exhausted(source, Ticks(0));
            }
        }
        Ok(ordered)
    }

    /// Calls `take` with all events, and with what is missing between them.
    pub(crate) fn each(&mut self, mut take: impl FnMut(Step<'_>) -> Result<(), Error>) -> Result<(), Error> {
        let mut next = self.heap.pop().map(|Reverse((_, index))| index);
        while let Some(index) = next {
            if !self.gaps.is_empty() {
                self.gaps.drain(..).try_for_each(|gap| take(Step::Missing(&gap)))?;
            }
            let stream = &mut self.streams[index];
            let event = stream.events.event();
            if self.recordings.next_end < event.tick {
                for end in self.recordings.ends_before(stream.source, event.tick) {
                    take(Step::End(&end))?;
                }
            }
            stream.schedules |= !matches!(event.effect, Effect::None);
            if !stream.is_counted && self.recordings.counts(stream.source, event) {
                stream.is_counted = true;
                if let Some(begin) = self.recordings.begin(stream.source, event.tick) {
                    take(Step::Begin(&begin))?;
                }
            }
            take(Step::Event(stream.source, event))?;
            next = if self.advance(index)? {
                Some(self.oldest(index))
            } else {
                self.recordings.exhausted(self.streams[index].source, self.streams[index].last);
                self.heap.pop().map(|Reverse((_, index))| index)
            };
        }
        self.gaps.drain(..).try_for_each(|gap| take(Step::Missing(&gap)))
    }

    /// The stream with the oldest event: this one, or the first of the others. In the latter case this one joins the
    /// others.
    #[inline]
    fn oldest(&mut self, index: usize) -> usize {
        let here = Reverse((self.streams[index].last, index));
        match self.heap.peek_mut() {
            Some(mut other) if *other > here => mem::replace(&mut *other, here).0.1,
            _ => index,
        }
    }

    /// Goes to the next event of a stream. `false` at its end.
    #[inline]
    fn advance(&mut self, index: usize) -> Result<bool, Error> {
        let stream = &mut self.streams[index];
        let more = stream.advance(index, &mut self.found, &mut self.late)?;
        if !self.found.is_empty() {
            let next = more.then_some(stream.last);
            self.lose(index, next);
        }
        Ok(more)
    }

    /// The losses that the streams have found since the last call.
    pub(crate) fn take_losses(&mut self) -> Vec<Loss> {
        std::mem::take(&mut self.losses)
    }

    /// Notes the losses that a stream has found, together with its next event, if there is one.
    #[cold]
    fn lose(&mut self, index: usize, next: Option<Ticks>) {
        let mut losses = std::mem::take(&mut self.found);
        for loss in &mut losses {
            // A gap without an end lasts to this event; after the last event it has no end.
            loss.to = loss.to.or(next.filter(|next| loss.from.is_none_or(|from| from <= *next)));
        }
        // What is missing after the end of a stream may be in another source.
        let is_elsewhere = next.is_none() && self.is_covered_elsewhere(index);
        if !is_elsewhere && self.may_schedule(index) {
            self.gaps.extend(losses.iter().cloned());
        }
        self.losses.append(&mut losses);
    }

    fn is_covered_elsewhere(&self, index: usize) -> bool {
        let stream = &self.streams[index];
        stream.cpu.is_some_and(|cpu| self.recordings.is_covered(cpu, stream.source))
    }

    /// Whether the events missing from a stream may have moved an LWP or a user thread. They cannot have if the stream
    /// is that of a buffer for other events (for example an instance for system calls). A buffer is considered as such
    /// if it has shown no event that did, while another buffer of its CPU has.
    fn may_schedule(&self, index: usize) -> bool {
        let stream = &self.streams[index];
        let is_beside =
            |other: &&OrderedStream| other.source == stream.source && other.buffer != stream.buffer;
        let is_part = |other: &&OrderedStream| other.source == stream.source && other.buffer == stream.buffer;
        stream.cpu.is_none()
            || self.streams.iter().filter(is_part).any(|other| other.schedules)
            || !self.streams.iter().filter(is_beside).any(|other| other.schedules && other.cpu == stream.cpu)
    }
}

impl OrderedStream {
    /// Goes to the next event; `false` at the end.
    #[inline]
    fn advance(&mut self, index: usize, losses: &mut Vec<Loss>, late: &mut u64) -> Result<bool, Error> {
        let failed = |error| Error::Io { path: PathBuf::from(format!("stream {index}")), error };
        let more = self.events.advance(losses).map_err(failed)?;
        if more {
            // A stream that goes back is kept in order: a late event gets the tick of the newest event before it.
            let event = self.events.event_mut();
            *late += u64::from(event.tick < self.last);
            event.tick = event.tick.max(self.last);
            self.last = event.tick;
        }
        Ok(more)
    }
}

#[cfg(test)]
mod tests {
    use std::{collections::VecDeque, io};

    use sigmund_model::{ClockDomain, EventStream, Level, LossKind, Lwp};

    use super::*;

    /// Ticks of events, or a loss that is found with the event after it.
    struct Told(VecDeque<Option<(u64, Effect)>>, bool);

    impl EventStream for Told {
        fn next_into(&mut self, event: &mut Event) -> io::Result<bool> {
            self.1 = self.0.front() == Some(&None);
            if self.1 {
                self.0.pop_front();
            }
            let Some(Some((tick, effect))) = self.0.pop_front() else { return Ok(false) };
            (event.tick, event.effect) = (Ticks(tick), effect);
            Ok(true)
        }

        fn take_losses(&mut self) -> Vec<Loss> {
            let loss = Loss::new(LossKind::Dropped, Level::Kern, String::new());
            if std::mem::take(&mut self.1) { vec![Loss { cpu: Some(Cpu(0)), ..loss }] } else { Vec::new() }
        }
    }

    /// A buffer of CPU 0: `s` is an event that switches, `.` one that does not, `x` a gap.
    fn buffer(name: &str, drawn: &str) -> (usize, TraceStream) {
        let told = (0..).zip(drawn.chars()).filter(|(_, c)| *c != ' ').map(|(place, c)| match c {
            's' => Some((place, Effect::LwpNew(Lwp(7)))),
            '.' => Some((place, Effect::None)),
            _ => None,
        });
        let events = Box::new(Told(told.collect(), false));
        (0, TraceStream { clock: ClockDomain::Tsc, cpu: Some(Cpu(0)), buffer: name.into(), events })
    }

    /// The result of merging: the same letters, and the number of rows of losses.
    fn ordered(streams: Vec<(usize, TraceStream)>) -> (String, usize) {
        let mut ordered = Ordered::new(streams, vec![Span::default()], None).unwrap();
        let mut seen = String::new();
        let each = ordered.each(|step| {
            seen.push(match step {
                Step::Missing(_) => 'x',
                Step::Begin(_) | Step::End(_) => '|',
                Step::Event(_, event) if event.effect == Effect::None => '.',
                Step::Event(..) => 's',
            });
            Ok(())
        });
        each.unwrap();
        (seen, ordered.take_losses().len())
    }

    #[test]
    fn a_gap_is_told_unless_it_is_in_a_buffer_for_what_moves_nobody() {
        // A buffer for system calls, in addition to a buffer for switches. The losses of the former have moved no LWP.
        let calls = ordered(vec![buffer("sched", "s   s  s"), buffer("calls", " . x . ")]);
        assert_eq!(calls, ("s.s.s".into(), 1));
        let switches = ordered(vec![buffer("sched", "s x s  s"), buffer("calls", " .   . ")]);
        // Reported when its stream reaches the event after it, which may be early.
        assert_eq!(switches, ("sx.s.s".into(), 1));
        // If it is the only buffer, or if the other buffer has shown no switch either, its losses may have moved LWPs.
        assert_eq!(ordered(vec![buffer("calls", ". x .")]), (".x.".into(), 1));
        assert_eq!(ordered(vec![buffer("a", ". x   ."), buffer("b", "  .")]), (".x..".into(), 1));
    }
}
