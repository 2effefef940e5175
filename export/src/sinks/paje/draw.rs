//! The second part of a file: containers, states, slices, links, events, variables.

use std::{
    collections::HashSet,
    io::{self, Write},
};

use foldhash::fast::RandomState;

use super::{
    Paje, declare,
    header::event,
    hierarchy::{LinkType, Row, SliceType},
    lines::{Alias, alias},
    name::Commas,
    unique,
};
use crate::timeline::{Actors, Counter, RecordedEvent, Slice, SliceKind, Track};

/// Rows in addition to each actor's own row.
#[derive(Default)]
pub(super) struct AdditionalRows {
    /// Additional rows, in the order of their creation.
    additional: Vec<Row>,
    /// Rows that currently have a state.
    in_state: HashSet<Row, RandomState>,
}

impl<W: Write> Paje<W> {
    pub(super) fn create_actors(&mut self) -> io::Result<()> {
        for row in rows_of_actors(&self.actors) {
            self.lines.prepare(&self.names.of(row, &self.actors), Commas::Replaced)?;
            self.create(row)?;
        }
        Ok(())
    }

    /// Creates a row with the prepared name.
    fn create(&mut self, row: Row) -> io::Result<()> {
        let line = self.lines.at(self.now, event::CREATE).alias(row.alias()).alias(row.ty());
        match row {
            Row::MACHINE => line.word("0"),
            _ => line.alias(unique::parent(&self.actors, row).alias()),
        };
        line.text().end()
    }

    /// Creates an additional row if it does not exist.
    fn ensure_created(&mut self, row: Row) -> io::Result<()> {
        if row == row.actor() || !self.declared.rows.is_new(row.index_of_all()) {
            return Ok(());
        }
        self.rows.additional.push(row);
        let name = self.names.additional(row, &self.actors);
        self.lines.prepare(&name, Commas::Replaced)?;
        self.create(row)
    }

    pub(super) fn destroy_all(&mut self) -> io::Result<()> {
        let additional = std::mem::take(&mut self.rows.additional);
        for row in additional.into_iter().rev().chain(rows_of_actors(&self.actors).rev()) {
            self.lines.at(self.now, event::DESTROY).alias(row.ty()).alias(row.alias()).end()?;
        }
        Ok(())
    }

    /// Sets or removes the state of a row.
    pub(super) fn set(&mut self, row: Row, state: Option<u32>, waits_for: Option<i64>) -> io::Result<()> {
        let Some(states) = &row.kind.of().states else { return Ok(()) };
        let Some(state) = state else {
            if !self.rows.in_state.remove(&row) {
                return Ok(());
            }
            return self.lines.at(self.now, event::POP).alias(states.ty).alias(row.alias()).end();
        };
        self.rows.in_state.insert(row);
        let number = if waits_for.is_some() { event::SET_WAITING } else { event::SET };
        let line = self.lines.at(self.now, number).alias(states.ty).alias(row.alias());
        line.alias(alias(states.prefix, state));
        if let Some(object) = waits_for {
            line.hex(object as u64);
        }
        line.end()
    }

    /// Sets or removes the occupant of a CPU or an LWP.
    pub(super) fn carry(&mut self, row: Row, carried: Option<Row>) -> io::Result<()> {
        if let (Some(states), Some(carried)) = (&row.kind.of().states, carried) {
            self.ensure_created(row)?;
            self.actor_value(alias(states.prefix, carried.index), states.ty, carried)?;
        }
        self.set(row, carried.map(|carried| carried.index), None)
    }

    pub(super) fn enter(&mut self, track: Track, slice: Slice<'_>) -> io::Result<()> {
        let row = Row::of_slices(track);
        self.ensure_created(row)?;
        let ty = SliceType::new(slice.kind, row);
        let type_alias = self.slice_type(&ty, row)?;
        if let Some(value) = self.slice_value(&ty, slice)? {
            return self.begin_event(event::PUSH, type_alias, row).alias(value).end();
        }
        let value = self.other_slices(&ty)?;
        self.lines.prepare(slice.name, Commas::Replaced)?;
        self.begin_event(event::PUSH_NAMED, type_alias, row).alias(value).text().end()
    }

    pub(super) fn leave(&mut self, track: Track, kind: SliceKind) -> io::Result<()> {
        let row = Row::of_slices(track);
        self.begin_event(event::POP, SliceType::new(kind, row).alias(), row).end()
    }

    pub(super) fn wakeup(&mut self, by: Track, of: Track) -> io::Result<()> {
        let (from, to) = (Row::of_track(by), Row::of_track(of));
        let ty = LinkType { migrant: None, from: from.kind, to: to.kind };
        self.link_type(ty)?;
        let value = self.wakeup_value(ty)?;
        self.link(ty, from, to, value)
    }

    pub(super) fn wakeup_without_waker(&mut self, of: Track) -> io::Result<()> {
        let row = Row::of_track(of);
        let (ty, value) = self.woken_value(row.kind)?;
        self.begin_event(event::EVENT, ty, row).alias(value).end()
    }

    pub(super) fn migration(&mut self, of: Track, from: Track, to: Track) -> io::Result<()> {
        let (of, from, to) = (Row::of_track(of), Row::of_track(from), Row::of_track(to));
        let ty = LinkType { migrant: Some(of.kind), from: from.kind, to: to.kind };
        let type_alias = self.link_type(ty)?;
        let value = alias("vg", u64::from(of.index) * LinkType::COUNT + ty.index());
        self.actor_value(value, type_alias, of)?;
        self.link(ty, from, to, value)
    }

    /// A link of zero length.
    fn link(&mut self, ty: LinkType, from: Row, to: Row, value: Alias) -> io::Result<()> {
        self.links += 1;
        for (number, end) in [(event::START_LINK, from), (event::END_LINK, to)] {
            let key = self.links;
            self.begin_event(number, ty.alias(), Row::MACHINE)
                .alias(end.alias())
                .alias(value)
                .number(key)
                .end()?;
        }
        Ok(())
    }

    pub(super) fn count(&mut self, counter: Counter, value: u64) -> io::Result<()> {
        let (ty, row) = declare::counter(counter);
        self.begin_event(event::VARIABLE, ty, row).number(value).end()
    }

    pub(super) fn event(&mut self, event: &RecordedEvent<'_>) -> io::Result<()> {
        let row = event.track().map_or(Row::MACHINE, Row::of_track);
        let (ty, value) = self.event_value(event.kind, row.kind)?;
        if event.params.is_empty() {
            return self.begin_event(event::EVENT, ty, row).alias(value).end();
        }
        let fields = &self.fields[event.kind.index()];
        self.lines.prepare_with(|text| fields.write(text, event.params))?;
        self.begin_event(event::EVENT_WITH_PARAMETERS, ty, row).alias(value).text().end()
    }

    /// Begins the line of an event of this type on this row.
    fn begin_event(&mut self, number: &'static str, ty: Alias, row: Row) -> &mut super::Lines<W> {
        self.lines.at(self.now, number).alias(ty).alias(row.alias())
    }
}

/// Each actor's own row; containing rows first.
fn rows_of_actors(actors: &Actors) -> impl DoubleEndedIterator<Item = Row> + use<> {
    let machine = std::iter::once(Row::MACHINE);
    let (cpus, processes) = (actors.cpu_ids().map(Row::from), actors.process_ids().map(Row::from));
    let (lwps, threads) = (actors.lwp_ids().map(Row::from), actors.thread_ids().map(Row::from));
    machine.chain(cpus).chain(processes).chain(lwps).chain(threads)
}
