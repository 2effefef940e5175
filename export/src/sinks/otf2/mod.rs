//! OTF2 3.0, for Vampir and the tools of Score-P; [`otf2_writer`] writes the archive.
//!
//! Regions of a location must nest, but a state may change in the middle of a span. So the states, occupants, slices
//! and events of a CPU, LWP or user thread have separate, adjacent locations. No interval is cut, and the times and
//! counts of each region are exact:
//!
//! ```text
//! machine
//! ├─ CPUs                        (location group)
//! │  ├─ CPU 3                    the LWP on it
//! │  ├─ CPU 3: user thread       the user thread it executes
//! │  ├─ CPU 3: interrupts        handlers of interrupts and softirqs
//! │  ├─ CPU 3: events            events recorded there in interrupts
//! │  └─ CPU 3: run queue         (metric)
//! └─ sumtime (1234)              (location group: a process)
//!    ├─ sumtime (1235)           the LWP's state: running, runnable, sleeping…
//!    ├─ sumtime (1235): user thread     the user thread mounted on it
//!    ├─ sumtime (1235): calls    system calls; spans and functions outside of user threads
//!    ├─ sumtime (1235): events
//!    ├─ 15 daemon                the user thread's state: active, stalled, ready, blocked (mutex)…
//!    ├─ 15 daemon: spans         its spans and functions, one inside the other
//!    ├─ 15 daemon: events        its events, wakeups and migrations
//!    └─ sumtime (1234): ready queue     (metric)
//! ```
//!
//! The first location of each actor always exists, the others only if they are used. The id of a location is 4 × the
//! index of its CPU, LWP or user thread in this order + 0 to 3 in the order above; metrics follow.
//!
//! | what | how it is drawn | lost |
//! |---|---|---|
//! | time | ticks; the clock's resolution is ticks per second | fractions of a Hertz; without a rate, a tick counts as a nanosecond |
//! | CPU, LWP, user thread | a location with its name | creation and end of LWPs |
//! | process | a location group | |
//! | states | regions `active`, `running`, `blocked (mutex)`…, one enter and leave each; attributes `lwp`, `cpu`, `blocked_on` of the enter | |
//! | occupant of a CPU or LWP | a region for each LWP and user thread, with its name | |
//! | spans, functions, system calls, interrupts | regions | |
//! | creation of a user thread | ThreadCreate and ThreadBegin, if creation and creator are in the trace; ThreadEnd | |
//! | team of user threads: those of one scope | ThreadFork and ThreadTeamBegin, ThreadTeamEnd and ThreadJoin at the thread that opened the scope; ThreadTeamBegin and ThreadTeamEnd at the threads that were created for it, from creation to end (in addition to the rows above and below). The paradigm is OpenMP's, the only one in OTF2 that forks and joins | a team whose fork or join is not in the trace |
//! | wait for the end of a user thread | ThreadWait at the thread that was blocked for it, when that thread has continued and the other has ended; with the number of its ThreadEnd | joins that did not block |
//! | wakeup | a region `wakeup` of zero length, at the woken actor; attribute `by` | the arrow |
//! | migration | a region `migration` of no length, at the actor; attributes `from`, `to` | the arrow |
//! | event | a region of zero length with its name; its parameters, CPU, LWP and user thread are attributes | its level and code |
//! | queue lengths | metric instances, for a process and for a CPU; a value holds until the next | |
//! | lock acquired, released | ThreadAcquireLock and ThreadReleaseLock, at the actor that acquired it; acquisitions of all locks share one numbering. The recorded event is written, too | whether it is a mutex, or a lock for reading or writing (this is in the event) |
//! | names | UTF-8 | a NUL becomes `␀`; names are truncated to 1 MiB |
//!
//! OTF2 has arrows only for MPI messages; wakeups are not messages.
//!
//! LWPs are not a team. The thread that builds the runtime creates them; it need not be one of them, and its creations
//! are in no trace. LWPs attach when they first record, and LWPs for blocking calls do so much later than the others.
//! Only the end of the process waits for them. So there is no fork and no join to write. But the user threads that are
//! mounted on each LWP are drawn.
//!
//! Regions are in groups (`thread states`, `spans`…), which have colours in Vampir.
//!
//! Not tested in Vampir: it is unknown whether regions of zero length are visible there. For the CPUs, this writes a
//! location group of unknown type that has threads. lo2s also writes such groups, and its authors develop Vampir, too.
//!
//! # Cost
//!
//! Ten million changes of random threads take 0.8 s of one CPU, 12 M changes/s, and 5 MiB. Ten million changes of
//! 100,000 threads in turn take 3.8 s, including the creation of their 200,000 files, and 106 MiB, most of it buffered
//! events. (AMD EPYC, TSC 2.6 GHz, 2 CPUs, to a tmpfs; `cargo test --release -p sigmund-export --test it -- --ignored
//! --nocapture --test-threads 1 otf2`.)
//!
//! An archive of more than [`MAX_ACTORS`] actors is refused before anything is written.
//!
//! The cache of names is cleared when it exceeds 16 MiB, to bound memory. Names that occur again are then defined
//! again, so a region may be defined twice. Readers open the files of all locations at once. So for a trace with more
//! than 1000 locations, which has perhaps 300 user threads, `ulimit -n` must be increased.

