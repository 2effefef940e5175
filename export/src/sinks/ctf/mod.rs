//! Common Trace Format 1.8, for babeltrace2 and Trace Compass.
//!
//! The specification is <https://diamon.org/ctf/v1.8.3/>. A trace is a folder: `metadata` declares the contents of the
//! streams (in TSDL, as plain text, which both readers accept), and each stream is a file of packets.
//!
//! ```text
//!   metadata
//!   kernel_0        stream 0: kernel events of CPU 0; a file per CPU
//!   kernel_1
//!   user_0          stream 1: user events of the first process; a file per process
//!   kernel_unplaced stream 2: kernel events whose CPU is not known
//!
//!   event:  0    4           12                                     16    20       28
//!           | id | timestamp | (user events: cpu_id i32, cpu_seen i32) tid i32 | thread u64 | context u8 | fields …
//! ```
//!
//! Time stamps are ticks; the declaration of the clock has the rate and the time of tick 0. Everything is little endian
//! and aligned to bytes. Unknown 32-bit numbers are −1; `thread` is 0 if there is none. `packet_stream.rs` describes
//! packets; [`original`] describes how names are converted to identifiers, and reverses it.
//!
//! `env` declares the trace as one of LTTng's kernel tracer, and kernel events have LTTng's names and fields
//! (`usual_names.rs`), so that Trace Compass's scheduler and control-flow analyses accept it.
//!
//! | what | how it is drawn | lost |
//! |---|---|---|
//! | event | event with its name and declared fields, and its CPU, LWP, user thread and context | the distinction of two LWPs with one tid, or two user threads with one number |
//! | number | integer of the declared size; wider if it does not fit | |
//! | named number | enumeration: number and label | a second name of one number; all names in the events that Trace Compass reads (`prev_state`, `vec`); names beyond 4 MiB (counted) |
//! | text | string, UTF-8; an event with an empty string has a separate class (babeltrace2 2.0.4 would show an older text) | NUL becomes U+2400 |
//! | text in a number's field, number in a text's field | another class of the same event, with that type | |
//! | a parameter that could not be read | another class of the same event, without the field | |
//! | the 65th combination of these in one event | all fields as texts (counted) | types |
//! | `prev_state` of `sched_switch` | its lowest byte, which is the state; Trace Compass treats 0x100, "preempted", as an unknown state. The recorded number is `prev_state_recorded` | |
//! | `sys_enter`, `sys_exit` | `syscall_entry_read`, `syscall_exit_read` | |
//! | an event under LTTng's name without the fields that Trace Compass needs | its name, with `_incomplete` | |
//! | a user event with the name of a kernel event | `user:` and its name | |
//! | kernel event without a CPU | stream 2, which Trace Compass's analyses ignore (counted) | |
//! | states, slices, wakeups, migrations, counters | | all: viewers derive them from events |
//! | lost events | `events_discarded` is 0 | the losses of the recording |
//! | names of LWPs, processes | those in events (`next_comm`) | the others |
//! | fractions of a tick rate in Hz | | 0.2 ppb at 2.6 GHz |
//!
//! This follows the sources of Trace Compass (2012 to 2019); no trace was opened in it. Trace Compass converts ticks
//! other than nanoseconds in a `double`: with an offset from 1970, times are exact to about 256 ns. babeltrace2 prints
//! the exact ticks with `--clock-cycles`. Readers order streams by nanoseconds: events of two streams within one
//! nanosecond may be swapped.
//!
//! # Memory and speed
//!
//! At most 64 MiB are buffered for all streams together, and one file is open at a time. The metadata, whose
//! size depends on the declarations, is written last.
//!
//! 10⁷ `sched_switch` of seven fields, 2 CPUs, to tmpfs: 1.10 s of one CPU, 9 M events/s, 4 MB resident. 10⁷ changes of
//! which an eighth are events: 0.30 s, of which the generator takes 0.18 (AMD EPYC, TSC 2.6 GHz, 2 CPUs; least of 4
//! runs of `cargo test --release -p sigmund-export --test it -- --ignored --nocapture ctf::speed`).

mod clock;
mod event_classes;
mod form;
mod metadata;
mod names;
mod packet_stream;
mod usual_names;

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;

