//! The global definitions, to which events refer: the records of `traces.def`.

use std::{io, sync::Arc};

use crate::{
    AttributeId, ClockProperties, CommId, GroupId, GroupType, LocationGroupId, LocationGroupType, LocationId,
    LocationType, MetricId, MetricMember, MetricMemberId, MetricOccurrence, MetricScope, Paradigm,
    ParadigmClass, RecorderKind, Region, RegionId, Storage, StringId, SystemTreeDomain, SystemTreeNodeId,
    Type,
    chunks::Chunks,
    encode::{self, UNDEFINED_U32, UNDEFINED_U64},
    known_strings::KnownStrings,
};

const CLOCK_PROPERTIES: u8 = 5;
const PARADIGM: u8 = 6;
const STRING: u8 = 10;
const ATTRIBUTE: u8 = 11;
const SYSTEM_TREE_NODE: u8 = 12;
const LOCATION_GROUP: u8 = 13;
const LOCATION: u8 = 14;
const REGION: u8 = 15;
const GROUP: u8 = 18;
const METRIC_MEMBER: u8 = 19;
const METRIC_CLASS: u8 = 20;
const METRIC_INSTANCE: u8 = 21;
const COMM: u8 = 22;
const SYSTEM_TREE_NODE_DOMAIN: u8 = 27;

/// `OTF2_METRIC_TYPE_OTHER`: from none of the sources of counters that the format names.
const METRIC_TYPE_OTHER: u8 = 0;
/// `OTF2_SCOPE_LOCATION`, `OTF2_SCOPE_LOCATION_GROUP`.
const SCOPES: [u8; 2] = [0, 1];
/// `OTF2_GROUP_FLAG_NONE`, `OTF2_REGION_FLAG_NONE`, `OTF2_COMM_FLAG_NONE`.
const NO_FLAGS: u32 = 0;

/// Maximum length of a string, in bytes. Longer ones are truncated: a definition must fit into a chunk.
pub const LONGEST_TEXT: usize = 1 << 20;

/// Definitions are written to the file when they reach this size, in bytes.
const FLUSH_AT: usize = 64 << 10;

const FILE: &str = "traces.def";

/// The global definitions. Each gets the next id of its kind.
#[derive(Debug)]
pub struct Definitions {
    storage: Arc<dyn Storage>,
    chunks: Chunks,
    /// Records that refer to locations, which are defined when the archive is finished.
    deferred: Vec<Vec<u8>>,
    written: u64,
    texts: KnownStrings,
    next: NextIds,
}

/// The next id of each kind.
#[derive(Debug, Default)]
struct NextIds {
    string: u32,
    attribute: u32,
    node: u32,
    location_group: u32,
    region: u32,
    group: u32,
    metric_member: u32,
    metric: u32,
    comm: u32,
}

fn take_id(next: &mut u32) -> u32 {
    let id = *next;
    *next = id.wrapping_add(1);
    id
}

impl Definitions {
    pub(crate) fn create(
        storage: Arc<dyn Storage>,
        chunk_size: usize,
        clock: ClockProperties,
    ) -> io::Result<Definitions> {
        let (chunks, texts) = (Chunks::new(chunk_size), KnownStrings::default());
        let mut definitions = Definitions {
            storage,
            chunks,
            deferred: Vec::new(),
            written: 0,
            texts,
            next: NextIds::default(),
        };
        definitions.clock_properties(clock)?;
        definitions.string("")?;
        Ok(definitions)
    }

    /// Number of definitions so far.
    pub(crate) fn written(&self) -> u64 {
        self.written
    }

    fn clock_properties(&mut self, clock: ClockProperties) -> io::Result<()> {
        self.write(CLOCK_PROPERTIES, |out| {
            encode::u64(out, clock.resolution);
            encode::u64(out, clock.offset);
            encode::u64(out, clock.length);
            encode::u64(out, clock.realtime.unwrap_or(UNDEFINED_U64));
        })
    }

    /// A string. A text longer than [`LONGEST_TEXT`] is truncated.
    ///
    /// A text that is cached gets the id it already has. When the cached texts together exceed 16 MiB, the cache is
    /// cleared to bound its memory; a text that occurs again is then defined again, with a new id.
    ///
    /// # Errors
    /// If the file cannot be written; [`io::ErrorKind::InvalidInput`] if the definition does not fit into a chunk. This
    /// applies to all definitions.
    pub fn string(&mut self, text: &str) -> io::Result<StringId> {
        let text = &text[..text.floor_char_boundary(LONGEST_TEXT)];
        if let Some(id) = self.texts.get(text) {
            return Ok(id);
        }
        let id = StringId(take_id(&mut self.next.string));
        self.write(STRING, |out| {
            encode::u32(out, id.0);
            encode::text(out, text);
        })?;
        self.texts.insert(text, id);
        Ok(id)
    }

