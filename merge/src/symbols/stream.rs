//! A stream that gives names to the addresses in its events.

use std::{
    io,
    sync::{Arc, Mutex, MutexGuard},
};

use sigmund_model::{Event, EventStream, EventType, FieldType, Loss};

use super::{Address, Symbols};

/// Events at the begin or end of a function or a span. Their pointers are expected to have names.
const PLACES: [&str; 6] = ["PROF_IN", "PROF_OUT", "FUNC_ENTER", "FUNC_EXIT", "SPAN_BEGIN", "SPAN_END"];
/// The name of a field that contains the return address of a call.
const CALL_SITE: &str = "call_site";

/// A stream of user events, with names for the addresses in them.
pub(crate) struct Named {
    stream: Box<dyn EventStream + Send>,
    /// Shared with the other streams of the trace.
    symbols: Arc<Mutex<Symbols>>,
    /// For each kind, its parameters that are addresses.
    pointers: Arc<Vec<Vec<Pointer>>>,
    finished: bool,
}

struct Pointer {
    index: usize,
    what: Address,
    expected: bool,
}

/// The streams of one trace, which has these types.
pub(crate) fn named(
    streams: Vec<Box<dyn EventStream + Send>>,
    types: &[EventType],
    symbols: Symbols,
) -> Vec<Box<dyn EventStream + Send>> {
    if symbols.is_empty() {
        return streams;
    }
    let pointers = Arc::new(types.iter().map(pointers).collect::<Vec<_>>());
    let symbols = Arc::new(Mutex::new(symbols));
    let name = |stream| {
        let (symbols, pointers) = (Arc::clone(&symbols), Arc::clone(&pointers));
        Box::new(Named { stream, symbols, pointers, finished: false }) as Box<dyn EventStream + Send>
    };
    streams.into_iter().map(name).collect()
}

fn pointers(ty: &EventType) -> Vec<Pointer> {
    let pointer = |(index, field): (usize, &sigmund_model::Field)| {
        let what = if field.name == CALL_SITE { Address::Return } else { Address::Code };
        let expected = what == Address::Code && index == 0 && PLACES.contains(&ty.name.as_str());
        (field.ty == FieldType::Pointer).then_some(Pointer { index, what, expected })
    };
    ty.fields.iter().enumerate().filter_map(pointer).collect()
}

impl Named {
    fn symbols(&self) -> MutexGuard<'_, Symbols> {
        self.symbols.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    fn name(&self, event: &mut Event) {
        let Some(pointers) = self.pointers.get(event.kind as usize).filter(|p| !p.is_empty()) else { return };
        let mut symbols = self.symbols();
        for Pointer { index, what, expected } in pointers {
            let Some(number) = event.params.get(*index).and_then(|p| p.number).filter(|n| *n != 0) else {
                continue;
            };
            if let Some(name) = symbols.name(number as u64, *what, *expected) {
                event.params.name(*index, &name);
            }
        }
    }
}

impl EventStream for Named {
    fn next_into(&mut self, event: &mut Event) -> io::Result<bool> {
        let more = self.stream.next_into(event)?;
        if more {
            self.name(event);
        } else {
            self.finished = true;
        }
        Ok(more)
    }

    fn take_losses(&mut self) -> Vec<Loss> {
        let mut losses = self.stream.take_losses();
        if self.finished {
            // A stream that ends later reports its own counts.
            losses.append(&mut self.symbols().take_losses());
        }
        losses
    }
}
