//! Perfetto's protobuf trace: for ui.perfetto.dev, and for SQL with Perfetto's trace processor.
//!
//! The messages are those of `protos/perfetto/trace/perfetto_trace.proto` in the Python package perfetto 0.59.1; the
//! numbers of their fields are in one table, `schema.rs`. This module encodes the few messages it needs directly into
//! one buffer: a generated encoder (`perfetto_protos`) contains the whole schema, and builds each packet as a value
//! before encoding it.
//!
//! ```text
//! Trace       | packet | packet | …                        packet = TracePacket.compressed_packets: zlib, level 1,
//!                  └─ Trace | packet | packet | …             of up to 256 KiB of packets
//!
//! sequence 1  timestamp, flags, interned_data, track_event  slices, instants, counters
//!             track_descriptor                              before the first use of a track
//! sequence 2  clock_snapshot, process_tree                  at the beginning
//!             ftrace_events                                 scheduling: one bundle for each CPU and batch
//!             generic_kernel_task_state_event               states of LWPs that no switch and no waking implies
//! ```
//!
//! Time stamps are nanoseconds since the trace's first tick, in Perfetto's clock `BOOTTIME`; a clock snapshot relates
//! the first tick to the time of day, if that is known.
//!
//! | what | how it is drawn | lost |
//! |---|---|---|
//! | LWPs on CPUs | `sched_switch`: Perfetto's own CPU tracks, table `sched` | priorities (all are nice 0); unknown is shown as idle; CPUs from number 1024 on |
//! | states of LWPs | from the same switches, `sched_waking`, `GenericKernelTaskStateEvent`: table `thread_state` | off-cpu and unknown: when an LWP leaves a CPU, `SD`; otherwise the previous state continues, even if the timeline has no state |
//! | wakers of LWPs | `sched_waking` by the waker; in interrupts, `irq_context` | the user thread (only its LWP is written); wakeups of runnable LWPs |
//! | migrations of LWPs | `sched_migrate_task`, in the table `ftrace_event` | |
//! | states of a user thread | slices on its own track, a child of its process's, `blocked (mutex)` if the kind of wait is known; `lwp`, `cpu`, `blocked on` as annotations | |
//! | spans, functions | slices on a second track, because they need not nest with states | |
//! | system calls | slices on the LWP's track | |
//! | interrupts | slices on a track for each CPU | |
//! | user threads on LWPs, on CPUs | slices on a track of the LWP, and on a track for each CPU | |
//! | wakeups of user threads | a flow from an instant on the waker's track to the slice that begins then | those without a known waker |
//! | migrations of user threads | a flow between the tracks of the two LWPs | |
//! | locks acquired, released | the instants of these events: slices of a track must nest, holds need not | the time a lock is held |
//! | ready and run queues | counter tracks | their zeros before the first change |
//! | events | instants on the most specific track, parameters as annotations; a value's name as `FIELD name`; `cpu seen` only if it is another CPU than `on cpu` | parameters that could not be read |
//! | a reused tid | `sched_process_free`, then a new thread | |
//! | an LWP whose process is not known | in the group "other LWPs"; its scheduling has no process | |
//! | ticks | | rounded to the nearest nanosecond |
//!
//! Names are not changed. States are slices, which take two packets per change: an event of `TYPE_STATE` would take
//! one, but the reader of v52 does not support it.
//!
//! Cost, on an AMD EPYC with two CPUs and a TSC of 2.6 GHz, CPU time of one LWP, 10^7 changes of
//! `cargo test --release -p sigmund-export --test it speed -- --ignored --nocapture`: 6.6 million changes a second and
//! 14.5 bytes each; 22 to 31 million and 39.5 bytes uncompressed. zlib's level 2 makes it 4.0 million and 11.1 bytes.
//! Memory does not grow with the number of changes: two batches, 4 MiB of names, and a few words per actor.

