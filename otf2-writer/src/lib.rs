//! Writes OTF2 archives: the Open Trace Format 2 of Score-P, which Vampir, Scalasca and Cube read.
//!
//! Pure Rust, without libotf2: the encoding follows the headers of libotf2 3.0.2, and a test compares it byte by byte
//! with the output of libotf2's C writer for the same calls. This crate only writes; it does not read archives, and it
//! does not record anything.
//!
//! An [`Archive`] has global [`Definitions`] (strings, regions, groups …) and a stream of [`Event`]s for each location.
//! A location is a thread, or a series of metrics. Times are ticks of one clock, and must not decrease within a
//! location.
//!
//! ```
//! use otf2_writer::*;
//!
//! # let directory = tempfile::tempdir()?;
//! # let directory = directory.path().join("archive");
//! let clock = ClockProperties { resolution: 2_600_000_000, offset: 1000, length: 5000, realtime: None };
//! let mut archive = Archive::create(&directory, clock, Options::default())?;
//!
//! let definitions = archive.definitions();
//! let (name, class) = (definitions.string("localhost")?, definitions.string("machine")?);
//! let machine = definitions.system_tree_node(name, class, None)?;
//! let name = definitions.string("a process")?;
//! let process = definitions.location_group(name, LocationGroupType::Process, machine)?;
//! let (name, description) = (definitions.string("main")?, StringId::EMPTY);
//! let (role, paradigm) = (RegionRole::Function, Paradigm::User);
//! let main = definitions.region(Region { name, description, role, paradigm })?;
//!
//! let thread = archive.add_location(LocationId(0), name, LocationType::CpuThread, process)?;
//! archive.write(thread, 1000, Event::Enter(main), &[])?;
//! archive.write(thread, 6000, Event::Leave(main), &[])?;
//! archive.finish()?;
//! # Ok::<(), std::io::Error>(())
//! ```
//!
//! Checked: times of a location, sizes, and ids of locations. Not checked: that regions nest, and that the ids in an
//! event are defined. Readers check both.
//!
//! # Files
//!
//! ```text
//! traces.otf2      the anchor file, which readers open
//! traces.def       global definitions: strings, regions, locations…
//! traces/17.evt    the events of location 17
//! traces/17.def    the local definitions of location 17
//! ```
//!
//! A location may have local ids for regions and other definitions; its `.def` then maps them to the global ones. This
//! crate uses global ids everywhere, so a `.def` contains no definitions; it exists because readers expect it.
//!
//! The anchor file is written last. Integers are little-endian (`42`; `23` means big-endian):
//!
//! ```text
//! 03 42 "OTF2" 00 03 02 03 00 00   header, magic, version of the anchor, of the traces, of libotf2
//! u64 u64                          size of a chunk of events, of definitions
//! 01 01                            substrate POSIX, not compressed
//! u64 u64                          number of locations, of global definitions
//! text text text                   machine, creator, description; each ends with 00
//! u32                              number of properties: 0
//! u64                              trace id: a hash
//! u32 u32                          number of snapshots, of thumbnails: 0
//! 02 01 00                         end of file, of buffer, of chunk
//! ```
//!
//! # A file of events or definitions
//!
//! A sequence of chunks of one size; only the last may be shorter. No record crosses the end of a chunk, and each chunk
//! of events begins with a timestamp, so a reader can start at any chunk:
//!
//! ```text
//! 0    2                   10                  18                                            chunk size
//! | 03 42 | u64 first event | u64 last event | record | record | … | record | 00 … 00 |
//! | 03 42 | u64 first event | u64 last event | record | … | record | 02 01 |
//! ```
//!
//! Events are numbered from 1 in each file. Definitions are not numbered: their headers contain 1 and 0. libotf2 reads
//! chunks of 256 KiB to 16 MiB ([`CHUNK_SIZES`]), and allocates one for each location that it reads.
//!
//! # Records
//!
//! ```text
//! 05 u64                           timestamp of the next records; written when it changes. It never decreases
//! kind length body                 length: one byte; from 255 on, ff and a u64
//! 06 length count (id type value)… attributes of the event that follows
//! 0c region                        enter, without its length
//! 0d region                        leave, without its length
//! ```
//!
//! An integer in a body is its length in bytes, then these bytes: 0 is `00`, 300 is `02 2c 01`; the maximum, which
//! means "undefined", is `ff`. A negative one has 8 bytes. Types and other enumerations are one byte. In an attribute a
//! floating-point value is its 8 bytes; in a metric it is the integer with its bits.
//!
//! | events ([`Event`]) | kind | body |
//! |---|---|---|
//! | Enter, Leave | 12, 13 | region |
//! | Metric | 31 | metric, count (1 byte), for each: type, value |
//! | ThreadFork | 53 | paradigm, threads |
//! | ThreadJoin | 54 | paradigm |
//! | ThreadTeamBegin, ThreadTeamEnd | 55, 56 | comm |
//! | ThreadAcquireLock, ThreadReleaseLock | 57, 58 | paradigm, lock, acquisition |
//! | ThreadCreate, ThreadBegin, ThreadWait, ThreadEnd | 62 to 65 | comm, number |
//!
//! | definitions ([`Definitions`]) | kind | body |
//! |---|---|---|
//! | ClockProperties | 5 | resolution, offset, length, realtime |
//! | Paradigm | 6 | paradigm, name, class |
//! | String | 10 | self, bytes, `00` |
//! | Attribute | 11 | self, name, type, description |
//! | SystemTreeNode | 12 | self, name, class, parent |
//! | LocationGroup | 13 | self, name, type, system tree node, creator |
//! | Location | 14 | self, name, type, number of events, location group |
//! | Region | 15 | self, name, description, `00`, file, first line, last line, mangled name, role, paradigm, flags |
//! | Group | 18 | self, name, old type, count, members, type, paradigm, flags |
//! | MetricMember | 19 | self, name, description, kind, mode, type, base, exponent, unit |
//! | MetricClass | 20 | self, count (1 byte), members, occurrence, recorder |
//! | MetricInstance | 21 | self, class, recorder, scope's kind, scope |
//! | Comm | 22 | self, name, group, parent, flags |
//! | SystemTreeNodeDomain | 27 | system tree node, domain |
//!
//! Strict readers (Python's `otf2.reader`) require a definition before all definitions that refer to it, and
//! `otf2-print` requires consecutive ids of regions. So this crate assigns the ids. A location's definition contains
//! its number of events. So locations are defined when the archive is finished; after them, the definitions that may
//! refer to locations.
//!
//! # Cost
//!
//! No file is open between two calls. Memory: up to 64 KiB of events for each location, and at most [`Options::memory`]
//! for all locations together. When this limit is exceeded, all buffered events are written. Readers need more: libotf2
//! keeps an open file and a chunk for each location that it reads at the same time. So for 10⁵ locations `ulimit -n`
//! and `vm.max_map_count` must be above that number.

#![forbid(unsafe_code)]

mod anchor;
mod archive;
mod chunks;
mod definitions;
mod encode;
mod enumerations;
mod event;
mod ids;
mod known_strings;
mod records;
mod storage;

pub use archive::{Archive, CHUNK_SIZES, Location, Options};
pub use definitions::{Definitions, LONGEST_TEXT};
pub use enumerations::{
    Base, GroupType, LocationGroupType, LocationType, MetricMode, MetricOccurrence, Paradigm, ParadigmClass,
    RecorderKind, RegionRole, SystemTreeDomain, Type,
};
pub use event::{AttributeValue, Event, Lock, MetricValue, ThreadNumber};
pub use ids::{
    AttributeId, CommId, GroupId, LocationGroupId, LocationId, MetricId, MetricMemberId, RegionId, StringId,
    SystemTreeNodeId,
};
pub use records::{ClockProperties, MetricMember, MetricScope, Region};
pub use storage::{Directory, Storage};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
