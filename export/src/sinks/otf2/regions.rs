//! Regions, each defined when it first occurs.

use std::{collections::HashMap, io};

use foldhash::fast::RandomState;
use otf2_writer::{Archive, GroupType, Paradigm, Region, RegionId, RegionRole, StringId};
use sigmund_model::LwpState;

use crate::timeline::{Actors, DetailedState, LwpId, Slice, SliceKind, ThreadId};

/// Maximum number of names of slices in the cache. A full cache is cleared.
const MAX_SLICES: usize = 1 << 18;
/// Maximum number of regions in a group; further ones are in no group.
const MAX_MEMBERS: usize = 1 << 18;

/// Kinds of regions; each kind is a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RegionClass {
    ThreadState,
    LwpState,
    Lwp,
    Thread,
    Slice(SliceKind),
    Event,
    Scheduling,
}

/// The groups' names, roles and paradigms, at [`RegionClass::index`].
const GROUPS: [(&str, RegionRole, Paradigm); 11] = [
    ("spans", RegionRole::Code, Paradigm::User),
    ("functions", RegionRole::Function, Paradigm::Compiler),
    ("system calls", RegionRole::Function, Paradigm::None),
    ("interrupts", RegionRole::Function, Paradigm::Hardware),
    ("softirqs", RegionRole::Function, Paradigm::None),
    ("thread states", RegionRole::Artificial, Paradigm::MeasurementSystem),
    ("LWP states", RegionRole::Artificial, Paradigm::MeasurementSystem),
    ("LWPs", RegionRole::Artificial, Paradigm::MeasurementSystem),
    ("user threads", RegionRole::Artificial, Paradigm::MeasurementSystem),
    ("events", RegionRole::Artificial, Paradigm::MeasurementSystem),
    ("scheduling", RegionRole::Artificial, Paradigm::MeasurementSystem),
];

impl RegionClass {
    fn index(self) -> usize {
        match self {
            RegionClass::Slice(kind) => kind as usize,
            RegionClass::ThreadState => 5,
            RegionClass::LwpState => 6,
            RegionClass::Lwp => 7,
            RegionClass::Thread => 8,
            RegionClass::Event => 9,
            RegionClass::Scheduling => 10,
        }
    }
}

/// All regions.
#[derive(Debug)]
pub(super) struct Regions {
    thread_states: [Option<RegionId>; DetailedState::COUNT],
    lwp_states: [Option<RegionId>; LwpState::ALL.len()],
    lwps: Vec<Option<RegionId>>,
    threads: Vec<Option<RegionId>>,
    slices: HashMap<(SliceKind, StringId), RegionId, RandomState>,
    wakeup: Option<RegionId>,
    migration: Option<RegionId>,
    members: [Vec<u64>; GROUPS.len()],
}

impl Regions {
    pub(super) fn new(actors: &Actors) -> Regions {
        Regions {
            thread_states: [None; DetailedState::COUNT],
            lwp_states: [None; LwpState::ALL.len()],
            lwps: vec![None; actors.lwps.len()],
            threads: vec![None; actors.threads.len()],
            slices: HashMap::default(),
            wakeup: None,
            migration: None,
            members: Default::default(),
        }
    }

    /// The region of a user thread's state.
    pub(super) fn thread_state(
        &mut self,
        archive: &mut Archive,
        detailed: DetailedState,
    ) -> io::Result<RegionId> {
        let known = &mut self.thread_states[detailed.index()];
        define_once(known, || define(&mut self.members, archive, RegionClass::ThreadState, detailed.name()))
    }

    /// The region of an LWP's state.
    pub(super) fn lwp_state(&mut self, archive: &mut Archive, state: LwpState) -> io::Result<RegionId> {
        let known = &mut self.lwp_states[state as usize];
        define_once(known, || define(&mut self.members, archive, RegionClass::LwpState, state.name()))
    }

    /// The region of an LWP on a CPU.
    pub(super) fn lwp(&mut self, archive: &mut Archive, actors: &Actors, lwp: LwpId) -> io::Result<RegionId> {
        let known = &mut self.lwps[lwp.index()];
        define_once(known, || define(&mut self.members, archive, RegionClass::Lwp, &actors[lwp].label()))
    }

    /// The region of a user thread on a CPU or an LWP.
    pub(super) fn thread(
        &mut self,
        archive: &mut Archive,
        actors: &Actors,
        thread: ThreadId,
    ) -> io::Result<RegionId> {
        let known = &mut self.threads[thread.index()];
        define_once(known, || {
            define(&mut self.members, archive, RegionClass::Thread, &actors.thread_label(thread))
        })
    }

    /// The region of wakeups.
    pub(super) fn wakeup(&mut self, archive: &mut Archive) -> io::Result<RegionId> {
        define_once(&mut self.wakeup, || {
            define(&mut self.members, archive, RegionClass::Scheduling, "wakeup")
        })
    }

    /// The region of migrations.
    pub(super) fn migration(&mut self, archive: &mut Archive) -> io::Result<RegionId> {
        define_once(&mut self.migration, || {
            define(&mut self.members, archive, RegionClass::Scheduling, "migration")
        })
    }

    /// A new region for a declared event.
    pub(super) fn event(&mut self, archive: &mut Archive, name: &str) -> io::Result<RegionId> {
        define(&mut self.members, archive, RegionClass::Event, name)
    }

    /// The region of slices of this kind and name.
    pub(super) fn slice(&mut self, archive: &mut Archive, slice: Slice<'_>) -> io::Result<RegionId> {
        let key = (slice.kind, archive.definitions().string(slice.name)?);
        if let Some(&region) = self.slices.get(&key) {
            return Ok(region);
        }
        let region = define(&mut self.members, archive, RegionClass::Slice(slice.kind), slice.name)?;
        if self.slices.len() >= MAX_SLICES {
            self.slices.clear();
        }
        self.slices.insert(key, region);
        Ok(region)
    }

    /// Defines the groups of regions.
    pub(super) fn group(&self, archive: &mut Archive) -> io::Result<()> {
        let definitions = archive.definitions();
        for ((name, _, _), members) in GROUPS.iter().zip(&self.members) {
            if members.is_empty() {
                continue;
            }
            let name = definitions.string(name)?;
            definitions.group(name, GroupType::Regions, Paradigm::Unknown, members)?;
        }
        Ok(())
    }
}

#[inline]
fn define_once(
    known: &mut Option<RegionId>,
    define: impl FnOnce() -> io::Result<RegionId>,
) -> io::Result<RegionId> {
    match *known {
        Some(region) => Ok(region),
        None => Ok(*known.insert(define()?)),
    }
}

#[cold]
fn define(
    members: &mut [Vec<u64>; GROUPS.len()],
    archive: &mut Archive,
    class: RegionClass,
    name: &str,
) -> io::Result<RegionId> {
    let definitions = archive.definitions();
    let name = definitions.string(name)?;
    let (_, role, paradigm) = GROUPS[class.index()];
    let region = definitions.region(Region { name, description: StringId::EMPTY, role, paradigm })?;
    let members = &mut members[class.index()];
    if members.len() < MAX_MEMBERS {
        members.push(region.0.into());
    }
    Ok(region)
}