mod batch;
mod bundles;
mod compressor;
mod events;
mod processes;
mod scheduling;
mod schema;
mod strings;
mod tracks;
mod wire;

use std::{
    collections::HashMap,
    io::{self, Write},
    sync::Arc,
};

use foldhash::fast::RandomState;
use sigmund_model::Ticks;

use self::{
    batch::BATCH,
    events::Events,
    scheduling::Scheduling,
    schema::track_event,
    strings::{Category, FixedName, Note, Strings},
    tracks::Row,
    wire::Wire,
};
use crate::timeline::{
    Actors, Change, Counter, CpuId, DetailedState, LwpId, RecordedEvent, Sink, ThreadId, Track,
};

/// zlib's fastest level with compression.
const LEVEL: u32 = 1;

/// Writes a Perfetto trace. The [module](self) describes its contents.
pub struct Perfetto<W> {
    out: W,
    actors: Arc<Actors>,
    tick: Ticks,
    /// The current time in nanoseconds.
    at: u64,
    events: Events,
    scheduling: Scheduling,
    /// Whether a slice of the state, or of the occupant, is open.
    thread_open: Vec<bool>,
    mounted_open: Vec<bool>,
    executing_open: Vec<bool>,
    flows: Flows,
}

/// Flows to user threads that were woken at this instant, and whose next state has not yet begun.
#[derive(Default)]
struct Flows {
    last: u64,
    /// The flows at this instant, by thread; 0 if it is written.
    to: HashMap<ThreadId, u64, RandomState>,
    /// Their threads, each once.
    threads: Vec<ThreadId>,
}