mod comms;
mod folder_storage;
mod initial_definitions;
mod lifetimes;
mod locations;
mod queue_metrics;
mod recorded_events;
mod regions;

use std::{io, path::Path, sync::Arc};

use otf2_writer::{Archive, AttributeId, AttributeValue, Event, Lock, Options, Paradigm, RegionId};
use sigmund_files::Folder;
use sigmund_model::{LwpState, Ticks, WaitKind};

use crate::timeline::{Actors, Change, CpuId, DetailedState, Hold, LwpId, Sink, Slice, ThreadId, Track};
use initial_definitions::InitialDefinitions;
use lifetimes::ThreadLifetimes;
use locations::{LocationKind, Locations};
use queue_metrics::QueueMetrics;
use recorded_events::RecordedEvents;
use regions::Regions;

/// The largest number of actors of an archive. They take 200,000 to 700,000 files: 3 GB if each file takes a block of 4
/// KiB.
pub const MAX_ACTORS: usize = 100_000;

/// Writes a timeline as an OTF2 archive.
#[derive(Debug)]
pub struct Otf2 {
    actors: Arc<Actors>,
    archive: Archive,
    locations: Locations,
    regions: Regions,
    lifetimes: ThreadLifetimes,
    queue_metrics: QueueMetrics,
    recorded_events: RecordedEvents,
    attributes: Attributes,
    /// Attributes of the current event.
    values: Vec<(AttributeId, AttributeValue)>,
}

/// Attributes that several kinds of events share.
#[derive(Clone, Copy, Debug)]
struct Attributes {
    cpu: AttributeId,
    lwp: AttributeId,
    thread: AttributeId,
    blocked_on: AttributeId,
    by: AttributeId,
    from: AttributeId,
    to: AttributeId,
    context: AttributeId,
    cpu_seen: AttributeId,
}

impl Otf2 {
    /// Creates an archive in a new or empty folder.
    ///
    /// # Errors
    /// If there are too many [actors](Self::check), the folder is not empty, or files cannot be written.
    pub fn create(folder: &Path, actors: Arc<Actors>) -> io::Result<Otf2> {
        Otf2::check(&actors)?;
        Otf2::create_in(Folder::create_or_take_empty(folder, None)?, actors)
    }

    /// Like [`create`](Self::create), in an open, empty folder.
    ///
    /// # Errors
    /// If files cannot be written.
    pub fn create_in(folder: Folder, actors: Arc<Actors>) -> io::Result<Otf2> {
        let creator = concat!("Sigmund ", env!("CARGO_PKG_VERSION")).into();
        let options = Options { creator, description: actors.name.clone(), ..Options::default() };
        Otf2::with_options_in(folder, actors, options)
    }