    /// A paradigm: its name and class in this archive.
    ///
    /// # Errors
    /// See [`string`](Self::string).
    pub fn paradigm(&mut self, paradigm: Paradigm, name: StringId, class: ParadigmClass) -> io::Result<()> {
        self.write(PARADIGM, |out| {
            out.push(paradigm.into());
            encode::u32(out, name.0);
            out.push(class.into());
        })
    }

    /// An attribute: a value that events can have.
    ///
    /// # Errors
    /// See [`string`](Self::string).
    pub fn attribute(&mut self, name: StringId, description: StringId, ty: Type) -> io::Result<AttributeId> {
        let id = AttributeId(take_id(&mut self.next.attribute));
        self.write(ATTRIBUTE, |out| {
            encode::u32(out, id.0);
            encode::u32(out, name.0);
            out.push(ty.into());
            encode::u32(out, description.0);
        })?;
        Ok(id)
    }

    /// A node of the system tree: a machine or a part of one. `class` is a word such as `machine`.
    ///
    /// # Errors
    /// See [`string`](Self::string).
    pub fn system_tree_node(
        &mut self,
        name: StringId,
        class: StringId,
        parent: Option<SystemTreeNodeId>,
    ) -> io::Result<SystemTreeNodeId> {
        let id = SystemTreeNodeId(take_id(&mut self.next.node));
        self.write(SYSTEM_TREE_NODE, |out| {
            encode::u32(out, id.0);
            encode::u32(out, name.0);
            encode::u32(out, class.0);
            encode::u32(out, parent.map_or(UNDEFINED_U32, |parent| parent.0));
        })?;
        Ok(id)
    }

    /// The domain of a system tree node.
    ///
    /// # Errors
    /// See [`string`](Self::string).
    pub fn system_tree_node_domain(
        &mut self,
        node: SystemTreeNodeId,
        domain: SystemTreeDomain,
    ) -> io::Result<()> {
        self.write(SYSTEM_TREE_NODE_DOMAIN, |out| {
            encode::u32(out, node.0);
            out.push(domain.into());
        })
    }

    /// A process, or another group of locations.
    ///
    /// # Errors
    /// See [`string`](Self::string).
    pub fn location_group(
        &mut self,
        name: StringId,
        ty: LocationGroupType,
        parent: SystemTreeNodeId,
    ) -> io::Result<LocationGroupId> {
        let id = LocationGroupId(take_id(&mut self.next.location_group));
        self.write(LOCATION_GROUP, |out| {
            encode::u32(out, id.0);
            encode::u32(out, name.0);
            out.push(ty.into());
            encode::u32(out, parent.0);
            encode::u32(out, UNDEFINED_U32); // the group that created it
        })?;
        Ok(id)
    }

    /// A region.
    ///
    /// # Errors
    /// See [`string`](Self::string).
    pub fn region(&mut self, region: Region) -> io::Result<RegionId> {
        let id = RegionId(take_id(&mut self.next.region));
        self.write(REGION, |out| {
            encode::u32(out, id.0);
            encode::u32(out, region.name.0);
            encode::u32(out, region.description.0);
            out.push(0); // the region type of versions before 1.1: unknown
            encode::u32(out, StringId::EMPTY.0); // source file
            encode::u32(out, 0); // first line
            encode::u32(out, 0); // last line
            encode::u32(out, region.name.0); // mangled name
            out.push(region.role.into());
            out.push(region.paradigm.into());
            encode::u32(out, NO_FLAGS);
        })?;
        Ok(id)
    }

    /// A set of definitions. Members of a [`GroupType::CommGroup`] are indices into the [`GroupType::CommLocations`] of
    /// the same paradigm; members of other groups are ids.
    ///
    /// It may refer to locations, so it is written when the archive is finished.
    ///
    /// # Errors
    /// See [`string`](Self::string).
    pub fn group(
        &mut self,
        name: StringId,
        ty: GroupType,
        paradigm: Paradigm,
        members: &[u64],
    ) -> io::Result<GroupId> {
        let id = GroupId(take_id(&mut self.next.group));
        self.defer(GROUP, |out| {
            encode::u32(out, id.0);
            encode::u32(out, name.0);
            // The group type as in versions before 1.2, whose only paradigm was MPI; 0 (unknown) for other groups.
            out.push(match (ty, paradigm) {
                (GroupType::Locations | GroupType::Regions, Paradigm::Unknown) => ty.into(),
                _ => 0,
            });
            encode::u32(out, members.len() as u32);
            for &member in members {
                encode::u64(out, member);
            }
            out.push(ty.into());
            out.push(paradigm.into());
            encode::u32(out, NO_FLAGS);
        });
        Ok(id)
    }