impl<W: Write> Perfetto<W> {
    /// Starts a compressed trace.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn new(out: W, actors: Arc<Actors>) -> io::Result<Perfetto<W>> {
        Perfetto::with_level(out, actors, Some(LEVEL))
    }

    /// Starts a trace with uncompressed packets: four times as large, for readers without support for
    /// `compressed_packets`.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn uncompressed(out: W, actors: Arc<Actors>) -> io::Result<Perfetto<W>> {
        Perfetto::with_level(out, actors, None)
    }

    fn with_level(out: W, actors: Arc<Actors>, level: Option<u32>) -> io::Result<Perfetto<W>> {
        let mut perfetto = Perfetto {
            out,
            tick: actors.clock.first,
            at: 0,
            events: Events::new(actors.clone(), level)?,
            scheduling: Scheduling::new(actors.clone()),
            thread_open: vec![false; actors.threads.len()],
            mounted_open: vec![false; actors.lwps.len()],
            executing_open: vec![false; actors.cpus.len()],
            flows: Flows::default(),
            actors,
        };
        perfetto.begin()?;
        Ok(perfetto)
    }

    /// Writes the clock, processes, threads and CPUs.
    fn begin(&mut self) -> io::Result<()> {
        let Perfetto { out, actors, events: Events { batch, .. }, scheduling, .. } = self;
        processes::clock(actors, batch);
        processes::processes(actors, batch);
        for lwp in actors.lwp_ids().filter(|lwp| scheduling.is_first_of_tid(*lwp)) {
            processes::describe_lwp(actors, lwp, 0, batch);
            if batch.len() >= BATCH {
                batch.send(out)?;
            }
        }
        scheduling.bundles.begin(actors, batch);
        self.send_full()
    }

    fn send_full(&mut self) -> io::Result<()> {
        if self.events.batch.len() + self.scheduling.bundles.len() < BATCH {
            return Ok(());
        }
        self.send()
    }

    fn send(&mut self) -> io::Result<()> {
        self.scheduling.bundles.send(&self.actors, &mut self.events.batch);
        self.events.batch.send(&mut self.out)
    }

    /// Sets the current instant.
    #[inline]
    fn go_to(&mut self, tick: Ticks) {
        self.settle();
        self.tick = tick;
        self.at = self.actors.clock.nanos(tick).0;
    }

    /// Ends the current instant.
    #[inline]
    fn settle(&mut self) {
        self.scheduling.settle(self.tick, self.at, &mut self.events.batch);
        while let Some(thread) = self.flows.threads.pop() {
            self.woken(thread);
            self.flows.to.remove(&thread);
        }
    }

    /// Writes an instant as the end of a flow to a user thread whose state does not change.
    fn woken(&mut self, thread: ThreadId) {
        let flow = self.flows.take(thread);
        if flow != 0 {
            self.events.instant(
                self.at,
                Row::ThreadSpans(thread),
                Category::Wakeup,
                Strings::fixed(FixedName::Woken),
                |out| out.fixed64(track_event::TERMINATING_FLOW_IDS, flow),
            );
        }
    }

    #[inline]
    fn thread(
        &mut self,
        thread: ThreadId,
        detailed: Option<DetailedState>,
        lwp: Option<LwpId>,
        cpu: Option<CpuId>,
        blocked_on: Option<i64>,
    ) {
        let row = Row::Thread(thread);
        let open = &mut self.thread_open[thread.index()];
        if std::mem::replace(open, detailed.is_some()) {
            self.events.end(self.at, row);
        }
        let Some(detailed) = detailed else { return };
        let flow = self.flows.take(thread);
        let actors = &self.actors;
        self.events.begin(self.at, row, Category::State, Strings::state(detailed), |out| {
            if let Some(lwp) = lwp {
                events::note(out, Note::Lwp, u64::from(actors[lwp].lwp.0));
            }
            if let Some(cpu) = cpu {
                events::note(out, Note::Cpu, u64::from(actors[cpu].0));
            }
            if let Some(object) = blocked_on {
                events::note_address(out, Note::BlockedOn, object);
            }
            if flow != 0 {
                out.fixed64(track_event::TERMINATING_FLOW_IDS, flow);
            }
        });
    }

    /// Replaces the user thread on this row.
    fn carry(&mut self, row: Row, was_open: bool, category: Category, thread: Option<ThreadId>) {
        if was_open {
            self.events.end(self.at, row);
        }
        if let Some(thread) = thread {
            let name = self.events.strings.thread(&self.actors, thread);
            self.events.begin(self.at, row, category, name, |_| {});
        }
    }

    fn wakeup(&mut self, by: Option<Track>, of: Track) {
        let thread = match of {
            Track::Lwp(lwp) => return self.scheduling.wakeup(by, lwp),
            // CPUs are not woken.
            Track::Cpu(_) => return,
            Track::Thread(thread) => thread,
        };
        self.woken(thread);
        let Some(by) = by else { return };
        let flow = self.flows.begin_to(thread);
        let number = self.actors[thread].thread.0;
        self.events.instant(
            self.at,
            Row::events(by),
            Category::Wakeup,
            Strings::fixed(FixedName::Wakes),
            |out| {
                events::note(out, Note::Thread, number);
                out.fixed64(track_event::FLOW_IDS, flow);
            },
        );
    }

    fn migration(&mut self, of: Track, from: Track, to: Track) {
        if let (Track::Lwp(of), Track::Cpu(from), Track::Cpu(to)) = (of, from, to) {
            return self.scheduling.migration(self.at, of, from, to);
        }
        let who = match of {
            Track::Thread(thread) => (Note::Thread, self.actors[thread].thread.0),
            Track::Lwp(lwp) => (Note::Lwp, u64::from(self.actors[lwp].lwp.0)),
            Track::Cpu(cpu) => (Note::Cpu, u64::from(self.actors[cpu].0)),
        };
        let flow = self.flows.begin();
        for (track, name, field) in [
            (from, FixedName::Leaves, track_event::FLOW_IDS),
            (to, FixedName::Arrives, track_event::TERMINATING_FLOW_IDS),
        ] {
            let row = match track {
                Track::Lwp(lwp) => Row::Mounted(lwp),
                track => Row::events(track),
            };
            self.events.instant(self.at, row, Category::Migration, Strings::fixed(name), |out| {
                events::note(out, who.0, who.1);
                out.fixed64(field, flow);
            });
        }
    }

    fn event(&mut self, event: &RecordedEvent<'_>) {
        let actors = &*self.actors;
        let ty = &actors[event.kind];
        let names = self.events.strings.event(actors, event.kind);
        let row = event.track().map_or(Row::Unplaced, Row::events);
        self.events.instant(self.at, row, strings::level(ty.level), names.name, |out| {
            events::note_params(out, ty, names, event.params);
            if let Some(lwp) = event.lwp {
                events::note(out, Note::OnLwp, u64::from(actors[lwp].lwp.0));
            }
            if let Some(cpu) = event.cpu {
                events::note(out, Note::OnCpu, u64::from(actors[cpu].0));
            }
            let cpu = event.cpu.map(|cpu| actors[cpu]);
            if let Some(cpu) = event.cpu_seen.filter(|seen| cpu != Some(*seen)) {
                events::note(out, Note::CpuSeen, u64::from(cpu.0));
            }
        });
    }
}

