//! What is defined before anything happens.

use std::io;

use sigmund_files::Folder;

use super::{Attributes, actors::Actors, births::Births, queues::Queues};
use crate::{
    otf2::{
        Archive, AttributeId, ClockProperties, LocationGroupId, LocationGroupType, Options, StringId,
        SystemTreeDomain, Type,
    },
    timeline::{Cast, Clock},
};

/// The resolution of a clock whose rate nobody knows: one tick a nanosecond.
const UNKNOWN_RATE: u64 = 1_000_000_000;

pub(super) struct Setting {
    pub(super) archive: Archive,
    pub(super) attributes: Attributes,
    pub(super) actors: Actors,
    pub(super) queues: Queues,
    pub(super) births: Births,
}

impl Setting {
    pub(super) fn create(folder: Folder, cast: &Cast, options: Options) -> io::Result<Setting> {
        let mut archive = Archive::create_in(folder, clock(&cast.clock), options)?;
        let attributes = attributes(&mut archive)?;
        let groups = groups(&mut archive, cast)?;
        let actors = Actors::new(&mut archive, cast, &groups)?;
        let queues = Queues::new(&mut archive, cast, groups)?;
        let births = Births::new(&mut archive, cast, &actors)?;
        Ok(Setting { archive, attributes, actors, queues, births })
    }
}

fn clock(clock: &Clock) -> ClockProperties {
    ClockProperties {
        resolution: clock.rate.map_or(UNKNOWN_RATE, |rate| rate.per_second().round().max(1.0) as u64),
        offset: clock.first.0,
        length: clock.last.0.saturating_sub(clock.first.0),
        realtime: clock.realtime_at_first.and_then(|nanos| u64::try_from(nanos).ok()),
    }
}

/// The CPUs, then the processes.
fn groups(archive: &mut Archive, cast: &Cast) -> io::Result<Vec<LocationGroupId>> {
    let definitions = archive.definitions();
    let name = definitions.string("machine")?;
    let machine = definitions.system_tree_node(name, name, None)?;
    definitions.system_tree_node_domain(machine, SystemTreeDomain::Machine)?;
    let name = definitions.string("CPUs")?;
    let mut groups = vec![definitions.location_group(name, LocationGroupType::Unknown, machine)?];

    // A process has to have threads.
    let mut types = vec![LocationGroupType::Unknown; cast.processes.len()];
    let lwps = cast.lwps.iter().map(|lwp| lwp.process);
    for process in lwps.chain(cast.threads.iter().map(|thread| thread.process)) {
        types[process.index()] = LocationGroupType::Process;
    }
    for (process, ty) in cast.processes.iter().zip(types) {
        let name = definitions.string(&process.label())?;
        groups.push(definitions.location_group(name, ty, machine)?);
    }
    Ok(groups)
}

fn attributes(archive: &mut Archive) -> io::Result<Attributes> {
    let definitions = archive.definitions();
    let mut define = |name: &str, description: &str, ty| -> io::Result<AttributeId> {
        let (name, description): (StringId, StringId) =
            (definitions.string(name)?, definitions.string(description)?);
        definitions.attribute(name, description, ty)
    };
    Ok(Attributes {
        cpu: define("cpu", "the CPU it runs on, or left", Type::Location)?,
        lwp: define("lwp", "the LWP it is mounted on", Type::Location)?,
        thread: define("thread", "the user thread that was executing", Type::Location)?,
        blocked_on: define("blocked_on", "the object it waits for", Type::I64)?,
        by: define("by", "who woke it", Type::Location)?,
        from: define("from", "where it was before", Type::Location)?,
        to: define("to", "where it goes on", Type::Location)?,
        context: define("context", "what the CPU was doing", Type::String)?,
        cpu_seen: define("cpu_seen", "the CPU that the probe saw", Type::U64)?,
    })
}
