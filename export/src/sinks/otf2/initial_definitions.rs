//! The definitions that are written before the first change.

use std::io;

use otf2_writer::{
    Archive, AttributeId, ClockProperties, LocationGroupId, LocationGroupType, Options, StringId,
    SystemTreeDomain, Type,
};
use sigmund_files::Folder;

use super::{
    Attributes, folder_storage::FolderStorage, lifetimes::ThreadLifetimes, locations::Locations,
    queue_metrics::QueueMetrics,
};
use crate::timeline::{Actors, Clock};

/// The resolution if the clock's rate is unknown: a tick counts as a nanosecond.
const UNKNOWN_RATE: u64 = 1_000_000_000;

pub(super) struct InitialDefinitions {
    pub(super) archive: Archive,
    pub(super) attributes: Attributes,
    pub(super) locations: Locations,
    pub(super) queue_metrics: QueueMetrics,
    pub(super) lifetimes: ThreadLifetimes,
}

impl InitialDefinitions {
    pub(super) fn create(
        folder: Folder,
        actors: &Actors,
        options: Options,
    ) -> io::Result<InitialDefinitions> {
        let mut archive = Archive::create_in(FolderStorage::new(folder)?, clock(&actors.clock), options)?;
        let attributes = attributes(&mut archive)?;
        let groups = groups(&mut archive, actors)?;
        let locations = Locations::new(&mut archive, actors, &groups)?;
        let queue_metrics = QueueMetrics::new(&mut archive, actors, groups)?;
        let lifetimes = ThreadLifetimes::new(&mut archive, actors, &locations)?;
        Ok(InitialDefinitions { archive, attributes, locations, queue_metrics, lifetimes })
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

/// The location groups of the CPUs, then of the processes.
fn groups(archive: &mut Archive, actors: &Actors) -> io::Result<Vec<LocationGroupId>> {
    let definitions = archive.definitions();
    let name = definitions.string("machine")?;
    let machine = definitions.system_tree_node(name, name, None)?;
    definitions.system_tree_node_domain(machine, SystemTreeDomain::Machine)?;
    let name = definitions.string("CPUs")?;
    let mut groups = vec![definitions.location_group(name, LocationGroupType::Unknown, machine)?];

    // A group of type process must have threads.
    let mut types = vec![LocationGroupType::Unknown; actors.processes.len()];
    let lwps = actors.lwps.iter().map(|lwp| lwp.process);
    for process in lwps.chain(actors.threads.iter().map(|thread| thread.process)) {
        types[process.index()] = LocationGroupType::Process;
    }
    for (process, ty) in actors.processes.iter().zip(types) {
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
        by: define("by", "the waker", Type::Location)?,
        from: define("from", "the CPU or LWP that it left", Type::Location)?,
        to: define("to", "the CPU or LWP that it arrived on", Type::Location)?,
        context: define("context", "the context of the CPU: task, irq, softirq …", Type::String)?,
        cpu_seen: define("cpu_seen", "the CPU read by the probe", Type::U64)?,
    })
}