impl<W: Write> Sink for Perfetto<W> {
    fn change(&mut self, tick: Ticks, change: &Change<'_>) -> io::Result<()> {
        if tick != self.tick {
            self.go_to(tick);
        }
        self.events.strings.make_room();
        match *change {
            Change::CpuLwp(cpu, lwp) => self.scheduling.cpu(cpu, lwp),
            Change::Lwp { lwp, state, cpu } => self.scheduling.lwp(lwp, state, cpu),
            Change::CpuThread(cpu, thread) => {
                let open = std::mem::replace(&mut self.executing_open[cpu.index()], thread.is_some());
                self.carry(Row::CpuThread(cpu), open, Category::Executing, thread);
            }
            Change::LwpThread(lwp, thread) => {
                self.scheduling.mounted(lwp, thread);
                let open = std::mem::replace(&mut self.mounted_open[lwp.index()], thread.is_some());
                self.carry(Row::Mounted(lwp), open, Category::Mounted, thread);
            }
            Change::Thread { thread, state, lwp, cpu, blocked_on, blocked_for } => {
                let detailed = state.map(|state| DetailedState::new(state, blocked_for));
                self.thread(thread, detailed, lwp, cpu, blocked_on);
            }
            Change::Enter(track, slice) => {
                let name = self.events.strings.name(slice.name);
                self.events.begin(self.at, Row::events(track), Category::Slice(slice.kind), name, |_| {});
            }
            Change::Leave(track, _) => self.events.end(self.at, Row::events(track)),
            Change::Wakeup { by, of } => self.wakeup(by, of),
            Change::Migration { of, from, to } => self.migration(of, from, to),
            Change::Count(counter, value) => {
                let row = match counter {
                    Counter::ReadyQueue(process) => Row::ReadyQueue(process),
                    Counter::RunQueue(cpu) => Row::RunQueue(cpu),
                };
                self.events.count(self.at, row, value);
            }
            // The recorded events of locks are written instead.
            Change::Locked { .. } | Change::Unlocked { .. } => {}
            Change::Event(event) => self.event(event),
        }
        self.send_full()
    }

    fn finish(&mut self) -> io::Result<()> {
        self.settle();
        self.send()?;
        self.events.batch.finish(&mut self.out)?;
        self.out.flush()
    }
}

impl Flows {
    fn begin_to(&mut self, thread: ThreadId) -> u64 {
        let flow = self.begin();
        if self.to.insert(thread, flow).is_none() {
            self.threads.push(thread);
        }
        flow
    }

    /// The flow to a thread, which is then written; 0 if there is none.
    #[inline]
    fn take(&mut self, thread: ThreadId) -> u64 {
        if self.to.is_empty() {
            return 0;
        }
        self.to.get_mut(&thread).map_or(0, std::mem::take)
    }

    fn begin(&mut self) -> u64 {
        self.last += 1;
        self.last
    }
}