use sigmund_files::Folder;
use sigmund_model::{Context, Level, Lwp, Ticks};

use crate::timeline::{Actors, Change, CpuId, ProcessId, RecordedEvent, Sink};
use event_classes::EventClasses;
use metadata::NO_CONTEXT;
pub use names::original;
use packet_stream::{PACKET, PacketStream, StreamClass};

/// Maximum size of the buffers of all streams together, in bytes; the longest event may exceed it.
const MAX_BUFFERED: usize = 64 << 20;

/// Writes a CTF trace.
#[derive(Debug)]
pub struct Ctf {
    folder: Folder,
    actors: Arc<Actors>,
    uuid: [u8; 16],
    classes: EventClasses,
    streams: Vec<PacketStream>,
    kernel: HashMap<CpuId, usize>,
    user: HashMap<ProcessId, usize>,
    unplaced: Option<usize>,
    waiting: usize,
    summary: Summary,
}

/// Counts of what was written, changed or left out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Events.
    pub events: u64,
    /// Kernel events among them whose CPU is unknown; they are in a separate stream.
    pub unplaced: u64,
    /// Names of numbers that are not kept.
    pub names_left_out: u64,
    /// Events whose fields are all texts, because their declaration has too many classes.
    pub as_text: u64,
}

impl Ctf {
    /// Creates a trace in `folder`, which is created if it does not exist.
    ///
    /// # Errors
    /// If the folder cannot be created, or is not empty.
    pub fn create(folder: &Path, actors: Arc<Actors>) -> io::Result<Ctf> {
        Ctf::create_in(Folder::create_or_take_empty(folder, None)?, actors)
    }

    /// Creates a trace in an open, empty folder.
    ///
    /// # Errors
    /// If files cannot be written.
    pub fn create_in(folder: Folder, actors: Arc<Actors>) -> io::Result<Ctf> {
        Ok(Ctf {
            folder,
            uuid: uuid(&actors),
            classes: EventClasses::new(&actors.event_types),
            actors,
            streams: Vec::new(),
            kernel: HashMap::new(),
            user: HashMap::new(),
            unplaced: None,
            waiting: 0,
            summary: Summary::default(),
        })
    }

    /// Counts of what was written so far.
    pub fn summary(&self) -> Summary {
        let left_out = self.classes.left_out;
        Summary { names_left_out: left_out.labels, as_text: left_out.as_text, ..self.summary }
    }

    fn event(&mut self, tick: Ticks, event: &RecordedEvent<'_>) -> io::Result<()> {
        let (class, at) = self.stream(event);
        let stream = &mut self.streams[at];
        let before = stream.len();
        let out = stream.event(tick);
        let id_at = out.len();
        out.extend_from_slice(&[0; 4]);
        out.extend_from_slice(&tick.0.to_le_bytes());
        write_context(out, &self.actors, class, event);
        let id = self.classes.write(out, event.kind.index(), class, event.params);
        out[id_at..id_at + 4].copy_from_slice(&id.to_le_bytes());
        let len = out.len();
        self.summary.events += 1;
        self.waiting += len - before;
        if len >= PACKET {
            self.waiting -= len;
            return self.streams[at].flush(&self.folder, self.uuid);
        }
        if self.waiting >= MAX_BUFFERED { self.flush() } else { Ok(()) }
    }

    /// The stream of an event.
    #[inline]
    fn stream(&mut self, event: &RecordedEvent<'_>) -> (StreamClass, usize) {
        if self.actors[event.kind].level == Level::User {
            let process = self.process(event);
            let stream = self.user.get(&process).copied();
            return (StreamClass::User, stream.unwrap_or_else(|| self.new_user_stream(process)));
        }
        let Some(cpu) = event.cpu else {
            self.summary.unplaced += 1;
            let stream = self.unplaced;
            return (StreamClass::Unplaced, stream.unwrap_or_else(|| self.new_unplaced_stream()));
        };
        let stream = self.kernel.get(&cpu).copied();
        (StreamClass::Kernel, stream.unwrap_or_else(|| self.new_kernel_stream(cpu)))
    }

