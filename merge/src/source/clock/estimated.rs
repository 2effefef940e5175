//! A clock without a relation to the others. Its offset is estimated, and reported as an estimate.

use std::{
    collections::{BTreeMap, btree_map::Entry},
    path::Path as FilePath,
};

use sigmund_model::{ClockDomain, Hertz, Level, Loss, LossKind, Severity};

use super::{
    estimate::{self, Estimate, NoEstimate},
    graph::{Graph, Path, hertz},
    side_by_side::{Witness, levels},
    sightings::{Sighting, SightingKind},
};
use crate::{
    error::Error,
    merge::MergeOptions,
    source::{Inputs, OpenedInput, open_trace},
};

/// A wider bound than this makes answers about single events doubtful.
const WIDE_SECONDS: f64 = 1e-3;

/// Estimates a relation from `clock` to `main`, from the events of both. Returns its rows of `clocks` and of `losses`.
///
/// # Errors
/// If nothing bounds the offset, no offset is possible, or an input cannot be read again.
pub(super) fn reach(
    sources: &[OpenedInput],
    graph: &mut Graph,
    clock: ClockDomain,
    main: ClockDomain,
    options: &MergeOptions,
    stated: Option<Hertz>,
) -> Result<(Sighting, Loss), Error> {
    let with_clock = |s: &&OpenedInput| s.streams.iter().any(|stream| stream.clock == clock);
    let path = sources.iter().find(with_clock).map_or_else(Default::default, |s| s.path.clone());
    let tick_hz = graph.tsc_hz().or(stated);
    let rates =
        hertz(clock, tick_hz).zip(hertz(main, tick_hz)).map(|(of, to)| (of.per_second(), to.per_second()));
    let (of, to) = rates.ok_or_else(|| no_common_clock(&path, clock, main))?;
    let to_main = |other: ClockDomain| graph.path(other, main);
    let to_clock = |other: ClockDomain| graph.path(other, clock);
    let (known, unknown) = (witnesses(sources, options, to_main)?, witnesses(sources, options, to_clock)?);
    match estimate::estimate(known, unknown, to / of, to).map_err(Error::io(&path))? {
        Err(NoEstimate::NoEvidence) => Err(no_common_clock(&path, clock, main)),
        Err(NoEstimate::Contradiction) => {
            Err(Error::ClocksContradict { path, clock: clock.name(), main: main.name() })
        }
        Ok(found) => {
            let mut sighting = sighting(&found, clock, main, of / to);
            let rate = if sighting.against == main { of / to } else { to / of };
            graph.add_estimate(&mut sighting, rate, found.drift);
            Ok((sighting, note(&found, &path, clock, main, to)))
        }
    }
}

pub(super) fn no_common_clock(path: &FilePath, clock: ClockDomain, main: ClockDomain) -> Error {
    let advice = "record with clock snapshots, or name its clock with --clock";
    Error::NoCommonClock { path: path.to_path_buf(), clock: clock.name(), main: main.name(), advice }
}

/// The streams whose clock has a path, from their beginning: the inputs are opened once more.
pub(super) fn witnesses(
    sources: &[OpenedInput],
    options: &MergeOptions,
    way: impl Fn(ClockDomain) -> Option<Path>,
) -> Result<Vec<Witness>, Error> {
    let mut witnesses = Vec::new();
    let mut opened: BTreeMap<&FilePath, std::vec::IntoIter<OpenedInput>> = BTreeMap::new();
    for source in sources.iter().filter(|s| s.streams.iter().any(|stream| way(stream.clock).is_some())) {
        // A folder contains several sources, in the same order each time.
        let again = match opened.entry(&source.path) {
            Entry::Occupied(entry) => entry.into_mut(),
            Entry::Vacant(entry) => {
                entry.insert(open_trace(&source.path, &mut Inputs::default(), options)?.into_iter())
            }
        };
        let Some(again) = again.next() else { continue };
        let levels = levels(&again.types);
        for (stream, old) in again.streams.into_iter().zip(&source.streams) {
            witnesses.extend(way(old.clock).map(|path| Witness {
                events: stream.events,
                levels: levels.clone(),
                path,
            }));
        }
    }
    Ok(witnesses)
}

/// `back` is the units of the clock for one unit of the main clock.
fn sighting(found: &Estimate, clock: ClockDomain, main: ClockDomain, back: f64) -> Sighting {
    let bracket = |middle: u64, within: u64| (middle.saturating_sub(within), middle.saturating_add(within));
    if main < clock {
        let (before, after) = bracket(found.on, found.within);
        return Sighting::new(SightingKind::Estimated, (main, before, after), (clock, found.at));
    }
    let (before, after) = bracket(found.at, (found.within as f64 * back).ceil() as u64);
    Sighting::new(SightingKind::Estimated, (clock, before, after), (main, found.on))
}

fn note(found: &Estimate, path: &FilePath, clock: ClockDomain, main: ClockDomain, hertz: f64) -> Loss {
    let seconds = found.within as f64 / hertz;
    let detail = format!(
        "{}: no snapshot ties its clock {} to {}; by the events of {} LWPs it is known to ±{:.3} µs in the middle of \
         the recording, if at least half of it was recorded at the same time as the others, and its rate is right within {} ppm",
        path.display(),
        clock.name(),
        main.name(),
        found.lwps,
        seconds * 1e6,
        found.drift * 1e6,
    );
    let severity = if seconds > WIDE_SECONDS { Severity::Serious } else { Severity::Note };
    let advice = "record with clock snapshots";
    Loss { severity, advice, ..Loss::new(LossKind::NotRecorded, Level::Kern, detail) }
}
