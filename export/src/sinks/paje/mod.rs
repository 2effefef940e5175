//! Pajé, for ViTE, pj_dump and readers of pj_dump's table.
//!
//! The format is "Pajé, trace file format", version 1.3 (L. Schnorr and others, 2014). A file is lines of text. The
//! first part declares events and their fields. Each line of the second part is an event, and begins with the number of
//! its declaration:
//!
//! ```text
//!   %EventDef PajeSetState 8                                            ┐
//!   %       Time date                                                   │
//!   %       Type string                                                 │ header.rs
//!   %       Container string                                            │
//!   %       Value string                                                │
//!   %EndEventDef                                                        ┘ …
//!   0 T P "user thread"                                                 ┐
//!   1 ST T "user thread state"                                          │ hierarchy.rs: types
//!   5 vt2 ST "active" "0.000 0.700 0.000"                               ┘ palette.rs: its colours
//!   6 0.000000000 t0 T p0 "1 main"                                      ┐
//!   8 0.000000000 ST t0 vt2                                             │
//!   5 vn1 S40 "outer" "0.900 0.412 0.250"                               │ draw.rs
//!   9 0.000000080 S40 ts0 vn1                                           │
//!   10 0.000004000 S40 ts0                                              │
//!   7 0.000004000 T t0                                                  ┘
//! ```
//!
//! Times are seconds since the beginning of the export, rounded to nanoseconds. All actors are created at the beginning
//! and destroyed at the end. Values whose names are not known in advance (spans, the LWPs that a CPU runs) are declared
//! immediately before their first use, and so are types that not every trace needs. The format allows definitions
//! anywhere, and pj_dump 1.3.6 and ViTE 1.2 accept them.
//!
//! | what | how it is drawn | lost |
//! |---|---|---|
//! | CPU, LWP, user thread | a container with its states, named as in the super-trace | creation and end, except as first and last state |
//! | concurrent states and slices | nested containers: `user thread of CPU 0`, `interrupts of CPU 0`, `spans of 1 main`, …, created when first needed | |
//! | the LWP or user thread on a CPU, the user thread mounted on an LWP | a state whose value is its name | |
//! | the CPU or LWP that an actor is on | the rows of CPUs and LWPs | the CPU that an LWP left |
//! | no state, idle | `PajePopState`: nothing is drawn. (ViTE 1.2 does not support `PajeResetState`.) | |
//! | what a blocked thread waits for | the kind: a state of its own, `blocked (mutex)`, declared at its first occurrence; the object: field `WaitsFor` of its state, `pj_dump -u` | |
//! | span, function, system call, interrupt | `PajePushState` and `PajePopState`, a type for each; ViTE shows the innermost | |
//! | wakeup | a link of no length; without a known waker, an event | |
//! | migration | a link of no length from CPU to CPU or LWP to LWP; its value is the actor | |
//! | lock acquired, released | the recorded event: holds need not nest, and ViTE has one stack of states per container | the time it is held |
//! | counter | a variable of the process, or of the CPU | pj_dump keeps the last value of an instant; there is none before the first |
//! | event | an event of the user thread, the LWP, the CPU or the machine; its parameters are a field, `Parameters` | code, key, format, the CPU that the probe saw; when it is drawn on a CPU, the LWP |
//! | ticks | | fractions of a nanosecond; the clock's rate, and the date |
//! | names | [with replacements](read_name), long ones in several parts; names of containers are unique | |
//!
//! After 2^20 different names of slices, or 64 MiB of them, further slices have the value `other` and their name in the
//! field `SliceName`, so memory is bounded.
//!
//! [`check`](check()) validates a file, as `sigmund check FILE` does.
//!
//! Cost: 8.5 M changes/s of CPU time with all kinds of changes, 11.5 M with changes of user threads, including the
//! generator (13 M and 14 M without it); 35 bytes per change; 4 MiB of memory; 10^7 changes to `/dev/null`. Least CPU
//! time of three runs, AMD EPYC with a TSC of 2.6 GHz, 2 CPUs with other load: `cargo test --release -p sigmund-export
//! paje_speed -- --ignored --nocapture`
//!
//! ViTE 1.2 can export an SVG without a display: `QT_QPA_PLATFORM=offscreen vite -f x.trace -e x.svg`. It prints
//! messages about its own option `f`, and about the "EntityType class" of values of events and links, reports 0 errors
//! and 0 warnings, and draws the links.

