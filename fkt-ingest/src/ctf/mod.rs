//! Common Trace Format 1.8, the format of LTTng, barectf and babeltrace2.
//!
//! A trace is a folder:
//!
//! ```text
//!   metadata     text that declares everything else: types, packets, streams, events (TSDL)
//!   channel_0    a stream: packets of events, usually of one CPU
//!   channel_1
//!   index/       not read: packets contain their size
//! ```
//!
//! The specification is <https://diamon.org/ctf/v1.8.3/>. [`metadata`] parses the text, [`plan`] compiles it,
//! [`packet_stream`] runs it. A session folder of LTTng holds a trace for each domain, user and word size.
//!
//! Cost compared with libbabeltrace2 2.0.4, which runs the graphs of `babeltrace2`: 1.85 M events of hackbench
//! (scheduler, interrupts, all system calls; 14 M fields, 109 MB in the page cache, two streams, by `sigmund export
//! --format ctf` from a perf.data), least CPU time of six alternating runs on one CPU of an AMD EPYC that other
//! programs used too:
//!
//! ```text
//!   here, all fields read      read_speed FOLDER 1                               0.10 s   18 M events/s
//!   libbabeltrace2             babeltrace2 FOLDER -c sink.utils.dummy            0.73 s   2.5 M events/s
//!   and counting messages      babeltrace2 FOLDER -c sink.utils.counter          0.76 s   2.4 M events/s
//!   one stream of 0.95 M       read_speed FOLDER 1                               0.06 s   16 M events/s
//!   the same without a muxer   babeltrace2 run --component=src:source.ctf.fs --params='inputs=["FOLDER"]'
//!                              --component=sink:sink.utils.dummy --connect=src:sink   0.41 s   2.3 M events/s
//! ```
//!
//! So this reader is 7 times as fast. It also needs no C library to parse untrusted files.
//!
//! It does not read CTF 2, the index files, or packets that are compressed or encrypted (no tracer writes them), and
//! does not set an event's process, for which [`Event`](sigmund_model::Event) has no field: `vpid` is a parameter.
//!
//! Events of a trace with `domain = "kernel"` in its `env` are kernel events, with the effects of their names; all
//! others are user events. Their CPU is `cpu_id` of the packet, their LWP the context `tid` (kernel) or `vtid`
//! (program) if that was recorded. `vtid` is the number within the program's own namespace.

mod bits;
mod clock;
mod effects;
mod folder;
mod losses;
mod metadata;
mod packet;
mod packet_stream;
mod plan;
mod table;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use sigmund_model::{
    ClockDomain, ClockPair, Cpu, EventType, Hertz, Level, Loss, LossKind, Severity, Snapshot,
};

use crate::error::{Error, ErrorKind, ParseError};
use crate::input::Input;
use crate::trace_file::{TraceFile, TraceStream};
use clock::ClockScale;
use metadata::Metadata;
use packet_stream::CtfData;
use table::Table;

pub(crate) use metadata::is_metadata;
pub use packet_stream::CtfStream;

/// An open CTF trace: one folder with a `metadata` file.
#[derive(Debug)]
pub struct CtfTrace {
    metadata: Metadata,
    shared: Arc<CtfData>,
    scales: Vec<ClockScale>,
    tick_hz: Option<Hertz>,
    streams: Vec<StreamFiles>,
    losses: Vec<Loss>,
}

/// The files of one stream, in time order.
#[derive(Debug)]
struct StreamFiles {
    files: Vec<Input>,
    /// Index of the plan of its first packet.
    stream: Option<usize>,
    cpu: Option<Cpu>,
    buffer: String,
    /// The beginning of its first packet, on its clock.
    begin: Option<u64>,
}

/// All traces at or below a folder; empty if there are none.
pub(crate) fn open_folder(folder: &Path) -> Result<Vec<Box<dyn TraceFile>>, Error> {
    let traces = folder::traces(folder)?;
    let open = |trace: PathBuf| Ok(Box::new(CtfTrace::open(&trace)?) as Box<dyn TraceFile>);
    traces.into_iter().map(open).collect()
}

impl CtfTrace {
    /// Reads the metadata of the trace in `folder`, maps its streams and reads the headers of their packets.
    ///
    /// # Errors
    /// If a file cannot be read, or the metadata does not define a trace. If the metadata is damaged later on, the
    /// declarations before that are used, and the rest is among the losses.
    pub fn open(folder: &Path) -> Result<CtfTrace, Error> {
        let metadata = folder::metadata(folder)?;
        let folder::Streams { files, refused } = folder::streams(folder)?;
        let mut trace = CtfTrace::new(&folder.join("metadata"), &metadata, files)?;
        let level = trace.shared.level;
        let lost = |error: &Error| Loss::new(LossKind::Damaged, level, error.to_string());
        trace.losses.extend(refused.iter().map(lost));
        Ok(trace)
    }

