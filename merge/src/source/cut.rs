//! A stream of a recorder that was killed. What the kernel recorded after its last event is lost.

use std::io;

use fkt_ingest::TraceStream;
use sigmund_model::{Cpu, Event, EventStream, Level, Loss, LossKind, Ticks};

/// A stream whose end is missing.
struct Cut {
    events: Box<dyn EventStream + Send>,
    cpu: Option<Cpu>,
    /// Tick of the last event.
    last: Option<Ticks>,
    detail: String,
    lost: Vec<Loss>,
    ended: bool,
}

/// The same stream, with a loss at its end.
pub(super) fn cut(stream: TraceStream, detail: &str) -> TraceStream {
    let TraceStream { clock, cpu, buffer, events } = stream;
    let detail = match cpu {
        Some(cpu) => format!("{detail}: CPU {cpu}"),
        None => detail.to_owned(),
    };
    let events = Box::new(Cut { events, cpu, last: None, detail, lost: Vec::new(), ended: false });
    TraceStream { clock, cpu, buffer, events }
}

impl EventStream for Cut {
    fn next_into(&mut self, event: &mut Event) -> io::Result<bool> {
        let more = self.events.next_into(event)?;
        if more {
            self.last = Some(event.tick);
        } else if !std::mem::replace(&mut self.ended, true) {
            let loss = Loss::new(LossKind::Truncated, Level::Kern, self.detail.clone());
            self.lost.push(Loss { cpu: self.cpu, from: self.last, ..loss });
        }
        Ok(more)
    }

    fn take_losses(&mut self) -> Vec<Loss> {
        let mut losses = self.events.take_losses();
        losses.append(&mut self.lost);
        losses
    }
}
