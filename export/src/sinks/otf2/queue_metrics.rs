//! Queue lengths as metrics.

use std::io;

use otf2_writer::{
    Archive, Base, Event, Location, LocationGroupId, LocationId, LocationType, MetricId, MetricMember,
    MetricMode, MetricOccurrence, MetricScope, MetricValue, RecorderKind, Type,
};
use sigmund_model::Ticks;

use super::locations::{LocationKind, Locations};
use crate::timeline::{Actors, Counter, Track};

/// A metric for each queue, each at its own location.
#[derive(Debug)]
pub(super) struct QueueMetrics {
    ready: MetricId,
    run: MetricId,
    /// Location and metric of each queue: processes first, then CPUs.
    known: Vec<Option<(Location, MetricId)>>,
    processes: usize,
    /// The group of the CPUs, then the groups of the processes.
    groups: Vec<LocationGroupId>,
}

impl QueueMetrics {
    pub(super) fn new(
        archive: &mut Archive,
        actors: &Actors,
        groups: Vec<LocationGroupId>,
    ) -> io::Result<QueueMetrics> {
        let ready = class(archive, "ready queue", "ready user threads of the process", "threads")?;
        let run = class(archive, "run queue", "runnable LWPs that wait for the CPU", "LWPs")?;
        let processes = actors.processes.len();
        Ok(QueueMetrics { ready, run, known: vec![None; processes + actors.cpus.len()], processes, groups })
    }

    /// Sets the length of a queue.
    pub(super) fn count(
        &mut self,
        archive: &mut Archive,
        actors: &Actors,
        locations: &Locations,
        tick: Ticks,
        counter: Counter,
        value: u64,
    ) -> io::Result<()> {
        let index = match counter {
            Counter::ReadyQueue(process) => process.index(),
            Counter::RunQueue(cpu) => self.processes + cpu.index(),
        };
        let (location, metric) = match self.known[index] {
            Some(known) => known,
            None => {
                let defined = self.define(archive, actors, locations, counter, index)?;
                *self.known[index].insert(defined)
            }
        };
        archive.write(location, tick.0, Event::Metric(metric, &[MetricValue::U64(value)]), &[])
    }

    #[cold]
    fn define(
        &self,
        archive: &mut Archive,
        actors: &Actors,
        locations: &Locations,
        counter: Counter,
        index: usize,
    ) -> io::Result<(Location, MetricId)> {
        let id = LocationId(locations.first_free_id() + index as u64);
        let (label, class, group, scope) = match counter {
            Counter::ReadyQueue(process) => {
                let group = self.groups[1 + process.index()];
                (
                    format!("{}: ready queue", actors[process].label()),
                    self.ready,
                    group,
                    MetricScope::LocationGroup(group),
                )
            }
            Counter::RunQueue(cpu) => {
                let scope = MetricScope::Location(locations.location_id(Track::Cpu(cpu), LocationKind::Own));
                (format!("CPU {}: run queue", actors[cpu]), self.run, self.groups[0], scope)
            }
        };
        let name = archive.definitions().string(&label)?;
        let location = archive.add_location(id, name, LocationType::Metric, group)?;
        Ok((location, archive.definitions().metric_instance(class, id, scope)?))
    }
}

fn class(archive: &mut Archive, name: &str, description: &str, unit: &str) -> io::Result<MetricId> {
    let definitions = archive.definitions();
    let (name, description) = (definitions.string(name)?, definitions.string(description)?);
    let (mode, ty, base, exponent) = (MetricMode::AbsoluteNext, Type::U64, Base::Decimal, 0);
    let unit = definitions.string(unit)?;
    let member =
        definitions.metric_member(MetricMember { name, description, mode, ty, base, exponent, unit })?;
    definitions.metric_class(&[member], MetricOccurrence::Asynchronous, RecorderKind::Abstract)
}
