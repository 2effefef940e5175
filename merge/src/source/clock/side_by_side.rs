//! Streams that are read once before the merge, together in time order.

use std::{cmp::Reverse, collections::BinaryHeap, io, ops::ControlFlow, sync::Arc};

use sigmund_model::{Event, EventStream, EventType, Level, Severity};

use super::graph::Path;

/// A stream to take evidence from.
pub(super) struct Witness {
    pub(super) events: Box<dyn EventStream + Send>,
    /// The level (user or kernel) of each kind of event, by the number of the kind.
    pub(super) levels: Arc<[Level]>,
    /// The conversion to the clock of the evidence.
    pub(super) path: Path,
}

/// The next step.
pub(super) enum Step<'e> {
    /// An event of one of the streams, by its number.
    Event { stream: usize, tick: u64, level: Level, event: &'e Event },
    /// Events of the kernel are missing in this stream. The last of them is before `until`.
    Gap { stream: usize, until: u64 },
}

/// The levels of the kinds of events of a source.
pub(super) fn levels(types: &[EventType]) -> Arc<[Level]> {
    types.iter().map(|event_type| event_type.level).collect()
}

/// Calls `take` with all steps, until it breaks.
///
/// # Errors
/// Read errors.
pub(super) fn side_by_side(
    witnesses: Vec<Witness>,
    mut take: impl FnMut(Step<'_>) -> ControlFlow<()>,
) -> io::Result<()> {
    let mut heads: Vec<(Witness, Event)> = witnesses.into_iter().map(|w| (w, Event::default())).collect();
    let mut heap = BinaryHeap::new();
    for (stream, (witness, event)) in heads.iter_mut().enumerate() {
        let first = witness.next(event)?;
        heap.extend(first.map(|tick| Reverse((tick, stream))));
        if witness.lost() && take(Step::Gap { stream, until: first.unwrap_or(0) }).is_break() {
            return Ok(());
        }
    }
    while let Some(Reverse((tick, stream))) = heap.pop() {
        let (witness, event) = &mut heads[stream];
        let level = witness.levels.get(event.kind as usize).copied();
        let taken = level.map(|level| take(Step::Event { stream, tick, level, event }));
        if taken.is_some_and(|taken| taken.is_break()) {
            return Ok(());
        }
        let next = witness.next(event)?.map(|next| next.max(tick));
        heap.extend(next.map(|tick| Reverse((tick, stream))));
        if witness.lost() && take(Step::Gap { stream, until: next.unwrap_or(u64::MAX) }).is_break() {
            return Ok(());
        }
    }
    Ok(())
}

impl Witness {
    fn next(&mut self, event: &mut Event) -> io::Result<Option<u64>> {
        let more = self.events.next_into(event)?;
        Ok(more.then(|| self.path.convert(event.tick.0)))
    }

    /// Whether switches may be missing between the last event and this one.
    fn lost(&mut self) -> bool {
        self.events
            .take_losses()
            .iter()
            .any(|loss| loss.level == Level::Kern && loss.severity != Severity::Note)
    }
}
