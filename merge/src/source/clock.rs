//! The main clock of a merge, and sources brought over to it.

use std::{collections::BTreeMap, io};

use sigmund_model::{ClockDomain, ClockFit, Event, EventStream, Hertz, Loss, Nanos, Snapshot};

use super::Source;
use crate::error::Error;

/// The clock that all events are put on, and what is known about it.
pub(crate) struct MainClock {
    pub(crate) domain: ClockDomain,
    /// Its ticks per second; `None` when nobody knows.
    pub(crate) tick_hz: Option<Hertz>,
    /// The lines through the snapshots of each other clock.
    pub(crate) fits: BTreeMap<ClockDomain, ClockFit>,
    pub(crate) snapshots: Vec<(ClockDomain, Snapshot)>,
}

impl MainClock {
    /// Chooses the clock, and brings the sources on it: the TSC if any has it, the common one otherwise.
    pub(crate) fn choose(sources: &mut [Source], hz: Option<Hertz>) -> Result<MainClock, Error> {
        let mut snapshots: Vec<_> = sources.iter().flat_map(|s| s.snapshots.iter().copied()).collect();
        snapshots.sort_by_key(|(domain, snapshot)| (*domain, snapshot.before));
        snapshots.dedup();
        let fits = fits(&snapshots);
        let mut clocks = sources.iter().flat_map(|s| &s.streams).map(|stream| stream.clock);
        let first = clocks.clone().next().unwrap_or(ClockDomain::Ticks);
        let domain = if clocks.any(|clock| clock == ClockDomain::Tsc) { ClockDomain::Tsc } else { first };
        for source in sources.iter_mut() {
            for stream in source.streams.iter_mut().filter(|stream| stream.clock != domain) {
                let fit = fits.get(&stream.clock).filter(|_| domain == ClockDomain::Tsc);
                let Some(fit) = fit.copied() else {
                    return Err(Error::NoCommonClock {
                        path: source.path.clone(),
                        clock: stream.clock.name(),
                        main: domain.name(),
                        advice: "record with clock snapshots, or name its clock with --clock",
                    });
                };
                let events = std::mem::replace(&mut stream.events, Box::new(Nothing));
                stream.events = Box::new(Brought { stream: events, fit });
            }
        }
        let stated = sources.iter().find_map(|s| s.tick_hz);
        let tick_hz = hz.or(stated).or_else(|| rate(domain, &fits));
        Ok(MainClock { domain, tick_hz, fits, snapshots })
    }
}

fn rate(domain: ClockDomain, fits: &BTreeMap<ClockDomain, ClockFit>) -> Option<Hertz> {
    match domain {
        // RAW is not slewed by NTP; the others are next best.
        ClockDomain::Tsc => [ClockDomain::MonotonicRaw, ClockDomain::Monotonic, ClockDomain::Boottime]
            .iter()
            .find_map(|other| fits.get(other))
            .map(ClockFit::rate),
        ClockDomain::Ticks => None,
        _ => Hertz::new(1e9),
    }
}

fn fits(snapshots: &[(ClockDomain, Snapshot)]) -> BTreeMap<ClockDomain, ClockFit> {
    let mut by_domain: BTreeMap<ClockDomain, Vec<Snapshot>> = BTreeMap::new();
    for (domain, snapshot) in snapshots {
        by_domain.entry(*domain).or_default().push(*snapshot);
    }
    by_domain.into_iter().filter_map(|(domain, all)| Some((domain, ClockFit::through(&all)?))).collect()
}

/// No events: stands for a stream while it is being replaced.
struct Nothing;

impl EventStream for Nothing {
    fn next_into(&mut self, _: &mut Event) -> io::Result<bool> {
        Ok(false)
    }

    fn take_losses(&mut self) -> Vec<Loss> {
        Vec::new()
    }
}

/// A stream of another clock, in nanoseconds, brought over to the TSC.
struct Brought {
    stream: Box<dyn EventStream + Send>,
    fit: ClockFit,
}

impl EventStream for Brought {
    fn next_into(&mut self, event: &mut Event) -> io::Result<bool> {
        let more = self.stream.next_into(event)?;
        event.tick = self.fit.to_tick(Nanos(event.tick.0));
        Ok(more)
    }

    fn take_losses(&mut self) -> Vec<Loss> {
        let mut losses = self.stream.take_losses();
        for loss in &mut losses {
            loss.from = loss.from.map(|tick| self.fit.to_tick(Nanos(tick.0)));
            loss.to = loss.to.map(|tick| self.fit.to_tick(Nanos(tick.0)));
        }
        losses
    }
}
