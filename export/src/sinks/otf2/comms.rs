//! Communicators: the user threads of a process, and the user threads of a team.
//!
//! A communicator is a group of indices into the list of all locations of its paradigm: the list of all user threads.

use std::io;

use otf2_writer::{Archive, CommId, GroupType, Paradigm, ParadigmClass, StringId};

use super::locations::{LocationKind, Locations};
use crate::timeline::{Actors, ProcessId, Track};

/// The paradigm of threads that are created and waited for.
const CREATED_THREADS: Paradigm = Paradigm::Pthread;

/// The paradigm of threads that are forked and joined. OTF2 has no generic one, so OpenMP's is used, and is defined
/// with another name.
pub(super) const TEAMS: Paradigm = Paradigm::OpenMp;

/// Defines the communicator of each of these processes: its user threads.
pub(super) fn process_comms(
    archive: &mut Archive,
    actors: &Actors,
    locations: &Locations,
    processes: impl Iterator<Item = ProcessId>,
) -> io::Result<Vec<Option<CommId>>> {
    let mut members: Vec<Option<Vec<u64>>> = vec![None; actors.processes.len()];
    for process in processes {
        members[process.index()].get_or_insert_default();
    }
    if members.iter().all(Option::is_none) {
        return Ok(vec![None; members.len()]);
    }
    for (place, thread) in actors.threads.iter().enumerate() {
        if let Some(members) = &mut members[thread.process.index()] {
            members.push(place as u64);
        }
    }
    let name = archive.definitions().string("user threads")?;
    paradigm(archive, actors, locations, (CREATED_THREADS, ParadigmClass::ThreadCreateWait), name)?;
    let mut process_comm = |members: Vec<u64>| comm(archive, CREATED_THREADS, name, &members);
    members.into_iter().map(|members| members.map(&mut process_comm).transpose()).collect()
}

/// Defines the communicator of each team: the thread that forked it, then its members.
pub(super) fn team_comms(
    archive: &mut Archive,
    actors: &Actors,
    locations: &Locations,
) -> io::Result<Vec<CommId>> {
    if actors.teams.is_empty() {
        return Ok(Vec::new());
    }
    let name = archive.definitions().string("teams of user threads")?;
    paradigm(archive, actors, locations, (TEAMS, ParadigmClass::ThreadForkJoin), name)?;
    let mut comms = Vec::with_capacity(actors.teams.len());
    for team in &actors.teams {
        let members: Vec<u64> =
            std::iter::once(team.by).chain(team.members.iter().copied()).map(|id| id.0.into()).collect();
        let name = archive.definitions().string(&format!("team of {}", actors.thread_label(team.by)))?;
        comms.push(comm(archive, TEAMS, name, &members)?);
    }
    Ok(comms)
}

/// Defines a paradigm and its locations, which are those of all user threads.
fn paradigm(
    archive: &mut Archive,
    actors: &Actors,
    locations: &Locations,
    (paradigm, class): (Paradigm, ParadigmClass),
    name: StringId,
) -> io::Result<()> {
    let all: Vec<u64> =
        actors.thread_ids().map(|id| locations.location_id(Track::Thread(id), LocationKind::Own).0).collect();
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
