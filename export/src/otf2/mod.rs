//! Writes OTF2 archives: the Open Trace Format 2 of Score-P, which Vampir, Scalasca and Cube read.
//!
//! A library of its own: it knows the format, and nothing of what is told in it. It was written after the headers of
//! libotf2 3.0.2 and what its C writer makes of the same calls; a test compares the bytes.
//!
//! ```
//! use sigmund_export::otf2::*;
//!
//! # let folder = tempfile::tempdir()?;
//! # let folder = folder.path().join("archive");
//! let clock = ClockProperties { resolution: 2_600_000_000, offset: 1000, length: 5000, realtime: None };
//! let mut archive = Archive::create(&folder, clock, Options::default())?;
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
//! # The folder
//!
//! ```text
//! traces.otf2      the anchor file: the one that is opened
//! traces.def       global definitions: texts, regions, locations…
//! traces/17.evt    the events of location 17
//! traces/17.def    its own definitions
//! ```
//!
//! A location may have numbers of its own for regions and the rest; its `.def` then says what they are globally (mapping
//! tables). Here they are the global ones: the `.def` is there, since readers want it, and defines nothing.
//!
//! The anchor file is written last. Integers are little-endian (`42`; `23` would say big-endian):
//!
//! ```text
//! 03 42 "OTF2" 00 03 02 03 00 00   header, magic, version of the anchor, of the traces, of libotf2
//! u64 u64                          size of a chunk of events, of definitions
//! 01 01                            files as they are, not compressed
//! u64 u64                          number of locations, of global definitions
//! text text text                   machine, creator, description; each ends with 00
//! u32                              number of properties: 0
//! u64                              the trace's own number: a hash
//! u32 u32                          number of snapshots, of thumbnails: 0
//! 02 01 00                         end of file, of buffer, of chunk
//! ```
//!
//! # A file of events or definitions
//!
//! Chunks of one size, of which the last ends early. No record goes over their border, and each chunk of events begins
//! with a timestamp, so that a reader can begin with any of them:
//!
//! ```text
//! 0    2                   10                  18                                            chunk size
//! | 03 42 | u64 first event | u64 last event | record | record | … | record | 00 … 00 |
//! | 03 42 | u64 first event | u64 last event | record | … | record | 02 01 |
//! ```
//!
//! Events are numbered from 1 in their file. Definitions are not: their chunks say 1 and 0. libotf2 reads sizes of 256 KiB
//! to 16 MiB ([`CHUNK_SIZES`]), and needs so much memory for each location that it reads.
//!
//! # Records
//!
//! ```text
//! 05 u64                           timestamp: when it changes, before the record it is for. It never goes back
//! kind length body                 length: one byte; from 255 on, ff and a u64
//! 06 length count (id type value)… attributes of the event that follows
//! 0c region                        enter, without its length
//! 0d region                        leave, without its length
//! ```
//!
//! An integer in a body is the number of its bytes and these bytes: 0 is `00`, 300 is `02 2c 01`; the greatest there is,
//! "undefined", is `ff`. A negative one has all of its 8 bytes. Types and other enumerations are one byte. In an attribute
//! a floating-point value is its 8 bytes; in a metric it is the integer with its bits.
//!
//! | events ([`Event`]) | kind | body |
//! |---|---|---|
//! | Enter, Leave | 12, 13 | region |
//! | Metric | 31 | metric, count (1 byte), for each: type, value |
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
//! Strict readers (Python's `otf2.reader`) want a definition before all that refer to it, and `otf2-print` wants the
//! numbers of regions in a row. So numbers are given here, locations are defined when the archive is finished, as only
//! then their events are counted, and what names locations is held back until then.
//!
//! # Cost
//!
//! No file is open between two calls. What is in memory: up to 64 KiB of events a location, until these are more than
//! [`Options::memory`] together; then all is written. A reader is not so modest: libotf2 holds a file and a chunk for each
//! location that it reads at once, so 10⁵ locations need `ulimit -n` and `vm.max_map_count` above it.

mod anchor;
mod archive;
mod chunks;
mod definitions;
mod encode;
mod event;
mod ids;
mod kinds;
mod meaning;
mod texts;

pub use archive::{Archive, CHUNK_SIZES, Location, Options};
pub use definitions::{Definitions, LONGEST_TEXT};
pub use event::{Event, Lock, MetricValue, ThreadNumber, Value};
pub use ids::{
    AttributeId, CommId, GroupId, LocationGroupId, LocationId, MetricId, MetricMemberId, RegionId, StringId,
    SystemTreeNodeId,
};
pub use kinds::{
    Base, GroupType, LocationGroupType, LocationType, MetricMode, MetricOccurrence, Paradigm, ParadigmClass,
    RecorderKind, RegionRole, SystemTreeDomain, Type,
};
pub use meaning::{ClockProperties, MetricMember, MetricScope, Region};