    /// Like [`create`](Self::create), with other sizes of chunks, memory limit or texts.
    ///
    /// # Errors
    /// Like [`create`](Self::create); also if the options are out of range.
    pub fn with_options(folder: &Path, actors: Arc<Actors>, options: Options) -> io::Result<Otf2> {
        Otf2::check(&actors)?;
        Otf2::with_options_in(Folder::create_or_take_empty(folder, None)?, actors, options)
    }

    /// Whether an archive can have these actors: each takes at least two files.
    ///
    /// # Errors
    /// If there are more than [`MAX_ACTORS`].
    pub fn check(actors: &Actors) -> io::Result<()> {
        let (threads, lwps, cpus) = (actors.threads.len(), actors.lwps.len(), actors.cpus.len());
        if threads + lwps + cpus <= MAX_ACTORS {
            return Ok(());
        }
        let message = format!(
            "OTF2 has at least two files for each user thread, LWP and CPU: expected at most {MAX_ACTORS} of these, \
             found {threads} user threads, {lwps} LWPs and {cpus} CPUs; select fewer with --thread, --lwp, --process, --cpu, or --from and --to"
        );
        Err(io::Error::new(io::ErrorKind::InvalidInput, message))
    }

    fn with_options_in(folder: Folder, actors: Arc<Actors>, options: Options) -> io::Result<Otf2> {
        Otf2::check(&actors)?;
        let InitialDefinitions { archive, attributes, locations, queue_metrics, lifetimes } =
            InitialDefinitions::create(folder, &actors, options)?;
        let (regions, recorded_events) = (Regions::new(&actors), RecordedEvents::new(&actors));
        let values = Vec::new();
        Ok(Otf2 {
            actors,
            archive,
            locations,
            regions,
            lifetimes,
            queue_metrics,
            recorded_events,
            attributes,
            values,
        })
    }

    /// Changes the region of a location, with `values` as attributes.
    fn switch(
        &mut self,
        tick: Ticks,
        track: Track,
        kind: LocationKind,
        region: Option<RegionId>,
    ) -> io::Result<()> {
        self.locations.switch(&mut self.archive, &self.actors, tick, (track, kind), region, &self.values)
    }

    /// Writes a region of zero length.
    fn instant(&mut self, tick: Ticks, track: Option<Track>, region: RegionId) -> io::Result<()> {
        self.locations.instant(&mut self.archive, &self.actors, tick, track, region, &self.values)
    }

    fn add(&mut self, attribute: AttributeId, track: Option<Track>) {
        if let Some(track) = track {
            self.values.push((
                attribute,
                AttributeValue::Location(self.locations.location_id(track, LocationKind::Own)),
            ));
        }
    }

    fn lwp_on_cpu(&mut self, tick: Ticks, cpu: CpuId, lwp: Option<LwpId>) -> io::Result<()> {
        let region = lwp.map(|lwp| self.regions.lwp(&mut self.archive, &self.actors, lwp)).transpose()?;
        self.switch(tick, Track::Cpu(cpu), LocationKind::Own, region)
    }

    fn carried(&mut self, tick: Ticks, by: Track, thread: Option<ThreadId>) -> io::Result<()> {
        let region =
            thread.map(|thread| self.regions.thread(&mut self.archive, &self.actors, thread)).transpose()?;
        self.switch(tick, by, LocationKind::Carried, region)
    }

    fn lwp_state(
        &mut self,
        tick: Ticks,
        lwp: LwpId,
        state: Option<LwpState>,
        cpu: Option<CpuId>,
    ) -> io::Result<()> {
        let region = state.map(|state| self.regions.lwp_state(&mut self.archive, state)).transpose()?;
        self.add(self.attributes.cpu, cpu.map(Track::Cpu));
        self.switch(tick, Track::Lwp(lwp), LocationKind::Own, region)
    }

    fn lock(&mut self, tick: Ticks, by: Track, event: Event<'_>) -> io::Result<()> {
        match self.locations.own(by) {
            Some(location) => self.archive.write(location, tick.0, event, &[]),
            None => Ok(()),
        }
    }