    /// The process of the LWP, or of the user thread; if neither is known, an index that no process has.
    fn process(&self, event: &RecordedEvent<'_>) -> ProcessId {
        let of_lwp = event.lwp.map(|lwp| self.actors[lwp].process);
        let of_thread = || event.thread.map(|thread| self.actors[thread].process);
        of_lwp.or_else(of_thread).unwrap_or(ProcessId(self.actors.processes.len() as u32))
    }

    fn new_kernel_stream(&mut self, cpu: CpuId) -> usize {
        let number = self.actors[cpu].0;
        let at = self.new_stream(
            StreamClass::Kernel,
            &format!("kernel_{number}"),
            cpu.index(),
            Some(number as i32),
        );
        self.kernel.insert(cpu, at);
        at
    }

    fn new_user_stream(&mut self, process: ProcessId) -> usize {
        let pid = self.actors.processes.get(process.index()).and_then(|process| process.pid);
        let pid = pid.map_or(-1, |pid| pid.0 as i32);
        let name = format!("user_{}", process.0);
        let at = self.new_stream(StreamClass::User, &name, process.index(), Some(pid));
        self.user.insert(process, at);
        at
    }

    fn new_unplaced_stream(&mut self) -> usize {
        let at = self.new_stream(StreamClass::Unplaced, "kernel_unplaced", 0, None);
        self.unplaced = Some(at);
        at
    }

    fn new_stream(&mut self, class: StreamClass, name: &str, instance: usize, owner: Option<i32>) -> usize {
        self.streams.push(PacketStream::new(name.to_owned(), class, instance as u64, owner));
        self.streams.len() - 1
    }

    fn flush(&mut self) -> io::Result<()> {
        self.waiting = 0;
        self.streams.iter_mut().try_for_each(|stream| stream.flush(&self.folder, self.uuid))
    }
}

impl Sink for Ctf {
    fn change(&mut self, tick: Ticks, change: &Change<'_>) -> io::Result<()> {
        match change {
            Change::Event(event) => self.event(tick, event),
            _ => Ok(()),
        }
    }

    fn needs_events_only(&self) -> bool {
        true
    }

    fn finish(&mut self) -> io::Result<()> {
        self.flush()?;
        let text = metadata::text(&self.actors, self.uuid, &self.classes);
        self.folder.create_file("metadata")?.write_all(text.as_bytes())
    }
}

#[inline]
fn write_context(out: &mut Vec<u8>, actors: &Actors, class: StreamClass, event: &RecordedEvent<'_>) {
    let number = |number: Option<u32>| number.map_or(-1, |number| number as i32).to_le_bytes();
    if class == StreamClass::User {
        out.extend_from_slice(&number(event.cpu.map(|cpu| actors[cpu].0)));
        out.extend_from_slice(&number(event.cpu_seen.map(|cpu| cpu.0)));
    }
    let idle = (event.context == Some(Context::Idle)).then_some(Lwp::IDLE.0);
    out.extend_from_slice(&number(event.lwp.map(|lwp| actors[lwp].lwp.0).or(idle)));
    out.extend_from_slice(&event.thread.map_or(0, |thread| actors[thread].thread.0).to_le_bytes());
    out.push(event.context.map_or(NO_CONTEXT, |context| context as u8));
}

/// A hash of the actors, so that an export can be repeated byte by byte. Version 8 of RFC 9562.
fn uuid(actors: &Actors) -> [u8; 16] {
    let half = |half: u8| {
        let mut hasher = DefaultHasher::new();
        let clock = &actors.clock;
        (half, &actors.name, clock.first.0, clock.last.0, clock.realtime_at_first).hash(&mut hasher);
        (actors.cpus.len(), actors.lwps.len(), actors.threads.len()).hash(&mut hasher);
        actors.event_types.hash(&mut hasher);
        hasher.finish().to_le_bytes()
    };
    let mut uuid = [0; 16];
    uuid[..8].copy_from_slice(&half(0));
    uuid[8..].copy_from_slice(&half(1));
    uuid[6] = 0x80 | uuid[6] & 0x0f;
    uuid[8] = 0x80 | uuid[8] & 0x3f;
    uuid
}
