//! Joins the streams of the parts of a recording into one, from the tick at which the first part that was kept begins.
//!
//! ```text
//!   removed │ part 5        │ part 6         │
//!           │   e e  e e e  │  e e  e   e    │
//!             └┬┘└ begins
//!              └ left out and counted: its CPU had a page that was not full when part 5 began
//! ```
//!
//! An event whose tick is not one of its part belongs to another recording. It is left out, and is a loss.

use std::{
    collections::VecDeque,
    io,
    ops::Range,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use fkt_ingest::TraceStream;
use sigmund_model::{Cpu, Effect, Event, EventStream, Level, Loss, LossKind, Reported, Thread, Ticks};

/// The stream of one part.
pub(super) struct Piece {
    /// Its name, for messages.
    pub(super) name: String,
    /// `None` if the part is missing.
    pub(super) events: Option<Box<dyn EventStream + Send>>,
    /// The ticks that the events of the part can have.
    pub(super) ticks: Range<Ticks>,
}

/// The kernel's events of one CPU of one buffer.
struct Joined {
    cpu: Option<Cpu>,
    pieces: VecDeque<Piece>,
    begins: Ticks,
    skipped: Arc<AtomicU64>,
    last: Option<Ticks>,
    /// Number of events of the first piece that belong to another recording.
    foreign: u64,
    losses: Vec<Loss>,
}

/// Makes one stream from those of all parts, with the clock, CPU and buffer of `like`. Events before `begins` are
/// counted.
pub(super) fn joined(
    (like, pieces): (TraceStream, Vec<Piece>),
    begins: Ticks,
    skipped: &Arc<AtomicU64>,
) -> TraceStream {
    let events = Box::new(Joined {
        cpu: like.cpu,
        pieces: pieces.into(),
        begins,
        skipped: Arc::clone(skipped),
        last: None,
        foreign: 0,
        losses: Vec::new(),
    });
    TraceStream { events, ..like }
}

impl EventStream for Joined {
    fn next_into(&mut self, event: &mut Event) -> io::Result<bool> {
        while let Some(piece) = self.pieces.front_mut() {
            let Some(events) = &mut piece.events else {
                let detail = format!("{}: the part is missing", piece.name);
                self.lose(LossKind::NotRecorded, detail, None);
                self.pieces.pop_front();
                continue;
            };
            if !events.next_into(event)? {
                self.losses.append(&mut events.take_losses());
                self.end_piece();
                continue;
            }
            if !piece.ticks.contains(&event.tick) {
                self.foreign += 1;
            } else if event.tick < self.begins {
                // Relaxed: it is read after all streams have ended.
                self.skipped.fetch_add(1, Ordering::Relaxed);
            } else {
                self.last = Some(event.tick);
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn take_losses(&mut self) -> Vec<Loss> {
        let mut losses = std::mem::take(&mut self.losses);
        if let Some(Piece { events: Some(events), .. }) = self.pieces.front_mut() {
            losses.append(&mut events.take_losses());
        }
        losses
    }

    fn may_have_losses(&self) -> bool {
        let current = self.pieces.front().and_then(|piece| piece.events.as_ref());
        !self.losses.is_empty() || current.is_some_and(|events| events.may_have_losses())
    }
}

impl Joined {
    fn end_piece(&mut self) {
        let ended = self.pieces.pop_front();
        let foreign = std::mem::take(&mut self.foreign);
        if let Some(piece) = ended.filter(|_| foreign > 0) {
            let Range { start, end } = piece.ticks;
            let cpu = self.cpu.map_or_else(String::new, |cpu| format!("CPU {cpu}: "));
            let detail = format!(
                "{}: {cpu}expected events of ticks from {} to {}, found others: it is a part of another recording, or damaged",
                piece.name, start.0, end.0
            );
            self.lose(LossKind::Damaged, detail, Some(foreign));
        }
    }

    fn lose(&mut self, kind: LossKind, detail: String, count: Option<u64>) {
        let loss = Loss::new(kind, Level::Kern, detail);
        self.losses.push(Loss { cpu: self.cpu, from: self.last, count, ..loss });
    }
}

/// The events of an LWP from a tick on. The first of them reports the user thread that was mounted then.
struct Begun {
    events: Box<dyn EventStream + Send>,
    begins: Ticks,
    skipped: Arc<AtomicU64>,
    /// The mounted thread according to the events left out; `None` when the first event has passed.
    mounted: Option<Reported<Thread>>,
}

/// The stream from `begins` on. Earlier events are counted.
pub(super) fn begun(stream: TraceStream, begins: Ticks, skipped: &Arc<AtomicU64>) -> TraceStream {
    let (events, skipped) = (stream.events, Arc::clone(skipped));
    let events = Box::new(Begun { events, begins, skipped, mounted: Some(Reported::Nothing) });
    TraceStream { events, ..stream }
}

impl EventStream for Begun {
    fn next_into(&mut self, event: &mut Event) -> io::Result<bool> {
        loop {
            if !self.events.next_into(event)? {
                return Ok(false);
            }
            let Some(mounted) = &mut self.mounted else { return Ok(true) };
            if event.tick >= self.begins {
                if event.thread == Reported::Nothing {
                    event.thread = *mounted;
                }
                self.mounted = None;
                return Ok(true);
            }
            if event.thread != Reported::Nothing {
                *mounted = event.thread;
            }
            if let Effect::UserSwitch { next, .. } = event.effect {
                *mounted = next.map_or(Reported::None, Reported::Some);
            }
            // Relaxed: it is read after all streams have ended.
            self.skipped.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn take_losses(&mut self) -> Vec<Loss> {
        let mut losses = self.events.take_losses();
        if self.mounted.is_some() {
            // What is missing before `begins` is not missing from the kept part.
            losses.retain(|loss| loss.to.is_none_or(|to| to >= self.begins));
        }
        losses
    }

    fn may_have_losses(&self) -> bool {
        self.events.may_have_losses()
    }
}

#[cfg(test)]
mod tests {
    use sigmund_model::{ClockDomain, LeaveReason, Wait};

    use super::*;

    /// Events at these ticks.
    struct At(VecDeque<(u64, Effect)>);

    impl EventStream for At {
        fn next_into(&mut self, event: &mut Event) -> io::Result<bool> {
            let Some((tick, effect)) = self.0.pop_front() else { return Ok(false) };
            (event.tick, event.effect, event.thread) = (Ticks(tick), effect, Reported::Nothing);
            Ok(true)
        }

        fn take_losses(&mut self) -> Vec<Loss> {
            Vec::new()
        }
    }

    fn at(ticks: impl IntoIterator<Item = u64>) -> Box<dyn EventStream + Send> {
        Box::new(At(ticks.into_iter().map(|tick| (tick, Effect::None)).collect()))
    }

    fn stream(events: Box<dyn EventStream + Send>) -> TraceStream {
        TraceStream { clock: ClockDomain::Tsc, cpu: Some(Cpu(2)), buffer: "b".into(), events }
    }

    fn piece(name: &str, events: Option<Box<dyn EventStream + Send>>, ticks: Range<u64>) -> Piece {
        Piece { name: name.into(), events, ticks: Ticks(ticks.start)..Ticks(ticks.end) }
    }

    fn read(pieces: Vec<Piece>, begins: u64) -> (Vec<u64>, u64, Vec<Loss>) {
        let skipped = Arc::new(AtomicU64::new(0));
        let mut joined = joined((stream(at([])), pieces), Ticks(begins), &skipped).events;
        let (mut ticks, mut event, mut losses) = (Vec::new(), Event::default(), Vec::new());
        while joined.next_into(&mut event).unwrap() {
            ticks.push(event.tick.0);
            losses.append(&mut joined.take_losses());
        }
        losses.append(&mut joined.take_losses());
        (ticks, skipped.load(Ordering::Relaxed), losses)
    }

    #[test]
    fn parts_follow_each_other_and_events_before_the_beginning_are_counted() {
        let pieces = vec![
            piece("5", Some(at([3, 8, 11, 12])), 0..20),
            piece("6", Some(at([])), 0..30),
            piece("7", Some(at([12, 35])), 0..40),
        ];
        assert_eq!(read(pieces, 10), (vec![11, 12, 12, 35], 2, Vec::new()));
    }

    #[test]
    fn a_missing_part_is_a_gap_from_the_last_event_before_it() {
        let pieces =
            |last| vec![piece("5", Some(at([11])), 0..20), piece("6", None, 0..30), piece("7", last, 0..40)];
        let (ticks, _, losses) = read(pieces(Some(at([35]))), 0);
        assert_eq!(ticks, [11, 35]);
        let [loss] = losses.as_slice() else { panic!("{losses:?}") };
        assert_eq!((loss.from, loss.cpu, loss.level), (Some(Ticks(11)), Some(Cpu(2)), Level::Kern));
        assert_eq!(loss.detail, "6: the part is missing");
        // The same at the end.
        let (ticks, _, losses) = read(pieces(None), 0);
        assert_eq!((ticks, losses.len()), (vec![11], 2));
    }

    #[test]
    fn events_of_another_recording_are_left_out_and_named() {
        // One event before the recording, and one after the end of its part.
        let pieces = vec![
            piece("5", Some(at([1, 11])), 5..20),
            piece("6", Some(at([2, 3, 99])), 5..30),
            piece("7", Some(at([35])), 5..40),
        ];
        let (ticks, skipped, losses) = read(pieces, 0);
        assert_eq!((ticks, skipped), (vec![11, 35], 0));
        let counts: Vec<_> = losses.iter().map(|loss| (loss.kind, loss.count)).collect();
        assert_eq!(counts, [(LossKind::Damaged, Some(1)), (LossKind::Damaged, Some(3))]);
        assert!(
            losses[1].detail.starts_with("6: CPU 2: expected events of ticks from 5 to 30"),
            "{losses:?}"
        );
    }

    #[test]
    fn the_first_event_reports_the_thread_that_was_mounted() {
        let to = |next| Effect::UserSwitch { next, reason: LeaveReason::Yield, wait: Wait::default() };
        let events = [(1, to(Some(Thread(7)))), (2, Effect::None), (10, Effect::None), (11, Effect::None)];
        for (begins, expected) in [
            (3, vec![(10, Reported::Some(Thread(7))), (11, Reported::Nothing)]),
            (2, vec![(2, Reported::Some(Thread(7))), (10, Reported::Nothing), (11, Reported::Nothing)]),
            (11, vec![(11, Reported::Some(Thread(7)))]),
            (12, vec![]),
        ] {
            let skipped = Arc::new(AtomicU64::new(0));
            let mut begun = begun(stream(Box::new(At(events.into()))), Ticks(begins), &skipped).events;
            let (mut seen, mut event) = (Vec::new(), Event::default());
            while begun.next_into(&mut event).unwrap() {
                seen.push((event.tick.0, event.thread));
            }
            assert_eq!(seen.len() as u64 + skipped.load(Ordering::Relaxed), 4);
            assert_eq!(seen, expected, "from {begins}");
        }
    }
}
