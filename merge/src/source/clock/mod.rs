//! The main clock of a merge, and the conversion of sources to it.
//!
//! ```text
//!   snapshots, stated pairs           sightings.rs   which to trust; residuals and bounds
//!          ▼
//!   ways between clocks               graph.rs       composed where two clocks meet in a third
//!          │                          estimate/      where there is none: from events that bound each other
//!          ▼
//!   streams on the main clock         streams.rs
//! ```

mod align;
mod estimate;
mod estimated;
mod feasible;
mod graph;
mod side_by_side;
mod sightings;
mod streams;

use std::sync::Arc;

use sigmund_model::{ClockDomain, Hertz, Level, Loss};

pub(crate) use self::sightings::Sighting;
pub(super) use self::streams::Nothing;
use self::{
    align::{Aligned, Skews},
    graph::{Graph, Path, hertz},
    streams::{RebasedStream, rebase_losses},
};
use super::OpenedInput;
use crate::{error::Error, merge::MergeOptions};

/// The clock to which all events are converted, and what is known about it.
pub(crate) struct MainClock {
    pub(crate) domain: ClockDomain,
    /// Its ticks per second; `None` if unknown.
    pub(crate) tick_hz: Option<Hertz>,
    /// Whether the rate comes from the options, because the inputs do not state it.
    pub(crate) is_rate_assumed: bool,
    /// Every instant that was read on two clocks.
    pub(crate) sightings: Vec<Sighting>,
}

impl MainClock {
    /// Chooses the clock, and converts the sources to it: the TSC if any source has it, otherwise the steadiest clock.
    pub(crate) fn choose(sources: &mut [OpenedInput], options: &MergeOptions) -> Result<MainClock, Error> {
        if options.align_cpus {
            align_cpus(sources, options)?;
        }
        let of_inputs = sources.iter().find_map(|s| s.tick_hz);
        let stated = of_inputs.or(options.tick_hz);
        let mut sightings = sightings_of(sources);
        let mut graph = Graph::new(&mut sightings, stated);
        let domain = main_domain(sources);
        let unreached = |graph: &Graph, sources: &[OpenedInput]| {
            let mut clocks = sources.iter().flat_map(|s| &s.streams).map(|stream| stream.clock);
            clocks.find(|clock| graph.path(*clock, domain).is_none())
        };
        while let Some(clock) = unreached(&graph, sources) {
            let (sighting, loss) = estimated::reach(sources, &mut graph, clock, domain, options, stated)?;
            sightings.push(sighting);
            sources[0].losses.push(loss);
        }
        for source in sources.iter_mut() {
            rebase_source(source, &graph, domain)?;
        }
        let measured = graph.tsc_hz().filter(|_| domain == ClockDomain::Tsc);
        let known = measured.or_else(|| hertz(domain, of_inputs));
        let is_rate_assumed = known.is_none() && options.tick_hz.is_some();
        Ok(MainClock { domain, tick_hz: known.or_else(|| hertz(domain, stated)), is_rate_assumed, sightings })
    }
}

/// Corrects the stamps of CPUs whose time-stamp counters differ.
fn align_cpus(sources: &mut [OpenedInput], options: &MergeOptions) -> Result<(), Error> {
    let tsc = |clock| (clock == ClockDomain::Tsc).then(Path::default);
    let kernel = |source: &&OpenedInput| source.types.iter().any(|t| t.level == Level::Kern);
    let Some(path) = sources.iter().find(kernel).map(|source| source.path.clone()) else { return Ok(()) };
    let skews = align::skews(estimated::witnesses(sources, options, tsc)?).map_err(Error::io(&path))?;
    let notes = skews.as_ref().map_or_else(|why| vec![why.note()], Skews::notes);
    sources[0].losses.extend(notes);
    let Some(skews) = skews.ok().filter(|skews| !skews.is_empty()) else { return Ok(()) };
    let skews = Arc::new(skews);
    for stream in sources.iter_mut().flat_map(|s| &mut s.streams).filter(|s| s.clock == ClockDomain::Tsc) {
        let events = std::mem::replace(&mut stream.events, Box::new(Nothing));
        stream.events = Box::new(Aligned { stream: events, skews: Arc::clone(&skews) });
    }
    Ok(())
}

/// The TSC, or otherwise the first clock in the order of [`ClockDomain`]. The wall clock comes last, because it may be
/// set.
fn main_domain(sources: &[OpenedInput]) -> ClockDomain {
    let clocks = sources.iter().flat_map(|s| &s.streams).map(|stream| stream.clock);
    clocks.min_by_key(|clock| (*clock == ClockDomain::Realtime, *clock)).unwrap_or(ClockDomain::Ticks)
}

fn sightings_of(sources: &[OpenedInput]) -> Vec<Sighting> {
    let snapshots = sources.iter().flat_map(|s| &s.snapshots);
    let pairs = sources.iter().flat_map(|s| &s.clock_pairs);
    let mut all: Vec<Sighting> = snapshots
        .map(|(domain, snapshot)| Sighting::of_snapshot(*domain, snapshot))
        .filter(|sighting| sighting.domain != ClockDomain::Tsc)
        .chain(pairs.filter_map(Sighting::of_pair))
        .collect();
    all.sort_by_key(|s| (s.against, s.domain, s.before, s.after, s.value));
    all.dedup();
    all
}

fn rebase_source(source: &mut OpenedInput, graph: &Graph, main: ClockDomain) -> Result<(), Error> {
    let Some(first) = source.streams.first().map(|stream| stream.clock) else { return Ok(()) };
    for stream in source.streams.iter_mut().filter(|stream| stream.clock != main) {
        let no_way = || estimated::no_common_clock(&source.path, stream.clock, main);
        let path = graph.path(stream.clock, main).ok_or_else(no_way)?;
        let events = std::mem::replace(&mut stream.events, Box::new(Nothing));
        stream.events = Box::new(RebasedStream { stream: events, path });
        stream.clock = main;
    }
    rebase_head_losses(&mut source.losses, graph.path(first, main));
    Ok(())
}

/// Converts the losses that a file's header reports. They are on the clock of its first buffer.
fn rebase_head_losses(losses: &mut [Loss], path: Option<Path>) {
    if let Some(mut path) = path {
        rebase_losses(losses, &mut path);
    }
}

#[cfg(test)]
mod tests;
