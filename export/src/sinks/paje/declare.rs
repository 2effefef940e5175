//! Declarations of types and values, each once, before the first use.

use std::{
    collections::{HashMap, HashSet},
    io::{self, Write},
};

use foldhash::fast::RandomState;
use sigmund_model::{Level, LwpState, ThreadState, WaitKind};

use super::{
    Paje,
    header::event,
    hierarchy::{ContainerKind, EventsOf, KINDS, LinkType, Row, SLICE_TYPES, SliceType},
    lines::{Alias, RESTS, alias, only},
    name::Commas,
    palette::{self, Color},
};
use crate::timeline::{Counter, DetailedState, EventTypeId, Slice};

/// The types, values and rows declared so far.
pub(super) struct Declared {
    aliases: HashSet<Alias, RandomState>,
    /// The actors that are values, by the type of the values.
    actors: HashMap<Alias, IndexSet, RandomState>,
    /// Whether the blocked state is declared, by [`WaitKind`].
    blocked: [bool; WaitKind::ALL.len()],
    /// Rows, by [`Row::index_of_all`]; looked up for nearly every line.
    pub(super) rows: IndexSet,
    slice_types: IndexSet,
    events: IndexSet,
    /// Names of slices and the numbers of their values, by type.
    slices: Vec<HashMap<Box<str>, u64, RandomState>>,
    names: u64,
    bytes: usize,
}

/// Maximum number of declared names of slices.
const MAX_NAMES: u64 = 1 << 20;
/// Maximum length of all declared names of slices together, in bytes.
const MAX_NAME_BYTES: usize = 64 << 20;

/// Prefix of the event type of wakeups without a known cause; the container type follows.
const WOKEN: &str = "EW";

impl Default for Declared {
    fn default() -> Declared {
        Declared {
            aliases: HashSet::default(),
            actors: HashMap::default(),
            blocked: [false; WaitKind::ALL.len()],
            rows: IndexSet::default(),
            slice_types: IndexSet::default(),
            events: IndexSet::default(),
            slices: (0..SLICE_TYPES).map(|_| HashMap::default()).collect(),
            names: 0,
            bytes: 0,
        }
    }
}

/// A set of indices: a bit for each.
#[derive(Default)]
pub(super) struct IndexSet(Vec<u64>);

impl IndexSet {
    /// Adds an index. Returns whether it is new.
    pub(super) fn is_new(&mut self, index: usize) -> bool {
        let (word, bit) = (index / 64, 1 << (index % 64));
        if word >= self.0.len() {
            self.0.resize(word + 1, 0);
        }
        let is_new = self.0[word] & bit == 0;
        self.0[word] |= bit;
        is_new
    }
}

impl Declared {
    /// Adds an alias. Returns whether it is new.
    pub(super) fn is_new(&mut self, alias: Alias) -> bool {
        self.aliases.insert(alias)
    }

    fn has_room(&self, name: &str) -> bool {
        self.names < MAX_NAMES && self.bytes + name.len() <= MAX_NAME_BYTES
    }
}

impl<W: Write> Paje<W> {
    /// The types that are in every file.
    pub(super) fn define_types(&mut self) -> io::Result<()> {
        for kind in &KINDS {
            self.lines.prepare(kind.name, Commas::Kept)?;
            self.lines.define(event::CONTAINER_TYPE).alias(kind.ty).alias(kind.parent).text().end()?;
        }
        for kind in &KINDS {
            if let Some(states) = &kind.states {
                self.define_type(event::STATE_TYPE, states.ty, kind.ty, states.name)?;
            }
        }
        self.define_type(event::STATE_TYPE, RESTS, ContainerKind::Machine.of().ty, "rest of a long text")?;
        for counter in &COUNTERS {
            self.lines.prepare(counter.name, Commas::Kept)?;
            let line = self.lines.define(event::VARIABLE_TYPE).alias(counter.ty).alias(counter.of.of().ty);
            line.text().color(counter.color).end()?;
        }
        Ok(())
    }

    /// The states that are in every file.
    pub(super) fn define_states(&mut self) -> io::Result<()> {
        for state in LwpState::ALL {
            self.define_state(
                ContainerKind::Lwp,
                *state as u32,
                state.name(),
                palette::of_lwp_state(*state),
            )?;
        }
        for state in ThreadState::ALL {
            self.define_state(
                ContainerKind::Thread,
                *state as u32,
                state.name(),
                palette::of_thread_state(*state),
            )?;
        }
        Ok(())
    }