    /// A trace in memory: the metadata, and streams with their names.
    ///
    /// # Errors
    /// Like [`open`](Self::open).
    pub fn from_bytes(
        name: &str,
        metadata: &[u8],
        streams: Vec<(String, Vec<u8>)>,
    ) -> Result<CtfTrace, Error> {
        let folder = Path::new(name);
        let input = |(name, bytes): (String, Vec<u8>)| Input::from_bytes(&folder.join(name), bytes);
        CtfTrace::new(&folder.join("metadata"), metadata, streams.into_iter().map(input).collect())
    }

    fn new(path: &Path, text: &[u8], files: Vec<Input>) -> Result<CtfTrace, Error> {
        // The metadata of CTF 2 is JSON text. Each part of it begins with the record separator (CTF 2, 5.1).
        if text.first() == Some(&0x1e) {
            let (expected, found) = ("the metadata of CTF 1.8".to_owned(), "that of CTF 2".to_owned());
            return Err(Error::at(
                ErrorKind::Unsupported,
                path,
                ParseError { at: 0, part: "metadata", expected, found },
            ));
        }
        let metadata = Metadata::read(text);
        let Some(trace) = &metadata.trace else {
            let none = ParseError {
                at: 0,
                part: "metadata",
                expected: "a block `trace`".to_owned(),
                found: "none".to_owned(),
            };
            let parse_error = metadata.parse_error.clone().unwrap_or(none);
            return Err(Error::at(ErrorKind::Damaged, path, parse_error));
        };
        let level = if metadata.env("domain") == Some("kernel") { Level::Kern } else { Level::User };
        let table = Table::new(&metadata, level).map_err(|found| {
            let expected = "consistent declarations".to_owned();
            Error::at(ErrorKind::Damaged, path, ParseError { at: 0, part: "metadata", expected, found })
        })?;
        let shared = Arc::new(CtfData { table, level, uuid: trace.uuid, order: trace.order });
        let (scales, tick_hz) = clock::scales(&metadata.clocks);
        let losses =
            metadata.parse_error.iter().map(|parse_error| metadata_loss(level, path, parse_error)).collect();
        let streams = StreamFiles::group(&shared, files);
        Ok(CtfTrace { metadata, shared, scales, tick_hz, streams, losses })
    }

    /// One stream for each stream of the trace, from its first event. Each call starts again from the beginning.
    pub fn streams(&self) -> Vec<CtfStream> {
        let scale = |files: &StreamFiles| self.scale(files);
        let stream =
            |files: &StreamFiles| CtfStream::new(Arc::clone(&self.shared), scale(files), files.files.clone());
        self.streams.iter().map(stream).collect()
    }

    fn scale(&self, files: &StreamFiles) -> ClockScale {
        self.clock(files).and_then(|clock| self.scales.get(clock)).copied().unwrap_or(clock::UNKNOWN)
    }

    /// Index of the clock that timestamps these files.
    fn clock(&self, files: &StreamFiles) -> Option<usize> {
        self.shared.table.streams.get(files.stream?)?.clock
    }
}

fn metadata_loss(level: Level, path: &Path, parse_error: &ParseError) -> Loss {
    let detail = format!("{}: {parse_error}; declarations after this are missing", path.display());
    Loss { severity: Severity::Serious, ..Loss::new(LossKind::Damaged, level, detail) }
}

impl StreamFiles {
    /// Files of one stream instance are concatenated (`--tracefile-size`); others are streams of their own.
    fn group(shared: &CtfData, files: Vec<Input>) -> Vec<StreamFiles> {
        let mut groups: BTreeMap<usize, Vec<FileOfPackets>> = BTreeMap::new();
        let mut first_of: BTreeMap<(usize, u64), usize> = BTreeMap::new();
        for (index, file) in files.into_iter().enumerate() {
            let head = FileOfPackets::read(shared, file);
            let instance = head.stream.zip(head.instance);
            // In the order of each instance's first file.
            let place = instance.map_or(index, |instance| *first_of.entry(instance).or_insert(index));
            groups.entry(place).or_default().push(head);
        }
        groups.into_values().map(StreamFiles::of).collect()
    }

    fn of(mut heads: Vec<FileOfPackets>) -> StreamFiles {
        heads.sort_by_key(|head| head.begin);
        let first = heads.first();
        let stream = first.and_then(|head| head.stream);
        let buffer = first.map(|head| channel(&head.file.name(), heads.len() > 1)).unwrap_or_default();
        let cpu = first.and_then(|head| head.cpu).filter(|cpu| heads.iter().all(|h| h.cpu == Some(*cpu)));
        let begin = heads.iter().find_map(|head| head.begin);
        StreamFiles { files: heads.into_iter().map(|head| head.file).collect(), stream, cpu, buffer, begin }
    }
}

