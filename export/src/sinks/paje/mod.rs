//! A trace in the format of Pajé, for ViTE, pj_dump and what reads its table.
//!
//! The format is "Pajé, trace file format", version 1.3 (L. Schnorr and others, 2014). A file is lines of text. The first
//! part says which fields each event has, the second holds events, the number of its declaration in front of each:
//!
//! ```text
//!   %EventDef PajeSetState 8                                            ┐
//!   %       Time date                                                   │
//!   %       Type string                                                 │ header.rs
//!   %       Container string                                            │
//!   %       Value string                                                │
//!   %EndEventDef                                                        ┘ …
//!   0 T P "user thread"                                                 ┐
//!   1 ST T "user thread state"                                          │ hierarchy.rs: what there is to draw
//!   5 vt2 ST "active" "0.000 0.700 0.000"                               ┘ palette.rs: its colours
//!   6 0.000000000 t0 T p0 "1 main"                                      ┐
//!   8 0.000000000 ST t0 vt2                                             │
//!   5 vn1 S40 "outer" "0.900 0.412 0.250"                               │ the course of time
//!   9 0.000000080 S40 ts0 vn1                                           │
//!   10 0.000004000 S40 ts0                                              │
//!   7 0.000004000 T t0                                                  ┘
//! ```
//!
//! Times are seconds since the beginning of the export, rounded to nanoseconds. Everybody of the cast is created at the
//! beginning and destroyed at the end. Values whose names are only known in the course (of spans, of the LWPs that a CPU
//! carries) are declared right before their first use, and so are types that not every trace needs; definitions may
//! stand anywhere, and pj_dump 1.3.6 and ViTE 1.2 agree.
//!
//! | what | how it is drawn | lost |
//! |---|---|---|
//! | CPU, LWP, user thread | a container; in it its states, with the words of the super-trace | birth and death: its first and last state tell |
//! | what else it does at the same time | a container inside: `user thread of CPU 0`, `interrupts of CPU 0`, `spans of 1 main`, …, created when it is first needed | |
//! | who is on a CPU, mounted on an LWP | a state whose value is the name of the one carried | |
//! | where an LWP or a user thread is | the rows of CPUs and LWPs | the CPU that an LWP left |
//! | no state, idle | `PajePopState`: nothing is drawn. (ViTE 1.2 does not know `PajeResetState`.) | |
//! | what a blocked thread waits for | its kind: a state of its own, `blocked (mutex)`, declared when it first occurs; the object: field `WaitsFor` of its state, `pj_dump -u` | |
//! | span, function, system call, interrupt | `PajePushState` and `PajePopState`, a type for each; ViTE shows the innermost | |
//! | wakeup | a link of no length; when nobody knows by whom, an event | |
//! | migration | a link of no length from place to place; its value says who | |
//! | lock that is taken, given back | the event of it: holds need not nest, and ViTE has one stack of states for a container | how long it is held |
//! | counter | a variable of the process, or of the CPU | pj_dump keeps the last of one instant; it has no value before the first |
//! | event | an event of the user thread, the LWP, the CPU or the machine; its parameters are a field, `Parameters` | code, key, format, the CPU that the probe saw; when it is drawn on a CPU, the LWP |
//! | ticks | | what is below a nanosecond; the clock's rate, and the date |
//! | names | [with replacements](read_name), cut and continued when they are long; no two containers have one name | |
//!
//! After 2^20 different names of slices, or 64 MiB of them, the others are called `other` and have their name in a
//! field, `SliceName`: memory does not grow with the trace.
//!
//! A file can be [checked](check()) without other programs.
//!
//! Cost: 8.5 M changes/s of one core with all kinds of changes, 11.5 M with those of user threads, telling the story
//! included (13 M and 14 M without); 35 bytes a change; 4 MiB of memory, 10^7 changes to `/dev/null`. Least CPU time of
//! three, AMD EPYC with a TSC of 2.6 GHz, 2 CPUs that others used, too:
//! `cargo test --release -p sigmund-export paje_speed -- --ignored --nocapture`
//!
//! ViTE 1.2 makes a picture without a display, always an SVG: `QT_QPA_PLATFORM=offscreen vite -f x.trace -e x.svg`. It
//! complains of its own option `f`, and of the "EntityType class" of values of events and links; it told of these with 0
//! errors and 0 warnings, and drew the links.

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
    draw::Rows,
    hierarchy::{ContainerKind, Row},
    lines::Lines,
    parameters::Fields,
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
    rows: Rows,
    /// By event.
    fields: Vec<Fields>,
    links: u64,
    tick: Ticks,
    now: Nanos,
}

impl<W: Write> Paje<W> {
    /// Begins the file: events, types, states, and everybody who takes part.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn new(out: W, actors: Arc<Actors>) -> io::Result<Paje<W>> {
        let mut paje = Paje {
            lines: Lines::new(out),
            names: Names::new(&actors),
            declared: Declared::default(),
            rows: Rows::default(),
            fields: actors.event_types.iter().map(Fields::of).collect(),
            links: 0,
            tick: actors.clock.first,
            now: Nanos(0),
            actors,
        };
        paje.lines.ready_made(header::HEADER);
        paje.define_types()?;
        paje.define_states()?;
        paje.create_actors()?;
        Ok(paje)
    }

    /// Later changes happen at this tick.
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
                self.carry(Row::from(cpu).beside(ContainerKind::CpuThread), thread.map(Row::from))
            }
            Change::LwpThread(lwp, thread) => {
                self.carry(Row::from(lwp).beside(ContainerKind::LwpThread), thread.map(Row::from))
            }
            Change::Lwp { lwp, state, .. } => self.set(lwp.into(), state.map(|state| state as u32), None),
            Change::Thread { thread, state, blocked_on, blocked_for, .. } => {
                let doing = state.map(|state| DetailedState::new(state, blocked_for));
                self.blocked_value(doing)?;
                self.set(thread.into(), doing.map(|doing| doing.index() as u32), blocked_on)
            }
            Change::Enter(track, slice) => self.enter(track, slice),
            Change::Leave(track, kind) => self.leave(track, kind),
            Change::Wakeup { by: Some(by), of } => self.wakeup(by, of),
            Change::Wakeup { by: None, of } => self.wakeup_by_nobody(of),
            Change::Migration { of, from, to } => self.migration(of, from, to),
            Change::Count(counter, value) => self.count(counter, value),
            // Their events tell of them.
            Change::Locked { .. } | Change::Unlocked { .. } => Ok(()),
            Change::Event(happening) => self.event(happening),
        }
    }

    fn finish(&mut self) -> io::Result<()> {
        let last = self.actors.clock.last.max(self.tick);
        self.go_to(last);
        self.destroy_all()?;
        self.lines.flush()
    }
}