    fn enter(&mut self, tick: Ticks, track: Track, slice: Slice<'_>) -> io::Result<()> {
        let region = self.regions.slice(&mut self.archive, slice)?;
        self.locations.enter(&mut self.archive, &self.actors, tick, track, region)
    }
}

/// Acquisitions of all locks share one numbering.
fn lock(hold: Hold) -> Lock {
    Lock { model: Paradigm::Pthread, lock: hold.lock, acquisition: hold.number as u32 }
}

impl Sink for Otf2 {
    fn change(&mut self, tick: Ticks, change: &Change<'_>) -> io::Result<()> {
        self.lifetimes.write_until(tick, &mut self.archive, &self.locations)?;
        self.values.clear();
        match *change {
            Change::CpuLwp(cpu, lwp) => self.lwp_on_cpu(tick, cpu, lwp),
            Change::CpuThread(cpu, thread) => self.carried(tick, Track::Cpu(cpu), thread),
            Change::LwpThread(lwp, thread) => self.carried(tick, Track::Lwp(lwp), thread),
            Change::Lwp { lwp, state, cpu } => self.lwp_state(tick, lwp, state, cpu),
            Change::Thread { thread, state, lwp, cpu, blocked_on, blocked_for } => {
                self.add(self.attributes.lwp, lwp.map(Track::Lwp));
                self.add(self.attributes.cpu, cpu.map(Track::Cpu));
                self.values.extend(
                    blocked_on.map(|object| (self.attributes.blocked_on, AttributeValue::I64(object))),
                );
                let detailed = state.map(|state| DetailedState::new(state, blocked_for));
                let joins = blocked_on.filter(|_| blocked_for == Some(WaitKind::Join));
                self.lifetimes.changes_state(
                    thread,
                    detailed,
                    joins,
                    tick,
                    &mut self.archive,
                    &self.locations,
                    &self.actors,
                )?;
                let region = detailed.map(|detailed| self.regions.thread_state(&mut self.archive, detailed));
                self.switch(tick, Track::Thread(thread), LocationKind::Own, region.transpose()?)
            }
            Change::Enter(track, slice) => self.enter(tick, track, slice),
            Change::Leave(track, _) => self.locations.leave(&mut self.archive, tick, track),
            Change::Wakeup { by, of } => {
                self.add(self.attributes.by, by);
                let region = self.regions.wakeup(&mut self.archive)?;
                self.instant(tick, Some(of), region)
            }
            Change::Migration { of, from, to } => {
                self.add(self.attributes.from, Some(from));
                self.add(self.attributes.to, Some(to));
                let region = self.regions.migration(&mut self.archive)?;
                self.instant(tick, Some(of), region)
            }
            Change::Count(counter, value) => self.queue_metrics.count(
                &mut self.archive,
                &self.actors,
                &self.locations,
                tick,
                counter,
                value,
            ),
            Change::Locked { by, hold } => self.lock(tick, by, Event::ThreadAcquireLock(lock(hold))),
            Change::Unlocked { by, hold } => self.lock(tick, by, Event::ThreadReleaseLock(lock(hold))),
            Change::Event(event) => {
                self.add(self.attributes.cpu, event.cpu.map(Track::Cpu));
                self.add(self.attributes.lwp, event.lwp.map(Track::Lwp));
                self.add(self.attributes.thread, event.thread.map(Track::Thread));
                if let Some(context) = event.context {
                    let name = self.archive.definitions().string(context.name())?;
                    self.values.push((self.attributes.context, AttributeValue::String(name)));
                }
                if let Some(cpu) = event.cpu_seen {
                    self.values.push((self.attributes.cpu_seen, AttributeValue::U64(cpu.0.into())));
                }
                let (archive, regions, values) = (&mut self.archive, &mut self.regions, &mut self.values);
                let region = self.recorded_events.draw(archive, &self.actors, regions, event, values)?;
                self.instant(tick, event.track(), region)
            }
        }
    }

    fn finish(&mut self) -> io::Result<()> {
        self.lifetimes.write_rest(&mut self.archive, &self.locations)?;
        self.regions.group(&mut self.archive)?;
        self.archive.finish()
    }
}
