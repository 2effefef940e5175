//! The lines of a listing as events: the meanings of their names, and their fields.

use std::io;

use sigmund_model::vocabulary::InterruptKind;
use sigmund_model::{Context, Effect, Event, EventStream, Loss, Ticks};

use super::ordered::Ordered;
use super::row::Row;
use super::types::ListingTypes;
use crate::effect_plan::interrupt_context;

/// The lines in time order.
#[derive(Debug)]
pub(super) struct ListingStream {
    lines: Ordered,
    types: ListingTypes,
    exits: Vec<InterruptKind>,
}

impl ListingStream {
    /// `types` has every event of the lines; `exits` are the kinds of interrupts whose exits are listed.
    pub(super) fn new(lines: Ordered, types: ListingTypes, exits: Vec<InterruptKind>) -> ListingStream {
        ListingStream { lines, types, exits }
    }
}

impl EventStream for ListingStream {
    fn next_into(&mut self, event: &mut Event) -> io::Result<bool> {
        while self.lines.advance()? {
            let line = String::from_utf8_lossy(self.lines.line());
            let Some(row) = self.lines.row(&line) else { continue };
            let Some(kind) = self.types.kind(&row) else {
                let expected = "a listing that does not change while it is read";
                return Err(io::Error::other(format!(
                    "expected {expected}, found a new event {:?}",
                    row.name
                )));
            };
            fill(event, &row, kind, self.types.effect(&row), &self.exits);
            return Ok(true);
        }
        Ok(false)
    }

    fn take_losses(&mut self) -> Vec<Loss> {
        Vec::new()
    }
}

fn fill(
    event: &mut Event,
    row: &Row<'_>,
    kind: u32,
    (effect, interrupt): (Effect, Option<InterruptKind>),
    exits: &[InterruptKind],
) {
    event.tick = Ticks(row.tick);
    event.kind = kind;
    event.cpu = row.cpu;
    event.lwp = row.lwp;
    event.thread = row.thread;
    event.context = Context::Task;
    event.effect = effect;
    if let (Effect::InterruptEnter(_), Some(kind)) = (effect, interrupt)
        && !exits.contains(&kind)
    {
        (event.effect, event.context) = (Effect::None, interrupt_context(kind));
    }
    event.params.clear();
    for param in &row.params {
        match (param.number, &param.text) {
            (Some(number), Some(name)) => event.params.push_named(number, name),
            (Some(number), None) => event.params.push_number(number),
            (None, Some(text)) => event.params.push_text(text),
            (None, None) => event.params.push_unknown(),
        }
    }
}
