//! Streams that are converted to a clock other than the one with which they were recorded.

use std::io;

use sigmund_model::{Event, EventStream, Loss, Ticks};

use super::graph::Path;

/// A stream, converted to another clock.
pub(super) struct RebasedStream {
    pub(super) stream: Box<dyn EventStream + Send>,
    pub(super) path: Path,
}

impl EventStream for RebasedStream {
    fn next_into(&mut self, event: &mut Event) -> io::Result<bool> {
        let more = self.stream.next_into(event)?;
        event.tick = Ticks(self.path.convert(event.tick.0));
        Ok(more)
    }

    fn take_losses(&mut self) -> Vec<Loss> {
        let mut losses = self.stream.take_losses();
        rebase_losses(&mut losses, &mut self.path.clone());
        losses
    }

    fn may_have_losses(&self) -> bool {
        self.stream.may_have_losses()
    }
}

/// Converts the times of losses.
pub(super) fn rebase_losses(losses: &mut [Loss], path: &mut Path) {
    for loss in losses {
        loss.from = loss.from.map(|tick| Ticks(path.convert(tick.0)));
        loss.to = loss.to.map(|tick| Ticks(path.convert(tick.0)));
    }
}

/// No events: a placeholder while a stream is being replaced.
pub(in crate::source) struct Nothing;

impl EventStream for Nothing {
    fn next_into(&mut self, _: &mut Event) -> io::Result<bool> {
        Ok(false)
    }

    fn take_losses(&mut self) -> Vec<Loss> {
        Vec::new()
    }
}