    /// Declares the state of a thread that is blocked for this kind, before its first use.
    #[inline]
    pub(super) fn blocked_value(&mut self, detailed: Option<DetailedState>) -> io::Result<()> {
        let Some((detailed, blocked_for)) =
            detailed.and_then(|detailed| Some((detailed, detailed.blocked_for()?)))
        else {
            return Ok(());
        };
        if !std::mem::replace(&mut self.declared.blocked[blocked_for.number() as usize - 1], true) {
            let color = palette::of_blocked(blocked_for);
            self.define_state(ContainerKind::Thread, detailed.index() as u32, detailed.name(), color)?;
        }
        Ok(())
    }

    fn define_state(&mut self, kind: ContainerKind, number: u32, name: &str, color: Color) -> io::Result<()> {
        let Some(states) = &kind.of().states else { return Ok(()) };
        self.define_value(alias(states.prefix, number), states.ty, name, Commas::Kept, color)
    }

    fn define_type(&mut self, event: &'static str, ty: Alias, of: Alias, name: &str) -> io::Result<()> {
        self.lines.prepare(name, Commas::Kept)?;
        self.lines.define(event).alias(ty).alias(of).text().end()
    }

    fn define_value(
        &mut self,
        value: Alias,
        ty: Alias,
        name: &str,
        commas: Commas,
        color: Color,
    ) -> io::Result<()> {
        self.lines.prepare(name, commas)?;
        self.lines.define(event::VALUE).alias(value).alias(ty).text().color(color).end()
    }

    /// The value of an actor in a type of states or links.
    pub(super) fn actor_value(&mut self, value: Alias, ty: Alias, actor: Row) -> io::Result<Alias> {
        if self.declared.actors.entry(ty).or_default().is_new(actor.index as usize) {
            let color = palette::of_actor(actor.index);
            // The same name as the actor's row, so that readers can join them.
            self.lines.prepare(&self.names.of(actor, &self.actors), Commas::Replaced)?;
            self.lines.define(event::VALUE).alias(value).alias(ty).text().color(color).end()?;
        }
        Ok(value)
    }

    /// The type of a slice.
    pub(super) fn slice_type(&mut self, ty: &SliceType, row: Row) -> io::Result<Alias> {
        if self.declared.slice_types.is_new(ty.index) {
            self.define_type(event::STATE_TYPE, ty.alias(), row.ty(), &ty.name())?;
        }
        Ok(ty.alias())
    }

    /// The value of a slice's name; `None` if too many names are declared.
    pub(super) fn slice_value(&mut self, ty: &SliceType, slice: Slice<'_>) -> io::Result<Option<Alias>> {
        if let Some(number) = self.declared.slices[ty.index].get(slice.name) {
            return Ok(Some(alias("vn", *number)));
        }
        if !self.declared.has_room(slice.name) {
            return Ok(None);
        }
        self.declared.names += 1;
        self.declared.bytes += slice.name.len();
        let number = self.declared.names;
        self.declared.slices[ty.index].insert(slice.name.into(), number);
        let value = alias("vn", number);
        let color = palette::of_slice(slice.kind, slice.name);
        self.define_value(value, ty.alias(), slice.name, Commas::Kept, color)?;
        Ok(Some(value))
    }

    /// The value of slices whose names are not declared.
    pub(super) fn other_slices(&mut self, ty: &SliceType) -> io::Result<Alias> {
        let value = alias("vo", ty.index as u64);
        if self.declared.is_new(value) {
            self.define_value(value, ty.alias(), "other", Commas::Kept, palette::OTHER_NAMES)?;
        }
        Ok(value)
    }

    /// The type of events of this level on rows of this kind, and the value of the event.
    pub(super) fn event_value(&mut self, kind: EventTypeId, on: ContainerKind) -> io::Result<(Alias, Alias)> {
        let declaration = &self.actors[kind];
        let ty = EventsOf { level: declaration.level, on };
        let place = kind.index() * KINDS.len() + on as usize;
        let value = alias("ve", place as u64);
        if self.declared.events.is_new(place) {
            let color = match declaration.level {
                Level::Kern => palette::KERNEL_EVENT,
                Level::User => palette::USER_EVENT,
            };
            let name = declaration.name.clone();
            if self.declared.is_new(ty.alias()) {
                self.define_type(event::EVENT_TYPE, ty.alias(), on.of().ty, &ty.name())?;
            }
            self.define_value(value, ty.alias(), &name, Commas::Kept, color)?;
        }
        Ok((ty.alias(), value))
    }

