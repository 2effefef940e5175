//! Communicators: which user threads belong together, as contingents that are created one by one, and as teams.
//!
//! Each is a group of places in the list of all locations of its paradigm, which is the list of all user threads: a place is
//! the index of a thread.

use std::io;

use super::actors::{Actors, Lane};
use crate::{
    otf2::{Archive, CommId, GroupType, Paradigm, ParadigmClass, StringId},
    timeline::{Cast, ProcessId, Track},
};

/// Of threads that are created, and waited for.
const CONTINGENTS: Paradigm = Paradigm::Pthread;

/// Of threads that are forked, and joined. OTF2 has no paradigm of that kind in general; this is the one that is best
/// known, and it is defined under a name of our own.
pub(super) const TEAMS: Paradigm = Paradigm::OpenMp;

/// The contingent of each of these processes: its user threads.
pub(super) fn contingents(
    archive: &mut Archive,
    cast: &Cast,
    actors: &Actors,
    processes: impl Iterator<Item = ProcessId>,
) -> io::Result<Vec<Option<CommId>>> {
    let mut members: Vec<Option<Vec<u64>>> = vec![None; cast.processes.len()];
    for process in processes {
        members[process.index()].get_or_insert_default();
    }
    if members.iter().all(Option::is_none) {
        return Ok(vec![None; members.len()]);
    }
    for (place, thread) in cast.threads.iter().enumerate() {
        if let Some(members) = &mut members[thread.process.index()] {
            members.push(place as u64);
        }
    }
    let name = archive.definitions().string("user threads")?;
    paradigm(archive, cast, actors, (CONTINGENTS, ParadigmClass::ThreadCreateWait), name)?;
    let mut contingent = |members: Vec<u64>| comm(archive, CONTINGENTS, name, &members);
    members.into_iter().map(|members| members.map(&mut contingent).transpose()).collect()
}

/// The communicator of each team: who forked it, then its members.
pub(super) fn team_comms(archive: &mut Archive, cast: &Cast, actors: &Actors) -> io::Result<Vec<CommId>> {
    if cast.teams.is_empty() {
        return Ok(Vec::new());
    }
    let name = archive.definitions().string("teams of user threads")?;
    paradigm(archive, cast, actors, (TEAMS, ParadigmClass::ThreadForkJoin), name)?;
    let mut comms = Vec::with_capacity(cast.teams.len());
    for team in &cast.teams {
        let members: Vec<u64> =
            std::iter::once(team.by).chain(team.members.iter().copied()).map(|id| id.0.into()).collect();
        let name = archive.definitions().string(&format!("team of {}", cast[team.by].label()))?;
        comms.push(comm(archive, TEAMS, name, &members)?);
    }
    Ok(comms)
}

/// Defines a paradigm, and all its locations: those of the user threads.
fn paradigm(
    archive: &mut Archive,
    cast: &Cast,
    actors: &Actors,
    (paradigm, class): (Paradigm, ParadigmClass),
    name: StringId,
) -> io::Result<()> {
    let all: Vec<u64> =
        cast.thread_ids().map(|id| actors.location_id(Track::Thread(id), Lane::Own).0).collect();
    let definitions = archive.definitions();
    definitions.paradigm(paradigm, name, class)?;
    definitions.group(StringId::EMPTY, GroupType::CommLocations, paradigm, &all)?;
    Ok(())
}

fn comm(archive: &mut Archive, paradigm: Paradigm, name: StringId, members: &[u64]) -> io::Result<CommId> {
    let definitions = archive.definitions();
    let group = definitions.group(name, GroupType::CommGroup, paradigm, members)?;
    definitions.comm(name, group)
}