    /// A communicator: locations that belong together, such as the threads of a team. Its group is a
    /// [`GroupType::CommGroup`]. It is written when the archive is finished.
    ///
    /// # Errors
    /// See [`string`](Self::string).
    pub fn comm(&mut self, name: StringId, group: GroupId) -> io::Result<CommId> {
        let id = CommId(take_id(&mut self.next.comm));
        self.defer(COMM, |out| {
            encode::u32(out, id.0);
            encode::u32(out, name.0);
            encode::u32(out, group.0);
            encode::u32(out, UNDEFINED_U32); // parent
            encode::u32(out, NO_FLAGS);
        });
        Ok(id)
    }

    /// One quantity of a metric class.
    ///
    /// # Errors
    /// See [`string`](Self::string).
    pub fn metric_member(&mut self, member: MetricMember) -> io::Result<MetricMemberId> {
        let id = MetricMemberId(take_id(&mut self.next.metric_member));
        self.write(METRIC_MEMBER, |out| {
            encode::u32(out, id.0);
            encode::u32(out, member.name.0);
            encode::u32(out, member.description.0);
            out.push(METRIC_TYPE_OTHER);
            out.push(member.mode.into());
            out.push(member.ty.into());
            out.push(member.base.into());
            encode::i64(out, member.exponent);
            encode::u32(out, member.unit.0);
        })?;
        Ok(id)
    }

    /// A metric class: quantities that are recorded together.
    ///
    /// # Errors
    /// [`io::ErrorKind::InvalidInput`] if there are more than 255 members; and see [`string`](Self::string).
    pub fn metric_class(
        &mut self,
        members: &[MetricMemberId],
        occurrence: MetricOccurrence,
        recorder: RecorderKind,
    ) -> io::Result<MetricId> {
        let Ok(count) = u8::try_from(members.len()) else {
            let why = format!("metric class with {} members: the format allows at most 255", members.len());
            return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
        };
        let id = MetricId(take_id(&mut self.next.metric));
        self.write(METRIC_CLASS, |out| {
            encode::u32(out, id.0);
            out.push(count);
            for member in members {
                encode::u32(out, member.0);
            }
            out.push(occurrence.into());
            out.push(recorder.into());
        })?;
        Ok(id)
    }

    /// A metric instance: a class whose values one location records for another scope. The class is
    /// [`RecorderKind::Abstract`].
    ///
    /// It refers to locations, so it is written when the archive is finished. Classes and instances share one sequence
    /// of ids. Define all classes before the first instance, because some readers require ascending ids.
    ///
    /// # Errors
    /// See [`string`](Self::string).
    pub fn metric_instance(
        &mut self,
        class: MetricId,
        recorder: LocationId,
        scope: MetricScope,
    ) -> io::Result<MetricId> {
        let id = MetricId(take_id(&mut self.next.metric));
        let (kind, scope) = match scope {
            MetricScope::Location(location) => (SCOPES[0], location.0),
            MetricScope::LocationGroup(group) => (SCOPES[1], group.0.into()),
        };
        self.defer(METRIC_INSTANCE, |out| {
            encode::u32(out, id.0);
            encode::u32(out, class.0);
            encode::u64(out, recorder.0);
            out.push(kind);
            encode::u64(out, scope);
        });
        Ok(id)
    }

    pub(crate) fn location(
        &mut self,
        id: LocationId,
        name: StringId,
        ty: LocationType,
        group: LocationGroupId,
        events: u64,
    ) -> io::Result<()> {
        self.write(LOCATION, |out| {
            encode::u64(out, id.0);
            encode::u32(out, name.0);
            out.push(ty.into());
            encode::u64(out, events);
            encode::u32(out, group.0);
        })
    }

    /// Writes the deferred definitions, and ends the file. All locations must have been defined.
    pub(crate) fn finish(&mut self) -> io::Result<()> {
        for record in std::mem::take(&mut self.deferred) {
            self.chunks.definition(|out| out.extend_from_slice(&record))?;
            self.written += 1;
        }
        self.chunks.close();
        self.chunks.flush(&*self.storage, FILE, true)
    }

    fn write(&mut self, kind: u8, body: impl FnOnce(&mut Vec<u8>)) -> io::Result<()> {
        self.chunks.definition(|out| encode::record(out, kind, body))?;
        self.written += 1;
        if self.chunks.unwritten() >= FLUSH_AT {
            self.chunks.flush(&*self.storage, FILE, false)?;
        }
        Ok(())
    }

    fn defer(&mut self, kind: u8, body: impl FnOnce(&mut Vec<u8>)) {
        let mut record = Vec::new();
        encode::record(&mut record, kind, body);
        self.deferred.push(record);
    }
}