    /// The type of events for wakeups without a known waker, on rows of this kind, and its only value.
    pub(super) fn woken_value(&mut self, on: ContainerKind) -> io::Result<(Alias, Alias)> {
        let (ty, value) = (alias(WOKEN, on as u64), alias("vu", on as u64));
        if self.declared.is_new(ty) {
            let name = format!("wakeup of {}", on.with_article());
            self.define_type(event::EVENT_TYPE, ty, on.of().ty, &name)?;
            self.define_value(value, ty, "wakeup", Commas::Kept, palette::WAKEUP)?;
        }
        Ok((ty, value))
    }

    /// The type of a link.
    pub(super) fn link_type(&mut self, ty: LinkType) -> io::Result<Alias> {
        if self.declared.is_new(ty.alias()) {
            self.lines.prepare(&ty.name(), Commas::Kept)?;
            let line =
                self.lines.define(event::LINK_TYPE).alias(ty.alias()).alias(ContainerKind::Machine.of().ty);
            line.alias(ty.from.of().ty).alias(ty.to.of().ty).text().end()?;
        }
        Ok(ty.alias())
    }

    /// The only value of links of wakeups.
    pub(super) fn wakeup_value(&mut self, ty: LinkType) -> io::Result<Alias> {
        let value = alias("vw", ty.index());
        if self.declared.is_new(value) {
            self.define_value(value, ty.alias(), "wakeup", Commas::Kept, palette::WAKEUP)?;
        }
        Ok(value)
    }
}

/// A type of variables.
struct CounterType {
    ty: Alias,
    of: ContainerKind,
    name: &'static str,
    color: Color,
}

const COUNTERS: [CounterType; 2] = [
    CounterType {
        ty: only("VP"),
        of: ContainerKind::Process,
        name: "ready user threads",
        color: palette::READY_QUEUE,
    },
    CounterType { ty: only("VC"), of: ContainerKind::Cpu, name: "runnable LWPs", color: palette::RUN_QUEUE },
];

/// The type of a counter, and its container.
pub(super) fn counter(counter: Counter) -> (Alias, Row) {
    let [ready_queue, run_queue] = &COUNTERS;
    match counter {
        Counter::ReadyQueue(process) => (ready_queue.ty, process.into()),
        Counter::RunQueue(cpu) => (run_queue.ty, cpu.into()),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use sigmund_model::Ticks;

    use super::*;
    use crate::{
        sinks::paje::check,
        timeline::{Actors, Change, Clock, CpuId, Names, Sink, SliceKind, Track},
    };

    #[test]
    fn names_past_the_limit_are_a_field_and_cost_no_memory() {
        let clock = Clock { first: Ticks(0), last: Ticks(9), rate: None, realtime_at_first: None };
        let actors = Actors {
            clock,
            name: String::new(),
            cpus: vec![sigmund_model::Cpu(0)],
            processes: Vec::new(),
            lwps: Vec::new(),
            threads: Vec::new(),
            thread_names: Names::default(),
            teams: Vec::new(),
            event_types: Vec::new(),
        };
        let mut file = Vec::new();
        let mut paje = Paje::new(&mut file, Arc::new(actors)).unwrap();
        let track = Track::Cpu(CpuId(0));
        paje.declared.names = MAX_NAMES - 1;
        for name in ["first", "second", "", "first"] {
            let slice = Slice { kind: SliceKind::Irq, name };
            paje.change(Ticks(1), &Change::Enter(track, slice)).unwrap();
            paje.change(Ticks(1), &Change::Leave(track, SliceKind::Irq)).unwrap();
        }
        assert_eq!((paje.declared.names, paje.declared.bytes), (MAX_NAMES, "first".len()));
        paje.finish().unwrap();
        drop(paje);
        assert_eq!(check(file.as_slice()).unwrap().faults, []);
        let file = String::from_utf8(file).unwrap();
        let pushed: Vec<&str> = file.lines().filter(|line| line.contains(" S8 cs0 v")).collect();
        assert_eq!(
            pushed,
            [
                "9 0.000000001 S8 cs0 vn1048576",
                "16 0.000000001 S8 cs0 vo8 \"second\"",
                "16 0.000000001 S8 cs0 vo8 \"%empty\"",
                "9 0.000000001 S8 cs0 vn1048576",
            ]
        );
    }
}