mod check;
mod declare;
mod digits;
mod draw;
mod header;
mod hierarchy;
mod lines;
mod name;
mod palette;
mod parameters;
mod unique;

use std::{
    io::{self, Write},
    sync::Arc,
};

use sigmund_model::{Nanos, Ticks};

use self::{
    declare::Declared,
    draw::AdditionalRows,
    hierarchy::{ContainerKind, Row},
    lines::Lines,
    parameters::ParameterFields,
    unique::Names,
};
use crate::timeline::{Actors, Change, DetailedState, Sink};

pub use self::{
    check::{Fault, FaultKind, Report, check, is_paje},
    name::read as read_name,
};

/// Writes a Pajé file.
pub struct Paje<W> {
    lines: Lines<W>,
    actors: Arc<Actors>,
    names: Names,
    declared: Declared,
    rows: AdditionalRows,
    /// By event type.
    fields: Vec<ParameterFields>,
    links: u64,
    tick: Ticks,
    now: Nanos,
}

impl<W: Write> Paje<W> {
    /// Starts a file: writes events, types, states and actors.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn new(out: W, actors: Arc<Actors>) -> io::Result<Paje<W>> {
        let mut paje = Paje {
            lines: Lines::new(out),
            names: Names::new(&actors),
            declared: Declared::default(),
            rows: AdditionalRows::default(),
            fields: actors.event_types.iter().map(ParameterFields::of).collect(),
            links: 0,
            tick: actors.clock.first,
            now: Nanos(0),
            actors,
        };
        paje.lines.formatted(header::HEADER);
        paje.define_types()?;
        paje.define_states()?;
        paje.create_actors()?;
        Ok(paje)
    }

    /// Sets the time of the following lines.
    fn go_to(&mut self, tick: Ticks) {
        if self.tick != tick {
            self.tick = tick;
            self.now = self.actors.clock.nanos(tick);
        }
    }
}

impl<W: Write> Sink for Paje<W> {
    fn change(&mut self, tick: Ticks, change: &Change<'_>) -> io::Result<()> {
        self.go_to(tick);
        match *change {
            Change::CpuLwp(cpu, lwp) => self.carry(cpu.into(), lwp.map(Row::from)),
            Change::CpuThread(cpu, thread) => {
                self.carry(Row::from(cpu).additional(ContainerKind::CpuThread), thread.map(Row::from))
            }
            Change::LwpThread(lwp, thread) => {
                self.carry(Row::from(lwp).additional(ContainerKind::LwpThread), thread.map(Row::from))
            }
            Change::Lwp { lwp, state, .. } => self.set(lwp.into(), state.map(|state| state as u32), None),
            Change::Thread { thread, state, blocked_on, blocked_for, .. } => {
                let detailed = state.map(|state| DetailedState::new(state, blocked_for));
                self.blocked_value(detailed)?;
                self.set(thread.into(), detailed.map(|detailed| detailed.index() as u32), blocked_on)
            }
            Change::Enter(track, slice) => self.enter(track, slice),
            Change::Leave(track, kind) => self.leave(track, kind),
            Change::Wakeup { by: Some(by), of } => self.wakeup(by, of),
            Change::Wakeup { by: None, of } => self.wakeup_without_waker(of),
            Change::Migration { of, from, to } => self.migration(of, from, to),
            Change::Count(counter, value) => self.count(counter, value),
            // The recorded events of locks are written instead.
            Change::Locked { .. } | Change::Unlocked { .. } => Ok(()),
            Change::Event(event) => self.event(event),
        }
    }

    fn finish(&mut self) -> io::Result<()> {
        let last = self.actors.clock.last.max(self.tick);
        self.go_to(last);
        self.destroy_all()?;
        self.lines.flush()
    }
}