/// The channel of LTTng that a file belongs to: `channel0_1` and `channel0_1_7` are of `channel0`.
fn channel(file: &str, numbered: bool) -> String {
    let cut = |name: &str| match name.rsplit_once('_') {
        Some((channel, number)) if number.bytes().all(|b| b.is_ascii_digit()) => channel.to_owned(),
        _ => name.to_owned(),
    };
    let name = cut(file);
    if numbered { cut(&name) } else { name }
}

/// The content of the packet headers of a file.
struct FileOfPackets {
    file: Input,
    stream: Option<usize>,
    instance: Option<u64>,
    begin: Option<u64>,
    /// The CPU, if all packets have the same.
    cpu: Option<Cpu>,
}

impl FileOfPackets {
    fn read(shared: &CtfData, file: Input) -> FileOfPackets {
        let mut state = shared.state(file.len());
        let (mut at, mut packets) = (0, Vec::new());
        let mut first = None;
        while let Some(rest) = file.bytes().get(at..).filter(|rest| !rest.is_empty()) {
            let read = packet::read(&shared.table, shared.uuid, rest, at as u64, &mut state);
            let Ok(packet) = read else { break };
            let size = packet.size.and_then(|size| usize::try_from(size).ok());
            at = at.saturating_add(size.unwrap_or(rest.len()));
            if !packets.contains(&packet.cpu) {
                packets.push(packet.cpu);
            }
            first.get_or_insert(packet);
            if packets.len() > 1 {
                break;
            }
        }
        let cpu = if let [only] = packets[..] { only } else { None };
        let stream = first.as_ref().map(|packet| packet.stream);
        let instance = first.as_ref().and_then(|packet| packet.stream_instance_id);
        FileOfPackets { stream, instance, begin: first.and_then(|packet| packet.begin), cpu, file }
    }
}

impl TraceFile for CtfTrace {
    fn format(&self) -> String {
        format!("CTF 1.8, {}", table::order_name(self.shared.order))
    }

    fn event_types(&self) -> &[EventType] {
        &self.shared.table.types
    }

    fn streams(&self) -> Vec<TraceStream> {
        let boxed = |(files, stream): (&StreamFiles, CtfStream)| TraceStream {
            clock: self.scale(files).domain,
            cpu: files.cpu,
            buffer: files.buffer.clone(),
            events: Box::new(stream),
        };
        self.streams.iter().zip(CtfTrace::streams(self)).map(boxed).collect()
    }

    fn losses(&self) -> &[Loss] {
        &self.losses
    }

    fn snapshots(&self) -> Vec<(ClockDomain, Snapshot)> {
        self.metadata.clocks.iter().flat_map(|clock| clock.snapshots()).collect()
    }

    /// For each clock with a declared offset to the epoch, both clocks at the beginning of the first packet.
    fn clock_pairs(&self) -> Vec<ClockPair> {
        let of_clock =
            |index: usize| self.streams.iter().filter(move |files| self.clock(files) == Some(index));
        let begin = |index: usize| of_clock(index).filter_map(|files| files.begin).min();
        let clocks = self.metadata.clocks.iter().enumerate();
        clocks.filter_map(|(index, clock)| clock.pair(begin(index)?)).collect()
    }

    fn tick_hz(&self) -> Option<Hertz> {
        self.tick_hz
    }

    /// `env` unchanged (`env.hostname`), the host and the tracer by the names that other formats use, and each clock
    /// with its offset to the epoch in nanoseconds.
    fn facts(&self) -> Vec<(String, String)> {
        let env = |name| self.metadata.env(name).map(str::to_owned);
        let mut facts = Vec::new();
        facts.extend(env("hostname").map(|host| ("host".to_owned(), host)));
        if let Some(tracer) = env("tracer_name") {
            let version: Vec<String> = ["tracer_major", "tracer_minor"].into_iter().filter_map(env).collect();
            facts
                .push(("writer".to_owned(), format!("{tracer} {}", version.join(".")).trim_end().to_owned()));
        }
        let uname: Vec<String> =
            ["sysname", "kernel_release", "kernel_version"].into_iter().filter_map(env).collect();
        if !uname.is_empty() {
            facts.push(("uname".to_owned(), uname.join(" ")));
        }
        facts.extend(self.metadata.env.iter().map(|(name, value)| (format!("env.{name}"), value.clone())));
        for clock in &self.metadata.clocks {
            let name = &clock.name;
            let mut fact = |what: &str, value: String| facts.push((format!("clock.{name}.{what}"), value));
            fact("freq", clock.freq.to_string());
            fact("offset_ns", clock.offset_ns().to_string());
            if !clock.uuid.is_empty() {
                fact("uuid", clock.uuid.clone());
            }
            if !clock.description.is_empty() {
                fact("description", clock.description.clone());
            }
        }
        facts
    }
}
