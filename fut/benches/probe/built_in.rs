//! The cost of recording each event of this crate, measured through its real probe.

use fut::{clock::ticks, declared_events};

use crate::{
    BURST,
    measure::{Row, Table, each},
};

/// A row for every event declared in the sources of this crate.
pub(crate) fn measure() -> Table {
    let clock = Row::of("rdtsc", BURST, each!(|_| std::hint::black_box(ticks())));
    let built_in = declared_events().filter(|event| !event.file().contains("benches"));
    let row = |event: fut::EventInfo| {
        let types: Vec<&str> = event.fields().iter().map(|(_, ty)| ty.name()).collect();
        Row::of(
            format!("{}({})", event.name(), types.join(", ")),
            BURST / 2,
            each!(|_| event.record_sample()),
        )
    };
    Table::measure(std::iter::once(clock).chain(built_in.map(row)).collect())
}
